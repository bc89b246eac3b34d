"""How far the values of a column lie apart: a column is a path, a row is a host.

The middle of a column is its median. Its scale is the widest that the median deviation and the
outer quantiles call for, so that two groups of hosts do not make outliers of one another. A few
hosts show little of a scale. So equivalent columns pool it: the first quartile of all differences
between two hosts, which half of the hosts cannot make too large (Rousseeuw & Croux, JASA 88, 1993).
What a host has in common on all of them adds no degrees of freedom.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from itertools import starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.stats.noise_model import Variance, combined, median_share, shared
from waywiser.stats.order import NORMAL_SCALE
from waywiser.words.grouping import grouped

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        low, tenth, middle, ninetieth, high = np.nanquantile(
            table, (0.05, 0.10, 0.50, 0.90, 0.95), axis=0
        )
        deviation = np.nanmedian(np.abs(table - middle), axis=0)
    count = np.isfinite(table).sum(axis=0)
    wide = (ninetieth - tenth) / 2.563, (high - low) / 3.290
    own = np.where(count >= MANY_HOSTS, np.maximum(*wide), 0)
    scale = np.maximum(np.maximum(NORMAL_SCALE * deviation, own), LEAST_SCALE)
    freedom = np.maximum(count // 2, 2)
    rows = zip(middle.tolist(), scale.tolist(), count.tolist(), freedom.tolist(), strict=True)
    return list(starmap(ColumnScale, rows))


def pooled_columns(table: Array, kinds: Sequence[Hashable], threshold: float) -> list[ColumnScale]:
    """As `columns_of`, with the scale that equivalent columns show together, unless a column's own
    is too wide to be theirs; ``kinds`` says which are equivalent. Columns of many hosts keep
    theirs. Differences below ``threshold`` do not count."""
    columns = columns_of(table)
    own = [column.scale for column in columns]
    for members in grouped((kind, at) for at, kind in enumerate(kinds)).values():
        few = [at for at in members if columns[at].hosts < MANY_HOSTS]
        if len(few) > 1:
            apart = table[:, few] - [columns[at].middle for at in few]
            peers = _pooled(apart, sum(columns[at].freedom for at in few))
            for at in few:
                scale = shared(Variance(own[at] ** 2, columns[at].freedom), peers)
                columns[at] = columns[at]._replace(scale=scale.deviation, freedom=scale.freedom)
    return [
        column._replace(freedom=math.inf)
        if SURE * max(column.scale, own[at]) <= math.log1p(threshold)
        else column
        for at, column in enumerate(columns)
    ]


def _pooled(apart: Array, freedom: float) -> Variance:
    """The variance of columns about their middles. ``freedom`` is that of all of them; of what the
    hosts have in common it is that of one of them."""
    scale = max(_scale_of(apart), LEAST_SCALE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # hosts without any value
        share = (_scale_of(np.nanmedian(apart, axis=1, keepdims=True)) / scale) ** 2
    hosts, number = apart.shape
    chance = median_share(number)
    common = min(1.0, max(0.0, (share - chance) / (1 - chance)))
    parts = (common, max(hosts // 2, 2)), (1 - common, freedom)
    return combined([(part, Variance(scale**2, each)) for part, each in parts])


def _scale_of(apart: Array) -> float:
    """The deviation by which two hosts differ, over all columns."""
    one, other = np.triu_indices(len(apart), 1)
    differences = np.abs(apart[one] - apart[other])
    known = differences[np.isfinite(differences)]
    return float(np.quantile(known, 0.25)) / FIRST_QUARTILE if len(known) else 0.0
