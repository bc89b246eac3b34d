"""How far blocks of one series scatter: pooled over series that ought to scatter alike.

Two blocks tell almost nothing of their own scatter; those of several series together do. Values are
logarithms, so that a deviation is relative and a fast series counts as a slow one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from waywiser.stats.order import CONFIDENCE, Interval, median
from waywiser.words import Value


class Scatter(Protocol):
    """How far single blocks scatter, as far as it takes to judge a difference of medians."""

    def p_value(self, difference: float, variance: float, among: int = 1) -> float:
        """How often chance makes a difference as large, to either side, at any of ``among``, of
        something whose variance is ``variance`` times that of one block."""
        ...

    def around(self, difference: float, variance: float) -> Interval:
        """The 95 % interval of a difference, in logarithms."""
        ...


class Between(Value, frozen=True):
    """The scatter of single blocks around their series."""

    deviation: float
    """Standard deviation of one block's logarithm; 0.01 is 1 %."""
    freedom: int
    """Degrees of freedom that it was estimated with."""

    def p_value(self, difference: float, variance: float, among: int = 1) -> float:
        """How often chance makes a difference as large, to either side, at any of ``among``, of
        something whose variance is ``variance`` times that of one block (Student, 1908)."""
        if self.deviation <= 0:
            return 1.0 if difference == 0 else 0.0
        from scipy.special import stdtr  # the distribution alone: scipy.stats takes a second

        t = abs(difference) / (self.deviation * math.sqrt(variance))
        return min(1.0, float(2 * stdtr(self.freedom, -t)) * among)

    def around(
        self, difference: float, variance: float, confidence: float = CONFIDENCE
    ) -> Interval:
        """The interval of a difference, in logarithms."""
        half = quantile_of_t(self.freedom, confidence) * self.deviation * math.sqrt(variance)
        return Interval(difference - half, difference + half)


def pooled(series: Iterable[Sequence[float]], least: float = 0.0) -> Between | None:
    """The scatter within all of ``series`` together, each around its own mean; never told as less
    than ``least``. None where none has two blocks."""
    squares, freedom = 0.0, 0
    for values in series:
        mean = sum(values) / len(values) if values else 0.0
        squares += sum((value - mean) ** 2 for value in values)
        freedom += max(0, len(values) - 1)
    if not freedom:
        return None
    return Between(max(math.sqrt(squares / freedom), least), freedom)


def middling(series: Iterable[Sequence[float]], least: float = 0.0) -> Between | None:
    """As `pooled`, but the scatter of most blocks, whatever few of them do: from the median
    distance between two blocks of a series, which is 0.954 deviations of a normal scatter however
    many blocks there are (after Rousseeuw & Croux, "Alternatives to the Median Absolute Deviation",
    J. Am. Statistical Association 88, 1993).

    For medians and the like, which few odd blocks do not move either. It takes about twice as many
    values to know it as well.
    """
    apart: list[float] = []
    freedom = 0
    for values in series:
        apart += [abs(x - y) for n, x in enumerate(values) for y in values[:n]]
        freedom += max(0, len(values) - 1)
    if freedom < 2:
        return None
    return Between(max(median(apart) / NORMAL_DISTANCE, least), freedom // 2)


NORMAL_DISTANCE = 0.9539
"""Median distance between two normal values, in deviations: sqrt(2) times their upper quartile."""


def variance_of_median(count: int) -> float:
    """Of the median of ``count`` blocks, over that of one, were they normal: exactly up to five,
    the limit pi / 2n from there on, which is more."""
    exact = {1: 1.0, 2: 0.5, 3: 0.449, 4: 0.299, 5: 0.287}
    return exact.get(count, math.pi / (2 * count))


@lru_cache(maxsize=4096)
def quantile_of_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Half the width, in deviations, of Student's interval."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))
