"""What finished tests show so far; the next round and the verdict come from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from waywiser.analysis.cluster.finished_tests import FinishedTests, read_records
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
from waywiser.analysis.cluster.losses import Losses, find_losses
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints, PairTests, node_rows
from waywiser.analysis.cluster.schedule import UNLIMITED
from waywiser.analysis.cluster.uplinks import Uplinks, find_uplinks
from waywiser.words.cluster import ClusterNode, ClusterPlan, FinishedTest
from waywiser.words.host_list import natural_key

_key = lru_cache(maxsize=1 << 15)(natural_key)

SMALL_CLUSTER = 32
"""Up to so many nodes all pairs are tested."""

DISTURBED_SCALES = 4.0

UNKNOWN_CROSSING = 0.03
"""What another switch may cost a pair, as a logarithm."""


class ClusterState:
    """Derives everything from the finished tests; nothing is kept from round to round. Nodes are
    indices into ``names``, which are in their natural order."""

    def __init__(
        self, nodes: Sequence[ClusterNode], plan: ClusterPlan, finished: Sequence[FinishedTest]
    ) -> None:
        self.nodes = sorted(nodes, key=lambda node: _key(node.name))
        self.names = [node.name for node in self.nodes]
        self.index = {name: n for n, name in enumerate(self.names)}
        self.plan = plan
        self.finished = finished
        self.rails = max((rail.index + 1 for node in nodes for rail in node.rails), default=1)

    @cached_property
    def records(self) -> FinishedTests:
        return read_records(self.names, self.index, self.rails, self.finished)

    @property
    def attempts(self) -> PairTests:
        """The finished tests of two nodes, failed ones included."""
        return self.records.pairs

    @property
    def collectives(self) -> list[FinishedTest]:
        return self.records.collectives

    @cached_property
    def all_tests(self) -> PairTests:
        """The finished tests of two nodes that have times."""
        return self.attempts.where(self.attempts.has_times)

    @cached_property
    def losses(self) -> Losses:
        passed = self.all_tests.count_of_nodes(len(self.names)).tolist()
        return find_losses(self.index, self.records.failed, passed)

    @cached_property
    def testable(self) -> Bools:
        """The nodes that may be tested."""
        joined = np.array([node.state == "joined" for node in self.nodes], dtype=bool)
        joined[list(self.losses.failed)] = False
        return joined

    @cached_property
    def members(self) -> list[int]:
        """The nodes that may be tested, and those that could be when the run started, so that the
        loss of a node does not change the partners of the others."""
        started = self.testable | (self.attempts.count_of_nodes(len(self.names)) > 0)
        return [int(n) for n in np.flatnonzero(started)]

    @cached_property
    def first_far_round(self) -> int:
        """The round that ends the rounds of neighbours: rounds that depend on the groups come
        later."""
        tests = self.attempts.of("pairs")
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
        tests = self.all_tests.of("pairs")
        near = tests.where(tests.round < self.first_far_round)
        nobody = np.zeros(len(self.names), dtype=np.int64)
        limits = find_uplinks(near, nobody, 0)
        if limits.most < UNLIMITED:
            # Neighbours disturb one another: names say nothing about switches.
            return nobody
        return discovered_groups(near, len(self.names))

    @property
    def has_groups(self) -> bool:
        return bool(len(self.group_of)) and bool(np.any(self.group_of != self.group_of[0]))

    @cached_property
    def uplinks(self) -> Uplinks:
        """How many pairs at once the up-links carry, and the rounds that were disturbed."""
        tests = self.all_tests.of("pairs")
        if self.has_groups and not self.plan.groups:
            tests = tests.where(tests.round >= self.first_far_round)
        return find_uplinks(tests, self.group_of, self.plan.uplink_pairs)

    @cached_property
    def undisturbed(self) -> PairTests:
        """The tests of the rounds, without disturbed rounds."""
        tests = self.all_tests.of("pairs")
        return tests.where(~np.isin(tests.round, self.uplinks.disturbed_rounds))

    @cached_property
    def plain_residuals(self) -> PairTests:
        return residuals(self.undisturbed, self.group_of)

    @cached_property
    def group_levels(self) -> GroupLevels:
        return group_levels(self.plain_residuals, self.group_of)

    @cached_property
    def pair_tests(self) -> PairTests:
        """The residuals of the rounds, without what slow groups explain."""
        return without_groups(self.plain_residuals, self.group_of, self.group_levels)

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
        rows = node_rows(self.pair_tests, len(self.names)).y
        return np.fmax(scale, scale_in_rows(rows, axis=(0, 1, 3)))

    @cached_property
    def confirm_limit(self) -> Floats:
        """From this residual on a test that is repeated alone counts as slow: by rail."""
        share = 0.85 if self.may_cross_unseen else 0.7
        limit = np.maximum(THRESHOLD * share, self.noise)
        if not self.levels.are_few:
            return np.asarray(limit)
        return np.asarray(np.fmax(limit, self._late))

    @property
    def _late(self) -> Floats:
        """The residual that 84 % of the tests between usual nodes do not exceed, without pairs that
        are slow in each test: by rail. Other traffic may delay most tests, which the scale of the
        faster side does not show."""
        usual = ~self.is_suspect & self.testable
        tests = self.pair_tests.where(usual[self.pair_tests.a] & usual[self.pair_tests.b])
        turned = (tests.a > tests.b)[:, None, None]
        y = np.where(turned, tests.y[:, :, ::-1], tests.y) - self.base[None, :, None]
        low, high = np.minimum(tests.a, tests.b), np.maximum(tests.a, tests.b)
        keys = low * len(self.names) + high
        for key in np.unique(keys):
            same = keys == key
            fastest = np.fmin.reduce(y[same], axis=0)
            y[same] = np.where(fastest > self.pair_limit[:, None], np.nan, y[same])
        return quantile(y, 0.84, axis=(0, 2), lower=True)

    @property
    def may_cross_unseen(self) -> bool:
        """Whether tests may cross switches of which the run does not know."""
        return not self.plan.groups and len(self.names) > 2 * DISTANCE

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
        crossing = UNKNOWN_CROSSING if self.may_cross_unseen else 0.0
        return np.asarray(np.maximum(THRESHOLD, SCALES * self.noise) + crossing)

    def beside_usual(self, tests: PairTests, *, with_groups: bool = False) -> PairTests:
        """Returns tests of any phase as logarithms of the ratio to the usual time of their rail,
        inside a group or across groups; ``with_groups`` with what slow groups explain."""
        kept = self.undisturbed
        crossed = self.group_of[kept.a] != self.group_of[kept.b]
        crosses = self.group_of[tests.a] != self.group_of[tests.b]
        inside = quantile(kept.y[~crossed], 0.25, axis=(0, 2))
        across = quantile(kept.y[crossed], 0.25, axis=(0, 2))
        inside, across = (
            np.where(np.isnan(inside), across, inside),
            np.where(np.isnan(across), inside, across),
        )
        usual = np.where(crosses[:, None], across[None, :], inside[None, :]) + self.base[None, :]
        beside = tests.replaced(tests.y - usual[:, :, None])
        if with_groups:
            return beside
        return without_groups(beside, self.group_of, self.group_levels)
