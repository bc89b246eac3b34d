"""Which values of a table stand apart from the others of their column.

A column is a path (the sizes of one regime), a row is a host. How heavy the tails are is read off
all columns together. Each value is decided about as one headline effect of the whole table
(`waywiser.stats.decision`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.analysis.comparison.column_scale import ColumnScale
from waywiser.stats import Effect, Variance, decide, student_quantile

FEWEST_HOSTS = 4
"""Fewest hosts among which an outlier can be seen."""

TAIL = 0.99
"""Quantile by which tails are measured: faults are rarer."""

TAIL_OF_FEW = 0.95
"""The same for fewer than `MANY` values: few of them are beyond it, and one fault is many."""

TAILS = (3, 4, 5, 6, 8, 10, 15, 20, 30)
"""Degrees of freedom of Student's distribution that are tried, heavy tails first."""

MANY = 1000
"""Values from which on tails are known well."""

FEWEST_VALUES = 100
"""Values below which tails cannot be measured, and are taken to be heavy."""

BY_CHANCE = 3.0
"""By how much values may seem heavier, over the square root of their number: that is chance."""


SPARE = 2.0
"""Scales by which a value that deviates by itself, or one of which chance makes several in a table,
exceeds the threshold."""


class Outlier(NamedTuple):
    """A value that stands apart to the slow side."""

    row: int
    column: int
    difference: float
    """Distance from the middle of the column, in logarithms of time."""
    scale: float
    p: float
    """The probability that chance makes one as large anywhere in the table."""


def outliers(
    table: NDArray[np.float64],
    columns: Sequence[ColumnScale],
    threshold: float,
    significant: float,
    own: NDArray[np.float64] | None = None,
    spare: float = 0.0,
) -> list[Outlier]:
    """Slow by more than ``threshold`` with ``spare`` scales to spare, and by chance in no more than
    ``significant`` of tables, to either side. The largest deviation first. ``own`` are deviations
    that values have by themselves."""
    tail, among = tail_of_table(table, columns)
    found = []
    effects = []
    for at, column in enumerate(columns):
        usual = _effect(column, tail, threshold, spare)
        if usual is None:
            continue
        differences = table[:, at] - column.middle
        for row in np.flatnonzero(differences > usual.limit).tolist():
            effect, difference = usual, float(differences[row])
            if own is not None and own[row, at] > 0:
                wide = math.hypot(column.scale, float(own[row, at]))
                few = max(column.hosts // 2, 2)
                own_scale = column._replace(scale=wide, freedom=min(column.freedom, few))
                effect = _effect(own_scale, tail, threshold, SPARE) or effect
                if difference <= effect.limit:
                    continue
            found.append((row, at))
            effects.append(effect._replace(log_ratio=difference, threshold=threshold))
    decisions = decide(effects, significant, among=among)
    outliers = [
        Outlier(row, at, effect.log_ratio, columns[at].scale, decision.p_corrected or 0.0)
        for (row, at), effect, decision in zip(found, effects, decisions, strict=True)
        if decision.outcome == "different"
    ]
    return sorted(outliers, key=lambda outlier: -outlier.difference)


def detectable_losses(
    table: NDArray[np.float64],
    columns: Sequence[ColumnScale],
    threshold: float,
    significant: float,
    spare: float = 0.0,
) -> list[float | None]:
    """The smallest loss of one host that `outliers` finds with a power of 80 %, of each column;
    None if too few hosts have it."""
    tail, among = tail_of_table(table, columns)
    effects = (_effect(column, tail, threshold, spare) for column in columns)
    return [each and each.detectable(significant / among) for each in effects]


def _effect(column: ColumnScale, tail: int, threshold: float, spare: float) -> Effect | None:
    """No change of a value of the column, with the limit beyond which one is an outlier; None if
    too few hosts have one."""
    if column.hosts < FEWEST_HOSTS:
        return None
    variance = Variance(column.scale**2, min(tail, column.freedom))
    limit = (1 + threshold) * math.exp(spare * column.scale) - 1
    return Effect(0.0, variance, headline=True, threshold=limit)


def tail_of_table(table: NDArray[np.float64], columns: Sequence[ColumnScale]) -> tuple[int, int]:
    """Degrees of freedom of the tail of all deviations, and how many values there are."""
    enough = [at for at, column in enumerate(columns) if column.hosts >= FEWEST_HOSTS]
    middle = np.array([columns[at].middle for at in enough])
    scale = np.array([columns[at].scale for at in enough])
    deviations = (table[:, enough] - middle) / scale
    values = deviations[np.isfinite(deviations)]
    return tail_of(values), len(values)


def tail_of(values: NDArray[np.float64]) -> int:
    """Degrees of freedom of Student's distribution whose tail is as heavy, relative to the middle
    half, as that of ``values``."""
    if len(values) < FEWEST_VALUES:
        return 5
    quantile = TAIL if len(values) >= MANY else TAIL_OF_FEW
    half, tail = np.quantile(np.abs(values), (0.5, quantile))
    more = 1.02 if len(values) >= MANY else 1 + BY_CHANCE / math.sqrt(len(values))
    for freedom in reversed(TAILS):
        expected = student_quantile(freedom, (1 + quantile) / 2) / student_quantile(freedom, 0.75)
        if tail <= half * expected * more:
            return freedom
    return TAILS[0]
