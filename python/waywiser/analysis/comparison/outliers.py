"""Which values of a table stand apart from the others of their column.

A column is a path (the sizes of one regime), a row is a host. The middle of a column is its median;
the scale is the widest that the median deviation and the outer quantiles call for, so that two
groups of hosts do not make outliers of one another. How heavy the tails are is read off all
columns together. Each value is decided about as one headline effect of the whole table
(`waywiser.stats.decision`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.stats.decision import Effect, decide
from waywiser.stats.distributions import student_quantile
from waywiser.stats.noise_model import Variance
from waywiser.stats.order import NORMAL_SCALE

LEAST_SCALE = 0.001
"""The least scale, of a logarithm: hosts do not agree by more than a tenth of a per cent in the
long run."""

FEWEST_HOSTS = 4
"""Fewest hosts among which an outlier can be seen."""

TAIL = 0.99
"""Quantile by which tails are measured: faults are rarer."""

TAILS = (3, 4, 5, 6, 8, 10, 15, 20, 30)
"""Degrees of freedom of Student's distribution that are tried, heavy tails first."""

MANY = 1000
"""Values below which tails cannot be measured, and are taken to be heavy."""


class Outlier(NamedTuple):
    """A value that stands apart to the slow side."""

    row: int
    column: int
    difference: float
    """Distance from the middle of the column, in logarithms of time."""
    scale: float
    p: float
    """The probability that chance makes one as large anywhere in the table."""


class ColumnScale(NamedTuple):
    middle: float
    scale: float
    hosts: int


def columns_of(table: NDArray[np.float64]) -> list[ColumnScale]:
    """The scale of each column of logarithms [row][column]; NaN means that a host has no value."""
    if not table.size:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        low, tenth, middle, ninetieth, high = np.nanquantile(
            table, (0.05, 0.10, 0.50, 0.90, 0.95), axis=0
        )
        deviation = np.nanmedian(np.abs(table - middle), axis=0)
    count = np.isfinite(table).sum(axis=0)
    wide = np.where(count >= 20, np.maximum((ninetieth - tenth) / 2.563, (high - low) / 3.290), 0)
    scale = np.maximum(np.maximum(NORMAL_SCALE * deviation, wide), LEAST_SCALE)
    rows = zip(middle.tolist(), scale.tolist(), count.tolist(), strict=True)
    return [ColumnScale(*row) for row in rows]


def outliers(
    table: NDArray[np.float64], columns: Sequence[ColumnScale], threshold: float, significant: float
) -> list[Outlier]:
    """Slow by more than ``threshold`` with two scales to spare, and by chance in no more than
    ``significant`` of tables, to either side. The largest deviation first."""
    enough = [n for n, column in enumerate(columns) if column.hosts >= FEWEST_HOSTS]
    if not enough:
        return []
    middle = np.array([column.middle for column in columns])
    scale = np.array([column.scale for column in columns])
    deviations = (table - middle) / scale
    kept = deviations[:, enough]
    values = kept[np.isfinite(kept)]
    freedom = tail_of(values)
    limit = math.log1p(threshold)
    spare = (table - middle - 2 * scale)[:, enough] > limit
    places = [(row, enough[at]) for row, at in np.argwhere(spare & np.isfinite(kept)).tolist()]
    effects = []
    for row, at in places:
        variance = Variance(columns[at].scale ** 2, max(2, min(freedom, columns[at].hosts // 2)))
        difference = float(table[row, at] - middle[at])
        effects.append(Effect(difference, variance, headline=True, threshold=threshold))
    decisions = decide(effects, significant, among=len(values))
    outliers = [
        Outlier(row, at, effect.log_ratio, columns[at].scale, decision.p_corrected or 0.0)
        for (row, at), effect, decision in zip(places, effects, decisions, strict=True)
        if decision.verdict == "different"
    ]
    return sorted(outliers, key=lambda outlier: -outlier.difference)


def tail_of(values: NDArray[np.float64]) -> int:
    """Degrees of freedom of Student's distribution whose tail is as heavy, relative to the middle
    half, as that of ``values``."""
    if len(values) < MANY:
        return 5
    half, tail = np.quantile(np.abs(values), (0.5, TAIL))
    for freedom in reversed(TAILS):
        expected = student_quantile(freedom, (1 + TAIL) / 2) / student_quantile(freedom, 0.75)
        if tail <= half * expected * 1.02:
            return freedom
    return TAILS[0]
