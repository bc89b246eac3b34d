"""Calculations on many series of equal length, one in each row of an array."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from waywiser.stats.noise_model import (
    LEAST_OUTLIER,
    LEAST_WITH_OUTLIERS,
    MOST_OUTLIERS,
    OUTLIER,
)
from waywiser.stats.order import NORMAL_SCALE, Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

MOST_CELLS = 131_072
"""Numbers of one temporary array: they stay in the cache of a core."""

MOST_ODD = 0.05
"""Largest share of nights that are no part of the noise, because they differ very much."""


def chunks(rows: int, width: int) -> Iterator[slice]:
    """Yields slices of rows of this width, each of at most `MOST_CELLS` numbers or one row."""
    size = max(1, MOST_CELLS // max(width, 1))
    for first in range(0, rows, size):
        yield slice(first, min(first + size, rows))


def row_medians(rows: Array) -> Array:
    """Returns the median of each row; numpy takes longer for it than to sort a few values."""
    return sorted_medians(np.sort(rows))


def sorted_medians(ordered: Array) -> Array:
    """Returns the median of each row, whose values are sorted."""
    count = ordered.shape[-1]
    middle: Array = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2
    return middle


def running_medians(rows: Array) -> Array:
    """Returns the median of five values around each; at the ends, of the first and last five."""
    if rows.shape[1] < 5:
        raise ValueError(f"{rows.shape[1]} values are too few for a median of five")
    a, b, c, d, e = (rows[:, n : rows.shape[1] - 4 + n] for n in range(5))
    low = np.maximum(np.minimum(a, b), np.minimum(d, e))
    high = np.minimum(np.maximum(a, b), np.maximum(d, e))
    low, high = np.minimum(low, high), np.maximum(low, high)
    middle = np.maximum(low, np.minimum(high, c))
    return np.concatenate(
        [middle[:, :1].repeat(2, axis=1), middle, middle[:, -1:].repeat(2, axis=1)], axis=1
    )


def outlier_rows(rows: Array) -> Array:
    """Whether each value is an outlier of its row, as `waywiser.stats.are_outliers` says."""
    count = rows.shape[1]
    if count < LEAST_WITH_OUTLIERS:
        return np.zeros(rows.shape, bool)
    distances = np.abs(rows - row_medians(rows)[:, None])
    ordered = np.sort(distances)
    limit = np.maximum(OUTLIER * NORMAL_SCALE * sorted_medians(ordered), LEAST_OUTLIER)
    limit = np.maximum(limit, ordered[:, -1 - int(MOST_OUTLIERS * count)])
    found: Array = distances > limit[:, None]
    return found


def medians_without_outliers(rows: Array) -> Array:
    """Returns the median of each row without its outliers."""
    kept = ~outlier_rows(rows)
    return Segments(rows[kept], kept.sum(axis=1)).medians


def row_slopes(days: Array, rows: Array) -> Array:
    """Returns the slope of each row per day; 0 if all of its values are of one moment."""
    apart = days - days.mean(axis=1, keepdims=True)
    squares = (apart**2).sum(axis=1)
    shared = (apart * rows).sum(axis=1)
    found: Array = np.divide(shared, squares, out=np.zeros(len(rows)), where=squares > 0)
    return found


def best_stretches(rows: Array, least: int, above: Array) -> tuple[Array, Array, Array]:
    """Returns for each row the stretch whose mean differs most from that of the others: its
    difference in deviations of one value, its first value, and the one after its last. At least
    ``least`` values, or none, are on each side of it, and in it. A row whose stretches are all
    below its value of ``above`` may have any of them."""
    count = rows.shape[1]
    score, best = _largest_stretches(rows, least, above), np.zeros(len(rows), int)
    sums = np.zeros((len(rows), count + 1))
    np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1, out=sums[:, 1:])
    weights = _stretch_weights(count, least)
    chosen = np.flatnonzero(score > above)
    for part in chunks(len(chosen), weights.size):
        own = sums[chosen[part]]
        scores = np.abs(own[:, None, :] - own[:, :, None]) * weights
        flat = scores.reshape(len(own), -1)
        best[chosen[part]] = at = np.argmax(flat, axis=1)
        score[chosen[part]] = flat[np.arange(len(own)), at]
    first, last = np.divmod(best, count + 1)
    return score, first, last


FEW_ROWS = 8
"""Rows up to which all stretches of each are compared at once."""


def _largest_stretches(rows: Array, least: int, above: Array) -> Array:
    """The largest difference of a stretch of each row, a little more of a few rows than ``above``:
    of many rows few have one that counts."""
    if len(rows) <= FEW_ROWS:
        return np.nextafter(above, np.inf)
    count = rows.shape[1]
    places = np.array([0, *range(least, count - least + 1), count])
    sums = np.zeros((count + 1, len(rows)))
    np.cumsum((rows - rows.mean(axis=1, keepdims=True)).T, axis=0, out=sums[1:])
    sums = sums[places]
    best = np.zeros(len(rows))
    apart = np.empty_like(sums)
    for step in range(1, len(places) - 1):
        size = places[step:] - places[:-step]
        own = np.subtract(sums[step:], sums[:-step], out=apart[: len(size)])
        np.abs(own, out=own)
        weight = np.sqrt(count / (size * (count - size)))
        if step >= least and len(size) > 2:  # all but those at an end have the same size
            np.maximum(best, own[1:-1].max(axis=0) * weight[1], out=best)
        np.maximum(best, own[0] * weight[0], out=best)
        np.maximum(best, own[-1] * weight[-1], out=best)
    return best * (1 + 1e-9)


@lru_cache(maxsize=32)
def _stretch_weights(count: int, least: int) -> Array:
    """What makes deviations of one value of a difference of sums, by the places of both; 0 for a
    stretch that is not looked at."""
    place = np.arange(count + 1)
    is_place = (place == 0) | (place == count) | ((place >= least) & (place <= count - least))
    size = place[None, :] - place[:, None]
    is_stretch = is_place[:, None] & is_place[None, :] & (size >= least) & (size < count)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.sqrt(count / (size * (count - size)))
    found: Array = np.where(is_stretch, weights, 0.0)
    return found


def best_drifts(days: Array, rows: Array, least: int) -> tuple[Array, Array, Array]:
    """Returns for each row the best slope from some value on, over at least ``least`` values: per
    day, where it begins, and what it explains in deviations of one value."""
    size, count = rows.shape
    onsets = count - least + 1
    none = np.zeros(size)
    if onsets < 1:
        return none, none.astype(int), none
    days = days - days.mean(axis=1, keepdims=True)
    flat = rows - rows.mean(axis=1, keepdims=True)
    begin = days[:, :onsets]

    def from_each(values: Array) -> Array:
        """The sum of all values from each onset on."""
        sums: Array = np.cumsum(values[:, ::-1], axis=1)[:, ::-1][:, :onsets]
        return sums

    # a hinge is 0 before its onset, and the days since it from there on
    number = np.arange(count, count - onsets, -1)
    later = from_each(days)
    hinge = later - number * begin
    squares = from_each(days**2) - 2 * begin * later + number * begin**2 - hinge**2 / count
    shared = from_each(days * flat) - begin * from_each(flat)
    span = days[:, -1:] - begin
    with np.errstate(divide="ignore", invalid="ignore"):
        is_hinge = squares > 1e-12 * number * span**2
        score = np.where(is_hinge, np.abs(shared) / np.sqrt(squares), 0.0)
        slope = np.where(is_hinge, shared / squares, 0.0)
    best = np.argmax(score, axis=1)
    at = np.arange(size), best
    return slope[at], best, score[at]
