"""Levels that shift within a series and return, which are noise of that series.

Another program, a clock or a power limit changes the level of consecutive samples or processes for
a while. The values before, during and after it may agree to a thousandth each. So medians and
their scatter say that the level is known, although it is known only as well as the shift is large.

A stretch of consecutive values is a shift if its mean lies to one side of those of all values
before it and of all values after it. Its size is the smaller of the two differences. A level that
stays is none: nothing lies on its other side. Student's t of both differences, by the scatter
within the three parts, exceeds what normal values without a shift exceed in less than one of five
hundred series (`ALMOST`, found by simulation for 5 to 32 values).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from waywiser.stats.order import Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

ALMOST = 0.002
"""One of the best of all stretches is so rare, over the number of values."""

QUANTILES = (
    35.33412, 14.81936, 9.95713, 7.97565, 6.93789, 6.31077, 5.89538, 5.60220, 5.38547, 5.21953,
    5.08892, 4.98383, 4.89772, 4.82611, 4.76578, 4.71441, 4.67025, 4.63199, 4.59859, 4.56927,
    4.54337, 4.52038, 4.49990, 4.48156, 4.46509, 4.45025, 4.43685, 4.42470,
)  # fmt: skip
"""Quantiles of Student's t for `FEWEST` to `MOST` values, with three fewer degrees of freedom, at
one minus `ALMOST` over their number: profiles are opened without scipy."""

LEAST_SHIFT = 0.015
"""Shifts of less than half of the usual threshold explain no finding, and are not looked for."""

LEAST_ERROR = 1e-4
"""Least error of a value, relative."""

FEWEST, MOST = 5, 32
"""Values among which a stretch can be seen; more than `MOST` are taken together, as medians."""

STRETCH = 1 / 8
"""Least share of the values, and at least two: single odd values are no level."""

FEW, TOGETHER, GROUPS = 18, 3, 12
"""The samples of a block, from `FEW` on, are taken together by `TOGETHER` and more, into at most
`GROUPS` values."""

SERIES_AT_ONCE = 512
"""Series that are looked at together, so that their stretches stay in the cache of a core."""

LEAST_SHARE = 1 / 3
"""Least share of a block's samples that shift: fewer do not move their median."""


def may_return(seconds: Sequence[float]) -> bool:
    """Whether times are enough, and apart enough, for a shift."""
    return len(seconds) >= FEWEST and max(seconds) >= min(seconds) * (1 + LEAST_SHIFT)


def returned(values: Sequence[float]) -> float:
    """The size of the largest shift that returns among logarithms in the order of time; 0 for
    none."""
    if len(values) < FEWEST or max(values) - min(values) < LEAST_SHIFT:
        return 0.0
    import numpy as np

    return float(returned_of_rows(np.array([values], float))[0])


