"""How far the sizes of a curve scatter, from block to block: the noise of each size's median.

Two blocks show almost nothing of their own scatter. So it is pooled over `NEIGHBOURHOOD` sizes to
either side, since small sizes are noisier than large ones, and over the curves of a class, which
should scatter alike; each block's own level is taken out, because it moves no size against
another. It is never less than that of the size itself, nor than the intervals within blocks say.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Numbers, as the docstrings say of which shape."""

LEAST_SIZES = 6
"""Sizes of a curve from which on its shape can be described: fewer do not distinguish a line from
anything else."""
NEIGHBOURHOOD = 4
"""Sizes to either side."""
LEAST_NOISE = 0.001
"""Least noise of one block, relative: below, the clock's tick and rounding rule."""
UNKNOWN_NOISE = 0.02
"""Noise of a size that a single block visited, which does not show by how much blocks differ."""
_WITHIN_FREEDOM = 30
"""Degrees of freedom of the scatter within a block, which has many samples."""


class CurveBlocks(NamedTuple):
    """One curve: its sizes in bytes, ascending; of each size the medians of its blocks in seconds,
    by the block's number; and the relative standard error of a median within its block."""

    bytes: Sequence[int]
    blocks: Sequence[Mapping[int, float]]
    within: Sequence[float] = ()
    """Not needed for a fit."""
    alike: Hashable = None
    """Curves of one class are taken to scatter alike; None is a class of its own."""

    @property
    def table(self) -> Array:
        """Seconds by size and block; not-a-number if a block left a size out."""
        numbers = sorted(set().union(*self.blocks))
        return np.array([[own.get(k, np.nan) for k in numbers] for own in self.blocks])


class CurveNoise(NamedTuple):
    """One curve with the noise of its sizes."""

    n: Array
    """Bytes."""
    y: Array
    """Logarithms of seconds: the median of blocks."""
    table: Array
    """[size, block]: each block's own level taken out; not-a-number if it left a size out."""
    noise: Array
    """Variance of ``y``."""
    freedom: Array
    """Degrees of freedom of the noise."""


def prepared(curves: Sequence[CurveBlocks]) -> Iterator[CurveNoise]:
    """Curves with the noise of each size, pooled over all curves of the class."""
    tables = [_table(curve) for curve in curves]
    keys = [n if curve.alike is None else ("class", curve.alike) for n, curve in enumerate(curves)]
    pools: dict[Hashable, dict[int, tuple[float, int]]] = {}
    for curve, table, key in zip(curves, tables, keys, strict=True):
        pool = pools.setdefault(key, {})
        off = table - np.nanmean(table, axis=1, keepdims=True)
        squares, counts = np.nansum(off**2, axis=1), np.isfinite(table).sum(axis=1)
        for size, square, count in zip(curve.bytes, squares, counts, strict=True):
            before, freedom = pool.get(size, (0.0, 0))
            pool[size] = (before + float(square), freedom + int(count) - 1)
    for curve, table, key in zip(curves, tables, keys, strict=True):
        noise, of_noise = _noise(curve, table, pools[key])
        yield CurveNoise(np.asarray(curve.bytes, float), medians(table), table, noise, of_noise)


def _table(curve: CurveBlocks) -> Array:
    table: Array = np.log(curve.table)
    if table.shape[1] > 1:
        table -= medians((table - np.nanmean(table, axis=1, keepdims=True)).T)
    return table


def medians(table: Array) -> Array:
    """Medians along the last axis, of what is a number; as ``np.nanmedian``, and faster."""
    ordered = np.sort(table, axis=-1)  # what is no number comes last
    count = np.isfinite(ordered).sum(axis=-1, keepdims=True)
    low = np.take_along_axis(ordered, np.maximum(count - 1, 0) // 2, axis=-1)
    high = np.take_along_axis(ordered, np.minimum(count // 2, ordered.shape[-1] - 1), axis=-1)
    middle: Array = ((low + high) / 2)[..., 0]
    return middle


def quantiles(table: Array, probabilities: Sequence[float]) -> list[Array]:
    """Quantiles of each column, of what is a number; as ``np.nanquantile``, and faster."""
    ordered = np.sort(table, axis=0)  # what is no number comes last
    last = np.maximum(np.isfinite(ordered).sum(axis=0) - 1, 0)
    found = []
    for probability in probabilities:
        position = probability * last
        below = position.astype(np.int64)
        low, high = (
            np.take_along_axis(ordered, at[None], axis=0)[0]
            for at in (below, np.minimum(below + 1, last))
        )
        part, apart = position - below, high - low
        found.append(np.where(part < 0.5, low + part * apart, high - (1 - part) * apart))
    return found


def _noise(
    curve: CurveBlocks, table: Array, pool: dict[int, tuple[float, int]]
) -> tuple[Array, Array]:
    """(variance of the median of blocks, degrees of freedom), of each size."""
    variances, freedoms = [], []
    for i, within in enumerate(curve.within):
        near = curve.bytes[max(0, i - NEIGHBOURHOOD) : i + NEIGHBOURHOOD + 1]
        scatter, freedom = _scatter([pool[size] for size in near])
        own, blocks = pool[curve.bytes[i]]
        between = max(scatter, own / blocks if blocks else 0.0)
        least = LEAST_NOISE if freedom else UNKNOWN_NOISE
        variance = max(between, within**2, least**2)
        variances.append(variance * variance_of_median(int(np.isfinite(table[i]).sum())))
        freedoms.append(freedom if between >= variance else max(freedom, _WITHIN_FREEDOM))
    return np.array(variances), np.array(freedoms, float)


def _scatter(pool: Sequence[tuple[float, int]]) -> tuple[float, int]:
    """(variance of one block, degrees of freedom) from sums of squares of several sizes. The most
    scattered counts as the one after it: a disturbed size says so of itself, and
    nothing of its neighbours."""
    known = sorted((squares / count, count) for squares, count in pool if count)
    if not known:
        return 0.0, 0
    if len(known) > 1:
        known[-1] = (known[-2][0], known[-1][1])
    freedom = sum(count for _, count in known)
    return sum(square * count for square, count in known) / freedom, freedom


def variance_of_median(count: int) -> float:
    """The variance of the median of ``count`` normal blocks, over that of one: exactly up to five,
    the limit pi / 2n from there on, which is more."""
    exact = {1: 1.0, 2: 0.5, 3: 0.449, 4: 0.299, 5: 0.287}
    return exact.get(count, math.pi / (2 * count))
