"""How much longer tests between two groups take than tests inside groups.

This is an absolute reference: it shows links between two groups that are slow, of which neither can
be blamed, and links between all groups that are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waywiser.analysis.cluster.group_levels import GroupLevels, without_slow_nodes
from waywiser.analysis.cluster.groups import LEAST_NODES
from waywiser.analysis.cluster.levels import one_sided_scale, quantile
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints, PairTests
from waywiser.analysis.cluster.ragged_rows import rows_of

THRESHOLD = float(np.log(1.07))
"""Another switch costs less than this, as a logarithm, if its links are well: one pair alone has
the rate of its interfaces through any number of switches."""

LEAST_TESTS = 4
"""Fewer tests between two groups show nothing about these two."""

SCALES = 3.0


@dataclass(frozen=True)
class CrossingLevels:
    """The levels of pairs of groups, the lower number first."""

    cost: Floats
    """What a usual crossing costs, as a logarithm: by rail; NaN without tests."""
    first: Ints
    second: Ints
    level: Floats
    """What crossing costs between the two: pair, rail, direction from the first group; NaN if there
    are too few tests."""
    stands_out: Bools

    def excess(self, a: Ints, b: Ints) -> Floats:
        """Returns by how much tests between groups cost more than a usual crossing, where they
        stand out: test, rail, direction from ``a``."""
        low, high = np.minimum(a, b), np.maximum(a, b)
        found = np.zeros((len(a), *self.level.shape[1:]))
        more = np.nan_to_num(self.level - self.cost[None, :, None])
        more = np.where(self.stands_out, np.maximum(more, 0.0), 0.0)
        for n in np.flatnonzero(more.any(axis=(1, 2))).tolist():
            found[(low == self.first[n]) & (high == self.second[n])] = more[n]
        return np.where((a > b)[:, None, None], found[:, :, ::-1], found)


def crossing_levels(
    tests: PairTests, residuals: PairTests, group_of: Ints, groups: GroupLevels
) -> CrossingLevels:
    """Returns the levels from the times of tests, and from these without the usual time inside
    groups or across them. What a group costs that is slow to all others is its own."""
    is_group = np.bincount(group_of) >= LEAST_NODES
    crosses: Bools = np.asarray(group_of[tests.a] != group_of[tests.b])
    inside = quantile(tests.y[~crosses], 0.25, axis=(0, 2))
    crosses &= is_group[group_of[tests.a]] & is_group[group_of[tests.b]]
    beside = without_slow_nodes(tests.replaced(tests.y - inside[None, :, None]), group_of)
    cost = quantile(beside.y[crosses], 0.25, axis=(0, 2))
    across = without_slow_nodes(residuals, group_of).where(crosses)
    ga, gb = group_of[across.a], group_of[across.b]
    y = np.where((ga > gb)[:, None, None], across.y[:, :, ::-1], across.y)
    size = int(group_of.max(initial=-1)) + 1
    keys, place = np.unique(np.minimum(ga, gb) * size + np.maximum(ga, gb), return_inverse=True)
    first, second = np.divmod(keys, max(size, 1))
    rows = rows_of(place, y, len(keys))
    count = rows.count(~np.isnan(rows.y))
    scale = one_sided_scale(y, axis=(0, 2)) if len(y) else np.zeros(tests.y.shape[1])
    level = np.where(count >= LEAST_TESTS, rows.quantile(0.25), np.nan)
    level = np.where(np.isnan(level), 0.0, level) + cost[None, :, None]
    # Few tests show what all crossings cost, and not what those of two groups do.
    error = SCALES * 1.36 * scale[None, :, None] / np.sqrt(np.maximum(count, LEAST_TESTS))
    slow: Bools = np.asarray(groups.stands_out.any(axis=(1, 2)))
    is_own = slow[first] | slow[second]
    out = (level > np.maximum(THRESHOLD, error)) & ~is_own[:, None, None]
    return CrossingLevels(cost, first, second, level, np.asarray(out))