def returned_of_rows(series: Array) -> Array:
    """Returns the size of the largest shift that returns in each of some series of equal length,
    one in each row; 0 for none."""
    import numpy as np

    found = np.zeros(len(series))
    if series.shape[1] < FEWEST:
        return found
    large = np.flatnonzero(series.max(axis=1) - series.min(axis=1) >= LEAST_SHIFT)
    for first in range(0, len(large), SERIES_AT_ONCE):
        places = large[first : first + SERIES_AT_ONCE]
        rows = series[places]
        if rows.shape[1] > MOST:
            groups = np.array_split(rows, MOST, axis=1)
            middle = [np.sort(each, axis=1)[:, (each.shape[1] - 1) // 2] for each in groups]
            rows = np.stack(middle, axis=1)
        count = rows.shape[1]
        least = max(2, math.ceil(STRETCH * count))
        stretches = [each[None] for each in _stretches(count, least)]
        found[places] = _returned(rows, np.full((len(rows), 1), count), stretches)
    return found


def returned_from_none(values: Sequence[float]) -> float:
    """The same of differences between processes, before which there was none: one that the first
    processes show and the last ones do not has returned too."""
    return returned([0.0, *values])


def returned_in_blocks(seconds: Array, counts: Array) -> Array:
    """The same of the samples of many blocks, which lie block after block: relative to the median;
    0 for blocks with fewer than `FEWEST` samples."""
    import numpy as np

    found = np.zeros(len(counts))
    enough = counts >= FEWEST
    if not enough.all():
        found[enough] = returned_in_blocks(seconds[np.repeat(enough, counts)], counts[enough])
        return found
    number = np.minimum(np.where(counts < FEW, counts, counts // TOGETHER), GROUPS)[:, None]
    places = np.arange(GROUPS + 1)
    ends = counts[:, None] * np.minimum(places, number) // number
    samples = Segments(seconds, (ends[:, 1:] - ends[:, :-1]).ravel())
    middle = samples.ordered[samples.starts + (samples.counts - 1) // 2]  # of one level
    rows = np.zeros((len(counts), GROUPS))
    with np.errstate(divide="ignore", invalid="ignore"):
        rows.ravel()[samples.known] = np.log(middle)
        inside = places[:-1] < number
        shown = np.where(inside, rows, rows[:, :1])
        apart = shown.max(axis=1) - shown.min(axis=1)
    large = np.flatnonzero((apart >= LEAST_SHIFT) & np.isfinite(apart))
    if len(large):
        number = number[large]
        of_number = [each[number[:, 0] - FEWEST] for each in _stretches_of_blocks()]
        found[large] = _returned(rows[large], number, of_number)
    return np.where(found < LEAST_SHIFT, 0.0, np.expm1(found))


def _returned(rows: Array, count: Array, stretches: Sequence[Array]) -> Array:
    """Returns the shift of each row, 0 for none. A row has ``count`` values, and zeros after them;
    ``stretches`` are as `_stretches` returns them."""
    import numpy as np

    start, stop, *sizes, width_before, width_after = stretches
    mean = np.add.reduce(rows, axis=1, keepdims=True) / count
    rows = np.where(np.arange(rows.shape[1]) < count, rows - mean, 0.0)
    sums = np.zeros((len(rows), rows.shape[1] + 1))
    np.cumsum(rows, axis=1, out=sums[:, 1:])
    first = np.arange(0, sums.size, sums.shape[1])[:, None]
    at_start, at_stop = sums.take(start + first), sums.take(stop + first)
    before = at_start / sizes[0]
    level = (at_stop - at_start) / sizes[1]
    after = (sums[:, -1:] - at_stop) / sizes[2]
    squares = np.add.reduce(rows**2, axis=1, keepdims=True)
    for mean, size in zip((before, level, after), sizes, strict=True):
        squares = squares - size * mean**2
    error = np.maximum(np.sqrt(np.maximum(squares, 0) / (count - 3)), LEAST_ERROR)
    sure = np.array(QUANTILES)[count - FEWEST] * error
    over_before, over_after = level - before, level - after
    by_before, by_after = np.abs(over_before), np.abs(over_after)
    is_shift = (
        (over_before * over_after > 0)
        & (by_before > sure * width_before)
        & (by_after > sure * width_after)
    )
    found: Array = np.where(is_shift, np.minimum(by_before, by_after), 0.0).max(axis=1)
    return found


@lru_cache(maxsize=64)
def _stretches(count: int, least: int) -> tuple[Array, ...]:
    """The first value of each stretch of at least ``least`` values that has values on both sides,
    and the one after its last; the numbers of values before it, in it and after it; the standard
    errors of its mean less that before it and after it, for values with a standard deviation of
    1."""
    import numpy as np

    pairs = [(i, j) for i in range(1, count) for j in range(i + least, count)]
    start, stop = np.array(pairs).T
    sizes = start / 1, (stop - start) / 1, (count - stop) / 1
    return (
        start, stop, *sizes,
        np.sqrt(1 / sizes[1] + 1 / sizes[0]), np.sqrt(1 / sizes[1] + 1 / sizes[2]),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _stretches_of_blocks() -> tuple[Array, ...]:
    """Returns the stretches of blocks of `FEWEST` to `GROUPS` values, a row each, filled up with
    stretches that are none."""
    import numpy as np

    known = [
        _stretches(count, max(2, math.ceil(LEAST_SHARE * count)))
        for count in range(FEWEST, GROUPS + 1)
    ]
    most = max(len(each[0]) for each in known)
    found = []
    for columns in zip(*known, strict=True):
        fill = 0 if columns[0].dtype.kind == "i" else math.nan
        rows = [np.pad(each, (0, most - len(each)), constant_values=fill) for each in columns]
        found.append(np.array(rows))
    return tuple(found)
