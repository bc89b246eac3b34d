"""Which pairs are tested at the same time."""

import numpy as np
import pytest

from analysis.cluster.simulated_clusters import SimulatedCluster
from effort import result_and_calls
from waywiser.analysis.cluster.procedure import next_round
from waywiser.analysis.cluster.schedule import (
    crossing_pairs,
    matchings,
    neighbours,
    next_tests,
    round_robin,
)
from waywiser.cluster.surveys.time_plan import expected_rounds


@pytest.mark.parametrize("nodes", [2, 3, 8, 9])
def test_a_round_robin_has_every_pair_once(nodes: int) -> None:
    pairs = [pair for each in round_robin(range(nodes)) for pair in each]
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == nodes * (nodes - 1) // 2


def test_matchings_repeat_no_partner() -> None:
    rounds = matchings(range(21), 8, np.random.default_rng(1))
    pairs = [pair for each in rounds for pair in each]
    assert len(rounds) == 8
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == 80
    assert all(len({n for pair in each for n in pair}) == 20 for each in rounds)


def test_a_round_respects_uplinks() -> None:
    group_of = [n // 8 for n in range(32)]
    groups = [list(range(n, n + 8)) for n in range(0, 32, 8)]
    pairs = crossing_pairs(groups, 4, np.random.default_rng(1))
    assert len(pairs) > 55
    assert all(group_of[a] != group_of[b] for a, b in pairs)
    for uplinks in (1, 2, 4):
        chosen = next_tests(pairs, group_of, uplinks)
        ends = [group_of[n] for pair in chosen for n in pair]
        assert max(map(ends.count, ends)) == uplinks
        assert len({n for pair in chosen for n in pair}) == 2 * len(chosen)
    assert len(next_tests(pairs, group_of, 4, 3)) == 3


def test_neighbours_need_two_rounds() -> None:
    for distance in (1, 2, 4):
        pairs = neighbours(range(32), distance)
        first = next_tests(pairs, [0] * 32, 1)
        left = [pair for pair in pairs if pair not in first]
        assert len(first) == 16
        assert next_tests(left, [0] * 32, 1) == left


def test_up_to_32_nodes_all_pairs_are_tested() -> None:
    cluster = SimulatedCluster(20, np.random.default_rng(1))
    rounds = expected_rounds(cluster.members, cluster.plan(), [])
    pairs = {frozenset(t.nodes) for each in rounds if each.phase == "pairs" for t in each.tests}
    assert len(pairs) == 190


@pytest.mark.parametrize("groups", [False, True])
def test_the_rounds_of_1000_nodes_are_planned_in_little_time(groups: bool) -> None:
    cluster = SimulatedCluster(1000, np.random.default_rng(1))
    plan = cluster.plan(groups=groups, uplink_pairs=8)
    rounds, calls = result_and_calls(lambda: expected_rounds(cluster.members, plan, []))
    assert calls < 1_500_000  # three times what was counted
    tests = sum(len(each.tests) for each in rounds if each.phase == "pairs")
    assert 8 <= 2 * tests / 1000 <= 20


def test_a_plan_depends_on_its_seed_alone() -> None:
    cluster = SimulatedCluster(40, np.random.default_rng(1))
    first, again, other = (
        next_round(cluster.members, cluster.plan(seed=seed), []) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
