"""Several lines, each over a range of sizes of a curve: libraries switch protocols at some size.

The ranges that minimise the absolute deviations of logarithms, so that a size beside a switch does
not bend the line, are found by dynamic programming (Bellman & Roth, *Curve Fitting by Segmented
Straight Lines*, J. Am. Stat. Assoc. 64, 1969). Such a line passes through two of the points, so
that the lines through two points are all that can be best.

Curves with equally many sizes are worked on together, and so are the curves that are left when one
size is held out: most of their ranges, and all deviations from lines, are those of the whole curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.stats.order import median
from waywiser.words import Value

Array = NDArray[Any]

MOST_LINES = 3
SIZES_OF_LINE = 4
"""Least sizes of one of several lines: two parameters, and as many sizes again that contradict."""
DESCRIBES_TYPICAL = 0.05
"""Median deviation up to which a model describes a curve: what its intervals are at worst."""
DESCRIBES_WORST = 0.15
"""The same of the size that deviates most."""
_BELOW_ANY = 1e-3
"""The fraction of a measured time that a fitted one counts as that is 0 or less."""
_NO_LINE = 1e200
"""The deviation from what is no line: more than any, and finite, since sums of it are compared."""
_NUMBERS = 2**17
"""Numbers of an array of curves that are worked on together: it stays in a core's cache."""


class ProtocolRange(Value, frozen=True):
    """One line: from size ``low`` to size ``high``, both included."""

    low: int
    high: int
    latency: float
    """Seconds; below 0 if larger sizes take disproportionately long."""
    inverse_rate: float
    """Seconds per byte."""


class HeldOut(NamedTuple):
    """Times of sizes by lines over the other sizes of their curve, [curve, size]."""

    seconds: Array
    """By the line over whose range the size is; not-a-number if it is between two ranges."""
    exist: Array
    """Whether the others are enough for so many lines; not for the first and the last size, which
    are beyond the others."""


def describes(deviations: Sequence[float]) -> bool:
    """Whether a model that deviates so, relatively, describes a curve."""
    sizes = [abs(each) for each in deviations]
    return median(sizes) <= DESCRIBES_TYPICAL and max(sizes) <= DESCRIBES_WORST


