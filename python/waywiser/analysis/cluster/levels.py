"""How slow each node is, beside the others, on each rail and in each direction.

Noise and other traffic only make a test slower. So a level is a median or a lower quantile of
logarithms of times, and a scale is taken from the faster side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waywiser.analysis.cluster.pair_tests import (
    Bools,
    Floats,
    Ints,
    NodeRows,
    PairTests,
    node_rows,
)
from waywiser.stats import decision

THRESHOLD = float(np.log(1 + decision.THRESHOLD))
"""A smaller difference is never a suspicion."""

SCALES = 3.0
"""The scales by which a suspect stands out."""

LEAST_SCALE = 1e-3

SMALL = 16
"""Below so many tested nodes one slow node is a large part of every row."""


def quantile(
    values: Floats, q: float, axis: int | tuple[int, ...] | None = None, *, lower: bool = False
) -> Floats:
    """Returns a quantile of what is not NaN, NaN if there is nothing; ``lower`` takes the next
    lower value in place of interpolating."""
    if axis is None:
        values, axis = values.ravel(), 0
    if isinstance(axis, tuple):
        kept = [n for n in range(values.ndim) if n not in axis]
        values = values.transpose(*axis, *kept).reshape(-1, *(values.shape[n] for n in kept))
        axis = 0
    ordered = np.sort(values, axis=axis)
    counts = np.sum(~np.isnan(ordered), axis=axis, keepdims=True)
    if ordered.shape[axis] == 0:
        return np.full(np.delete(np.array(values.shape), axis), np.nan)
    place = np.maximum(q * (counts - 1), 0)
    below = np.floor(place).astype(np.int64)
    low = np.take_along_axis(ordered, below, axis)
    if not lower:
        high = np.take_along_axis(ordered, np.ceil(place).astype(np.int64), axis)
        low = low + (high - low) * (place - below)
    return np.asarray(low.squeeze(axis))


def below_interval(times: Ints) -> Ints:
    """Returns how many of so many values are below the 95 % interval of their median, by order
    statistics; 0 of fewer than six, of which the interval is the range."""
    below = np.floor(times / 2 - 0.98 * np.sqrt(times))
    return np.asarray(np.maximum(below, 0), dtype=np.int64)


def one_sided_scale(values: Floats, axis: int | tuple[int, ...] | None = None) -> Floats:
    """Returns the distance from the median down to the quantile of 16 %."""
    scale = quantile(values, 0.5, axis) - quantile(values, 0.16, axis)
    return np.asarray(np.fmax(scale, LEAST_SCALE))


def residuals(tests: PairTests, group_of: Ints) -> PairTests:
    """Returns the tests with the usual time of their rail subtracted, apart for tests inside a
    group and across groups, which cost more."""
    crosses = group_of[tests.a] != group_of[tests.b]
    y = tests.y.copy()
    for chosen in (crosses, ~crosses):
        if chosen.any():
            part = y[chosen]
            y[chosen] = part - quantile(part, 0.25, axis=(0, 2))[None, :, None]
    return tests.replaced(y)


@dataclass(frozen=True)
class NodeLevels:
    """The level of each node: node, rail, sending or receiving."""

    level: Floats
    """The median of its tests, above the usual level of the cluster; NaN without tests."""
    lower: Floats
    """The same of the quantile of 25 %."""
    scale: Floats
    """The scale of the levels: rail, sending or receiving."""
    tests: Ints
    """How many tests each node has."""

    @property
    def are_few(self) -> bool:
        """Whether so few nodes were tested that one of them is a large part of every row."""
        return int(np.count_nonzero(self.tests)) < SMALL

    @property
    def stands_out(self) -> Bools:
        """Returns where a node is slower than the cluster by more than chance."""
        limit = np.maximum(THRESHOLD, SCALES * self.scale)
        out = self.level > limit
        if int(np.count_nonzero(self.tests)) <= 3:
            # Half of the tests of each node are with the slow one.
            out = self.lower > limit
        elif self.are_few:
            out |= self.lower > limit
        return np.asarray(out)

    @property
    def worst(self) -> Floats:
        """Returns the highest level of each node; infinite without tests."""
        level = np.where(np.isnan(self.level), -np.inf, self.level)
        worst = level.max(axis=(1, 2), initial=-np.inf)
        return np.where(np.isneginf(worst), np.inf, worst)


def scale_in_rows(rows: NodeRows, axis: tuple[int, ...]) -> Floats:
    """Returns the scale of the tests of a node, from the fastest of its tests, of which some
    partners may be slow."""
    fastest = rows.y - rows.quantile(0.25)[rows.row]
    # From the quantile of 5 % to that of 25 %, in scales of normal noise.
    return np.asarray(np.fmax(-quantile(fastest, 0.05, axis=axis) / 0.97, LEAST_SCALE))


def lower_levels(tests: PairTests, nodes: int) -> Floats:
    """Returns the lower quartiles of the tests of each node, above the middle of all: node, rail,
    sending or receiving."""
    row = node_rows(tests, nodes).quantile(0.25)
    return row - quantile(row, 0.5, axis=0)


def node_levels(tests: PairTests, nodes: int) -> NodeLevels:
    """Returns the levels of nodes from residuals."""
    rows = node_rows(tests, nodes)
    counts = rows.lengths
    tested = counts[counts > 0]
    small = len(tested) < SMALL
    found, scales = [], []
    for q in (0.5, 0.25):
        row = rows.quantile(q, lower=small)
        # Among few nodes, a few slow ones shift the median of the levels.
        middle = quantile(row, 0.4 if small else 0.5, axis=0, lower=small)
        scales.append(one_sided_scale(row, axis=0))
        found.append(row - middle)
    # The levels of few nodes scatter less by chance than the noise of tests lets expect.
    inside = scale_in_rows(rows, axis=(0,))
    least = 1.25 * inside / np.sqrt(np.median(tested)) if small and len(tested) else 0.0
    # Slow partners shift the medians of some rows: they are no noise, and lower quantiles show it.
    scale = np.fmin(scales[0], scales[1])
    return NodeLevels(found[0], found[1], np.fmax(scale, least), counts)
