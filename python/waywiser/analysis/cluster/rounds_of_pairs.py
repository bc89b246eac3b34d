"""The rounds that find hangs, and the rounds that the verdict comes from."""

from __future__ import annotations

import numpy as np

from waywiser.analysis.cluster.groups import DISTANCE
from waywiser.analysis.cluster.pair_tests import Ints
from waywiser.analysis.cluster.schedule import (
    UNLIMITED,
    Pair,
    crossing_pairs,
    matchings,
    neighbours,
    next_tests,
    round_robin,
)
from waywiser.analysis.cluster.state import SMALL_CLUSTER, ClusterState

LEAST_TESTS = 8
"""Tests of each node; few nodes meet several times."""

CROSSING_TESTS = 2
"""Tests of each node across groups, above `SMALL_CLUSTER`: the verdict about a group is made of
the tests of all its nodes."""

MOST_ROUNDS_ACROSS = 48
"""Where the up-links carry few pairs at once, not all pairs are tested."""

MANY_SUSPECTS = 0.1
"""Where a larger share of the nodes are suspects, the rounds are doubled."""


def hang_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Two rounds: all nodes in pairs; then with other partners, those that failed with nodes that
    passed."""
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
    """First pairs inside groups (of neighbours, where no groups are known), then across."""
    members = state.members
    done = _done(state)
    first = _first_pairs(state, members)
    limits = state.uplinks
    groups = state.group_of.tolist()
    if inside := _left(state, first, done):
        if state.plan.groups:
            # Few nodes are all tested with one another: also across groups.
            return next_tests(inside, groups, limits.pairs, limits.most)
        return next_tests(inside, [0] * len(state.names), UNLIMITED, limits.most)
    if limits.most < UNLIMITED:
        # Few tests may run at once: those of neighbours are enough.
        return []
    second = first + _second_pairs(state, members)
    across = _left(state, second, done)
    if across and limits.rounds_across < MOST_ROUNDS_ACROSS:
        return next_tests(across, groups, limits.pairs, limits.most)
    is_doubled = len(members) > SMALL_CLUSTER and (
        len(done) > len(second) or np.mean(state.is_suspect[members]) > MANY_SUSPECTS
    )
    if is_doubled and (more := _left(state, second + _third_pairs(state, members), done)):
        return next_tests(more, groups, limits.pairs, limits.most)
    return []


def _done(state: ClusterState) -> Ints:
    """Returns the tests of each pair as keys; those of disturbed rounds do not count."""
    tests = state.attempts.of("pairs")
    kept = tests.where(~np.isin(tests.round, state.uplinks.disturbed_rounds))
    return _keys(np.stack([kept.a, kept.b], axis=1), len(state.names))


def _keys(pairs: Ints, nodes: int) -> Ints:
    return np.asarray(pairs.min(axis=1) * nodes + pairs.max(axis=1))


def _left(state: ClusterState, pairs: list[Pair], done: Ints) -> list[Pair]:
    """Returns the pairs that were not tested as often as they are listed."""
    if not pairs:
        return []
    planned = np.array(pairs, dtype=np.int64)
    keys = _keys(planned, len(state.names))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    # The first so many of equal pairs are done.
    place = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    tested = np.sort(done)
    times = np.searchsorted(tested, ordered, "right") - np.searchsorted(tested, ordered)
    is_left = np.zeros(len(keys), dtype=bool)
    is_left[order] = place >= times
    is_left &= state.testable[planned].all(axis=1)
    return [pairs[n] for n in np.flatnonzero(is_left).tolist()]


def _first_pairs(state: ClusterState, members: list[int]) -> list[Pair]:
    if len(members) <= 2 * DISTANCE:
        # All pairs, until each node has enough tests.
        times = -(-LEAST_TESTS // max(1, len(members) - 1))
        rounds = round_robin(members) * times
        return [pair for each in rounds for pair in each]
    if not state.plan.groups:
        return [pair for d in range(1, DISTANCE + 1) for pair in neighbours(members, d)]
    rng = np.random.default_rng([state.plan.seed, 2])
    rounds_inside = len(members) if len(members) <= SMALL_CLUSTER else LEAST_TESTS
    return [
        pair
        for group in _groups(state, members)
        for each in matchings(group, rounds_inside, rng)
        for pair in each
    ]


def _second_pairs(state: ClusterState, members: list[int]) -> list[Pair]:
    groups = _groups(state, members)
    if len(members) <= 2 * DISTANCE:
        return []
    if len(members) <= SMALL_CLUSTER:
        done = {(min(a, b), max(a, b)) for a, b in _first_pairs(state, members)}
        rng = np.random.default_rng([state.plan.seed, 7])
        every = [pair for each in matchings(members, len(members), rng) for pair in each]
        return [(a, b) for a, b in every if (min(a, b), max(a, b)) not in done]
    rng = np.random.default_rng([state.plan.seed, 3])
    if not state.has_groups:
        return [pair for each in matchings(members, LEAST_TESTS, rng) for pair in each]
    pairs = crossing_pairs(groups, CROSSING_TESTS, rng)
    if state.plan.groups:
        return pairs
    # The rounds of neighbours, from which the groups were found, end with the first other pair.
    place = {n: position for position, n in enumerate(members)}
    return [(a, b) for a, b in pairs if abs(place[a] - place[b]) > DISTANCE]


def _third_pairs(state: ClusterState, members: list[int]) -> list[Pair]:
    """Returns as many tests again, where many nodes are suspects."""
    rng = np.random.default_rng([state.plan.seed, 6])
    groups = _groups(state, members) if state.has_groups else [members]
    return [
        pair for group in groups for each in matchings(group, LEAST_TESTS, rng) for pair in each
    ]


def _groups(state: ClusterState, members: list[int]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for n in members:
        groups.setdefault(int(state.group_of[n]), []).append(n)
    return list(groups.values())