def at_once(sizes: int) -> int:
    """How many curves of so many sizes to give to `LineRanges` together."""
    return max(1, _NUMBERS // max(sizes, 1) ** 3)


class LineRanges:
    """The best lines over all ranges of sizes of some curves, which have equally many sizes."""

    def __init__(self, sizes: Array, seconds: Array) -> None:
        """Rows are curves, columns are sizes, which ascend. ``seconds`` are above 0."""
        self._sizes, self._seconds = sizes, seconds
        self._curves, self._width = sizes.shape
        left, right = np.triu_indices(self._width, 1)
        n, t = sizes, seconds
        rates = (t[:, right] - t[:, left]) / (n[:, right] - n[:, left])
        latencies = t[:, left] - rates * n[:, left]
        fitted = latencies[..., None] + rates[..., None] * n[:, None]
        measured = t[:, None]
        off = np.abs(np.log(np.maximum(fitted, _BELOW_ANY * measured) / measured))
        square = (self._curves, self._width, self._width)
        self._lines = np.full((*square, 2), np.nan)
        """[curve, size, larger size]: (latency, inverse rate) of the line through both."""
        self._lines[:, left, right] = np.stack([latencies, rates], axis=-1)
        self._off = np.full((self._width, *square), _NO_LINE)
        """[size, curve, …]: how far the line is from it."""
        self._off[:, :, left, right] = np.moveaxis(off, -1, 0)
        self._sums = np.zeros((self._width + 1, *square))
        """[number of sizes, curve, …]: how far the line is from the first sizes together."""
        np.cumsum(self._off, axis=0, out=self._sums[1:])

    def best(self, count: int) -> list[tuple[ProtocolRange, ...]]:
        """The ``count`` lines of each curve with the least absolute deviations of logarithms
        together, each over `SIZES_OF_LINE` sizes or more; none if its sizes are too few."""
        if self._width < count * SIZES_OF_LINE:
            return [()] * self._curves
        ranges, exist = _partition(self._costs, count)
        return [
            tuple(self._range(curve, *ends) for ends in own) if exists else ()
            for curve, (own, exists) in enumerate(zip(ranges.tolist(), exist, strict=True))
        ]

    def describing(self) -> list[tuple[ProtocolRange, ...]]:
        """The fewest lines of each curve, of two and more, that describe it; none if `MOST_LINES`
        do not."""
        found: list[tuple[ProtocolRange, ...]] = [()] * self._curves
        for count in range(2, min(MOST_LINES, self._width // SIZES_OF_LINE) + 1):
            for curve, lines in enumerate(self.best(count)):
                if lines and not found[curve] and describes(self._deviations(curve, lines)):
                    found[curve] = lines
        return found

    def held_out(self, count: int) -> HeldOut:
        """The times of all sizes but the first and the last by ``count`` lines over the others."""
        seconds = np.full(self._sizes.shape, np.nan)
        exist = np.zeros(self._sizes.shape, bool)
        if self._width - 1 < count * SIZES_OF_LINE:
            return HeldOut(seconds, exist)
        others = np.arange(self._width - 1)
        for n in range(1, self._width - 1):
            at = others + (others >= n)
            costs = self._costs[:, at[:, None], at]
            costs[:, :n, n:] = self._costs_without[n][:, :n, n + 1 :]
            ranges, exist[:, n] = _partition(costs, count)
            around = (at[ranges[..., 0]] < n) & (n < at[ranges[..., 1]])
            for curve, line in zip(*np.nonzero(around & exist[:, n, None]), strict=True):
                first, last = at[ranges[curve, line]]
                latency, rate = self._line(curve, first, last, without=n)
                seconds[curve, n] = latency + rate * self._sizes[curve, n]
        return HeldOut(seconds, exist)

    def _deviations(self, curve: int, lines: Sequence[ProtocolRange]) -> list[float]:
        n, t = self._sizes[curve], self._seconds[curve]
        fitted = np.empty_like(t)
        for line in lines:
            at = (n >= line.low) & (n <= line.high)
            fitted[at] = line.latency + line.inverse_rate * n[at]
        found: list[float] = (t / np.maximum(fitted, _BELOW_ANY * t) - 1).tolist()
        return found

    def _range(self, curve: int, first: int, last: int) -> ProtocolRange:
        latency, rate = self._line(curve, first, last).tolist()
        sizes = self._sizes[curve]
        return ProtocolRange(int(sizes[first]), int(sizes[last]), latency, rate)

    def _line(self, curve: int, first: int, last: int, without: int | None = None) -> Array:
        """(latency, inverse rate) of the best line over a range."""
        own = (curve, slice(first, last), slice(first + 1, last + 1))
        off = self._sums[last + 1][own] - self._sums[first][own]
        if without is not None:
            off = off - self._off_without[without][own]
        left, right = divmod(int(off.argmin()), last - first)
        found: Array = self._lines[curve, first + left, first + 1 + right]
        return found

    @cached_property
    def _costs(self) -> Array:
        """[curve, first, last]: the least sum of deviations over these sizes; infinite if they are
        too few, or cannot be one of several ranges."""
        found = np.full((self._curves, self._width, self._width), np.inf)
        for first, last in self._possible_ranges(SIZES_OF_LINE):
            off = self._off_over(first, last)
            found[:, first, last] = off.reshape(self._curves, -1).min(axis=1)
        return found

    @cached_property
    def _costs_without(self) -> Array:
        """[size, curve, first, last]: the same of the other sizes of ranges around one."""
        found = np.full((self._width, self._curves, self._width, self._width), np.inf)
        for first, last in self._possible_ranges(SIZES_OF_LINE + 1):
            within = slice(first + 1, last)
            own = (within, slice(None), slice(first, last), slice(first + 1, last + 1))
            off = self._off_over(first, last) - self._off_without[own]
            found[within, :, first, last] = off.reshape(*off.shape[:2], -1).min(axis=-1)
        return found

    @cached_property
    def _off_without(self) -> Array:
        """[size, curve, …]: what a line loses of its deviations without the size; of a line through
        that size, it becomes none."""
        found = np.where(self._off < _NO_LINE, self._off, 0.0)
        for n in range(self._width):
            found[n, :, n, :] = found[n, :, :, n] = -_NO_LINE
        return found

    def _off_over(self, first: int, last: int) -> Array:
        """How far each line through two sizes of a range is from all of them, [curve, …]."""
        lines = (slice(None), slice(first, last), slice(first + 1, last + 1))
        found: Array = self._sums[last + 1][lines] - self._sums[first][lines]
        return found

    def _possible_ranges(self, least: int) -> Iterator[tuple[int, int]]:
        """The first and last positions of ranges of at least so many sizes, beside which there is
        nothing or room for another range."""
        end = self._width - 1
        for first in (0, *range(SIZES_OF_LINE, self._width)):
            for last in (*range(first + least - 1, self._width - SIZES_OF_LINE), end):
                if last - first + 1 >= least:
                    yield first, last


def _partition(costs: Array, count: int) -> tuple[Array, Array]:
    """([curve, line, (first position, last position)], whether there are such lines) of the
    ``count`` ranges that cost least together. ``costs`` are [curve, first, last]."""
    curves, size, _ = costs.shape
    best = costs[:, 0]  # of one line up to each position
    starts = []
    for _ in range(count - 1):
        total = np.full(costs.shape, np.inf)  # [curve, first of the last line, last]
        total[:, 1:] = best[:, :-1, None] + costs[:, 1:]
        starts.append(total.argmin(axis=1))
        best = total.min(axis=1)
    ranges = np.zeros((curves, count, 2), int)
    last = np.full(curves, size - 1)
    for line, start in zip(range(count - 1, 0, -1), reversed(starts), strict=True):
        first = start[np.arange(curves), last]
        ranges[:, line, 0], ranges[:, line, 1] = first, last
        last = np.maximum(first - 1, 0)
    ranges[:, 0, 1] = last
    return ranges, np.isfinite(best[:, -1])
