"""Suspects again: alone, among themselves; and pairs that stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from waywiser.analysis.cluster.confirmed import (
    among_tested,
    confirmed_nodes,
    open_groups,
    open_pairs,
    open_suspects,
    pair_attempts,
    possible_members,
    shared_sets,
)
from waywiser.analysis.cluster.groups import DISTANCE
from waywiser.analysis.cluster.schedule import UNLIMITED, Pair, matchings, next_tests, round_robin
from waywiser.analysis.cluster.state import ClusterState

ALL_AMONG = 16
"""Up to so many confirmed suspects are all tested with one another."""

ROUNDS_AMONG = 8
TESTS_WITH_GROUP = 3
FIRST_ATTEMPTS = 2


def alone_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Each suspect with a node of the faster half: of its own group if there is one, and with no
    other pair on its up-links. Suspects are tested side by side, and so are groups."""
    suspects, groups = open_suspects(state), open_groups(state)
    if not suspects and not groups:
        return []
    rng = np.random.default_rng([state.plan.seed, 4, number])
    good = state.faster_half if state.plan.groups else state.usual_nodes
    draw = _Draw(state, rng.permutation(good).tolist())
    # Turn by turn another suspect comes first.
    turn = number % max(1, len(suspects))
    for node in suspects[turn:] + suspects[:turn]:
        draw.partner(node)
    slow = set(np.flatnonzero(state.group_levels.stands_out.any(axis=(1, 2))).tolist())
    for group in groups:
        draw.across(group, slow)
    return draw.pairs


class _Draw:
    """Draws partners for a round; no node and no up-link is used twice."""

    def __init__(self, state: ClusterState, good: list[int]) -> None:
        self._group_of = state.group_of.tolist()
        self._is_by_name = not state.plan.groups
        self._free = dict.fromkeys(good)
        self._used_uplinks: set[int] = set()
        self._met: Counter[Pair] = Counter()
        self.pairs: list[Pair] = []
        tests = state.all_tests.of("alone")
        for a, b in zip(tests.a.tolist(), tests.b.tolist(), strict=True):
            self._met.update([(a, b), (b, a)])

    def partner(self, node: int) -> None:
        """Takes the node that it met least: of its own group if there is one; or, where groups are
        not given, the nearest by name on either side, one of which is below the same switch."""
        group = self._group_of[node]
        choices = [
            each
            for each in self._free
            if each != node and (self._may(group, each) or self._is_near(node, each))
        ]
        if not choices:
            return
        if self._is_by_name:
            sides = ([n for n in choices if n < node], [n for n in choices if n > node])
            rank = {
                other: place
                for side in sides
                for place, other in enumerate(sorted(side, key=lambda n: abs(n - node)))
            }
        else:
            rank = {other: int(self._group_of[other] != group) for other in choices}
        self._take(node, min(choices, key=lambda other: (self._met[node, other], rank[other])))

    def across(self, group: int, slow: set[int]) -> None:
        """Takes a node of the group, and one of a group that does not stand out."""
        mine = next((n for n in self._free if self._group_of[n] == group), None)
        if mine is None or group in self._used_uplinks:
            return
        others = (n for n in self._free if self._group_of[n] not in slow)
        other = next((n for n in others if self._may(group, n)), None)
        if other is not None:
            self._take(mine, other)

    def _is_near(self, node: int, other: int) -> bool:
        """Whether a place between groups that was found from times may be wrong."""
        return self._is_by_name and abs(node - other) <= 2 * DISTANCE

    def _may(self, group: int, other: int) -> bool:
        theirs = self._group_of[other]
        return theirs == group or not {group, theirs} & self._used_uplinks

    def _take(self, node: int, other: int) -> None:
        for each in (node, other):
            self._free.pop(each, None)
        groups = {self._group_of[node], self._group_of[other]}
        if len(groups) == 2:
            self._used_uplinks |= groups
        self.pairs.append((node, other))


def among_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Confirmed suspects among themselves, at least three; then, if some of them are fast among
    themselves, others with them."""
    sets = [nodes for nodes in confirmed_nodes(state).values() if len(nodes) >= 3]
    together = sorted({node for nodes in sets for node in nodes})
    if not together:
        return []
    tested = among_tested(state)
    if len(together) <= ALL_AMONG:
        rounds = round_robin(together)
    else:
        rng = np.random.default_rng([state.plan.seed, 5])
        rounds = matchings(together, ROUNDS_AMONG, rng)
    left = _untested((pair for each in rounds for pair in each), tested)
    if not left:
        left = _untested(_with_groups(state), tested)
    limits = state.uplinks
    return next_tests(left, state.group_of.tolist(), limits.pairs, limits.most) if left else []


def _with_groups(state: ClusterState) -> list[Pair]:
    pairs = []
    for members in shared_sets(state):
        for n, other in enumerate(possible_members(state, members)):
            chosen = [members[(n + k) % len(members)] for k in range(TESTS_WITH_GROUP)]
            pairs += [(other, member) for member in dict.fromkeys(chosen)]
    return pairs


def _untested(pairs: Iterable[Pair], tested: set[Pair]) -> list[Pair]:
    return [(a, b) for a, b in pairs if (min(a, b), max(a, b)) not in tested]


def pair_pairs(state: ClusterState, number: int) -> list[Pair]:
    """The pairs that stand out, or failed, again: first side by side as in the rounds, because
    most of them are fast then; the others alone on their up-links."""
    pairs, tried = open_pairs(state), pair_attempts(state)
    groups = state.group_of.tolist()
    if first := [pair for pair in pairs if tried[pair] < FIRST_ATTEMPTS]:
        return next_tests(first, groups, state.uplinks.pairs, state.uplinks.most)
    # Where groups are not given, any pair may cross an up-link.
    return next_tests(pairs, groups, 1, UNLIMITED if state.plan.groups else 1) if pairs else []
