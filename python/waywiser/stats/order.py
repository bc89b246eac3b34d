"""Medians and their intervals from order statistics: no distribution is assumed.

`Segments` has those of many groups at once, equal to the bit. Its quantiles are interpolated
between order statistics: type 7 of Hyndman & Fan, "Sample Quantiles in Statistical Packages"
(1996).

Sources: Hahn & Meeker, "Statistical Intervals" (1991), chapter 5, for the interval of a quantile;
Hoefler & Belli, "Scientific Benchmarking of Parallel Computing Systems" (SC'15), rules 5 and 6, for
its use.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from waywiser.words import Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_MOST_LOG = math.log(sys.float_info.max)

CONFIDENCE = 0.95
"""The confidence of every interval, unless something else is said."""

INTERVAL_SAMPLES = 6
"""Samples from which on their median has an interval."""

NORMAL_SCALE = 1.4826
"""Deviation of normal values over their median distance from the median."""


class Interval(Value, frozen=True):
    """An interval from ``low`` to ``high``, both included, in the unit of what it was made from."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high

    def overlaps(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high


def relative(value: float, interval: Interval | None, *, of_rate: bool = False) -> float | None:
    """What is written after ±: half the width of a value's interval over the value.

    A rate has that of its time, whatever the quantity that is shown: ``of_rate`` turns its interval
    back into that of the time. None without an interval, or if the value or an end is 0.
    """
    if interval is None or not value:
        return None
    if not of_rate:
        return interval.width / 2 / abs(value)
    return (value / interval.low - value / interval.high) / 2 if interval.low > 0 else None


def at_least(interval: Interval, median: float, width: float) -> Interval:
    """``interval`` widened around ``median`` to ``width`` if it is narrower; not below 0."""
    if interval.width >= width:
        return interval
    low = min(interval.low, median - width / 2)
    return Interval(max(0.0, low), max(interval.high, median + width / 2))


def ratio_of(log: float) -> float:
    """The ratio of a logarithm; the largest float if hardly anything is known and none is so
    large."""
    return math.exp(min(log, _MOST_LOG))


def median(samples: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle values. Raises ValueError for none."""
    if not samples:
        raise ValueError("no samples have no median")
    ordered = sorted(samples)
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return min(below + 0.5 * (above - below), above)


def lower_quartile(samples: Sequence[float]) -> float:
    """The value that a quarter of what was sampled is below, median-unbiased whatever its
    distribution: type 8 of Hyndman & Fan, "Sample Quantiles in Statistical Packages" (1996). Raises
    ValueError for no samples."""
    if not samples:
        raise ValueError("no samples have no quartile")
    ordered = sorted(samples)
    position = min(max((len(ordered) + 1 / 3) / 4 + 1 / 3, 1.0), float(len(ordered)))
    below = ordered[int(position) - 1]
    above = ordered[min(int(position), len(ordered) - 1)]
    return min(below + (position % 1) * (above - below), above)


def median_interval(samples: Sequence[float]) -> Interval | None:
    """The interval between two order statistics that holds the median of what was sampled with at
    least `CONFIDENCE`, whatever its distribution, for independent samples.

    The ranks are symmetric, and the confidence is exact binomial, so it is not below what was asked
    and usually above (n = 10: ranks 2 and 9, 97.9 %). None for fewer than `INTERVAL_SAMPLES`.
    """
    rank = lower_rank(len(samples))
    if rank is None:
        return None
    ordered = sorted(samples)
    return Interval(ordered[rank - 1], ordered[-rank])


@lru_cache(maxsize=4096)
def lower_rank(count: int) -> int | None:
    """The greatest r such that the r-th smallest and r-th greatest of ``count`` samples hold the
    median between them with `CONFIDENCE`; from 1; None if not even the extremes do.

    With B binomial (count, 1/2) that is the greatest r with 2 P(B < r) <= 1 - `CONFIDENCE`. The
    tail is summed from the rank where its terms first matter, in O(sqrt(count)).
    """
    allowed = (1.0 - CONFIDENCE) / 2.0
    # 20 standard deviations below the middle: less than 1e-80 of the weight lies further out
    successes = max(0, int(count / 2 - 10 * math.sqrt(count)))
    term = math.exp(_log_weight(count, successes))
    tail, rank = term, successes
    while tail <= allowed and rank < (count + 1) // 2:
        rank += 1
        term *= (count - rank + 1) / rank
        tail += term
    return rank or None


def _log_weight(count: int, successes: int) -> float:
    """Logarithm of P(B = successes)."""
    ways = math.lgamma(count + 1) - math.lgamma(successes + 1) - math.lgamma(count - successes + 1)
    return ways - count * math.log(2.0)


MOST_PADDING = 4
"""Times the number of values to which groups are filled up to be sorted together."""


class Segments:
    """Groups of values in one array, group after group; a result is NaN for a group without
    values."""

    def __init__(self, values: Array, counts: Array) -> None:
        """``counts`` says how many values each group has."""
        import numpy as np

        self.values = values
        self.groups = len(counts)
        self.known = np.flatnonzero(counts)
        """Groups that have values."""
        self.counts = counts[self.known]
        self.starts = np.cumsum(self.counts) - self.counts

    @cached_property
    def ordered(self) -> Array:
        """The values with each group in ascending order."""
        import numpy as np

        most = int(self.counts.max(initial=0))
        if most * len(self.counts) <= MOST_PADDING * len(self.values):
            rows = np.full((len(self.counts), most), np.nan)  # sorted after every value
            inside = np.arange(most) < self.counts[:, None]
            rows[inside] = self.values
            rows.sort(axis=1)
            padded: Array = rows[inside]
            return padded
        ordered = np.empty_like(self.values)
        for count in np.unique(self.counts):
            starts = self.starts[self.counts == count]
            at = starts[:, None] + np.arange(count)
            ordered[at] = np.sort(self.values[at], axis=1)
        return ordered

    def filled(self, found: Array, fill: Any = float("nan")) -> Array:
        """One value for each group, from one for each known group."""
        import numpy as np

        full = np.full(self.groups, fill, dtype=np.result_type(found))
        full[self.known] = found
        return full

    @cached_property
    def medians(self) -> Array:
        below = self.ordered[self.starts + (self.counts - 1) // 2]
        above = self.ordered[self.starts + self.counts // 2]
        return self.filled(_between(below, above, 0.5))

    def quantiles(self, probability: float) -> Array:
        import numpy as np

        position = probability * (self.counts - 1)
        below = position.astype(np.int64)
        above = np.minimum(below + 1, self.counts - 1)
        low, high = self.ordered[self.starts + below], self.ordered[self.starts + above]
        return self.filled(_between(low, high, position - below))

    @property
    def intervals(self) -> tuple[Array, Array]:
        """The ends of the 95 % intervals of the medians; NaN also for too few values."""
        import numpy as np

        return self.intervals_at(np.ones(self.groups))

    def intervals_at(self, reach: Array) -> tuple[Array, Array]:
        """The same with ends that are so many times as far from the middle, in order statistics:
        one number for each group. Between two values an end is interpolated."""
        import numpy as np

        sizes, place = np.unique(self.counts, return_inverse=True)
        ranks = np.array([lower_rank(int(size)) or 0 for size in sizes], dtype=np.int64)[place]
        middle = (self.counts - 1) / 2
        position = np.maximum(middle - (middle - (ranks - 1)) * reach[self.known], 0.0)
        whole = np.floor(position)
        part, steps = position - whole, whole.astype(np.int64)
        outer, inner = steps, np.minimum(steps + 1, self.counts - 1)
        first, last = self.starts, self.starts + self.counts - 1
        ends = []
        for at, beside in ((first + outer, first + inner), (last - outer, last - inner)):
            value = self.ordered[at] + part * (self.ordered[beside] - self.ordered[at])
            ends.append(self.filled(np.where(ranks > 0, value, np.nan)))
        return ends[0], ends[1]

    def sums(self, values: Array) -> Array:
        """Sums of ``values``, which lie as the values of the groups do; 0 for no values."""
        import numpy as np

        found = np.add.reduceat(values, self.starts) if len(self.starts) else values[:0]
        return self.filled(found, 0)


def _between(low: Array, high: Array, part: Any) -> Array:
    import numpy as np

    found: Array = np.minimum(low + part * (high - low), high)
    return found
