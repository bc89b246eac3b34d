"""How slow each group is to other groups, on each rail and in each direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waywiser.analysis.cluster.groups import LEAST_NODES
from waywiser.analysis.cluster.levels import (
    SCALES,
    THRESHOLD,
    lower_levels,
    one_sided_scale,
    quantile,
)
from waywiser.analysis.cluster.pair_tests import (
    Bools,
    Floats,
    Ints,
    NodeRows,
    PairTests,
    node_rows,
)
from waywiser.analysis.cluster.ragged_rows import rows_of

LEAST_GROUPS = 3
"""With two groups, neither can be blamed."""

LEAST_TESTS = 4


@dataclass(frozen=True)
class GroupLevels:
    """The level of each group: group, rail, sending or receiving."""

    level: Floats
    stands_out: Bools
    joined: Ints
    """The first of the groups that each is one with."""


def group_levels(tests: PairTests, group_of: Ints, crossing: float = 0.0) -> GroupLevels:
    """Returns the levels of groups from the residuals of tests across groups. ``crossing`` is what
    another switch may cost, where groups were found: some of them may be one switch.

    Each pair of groups counts once, however many tests it has: all pairs of a slow group are slow,
    and of the others only those with it. What a node is slow by inside its group is its own.
    """
    tests = without_slow_nodes(tests, group_of)
    joined = _joined(tests, group_of)
    group_of = joined[group_of]
    crosses = tests.where(group_of[tests.a] != group_of[tests.b])
    count = len(joined)
    of_pairs = _of_group_pairs(crosses, group_of, count)
    level = of_pairs.at(of_pairs.lengths // 4)
    tested = np.bincount(group_of[crosses.a], minlength=count)
    tested += np.bincount(group_of[crosses.b], minlength=count)
    sizes = np.bincount(group_of, minlength=count)
    usable = (tested >= LEAST_TESTS) & (sizes >= LEAST_NODES)
    if int(usable.sum()) < LEAST_GROUPS:
        return GroupLevels(level[joined], np.zeros(level.shape, dtype=bool), joined)
    level = level - quantile(level[usable], 0.4, axis=0, lower=True)
    # The scale of one test, of which a level is a quantile.
    noise = one_sided_scale(crosses.y, axis=(0, 2))[None, :, None]
    error = 1.36 * noise / np.sqrt(np.maximum(tested, 1))[:, None, None]
    scale = np.maximum(one_sided_scale(level[usable], axis=0), error)
    limit = np.maximum(THRESHOLD, SCALES * scale) + crossing
    out: Bools = np.asarray((level > limit) & usable[:, None, None])
    return GroupLevels(level[joined], out[joined], joined)


def without_slow_nodes(tests: PairTests, group_of: Ints) -> PairTests:
    """Returns the tests without that by which the slower of two nodes is slow inside its group."""
    inside = tests.where(group_of[tests.a] == group_of[tests.b])
    level = lower_levels(inside, len(group_of))
    slow = np.where(level > THRESHOLD, level, 0.0)
    forth = np.maximum(slow[tests.a, :, 0], slow[tests.b, :, 1])
    back = np.maximum(slow[tests.b, :, 0], slow[tests.a, :, 1])
    return tests.replaced(tests.y - np.stack([forth, back], axis=2))


def _joined(tests: PairTests, group_of: Ints) -> Ints:
    """Returns for each group the first of those that it is one with: neighbours that are faster to
    one another than either is to all other groups. They are one switch, cut at a wrong place."""
    count = int(group_of.max(initial=-1)) + 1
    crosses = tests.where(group_of[tests.a] != group_of[tests.b])
    joined = np.arange(count)
    if not len(crosses):
        return joined
    rows = _of_group_pairs(crosses, group_of, count)
    time = quantile(rows.y.reshape(len(rows.y), -1), 0.5, axis=1)

    def least(chosen: Bools) -> Floats:
        found = np.full(count, np.inf)
        np.fmin.at(found, rows.row[chosen], time[chosen])
        return found

    step = rows.partner - rows.row
    to_next, but_next, but_last = least(step == 1), least(step != 1), least(step != -1)
    # Two groups have no others.
    is_one = to_next[:-1] < np.fmin(but_next[:-1], but_last[1:]) - THRESHOLD
    for group in np.flatnonzero(is_one & (count > 2)).tolist():
        joined[group + 1] = joined[group]
    return joined


def _of_group_pairs(crosses: PairTests, group_of: Ints, count: int) -> NodeRows:
    """Returns the lower quartile of the tests of each pair of groups, in the rows of both."""
    ga, gb = group_of[crosses.a], group_of[crosses.b]
    turned = (ga > gb)[:, None, None]
    y = np.where(turned, crosses.y[:, :, ::-1], crosses.y)
    keys, place = np.unique(np.minimum(ga, gb) * count + np.maximum(ga, gb), return_inverse=True)
    lower = rows_of(place, y, len(keys)).quantile(0.25)
    low, high = np.divmod(keys, max(count, 1))
    zeros = np.zeros(len(keys), dtype=np.int64)
    return node_rows(PairTests(low, high, lower, zeros, zeros), count)


def without_groups(tests: PairTests, group_of: Ints, levels: GroupLevels) -> PairTests:
    """Returns residuals without what groups that stand out explain."""
    if not levels.stands_out.any():
        return tests
    excess = np.where(levels.stands_out, levels.level, 0.0)
    ga, gb = group_of[tests.a], group_of[tests.b]
    forth = np.maximum(excess[ga, :, 0], excess[gb, :, 1])
    back = np.maximum(excess[gb, :, 0], excess[ga, :, 1])
    explained = np.stack([forth, back], axis=2)
    explained[ga == gb] = 0.0
    return tests.replaced(tests.y - explained)
