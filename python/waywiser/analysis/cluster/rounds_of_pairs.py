"""The rounds that find hangs, and the rounds that the verdict comes from."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.pair_plans import pair_plans
from waywiser.analysis.cluster.pair_tests import Ints
from waywiser.analysis.cluster.round_results import SMALL_CLUSTER, RoundResults
from waywiser.analysis.cluster.schedule import UNLIMITED, Pair, matchings, next_tests
from waywiser.analysis.cluster.state import ClusterState

MOST_ROUNDS_ACROSS = 48
"""Rounds across groups at most: not all pairs are tested if the up-links carry few at once."""

MANY_SUSPECTS = 0.1
"""Share of suspects among the nodes above which the rounds are doubled."""


def hang_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Returns the pairs of the next round that finds hangs, of two: first all nodes in pairs; then
    with other partners, nodes that failed with nodes that passed. Empty if both are done."""
    members = state.members
    tests = state.attempts.of("hangs")
    done = np.unique(tests.round)
    if len(done) >= 2 or (len(done) and len(members) == 2):
        return []
    rng = np.random.default_rng([state.plan.seed, 1])
    first, *rest = matchings(members, 2, rng)
    if not len(done):
        return first
    lost = tests.where(~tests.has_times)
    failed = {n for pair in lost.pairs for n in pair} & set(members)
    if not failed:
        return rest[0] if rest else []
    passed = [n for n in members if n not in failed]
    met = {frozenset(pair) for pair in tests.pairs}
    return _with_others(sorted(failed), passed, met)


def _with_others(failed: list[int], passed: list[int], met: set[frozenset[int]]) -> list[Pair]:
    """Pairs each failed node with one that passed, and the rest with one another."""
    pairs: list[Pair] = []
    left = [*passed, *[n for n in failed if not passed]]
    for node in failed:
        if other := next((n for n in left if n != node and frozenset((n, node)) not in met), None):
            pairs.append((node, other))
            left.remove(other)
    busy = {n for pair in pairs for n in pair}
    left = [n for n in left if n not in busy]
    while len(left) > 1:
        node = left.pop()
        other = next((n for n in left if frozenset((n, node)) not in met), left[0])
        left.remove(other)
        pairs.append((node, other))
    return pairs


def next_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Returns the pairs of the next round of the verdict: first inside groups (of neighbours, if no
    groups are known), then across. Empty if all are done."""
    return _next_pairs(state.rounds)


@lru_cache(maxsize=1)
def _next_pairs(rounds: RoundResults) -> list[Pair]:
    members = rounds.members
    done = _done(rounds)
    plans = pair_plans(
        rounds.plan.seed,
        tuple(members),
        tuple(rounds.group_of[members].tolist()),
        bool(rounds.plan.groups),
    )
    first = plans.first
    groups = rounds.group_of.tolist()
    limits = rounds.uplinks
    if inside := _left(rounds, first, done):
        if rounds.plan.groups:
            # Few nodes are all tested with one another: also across groups.
            return next_tests(inside, groups, limits.pairs, limits.most)
        return next_tests(inside, [0] * len(rounds.names), UNLIMITED, limits.most)
    if limits.most < UNLIMITED:
        # Few tests may run at once: those of neighbours are enough.
        return []
    second = first + plans.second
    across = _left(rounds, second, done)
    if across and limits.rounds_across < MOST_ROUNDS_ACROSS:
        return next_tests(across, groups, limits.pairs, limits.most)
    is_doubled = len(members) > SMALL_CLUSTER and (
        len(done) > len(second) or np.mean(rounds.is_suspect[members]) > MANY_SUSPECTS
    )
    if is_doubled and (more := _left(rounds, second + plans.third, done)):
        return next_tests(more, groups, limits.pairs, limits.most)
    return []


def _done(rounds: RoundResults) -> Ints:
    """Returns the tests of each pair as keys; those of disturbed rounds do not count."""
    tests = rounds.attempts
    if len(rounds.uplinks.disturbed_rounds):
        tests = tests.where(~np.isin(tests.round, rounds.uplinks.disturbed_rounds))
    return _keys(np.stack([tests.a, tests.b], axis=1), len(rounds.names))


def _keys(pairs: Ints, nodes: int) -> Ints:
    return np.asarray(pairs.min(axis=1) * nodes + pairs.max(axis=1))


def _left(rounds: RoundResults, pairs: list[Pair], done: Ints) -> list[Pair]:
    """Returns the pairs that were not tested as often as they are listed."""
    if not pairs:
        return []
    planned = np.array(pairs, dtype=np.int64)
    keys = _keys(planned, len(rounds.names))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    # The first so many of equal pairs are done.
    place = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    tested = np.sort(done)
    times = np.searchsorted(tested, ordered, "right") - np.searchsorted(tested, ordered)
    is_left = np.zeros(len(keys), dtype=bool)
    is_left[order] = place >= times
    is_left &= rounds.testable[planned].all(axis=1)
    return [pairs[n] for n in np.flatnonzero(is_left).tolist()]
