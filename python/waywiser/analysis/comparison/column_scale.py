"""How far the values of a column lie apart: a column is a path, a row is a host.

The middle of a column is its median. Its scale is the widest that the median deviation and the
outer quantiles call for, so that two groups of hosts do not make outliers of one another. A few
hosts show little of a scale. So equivalent columns pool it: the first quartile of all differences
between two hosts, which half of the hosts cannot make too large (Rousseeuw & Croux, JASA 88, 1993).
What a host has in common on all of them adds no degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.stats import (
    Contrast,
    Variance,
    combined,
    median_share,
    noise_between_surveys,
    shared,
    survey_noise_of,
)
from waywiser.stats.distributions import f_tail
from waywiser.stats.noise_model import UNLIKE
from waywiser.stats.order import NORMAL_SCALE
from waywiser.stats.scatter import medians, quantiles
from waywiser.words import grouped

Array = NDArray[np.float64]

LEAST_SCALE = 0.001
"""The least scale, of a logarithm: hosts do not agree by more than a tenth of a per cent in the
long run."""

MANY_HOSTS = 20
"""Hosts from which on a column shows its own scale."""

SURE = 6
"""Scales within the threshold from which on it does not matter how few hosts show them: what counts
as a difference is many times as large then, even if the true scale is a few times wider."""

FIRST_QUARTILE = 0.4506
"""That of the difference of two values of a normal distribution, over its standard deviation."""


class ColumnScale(NamedTuple):
    middle: float
    scale: float
    hosts: int
    freedom: float
    """Degrees of freedom of the scale; infinite if that is so small that they do not matter."""


def columns_of(table: Array) -> list[ColumnScale]:
    """The scale of each column of logarithms [row][column]; NaN means that a host has no value."""
    if not table.size:
        return []
    low, tenth, middle, ninetieth, high = quantiles(table, (0.05, 0.10, 0.50, 0.90, 0.95))
    deviation = medians(np.abs(table - middle).T)
    count = np.isfinite(table).sum(axis=0)
    wide = (ninetieth - tenth) / 2.563, (high - low) / 3.290
    own = np.where(count >= MANY_HOSTS, np.maximum(*wide), 0)
    scale = np.maximum(np.maximum(NORMAL_SCALE * deviation, own), LEAST_SCALE)
    freedom = np.maximum(count // 2, 2)
    rows = zip(middle.tolist(), scale.tolist(), count.tolist(), freedom.tolist(), strict=True)
    return list(starmap(ColumnScale, rows))


def pooled_columns(
    table: Array,
    kinds: Sequence[Hashable],
    threshold: float,
    regimes: Sequence[Hashable] = (),
) -> list[ColumnScale]:
    """As `columns_of`, with the scale that equivalent columns show together, unless a column's own
    is too wide to be theirs; ``kinds`` says which are equivalent. All of one of ``regimes`` have
    the same scale, unless equivalent ones show another. Columns of many hosts keep theirs.
    Differences below ``threshold`` do not count."""
    columns = columns_of(table)
    own = [column.scale for column in columns]
    few = [at for at, column in enumerate(columns) if column.hosts < MANY_HOSTS]
    apart = table - [column.middle for column in columns]
    for members in grouped((kinds[at], at) for at in few).values():
        if len(members) > 1:
            peers = _pooled(apart[:, members], sum(columns[at].freedom for at in members))
            for at in members:
                scale = shared(Variance(own[at] ** 2, columns[at].freedom), peers)
                columns[at] = columns[at]._replace(scale=scale.deviation, freedom=scale.freedom)
    for members in grouped((regimes[at], at) for at in few if regimes).values():
        together = _of_all(apart[:, members], [columns[at].hosts for at in members])
        for at in members:
            kind = Variance(columns[at].scale ** 2, columns[at].freedom)
            if columns[at].hosts and not survey_noise_of(kind, together):
                columns[at] = columns[at]._replace(
                    scale=together.deviation, freedom=together.freedom
                )
    return [
        column._replace(freedom=math.inf)
        if SURE * max(column.scale, own[at]) <= math.log1p(threshold)
        else column
        for at, column in enumerate(columns)
    ]


def _of_all(apart: Array, hosts: Sequence[int]) -> Variance:
    """The variance of all columns about their middles, as of the noise between surveys."""
    contrasts = [
        Contrast(float(value), 1 - 2 / count + median_share(count), 0.0)
        for column, count in zip(apart.T, hosts, strict=True)
        for value in column
        if count > 1 and math.isfinite(value)
    ]
    return _shared_by_hosts(apart, noise_between_surveys(contrasts).variance)


def _pooled(apart: Array, freedom: float) -> Variance:
    """The variance of columns about their middles. ``freedom`` is that of all of them."""
    return _shared_by_hosts(apart, Variance(max(_scale_of(apart), LEAST_SCALE) ** 2, freedom))


def _shared_by_hosts(apart: Array, variance: Variance) -> Variance:
    """The same with the degrees of freedom of one column for what the hosts have in common on all
    of them, if that is more than chance makes (F-test at `UNLIKE`)."""
    middles = medians(apart)[:, None]
    hosts, number = apart.shape
    share = _scale_of(middles) ** 2 / variance.value
    chance, few = median_share(number), max(hosts // 2, 2)
    if f_tail(few, variance.freedom, share / chance) >= UNLIKE:
        return variance
    common = min(1.0, (share - chance) / (1 - chance)) if chance < 1 else 1.0
    parts = (common, few), (1 - common, variance.freedom)
    return combined([(part, Variance(variance.value, each)) for part, each in parts])


def _scale_of(apart: Array) -> float:
    """The deviation by which two hosts differ, over all columns."""
    one, other = np.triu_indices(len(apart), 1)
    differences = np.abs(apart[one] - apart[other])
    known = differences[np.isfinite(differences)]
    return float(np.quantile(known, 0.25)) / FIRST_QUARTILE if len(known) else 0.0
