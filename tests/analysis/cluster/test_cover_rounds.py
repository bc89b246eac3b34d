"""Every pair of good nodes is tested, however few can run at once, or the verdict says how many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from analysis.cluster.simulated_clusters import SimulatedCluster, failure, survey
from waywiser.analysis.cluster import cover_rounds
from waywiser.analysis.cluster.cover_rounds import ALL_PAIRS, PART_ROUNDS
from waywiser.analysis.cluster.procedure import next_round
from waywiser.analysis.cluster.schedule import matchings
from waywiser.analysis.cluster.texts import answer
from waywiser.analysis.cluster.verdict import verdict
from waywiser.words.cluster import FailedTest, FinishedTest, PlannedTest


@given(some.integers(2, 70), some.integers(0, 9))
@settings(max_examples=30, deadline=None)
def test_one_round_less_than_nodes_has_every_pair_once(nodes: int, seed: int) -> None:
    rounds = matchings(range(nodes), nodes, np.random.default_rng(seed))
    pairs = [frozenset(pair) for each in rounds for pair in each]
    assert len(set(pairs)) == len(pairs) == nodes * (nodes - 1) // 2
    assert len(rounds) == nodes - 1 + nodes % 2
    assert all(len({n for pair in each for n in pair}) == 2 * len(each) for each in rounds)


def pairs_of(tests: Sequence[PlannedTest]) -> set[frozenset[str]]:
    return {frozenset(each.nodes) for each in tests if len(each.nodes) == 2}


@pytest.mark.parametrize(
    ("nodes", "groups", "planted"),
    [
        (21, False, {}),
        (33, True, {"group_size": 8}),
        (24, True, {"group_size": 8, "uplinks": 3}),
        (24, False, {"group_size": 8, "uplinks": 3, "shuffled": True}),
    ],
)
def test_every_pair_is_tested(nodes: int, groups: bool, planted: dict[str, object]) -> None:
    cluster = SimulatedCluster(nodes, np.random.default_rng(nodes), **planted)  # type: ignore[arg-type]
    done = survey(cluster, cluster.plan(groups=groups))
    pairs = nodes * (nodes - 1) // 2
    assert len(pairs_of([t for each in done.rounds for t in each.tests])) == pairs
    coverage = done.verdict.coverage
    assert (coverage.nodes, coverage.pairs, coverage.tested) == (nodes, pairs, pairs)
    assert f"all {pairs} pairs of {nodes} nodes were tested, and no pair is slow" in answer(
        done.verdict
    )


def test_pairs_that_share_uplinks_are_not_slow_and_one_that_is_slow_is_found() -> None:
    planted = {"group_size": 6, "uplinks": 2, "slow_pairs": {(1, 20): 0.25}}
    cluster = SimulatedCluster(24, np.random.default_rng(8), **planted)  # type: ignore[arg-type]
    done = survey(cluster, cluster.plan(groups=True))
    (finding,) = done.verdict.findings
    assert (finding.id, finding.nodes) == ("slow pair", ("n01", "n20"))
    alone = [r for r in done.rounds if r.phase == "pair"]
    assert sum(frozenset(finding.nodes) in pairs_of(each.tests) for each in alone) >= 7


def test_a_pair_that_always_fails_is_found_wherever_it_is() -> None:
    for pair in ({"n03", "n17"}, {"n00", "n01"}, {"n10", "n25"}):

        def fail(test: PlannedTest, bad: set[str] = pair) -> FailedTest | None:
            return failure("timeout") if set(test.nodes) == bad else None

        cluster = SimulatedCluster(26, np.random.default_rng(3), group_size=13, fail=fail)
        done = survey(cluster, cluster.plan(groups=True))
        (finding,) = done.verdict.findings
        assert (finding.id, set(finding.nodes)) == ("failed pair", pair)
        assert done.verdict.coverage.share == 1


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_a_node_that_fails_now_and_then_fails_by_itself(share: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, 4])

        def fail(test: PlannedTest, rng: np.random.Generator = rng) -> FailedTest | None:
            fails = "n05" in test.nodes and rng.random() < share
            return failure("timeout") if fails else None

        cluster = SimulatedCluster(40, np.random.default_rng(seed), fail=fail)
        done = survey(cluster, cluster.plan(groups=True))
        assert done.verdict.of("failed") == ("n05",)
        assert {each.id for each in done.verdict.findings} == {"failed node"}


def test_rounds_without_time_end_at_once_and_the_verdict_says_what_was_not_tested() -> None:
    cluster = SimulatedCluster(40, np.random.default_rng(5))
    plan = cluster.plan(groups=True)
    finished: list[FinishedTest] = []
    cover = 0
    while following := next_round(cluster.members, plan, finished):
        if following.phase == "cover":
            cover += 1
            if cover > 3:
                cluster.fail = lambda test: failure("skipped")
        finished += cluster.run(following.tests)
        cluster.fail = lambda test: None
    assert cover == 4
    kept = [each for each in finished if not each.failed]
    result = verdict(cluster.members, plan, kept)
    assert not result.complete
    assert 0.2 < result.coverage.share < 0.9
    assert f"({result.coverage.tested} of 780); a single slow pair would have been" in answer(
        result
    )


def test_of_more_nodes_each_is_tested_with_as_many() -> None:
    nodes = ALL_PAIRS + 14
    planned = cover_rounds._matched(7, tuple(range(nodes)), nodes)
    assert len(planned) == PART_ROUNDS * nodes // 2 == len(set(planned.tolist()))
    of_node = np.bincount(np.concatenate(np.divmod(planned, nodes)), minlength=nodes)
    assert set(of_node.tolist()) == {PART_ROUNDS}
