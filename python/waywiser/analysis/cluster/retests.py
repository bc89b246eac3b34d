"""Repeats tests of suspects: alone, among themselves, and of pairs that stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from waywiser.analysis.cluster.confirmed import (
    among_tested,
    confirmed_nodes,
    open_groups,
    open_suspects,
    possible_members,
    shared_sets,
    suspects_to_test,
)
from waywiser.analysis.cluster.controls import (
    control_rounds,
    good_nodes,
    lacks_controls,
)
from waywiser.analysis.cluster.groups import DISTANCE
from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.pair_outcomes import (
    BESIDE_OTHERS,
    PAIR_REPEATS,
    open_pairs,
    pair_attempts,
)
from waywiser.analysis.cluster.round_results import RoundResults
from waywiser.analysis.cluster.schedule import UNLIMITED, Pair, matchings, next_tests, round_robin
from waywiser.analysis.cluster.slow_crossings import open_crossings
from waywiser.analysis.cluster.state import ClusterState
from waywiser.words import Phase

ALL_AMONG = 16
"""Up to so many confirmed suspects are all tested with one another."""

ROUNDS_AMONG = 8
TESTS_WITH_GROUP = 3

NODES_OF_ONE = 64
"""Nodes of which one pair is tested alone at a time if groups are not given: two pairs that share
an up-link are rare then."""

CONTROLS = 4
"""Controls of a round at most; one if few pairs are tested at the same time."""


def alone_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Returns the pairs of the next round that tests suspects again: each with a node of the faster
    half, of its own group if there is one, and with no other pair on its up-links. Suspects are
    tested side by side, and so are groups and links between them, beside controls. If groups are
    not given, any pair may use an up-link: few are tested at once. Empty if no suspect is open."""
    suspects, groups = open_suspects(state), open_groups(state)
    crossings = open_crossings(state)
    if not suspects and not groups and not crossings:
        return []
    rounds = state.rounds
    rng = np.random.default_rng([state.plan.seed, 4, number])
    draw = _Draw(state, rng.permutation(good_nodes(state)).tolist(), "alone")
    if draw.needs_control_round and draw.controls():
        return draw.pairs
    tried = state.attempts.of("alone").count_of_nodes(len(state.names))
    # Those with fewest tests first.
    left = rng.permutation(suspects_to_test(state)).tolist()
    for node in sorted(left, key=lambda n: int(tried[n]))[: few_at_once(rounds)]:
        draw.partner(node)
    slow = set(np.flatnonzero(rounds.group_levels.stands_out.any(axis=(1, 2))).tolist())
    for group in groups:
        draw.across(group, slow)
    for n in rng.permutation(len(crossings)).tolist():
        draw.between(*crossings[n])
    if draw.pairs or lacks_controls(state, "alone"):
        draw.controls()
    return draw.pairs


