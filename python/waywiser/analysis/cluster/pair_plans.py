"""The pairs that the rounds test, whatever their results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from waywiser.analysis.cluster.groups import DISTANCE
from waywiser.analysis.cluster.round_results import SMALL_CLUSTER
from waywiser.analysis.cluster.schedule import (
    Pair,
    crossing_pairs,
    matchings,
    neighbours,
    round_robin,
)

LEAST_TESTS = 8
"""Tests of each node; few nodes meet several times."""

CROSSING_TESTS = 2
"""Tests of each node across groups, above `SMALL_CLUSTER`: the verdict about a group is made of
the tests of all its nodes."""


@dataclass(frozen=True, eq=False)
class PairPlans:
    """The pairs of all rounds, in the order in which they are to be tested."""

    seed: int
    members: tuple[int, ...]
    group_of: tuple[int, ...]
    """The group of each member."""
    is_given: bool
    """Whether the groups come with the run."""

    @cached_property
    def groups(self) -> list[list[int]]:
        """The members of each group."""
        groups: dict[int, list[int]] = {}
        for n, group in zip(self.members, self.group_of, strict=True):
            groups.setdefault(group, []).append(n)
        return list(groups.values())

    @cached_property
    def first(self) -> list[Pair]:
        """Inside groups; of neighbours, where no groups are given; all, of few nodes."""
        members = self.members
        if len(members) <= 2 * DISTANCE:
            # All pairs, until each node has enough tests.
            times = -(-LEAST_TESTS // max(1, len(members) - 1))
            rounds = round_robin(members) * times
            return [pair for each in rounds for pair in each]
        if not self.is_given:
            return [pair for d in range(1, DISTANCE + 1) for pair in neighbours(members, d)]
        inside = len(members) if len(members) <= SMALL_CLUSTER else LEAST_TESTS
        return self._matched(self.groups, inside, 2)

    @cached_property
    def second(self) -> list[Pair]:
        """Across groups; all that are left, of few nodes."""
        members = self.members
        if len(members) <= 2 * DISTANCE:
            return []
        if len(members) <= SMALL_CLUSTER:
            done = {(min(pair), max(pair)) for pair in self.first}
            every = self._matched([list(members)], len(members), 7)
            return [pair for pair in every if pair not in done]
        if len(self.groups) == 1:
            return self._matched([list(members)], LEAST_TESTS, 3)
        rng = np.random.default_rng([self.seed, 3])
        pairs = crossing_pairs(self.groups, CROSSING_TESTS, rng)
        if self.is_given:
            return pairs
        # The rounds of neighbours, from which the groups were found, end with the first other pair.
        place = {n: position for position, n in enumerate(members)}
        return [(a, b) for a, b in pairs if abs(place[a] - place[b]) > DISTANCE]

    @cached_property
    def third(self) -> list[Pair]:
        """As many tests again, where many nodes are suspects."""
        return self._matched(self.groups, LEAST_TESTS, 6)

    def _matched(self, groups: list[list[int]], rounds: int, stream: int) -> list[Pair]:
        rng = np.random.default_rng([self.seed, stream])
        return [pair for group in groups for each in matchings(group, rounds, rng) for pair in each]


@lru_cache(maxsize=4)
def pair_plans(
    seed: int, members: tuple[int, ...], group_of: tuple[int, ...], is_given: bool
) -> PairPlans:
    """Returns the pairs of a run; those of the last runs are kept."""
    return PairPlans(seed, members, group_of, is_given)
