"""Where a curve changes from one line to another: libraries switch protocols at some size.

A curve that is no single latency and rate (see `waywiser.stats.postal`) may be two or three of
them, each over a range of sizes. The ranges that minimise the squared relative deviations are found
by dynamic programming (Bellman & Roth, *Curve Fitting by Segmented Straight Lines*, J. Am. Stat.
Assoc. 64, 1969); the fewest that describe the curve are reported, and none if three do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waywiser.words import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MOST_LINES = 3
LEAST_SIZES = 4
"""Least sizes of a line: two parameters, and as many sizes again that contradict."""
DESCRIBES_TYPICAL = 0.05
"""Median deviation up to which a model describes a curve: what its intervals are at worst."""
DESCRIBES_WORST = 0.15
"""The same of the size that deviates most."""


class ProtocolRange(Value, frozen=True):
    """One line: from size ``low`` to size ``high``, both included."""

    low: int
    high: int
    latency: float
    """Seconds; below 0 if larger sizes take disproportionately long."""
    inverse_rate: float
    """Seconds per byte."""


def describes(deviations: Sequence[float]) -> bool:
    """Whether a model that deviates so, relatively, describes a curve."""
    ordered = sorted(map(abs, deviations))
    return ordered[len(ordered) // 2] <= DESCRIBES_TYPICAL and ordered[-1] <= DESCRIBES_WORST


def stretches(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[ProtocolRange, ...]:
    """The fewest lines, of two and more, that describe a curve; none if `MOST_LINES` do not.

    ``sizes`` ascend, ``seconds`` are above 0.
    """
    import numpy as np

    n, t = np.asarray(sizes, float), np.asarray(seconds, float)
    cost = _costs(n, t)
    for count in range(2, MOST_LINES + 1):
        if count * LEAST_SIZES > len(n):
            break
        found = [_line(n, t, low, high) for low, high in _ranges(cost, count)]
        fitted = np.concatenate(
            [
                each.latency + each.inverse_rate * n[(n >= each.low) & (n <= each.high)]
                for each in found
            ]
        )
        if describes((t / np.maximum(fitted, 1e-3 * t) - 1).tolist()):
            return tuple(found)
    return ()


def _costs(n: Array, t: Array) -> Array:
    """[first, last]: squared relative deviations of the best line over these sizes; infinite if
    they are too few."""
    import numpy as np

    weight = 1 / t**2
    columns = (weight, weight * n, weight * n * n, weight * t, weight * n * t)
    sums = [np.concatenate([[0.0], np.cumsum(column)]) for column in columns]
    one, of_n, of_nn, of_t, of_nt = (each[None, 1:] - each[:-1, None] for each in sums)
    count = np.arange(len(n))[None, :] - np.arange(len(n))[:, None] + 1
    spread = np.where(count >= LEAST_SIZES, one * of_nn - of_n**2, np.nan)
    rate = (one * of_nt - of_n * of_t) / spread
    latency = (of_t - rate * of_n) / one
    left = count - latency * of_t - rate * of_nt  # the sum of t * t / t ** 2 is their number
    return np.where(np.isfinite(left), np.maximum(left, 0.0), np.inf)


def _ranges(cost: Array, count: int) -> list[tuple[int, int]]:
    """The first and last position of each of ``count`` lines that cost least together."""
    import numpy as np

    size = len(cost)
    best = cost[0]  # of one line up to each position
    starts = []
    for _ in range(count - 1):
        total = np.full((size, size), np.inf)  # [first of the last line, last]
        total[1:] = best[:-1, None] + cost[1:]
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
    found, last = [], size - 1
    for start in reversed(starts):
        first = int(start[last])
        found.append((first, last))
        last = first - 1
    return [(0, last), *reversed(found)]


def _line(n: Array, t: Array, first: int, last: int) -> ProtocolRange:
    sizes, times = n[first : last + 1], t[first : last + 1]
    weight = 1 / times**2
    one, of_n, of_nn = weight.sum(), (weight * sizes).sum(), (weight * sizes**2).sum()
    of_t, of_nt = (weight * times).sum(), (weight * sizes * times).sum()
    rate = (one * of_nt - of_n * of_t) / (one * of_nn - of_n**2)
    return ProtocolRange(
        int(sizes[0]), int(sizes[-1]), float((of_t - rate * of_n) / one), float(rate)
    )
