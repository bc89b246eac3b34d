"""Outliers are classified and shown, never dropped (Tukey, "Exploratory Data Analysis", 1977)."""

from __future__ import annotations

from waywiser.words import Value

MILD_IQR = 1.5
"""Interquartile ranges beyond a quartile where a sample is a mild outlier; Tukey's inner fence."""

SEVERE_IQR = 3.0
"""The same for a severe one; Tukey's outer fence."""


class OutlierCount(Value, frozen=True):
    """How many samples lie beyond the fences, on either side."""

    mild: int = 0
    severe: int = 0
