"""Outliers are classified and shown, never dropped (Tukey, "Exploratory Data Analysis", 1977)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from waywiser.stats.order import quantiles
from waywiser.words import Value

MILD_IQR = 1.5
"""Interquartile ranges beyond a quartile where a sample is a mild outlier; Tukey's inner fence."""

SEVERE_IQR = 3.0
"""The same for a severe one; Tukey's outer fence."""

Kind = Literal["inside", "mild", "severe"]


class OutlierCount(Value, frozen=True):
    """How many samples lie beyond the fences, on either side."""

    mild: int = 0
    severe: int = 0


def classify(samples: Sequence[float]) -> list[Kind]:
    """The class of each sample, in the order given; on a fence is inside."""
    if not samples:
        return []
    first, third = quantiles(samples, (0.25, 0.75))
    spread = third - first

    def kind(sample: float) -> Kind:
        beyond = max(first - sample, sample - third)
        if beyond > SEVERE_IQR * spread:
            return "severe" if beyond > 0 else "inside"
        return "mild" if beyond > MILD_IQR * spread else "inside"

    return [kind(sample) for sample in samples]


def count_outliers(
    samples: Sequence[float], quartiles: tuple[float, float] | None = None
) -> OutlierCount:
    """``quartiles`` are the first and the third of the samples, where they are known already."""
    if not samples:
        return OutlierCount()
    first, third = quartiles or quantiles(samples, (0.25, 0.75))
    if max(first - min(samples), max(samples) - third) <= MILD_IQR * (third - first):
        return OutlierCount()  # as mostly: not even the farthest is one
    kinds = classify(samples)
    return OutlierCount(mild=kinds.count("mild"), severe=kinds.count("severe"))
