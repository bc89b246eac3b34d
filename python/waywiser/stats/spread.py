"""How samples scatter, and whether they drift, as fractions of their median."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.stats.order import median, median_interval, quantiles


def spread(samples: Sequence[float]) -> float:
    """Interquartile range over the median: 0.1 says that the middle half spans 10 %."""
    first, middle, third = quantiles(samples, (0.25, 0.5, 0.75))
    return (third - first) / middle if middle else 0.0


def farthest(samples: Sequence[float]) -> float:
    """How far the sample farthest from the median is from it, over the median."""
    middle = median(samples)
    return max(max(samples) - middle, middle - min(samples)) / middle if middle else 0.0


def drift(samples: Sequence[float]) -> float:
    """Median of the second half over that of the first, minus 1; samples in the order taken.

    0 where the intervals of the two medians overlap, and where a half has no interval: then the
    halves are not known to differ.
    """
    half = len(samples) // 2
    first, second = samples[:half], samples[len(samples) - half :]
    before, after = median_interval(first), median_interval(second)
    if before is None or after is None or before.overlaps(after):
        return 0.0
    return median(second) / median(first) - 1.0
