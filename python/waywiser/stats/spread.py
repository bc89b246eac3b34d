"""How samples scatter, and whether they drift, as fractions of their median."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.stats.order import median, median_interval


def spread(quartiles: tuple[float, float], middle: float) -> float:
    """From the first quartile to the third, over the median ``middle``: 0.1 says that the middle
    half spans 10 %."""
    return (quartiles[1] - quartiles[0]) / middle if middle else 0.0


def farthest(samples: Sequence[float], middle: float) -> float:
    """How far the sample farthest from the median ``middle`` is from it, over the median."""
    return max(max(samples) - middle, middle - min(samples)) / middle if middle else 0.0


def drift(samples: Sequence[float]) -> float:
    """Median of the second half over that of the first, minus 1; samples in the order taken.

    0 if the intervals of the two medians overlap, or if a half has no interval: then the halves are
    not known to differ; 0 also if the first half took no time.
    """
    half = len(samples) // 2
    first, second = samples[:half], samples[len(samples) - half :]
    before, after = median_interval(first), median_interval(second)
    if before is None or after is None or before.overlaps(after):
        return 0.0
    middle = median(first)
    return median(second) / middle - 1.0 if middle else 0.0
