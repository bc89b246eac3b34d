"""Boundaries between the levels of many series of equal length: which of them are no change.

The levels of series are segments of the rows of an array: a second array of truth values says where
each segment begins, as the first value of each row does. Segments are numbered row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from waywiser.stats.night_noise import noise_chances, own_weights
from waywiser.stats.night_rows import MOST_ODD, outlier_rows
from waywiser.stats.order import Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

FALSE_ALARM = 1e-7
"""Chance that noise alone looks like a change, for each place where one could be. 500 nodes with
eight paths have 240,000 such places in 60 nights (benchmarks/history.py counts false alarms)."""

CONFIRMING = 3
"""Nights that show a level before it counts."""

LEAST_BEFORE = CONFIRMING + 1
"""Nights that show the first level of a series at least."""

FEW_NIGHTS = 6
"""Nights of a level of which each shows it: of more, single ones may be odd."""

LEAST_SHARE = 1 / 3
"""Share of a change that each of so few nights shows."""


def segments_of(rows: Array, begins: Array) -> Segments:
    """Returns the segments of all rows, one after another."""
    return Segments(rows.ravel(), np.diff(np.flatnonzero(begins), append=rows.size))


def squares_around(rows: Array, begins: Array) -> tuple[Array, Array]:
    """Returns for each row the squares around the mean of each segment without outliers, and their
    degrees of freedom."""
    first = np.flatnonzero(begins)
    of_rows = np.searchsorted(first, np.arange(len(rows)) * rows.shape[1])
    segments = segments_of(rows, begins)
    middle = np.repeat(segments.medians, segments.counts)
    rest = rows - middle.reshape(rows.shape)
    kept = ~outlier_rows(rest)
    fewest = rest.shape[1] - max(1, int(MOST_ODD * rest.shape[1]))
    kept[kept.sum(axis=1) < fewest] = True
    number = np.add.reduceat(kept.ravel(), first, dtype=float)
    rest *= kept
    mean = np.add.reduceat(rest.ravel(), first) / np.maximum(number, 1)
    squares = np.add.reduceat((rest**2).ravel(), first) - number * mean**2
    return (
        np.add.reduceat(np.maximum(squares, 0), of_rows),
        np.add.reduceat(np.maximum(number - 1, 0), of_rows),
    )


def settled_squares(rows: Array, begins: Array, drifting: Array) -> tuple[Array, Array]:
    """Returns the squares of each row and their degrees of freedom without the last nights, which
    the next have to confirm. ``drifting`` says of which rows a drift was subtracted."""
    settled = rows.shape[1] - CONFIRMING + 1
    squares, freedom = squares_around(rows[:, :settled], begins[:, :settled])
    return squares, np.maximum(freedom - drifting, 1.0)


def prune(
    clipped: Array, rows: Array, begins: Array, usual: Array, drifting: Array, limit: float
) -> tuple[Array, Array]:
    """Removes boundaries that are no change from ``begins``, in place: of each series the least
    certain one first. Returns the weights and the deviation of the noise of each around the levels
    that are left. ``clipped`` are the rows without odd values; ``usual`` has the weights of the
    noise of the peers of each row."""
    weights, deviations = np.empty_like(usual), np.empty(len(rows))
    left = np.arange(len(rows))
    while len(left):
        own = begins[left]
        # what is left of a boundary that was removed is noise
        squares, freedom = settled_squares(rows[left], own, drifting[left])
        weights[left], deviations[left] = own_weights(usual[left], squares, freedom)
        row, night = _least_certain(clipped[left], rows[left], own, weights[left], limit)
        left = left[row]
        begins[left, night] = False
    return weights, deviations


def _least_certain(
    clipped: Array, rows: Array, begins: Array, weights: Array, limit: float
) -> tuple[Array, Array]:
    """Returns the rows with boundaries that are no change, and of each row the night of the least
    certain one."""
    nights, levels = rows.shape[1], segments_of(clipped, begins)
    first, size = levels.starts, levels.counts
    row, start = np.divmod(first, nights)
    after = np.flatnonzero(start)
    before = after - 1
    mean = np.add.reduceat(clipped.ravel(), first) / size
    change = _step_sizes(mean, levels.medians, before, after)
    chance = noise_chances(weights[row[after]], change, 1 / size[before] + 1 / size[after])
    # a level that ended has a first and a last night
    places = np.where(start[after] + size[after] == nights, nights, nights**2)
    is_early = (start[before] == 0) & (size[before] < LEAST_BEFORE)
    is_weak = is_early | (chance * places > FALSE_ALARM) | (np.abs(change) <= limit)
    is_weak |= ~_stand_out(segments_of(rows, begins), mean, change, before, after, limit)
    weak = np.flatnonzero(is_weak)
    # the first of equally certain ones
    order = np.lexsort((-weak, -np.abs(change[weak]), chance[weak], row[after[weak]]))
    worst = after[weak[order]]
    worst = worst[np.append(np.diff(row[worst]) != 0, True)[: len(worst)]]
    return row[worst], start[worst]


def _step_sizes(mean: Array, middle: Array, before: Array, after: Array) -> Array:
    """The size of a step is that of means or of medians, whichever is smaller: few nights of a
    short level can be odd."""
    by_mean, by_median = mean[after] - mean[before], middle[after] - middle[before]
    found: Array = np.where(np.abs(by_median) < np.abs(by_mean), by_median, by_mean)
    return found


def _stand_out(
    nights: Segments, mean: Array, change: Array, before: Array, after: Array, limit: float
) -> Array:
    """Returns whether each of a few nights after a boundary differs from the level before it, and
    few nights before it are as far from that level as most of these: noise need not be normal.
    Many nights always stand out."""
    first, size, flat = nights.starts, nights.counts, nights.values
    base, sign = mean[before], np.sign(change)
    middle = nights.medians[after] - base
    least = np.maximum(limit / 2, np.abs(middle) * LEAST_SHARE)
    low, high = (f.reduceat(flat, first)[after] for f in (np.minimum, np.maximum))
    nearest = np.where(sign < 0, base - high, (low - base) * sign)
    # how far the nights before each boundary are from their level, and most nights after it
    levels, signs, reaches = (np.zeros(len(first)) for _ in range(3))
    levels[before], signs[before], reaches[before] = base, sign, middle * sign
    levels, signs, reaches = (np.repeat(each, size) for each in (levels, signs, reaches))
    as_far = np.add.reduceat((flat - levels) * signs >= reaches, first, dtype=int)[before]
    is_shown = (nearest >= least) & (as_far <= np.maximum(1, MOST_ODD * size[before]))
    found: Array = (size[after] > FEW_NIGHTS) | is_shown
    return found
