"""What the rounds of pairs show: groups, up-links, how slow each node is, and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from waywiser.analysis.cluster.crossing_levels import CrossingLevels, crossing_levels
from waywiser.analysis.cluster.group_levels import GroupLevels, group_levels, without_groups
from waywiser.analysis.cluster.groups import DISTANCE, discovered_groups, given_groups
from waywiser.analysis.cluster.levels import (
    SCALES,
    THRESHOLD,
    NodeLevels,
    node_levels,
    one_sided_scale,
    quantile,
    residuals,
    scale_in_rows,
)
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints, PairTests, node_rows
from waywiser.analysis.cluster.ragged_rows import rows_of
from waywiser.analysis.cluster.schedule import UNLIMITED
from waywiser.analysis.cluster.uplinks import Uplinks, find_uplinks
from waywiser.words import ClusterPlan

SMALL_CLUSTER = 32
"""Up to so many nodes all pairs are tested."""

DISTURBED_SCALES = 4.0

UNKNOWN_CROSSING = 0.03
"""What another switch may cost a pair, as a logarithm."""


@dataclass(frozen=True, eq=False)
class RoundResults:
    """Derives everything from the tests of the rounds. Nodes are indices into ``names``."""

    names: Sequence[str]
    plan: ClusterPlan
    attempts: PairTests
    """The finished tests of the rounds, failed ones included."""
    testable: Bools
    """The nodes that may be tested."""
    members: list[int]
    """The nodes that may be tested, and those that could be when the run started."""

    def shows_the_same(self, other: RoundResults) -> bool:
        """Returns whether the other comes from the same tests."""
        mine, theirs = self.attempts, other.attempts
        return (
            len(mine) == len(theirs)
            and self.members == other.members
            and self.names == other.names
            and self.plan == other.plan
            and np.array_equal(self.testable, other.testable)
            and np.array_equal(mine.round, theirs.round)
            and np.array_equal(mine.a, theirs.a)
            and np.array_equal(mine.b, theirs.b)
            and np.array_equal(mine.y, theirs.y, equal_nan=True)
        )

    @cached_property
    def tests(self) -> PairTests:
        """The tests of the rounds that have times."""
        return self.attempts.where(self.attempts.has_times)

    @cached_property
    def first_far_round(self) -> int:
        """The round that ends the rounds of neighbours: rounds that depend on the groups come
        later."""
        tests = self.attempts
        position = np.zeros(len(self.names), dtype=np.int64)
        position[self.members] = np.arange(len(self.members))
        far = np.abs(position[tests.a] - position[tests.b]) > DISTANCE
        return int(tests.round[far].min(initial=UNLIMITED))

    @cached_property
    def group_of(self) -> Ints:
        """The group of each node: given, or discovered from the tests of nodes with neighbours."""
        given = given_groups(self.names, self.plan)
        if given is not None:
            return given
        tests = self.tests
        near = tests.where(tests.round < self.first_far_round)
        no_group = np.zeros(len(self.names), dtype=np.int64)
        limits = find_uplinks(near, no_group, 0)
        if limits.most < UNLIMITED:
            # Neighbours disturb one another: names say nothing about switches.
            return no_group
        return discovered_groups(near, len(self.names))

    @property
    def has_groups(self) -> bool:
        return bool(len(self.group_of)) and bool(np.any(self.group_of != self.group_of[0]))

    @cached_property
    def uplinks(self) -> Uplinks:
        """How many pairs at once the up-links carry, and the rounds that were disturbed."""
        tests = self.tests
        if self.has_groups and not self.plan.groups:
            tests = tests.where(tests.round >= self.first_far_round)
        return find_uplinks(tests, self.group_of, self.plan.uplink_pairs)

    @cached_property
    def undisturbed(self) -> PairTests:
        """The tests of the rounds, without disturbed rounds."""
        tests = self.tests
        return tests.where(~np.isin(tests.round, self.uplinks.disturbed_rounds))

    @cached_property
    def tested(self) -> Bools:
        """The nodes with a test in an undisturbed round."""
        return self.undisturbed.count_of_nodes(len(self.names)) > 0

    @cached_property
    def compared(self) -> Bools:
        """Those of them for which there is a test between two others, to compare theirs with."""
        counts = self.undisturbed.count_of_nodes(len(self.names))
        return (counts > 0) & (counts < len(self.undisturbed))

    @cached_property
    def plain_residuals(self) -> PairTests:
        return residuals(self.undisturbed, self.group_of)

    @cached_property
    def group_levels(self) -> GroupLevels:
        return group_levels(self.plain_residuals, self.group_of, self.unseen_crossing)

    @cached_property
    def switch_of(self) -> Ints:
        """The group of each node; of groups that are one switch, the first."""
        return np.asarray(self.group_levels.joined[self.group_of])

    @cached_property
    def crossing_levels(self) -> CrossingLevels:
        """What tests between each two groups cost."""
        return crossing_levels(
            self.undisturbed, self.plain_residuals, self.switch_of, self.group_levels
        )

    def _without_crossings(self, tests: PairTests) -> PairTests:
        """Returns tests without what slow links between two groups explain."""
        levels, of = self.crossing_levels, self.switch_of
        if not levels.stands_out.any():
            return tests
        return tests.replaced(tests.y - levels.excess(of[tests.a], of[tests.b]))

    @cached_property
    def pair_tests(self) -> PairTests:
        """The residuals of the rounds, without what slow groups and slow links explain."""
        tests = without_groups(self.plain_residuals, self.group_of, self.group_levels)
        return self._without_crossings(tests)

    @cached_property
    def levels(self) -> NodeLevels:
        return node_levels(self.pair_tests, len(self.names))

    @cached_property
    def suspects(self) -> Bools:
        """Where a node stands out: node, rail, sending or receiving."""
        return np.asarray(self.levels.stands_out & self.testable[:, None, None])

    @cached_property
    def is_suspect(self) -> Bools:
        return np.asarray(self.suspects.any(axis=(1, 2)))

    @cached_property
    def usual_nodes(self) -> Ints:
        """The testable nodes that are no suspects, the fastest first."""
        worst = np.where(self.testable & ~self.is_suspect, self.levels.worst, np.inf)
        order = np.argsort(worst, kind="stable")
        return order[np.isfinite(worst[order])]

    @cached_property
    def faster_half(self) -> Ints:
        """The first of them; at least two if there are."""
        return self.usual_nodes[: max(2, (int(self.testable.sum()) + 1) // 2)]

    @cached_property
    def reference(self) -> Floats:
        """The residuals of tests between nodes of the faster half."""
        half = np.zeros(len(self.names), dtype=bool)
        half[self.faster_half] = True
        tests = self.pair_tests
        return tests.y[half[tests.a] & half[tests.b]]

    @cached_property
    def base(self) -> Floats:
        """The usual residual of a rail between usual nodes."""
        base = quantile(self.reference, 0.5, axis=(0, 2))
        everything = quantile(self.pair_tests.y, 0.25, axis=(0, 2))
        # The faster half of a few nodes may be nodes that are slow to one another.
        is_slow = (base - everything > THRESHOLD) & self.levels.are_few
        return np.where(np.isnan(base) | is_slow, everything, base)

    @cached_property
    def noise(self) -> Floats:
        """The scale of one test on a rail."""
        scale = one_sided_scale(self.reference, axis=(0, 2))
        if not self.levels.are_few:
            return scale
        # The few tests of the faster half may scatter less by chance.
        rows = node_rows(self.pair_tests, len(self.names))
        return np.fmax(scale, scale_in_rows(rows, axis=(0, 2)))

    @cached_property
    def late(self) -> Floats:
        """The residual that 84 % of the tests between usual nodes do not exceed, without pairs that
        are slow in each test: by rail. Other traffic may delay most tests, which the scale of the
        faster side does not show."""
        usual = ~self.is_suspect & self.testable
        tests = self.pair_tests.where(usual[self.pair_tests.a] & usual[self.pair_tests.b])
        turned = (tests.a > tests.b)[:, None, None]
        y = np.where(turned, tests.y[:, :, ::-1], tests.y) - self.base[None, :, None]
        low, high = np.minimum(tests.a, tests.b), np.maximum(tests.a, tests.b)
        pairs, place = np.unique(low * len(self.names) + high, return_inverse=True)
        fastest = rows_of(place, y, len(pairs)).quantile(0.0)[place]
        y = np.where(fastest > self.pair_limit[None, :, None], np.nan, y)
        return quantile(y, 0.84, axis=(0, 2), lower=True)

    @property
    def may_cross_unseen(self) -> bool:
        """Whether tests may cross switches of which the run does not know."""
        return not self.plan.groups and len(self.members) > 2 * DISTANCE

    @property
    def unseen_crossing(self) -> float:
        """What a switch may cost of which the run does not know; 0 if it knows all."""
        return UNKNOWN_CROSSING if self.may_cross_unseen else 0.0

    @property
    def repeats(self) -> tuple[int, int]:
        """How many tests a suspect gets alone, and how many of them may be fast."""
        scattered = bool(np.nanmax(self.noise, initial=0.0) > THRESHOLD * 0.7)
        return (8, 2) if scattered or self.may_cross_unseen else (5, 1)

    @cached_property
    def pair_limit(self) -> Floats:
        """From this residual on a pair of usual nodes stands out: by rail."""
        return np.asarray(np.maximum(THRESHOLD, DISTURBED_SCALES * self.noise))

    @cached_property
    def pair_confirm_limit(self) -> Floats:
        """From this residual on a repeated test of a pair counts as slow: by rail."""
        limit = np.maximum(THRESHOLD, SCALES * self.noise)
        return np.asarray(limit + self.unseen_crossing)

    def beside_usual(self, tests: PairTests, *, with_groups: bool = False) -> PairTests:
        """Returns tests of any phase as logarithms of the ratio to the usual time of their rail,
        inside a group or across groups; ``with_groups`` with what slow groups explain."""
        inside, across = self.usual
        crosses = self.group_of[tests.a] != self.group_of[tests.b]
        usual = np.where(crosses[:, None], across[None, :], inside[None, :])
        beside = tests.replaced(tests.y - usual[:, :, None])
        if with_groups:
            return beside
        beside = without_groups(beside, self.group_of, self.group_levels)
        return self._without_crossings(beside)

    @cached_property
    def usual(self) -> tuple[Floats, Floats]:
        """The usual logarithm of the time of each rail, inside a group and across groups."""
        kept = self.undisturbed
        crossed = self.group_of[kept.a] != self.group_of[kept.b]
        inside = quantile(kept.y[~crossed], 0.25, axis=(0, 2))
        slow: Bools = np.asarray(self.group_levels.stands_out.any(axis=(1, 2)))
        usual_groups = crossed & ~slow[self.group_of[kept.a]] & ~slow[self.group_of[kept.b]]
        across = quantile(kept.y[usual_groups], 0.25, axis=(0, 2))
        inside, across = (
            np.where(np.isnan(inside), across, inside),
            np.where(np.isnan(across), inside, across),
        )
        return inside + self.base, across + self.base
