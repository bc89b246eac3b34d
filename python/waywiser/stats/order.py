"""Medians and their intervals from order statistics: no distribution is assumed.

Sources: Hahn & Meeker, "Statistical Intervals" (1991), chapter 5, for the interval of a quantile;
Hoefler & Belli, "Scientific Benchmarking of Parallel Computing Systems" (SC'15), rules 5 and 6, for
its use.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache

from waywiser.words import Value

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