def few_at_once(rounds: RoundResults) -> int:
    """Returns how many pairs are tested alone at the same time."""
    if not rounds.may_cross_unseen:
        return UNLIMITED
    return max(1, len(rounds.members) // NODES_OF_ONE)


class _Draw:
    """Draws partners for a round; no node and no up-link is used twice."""

    def __init__(self, state: ClusterState, good: list[int], phase: Phase) -> None:
        rounds = state.rounds
        self._group_of = rounds.switch_of.tolist()
        self._is_by_name = rounds.may_cross_unseen
        self._free = dict.fromkeys(good)
        self._used_uplinks: set[int] = set()
        self._met: Counter[Pair] = Counter()
        self._slow_pairs = set(known_pairs(state).outstanding.tolist())
        self._most_controls = CONTROLS if few_at_once(rounds) == UNLIMITED else 1
        self.pairs: list[Pair] = []
        tests = state.all_tests.of(phase)
        for a, b in zip(tests.a.tolist(), tests.b.tolist(), strict=True):
            self._met.update([(a, b), (b, a)])
        done, with_control, _ = control_rounds(state, phase)
        self.needs_control_round = 2 * with_control < done

    def partner(self, node: int) -> None:
        """Takes the node that it met least: of its own group if there is one; or, where groups are
        not given, the nearest by name on either side, one of which is below the same switch. A
        partner with which it was slow in the rounds, and not with others, comes last."""
        if choices := self._choices(node):
            rank = self._ranks(node, choices)
            self.take(node, min(choices, key=lambda other: rank[other]))

    def controls(self) -> int:
        """Takes pairs of good nodes, as suspects get them, that did not stand out; returns how
        many."""
        number = 0
        for node in list(self._free):
            if number >= self._most_controls:
                break
            if node not in self._free:
                continue
            good = [n for n in self._choices(node) if self._key(n, node) not in self._slow_pairs]
            if good:
                rank = self._ranks(node, good)
                self.take(node, min(good, key=lambda other: rank[other]))
                number += 1
        return number

    def across(self, group: int, slow: set[int]) -> None:
        """Takes a node of the group, and one of a group that does not stand out."""
        mine = next((n for n in self._free if self._group_of[n] == group), None)
        if mine is None or group in self._used_uplinks:
            return
        others = (n for n in self._free if self._group_of[n] not in slow)
        other = next((n for n in others if self._may(group, n)), None)
        if other is not None:
            self.take(mine, other)

    def between(self, group: int, other: int) -> None:
        """Takes a node of each of two groups, if no pair is on their up-links."""
        if {group, other} & self._used_uplinks:
            return
        mine = next((n for n in self._free if self._group_of[n] == group), None)
        theirs = next((n for n in self._free if self._group_of[n] == other), None)
        if mine is not None and theirs is not None:
            self.take(mine, theirs)

    def _choices(self, node: int) -> list[int]:
        group = self._group_of[node]
        return [
            each
            for each in self._free
            if each != node and (self._may(group, each) or self._is_near(node, each))
        ]

    def _ranks(self, node: int, choices: list[int]) -> dict[int, tuple[int, ...]]:
        """Returns the order of partners: those with which it was slow in the rounds, and not with
        others, come last. Then those that it met least; where switches may be crossed unseen, the
        nearest by name, on either side in turn."""
        group = self._group_of[node]
        slow = [other for other in choices if self._key(node, other) in self._slow_pairs]
        # Who is slow with most of them is not so because of one partner.
        is_slow = {n: int(n in slow and 2 * len(slow) <= len(choices)) for n in choices}
        if not self._is_by_name:
            return {
                n: (is_slow[n], self._met[node, n], int(self._group_of[n] != group))
                for n in choices
            }
        rank: dict[int, tuple[int, ...]] = {}
        for side in ([n for n in choices if n < node], [n for n in choices if n > node]):
            # A side of few nodes is met less often than the other.
            met = (
                sum(self._met[node, n] for n in side) * DISTANCE // max(1, min(DISTANCE, len(side)))
            )
            for place, n in enumerate(sorted(side, key=lambda n: abs(n - node))):
                rank[n] = (is_slow[n], met, place + 2 * self._met[node, n])
        return rank

    def _key(self, a: int, b: int) -> int:
        return min(a, b) * len(self._group_of) + max(a, b)

    def _is_near(self, node: int, other: int) -> bool:
        """Whether a place between groups that was found from times may be wrong."""
        return self._is_by_name and abs(node - other) <= 2 * DISTANCE

    def _may(self, group: int, other: int) -> bool:
        theirs = self._group_of[other]
        return theirs == group or not {group, theirs} & self._used_uplinks

    def take(self, node: int, other: int) -> None:
        """Uses two nodes, and the up-links between their groups."""
        for each in (node, other):
            self._free.pop(each, None)
        groups = {self._group_of[node], self._group_of[other]}
        if len(groups) == 2:
            self._used_uplinks |= groups
        self.pairs.append((node, other))


def among_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Returns the pairs of the next round among confirmed suspects, if there are at least three;
    then, if some of them are fast among themselves, pairs of others with them. Empty if all are
    done."""
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
    limits = state.rounds.uplinks
    return (
        next_tests(left, state.rounds.group_of.tolist(), limits.pairs, limits.most) if left else []
    )


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
    """Returns the pairs that stand out, or failed, to be tested again: first side by side as in the
    rounds, because most of them are fast then; the others alone on their up-links, beside controls.
    Empty if none is open."""
    pairs, tried = open_pairs(state), pair_attempts(state)
    if not pairs:
        return []
    rounds = state.rounds
    groups = rounds.group_of.tolist()
    if first := [pair for pair in pairs if tried[pair] < BESIDE_OTHERS]:
        return next_tests(first, groups, rounds.uplinks.pairs, rounds.uplinks.most)
    rng = np.random.default_rng([state.plan.seed, 8, number])
    draw = _Draw(state, rng.permutation(good_nodes(state)).tolist(), "pair")
    if draw.needs_control_round and draw.controls():
        return draw.pairs
    left = [pair for pair in pairs if tried[pair] < BESIDE_OTHERS + PAIR_REPEATS]
    # Without groups, all that stand out may have the same up-links.
    most = UNLIMITED if few_at_once(rounds) == UNLIMITED else 1
    for a, b in next_tests(left, groups, 1, most) if left else []:
        draw.take(a, b)
    draw.controls()
    return draw.pairs
