"""Suspects near the limit are tested more often, and a slow node does not move a cut."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.cluster.simulated_clusters import SimulatedCluster, survey
from waywiser.analysis.cluster.controls import MOST_TIMES, may_be_slow
from waywiser.analysis.cluster.groups import DISTANCE
from waywiser.analysis.cluster.ragged_rows import rows_of
from waywiser.analysis.cluster.schedule import neighbours
from waywiser.analysis.cluster.state import ClusterState
from waywiser.words.cluster import FinishedTest, PlannedTest

LIMIT = np.array([0.02])
FAST, SLOW = 0.0, 0.05


@pytest.mark.parametrize(
    ("fast", "slow", "may_be"),
    [(0, 5, True), (1, 4, True), (2, 1, False), (2, 3, True), (2, 8, True), (3, 7, False)],
)
def test_a_suspect_is_refuted_when_more_than_half_are_fast_or_too_many(
    fast: int, slow: int, may_be: bool
) -> None:
    """Five tests may have one fast test, and ten may have two."""
    times = np.array([FAST] * fast + [SLOW] * slow).reshape(-1, 1, 1)
    rows = rows_of(np.zeros(len(times), dtype=np.int64), times, 1)
    assert may_be_slow(rows, LIMIT, (5, 1)).tolist() == [[[may_be]]]


def alone_of(cluster: SimulatedCluster, node: str) -> tuple[int, bool]:
    """How many tests alone a node gets, and whether it is called slow."""
    done = survey(cluster, cluster.plan(groups=True))
    alone = [t.nodes for each in done.rounds if each.phase == "alone" for t in each.tests]
    return sum(node in nodes for nodes in alone), node in done.verdict.of("slow")


def whole_node(node: int, slowness: float) -> dict[tuple[int, int, int], float]:
    return {(node, -1, way): slowness for way in (0, 1)}


def test_only_a_suspect_near_the_limit_is_tested_twice_as_often() -> None:
    found = {}
    for slowness in (0.05, 0.3):
        for seed in range(2):
            slow = whole_node(9, slowness)
            cluster = SimulatedCluster(48, np.random.default_rng([seed, 7]), slow=slow)
            found[slowness, seed] = alone_of(cluster, "n09")
    assert all(is_slow for _, is_slow in found.values())
    assert {tests for (slowness, _), (tests, _) in found.items() if slowness == 0.3} == {5}
    near = {tests for (slowness, _), (tests, _) in found.items() if slowness == 0.05}
    assert max(near) == 5 * MOST_TIMES and near <= {5, 6, 7, 8, 9, 10}


def found_cuts(cluster: SimulatedCluster) -> list[int]:
    """The first nodes of groups that the tests of neighbours show."""
    finished: list[FinishedTest] = []
    for distance in range(1, DISTANCE + 1):
        pairs = neighbours(range(cluster.nodes), distance)
        names = [(cluster.names[a], cluster.names[b]) for a, b in pairs]
        finished += cluster.run([PlannedTest("pairs", distance, each) for each in names])
    groups = ClusterState(cluster.members, cluster.plan(), finished).rounds.group_of
    return (np.flatnonzero(np.diff(groups)) + 1).tolist()


@pytest.mark.parametrize("node", [15, 16, 18, 45, 47])
def test_a_slow_node_beside_a_cut_does_not_move_it(node: int) -> None:
    right = [cut for cut in (16, 32, 48) if abs(cut - node) <= DISTANCE]
    found = []
    for seed in range(8):
        rng = np.random.default_rng([seed, node])
        cuts = found_cuts(SimulatedCluster(64, rng, slow=whole_node(node, 0.05)))
        found.append([cut for cut in cuts if abs(cut - node) <= DISTANCE])
    assert found.count(right) >= 7, found
