"""How slow each group is to other groups, on each rail and in each direction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waywiser.analysis.cluster.levels import (
    SCALES,
    THRESHOLD,
    one_sided_scale,
    quantile,
)
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints, PairTests, node_rows

LEAST_GROUPS = 3
"""With two groups, neither can be blamed."""

LEAST_NODES = 2
LEAST_TESTS = 4


@dataclass(frozen=True)
class GroupLevels:
    """The level of each group: group, rail, sending or receiving."""

    level: Floats
    stands_out: Bools


def group_levels(tests: PairTests, group_of: Ints) -> GroupLevels:
    """Returns the levels of groups from the residuals of tests across groups."""
    count = int(group_of.max(initial=-1)) + 1
    crosses = tests.where(group_of[tests.a] != group_of[tests.b])
    of_groups = PairTests(
        group_of[crosses.a], group_of[crosses.b], crosses.y, crosses.phase, crosses.round
    )
    rows = node_rows(of_groups, count)
    # All tests of a slow group are slow, and of the others only those with it.
    level = quantile(rows.y, 0.25, axis=1)
    tested = (rows.partner >= 0).sum(axis=1)
    sizes = np.bincount(group_of, minlength=count)
    usable = (tested >= LEAST_TESTS) & (sizes >= LEAST_NODES)
    if int(usable.sum()) < LEAST_GROUPS:
        return GroupLevels(level, np.zeros(level.shape, dtype=bool))
    level = level - quantile(level[usable], 0.4, axis=0, lower=True)
    # The scale of one test, of which a level is a quantile.
    noise = one_sided_scale(crosses.y, axis=(0, 2))[None, :, None]
    error = 1.36 * noise / np.sqrt(np.maximum(tested, 1))[:, None, None]
    scale = np.maximum(one_sided_scale(level[usable], axis=0), error)
    out = (level > np.maximum(THRESHOLD, SCALES * scale)) & usable[:, None, None]
    return GroupLevels(level, np.asarray(out))


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
