"""Times between measured sizes, from the measured sizes on either side.

Between two measured sizes the time is a straight line over bytes: the postal model t = latency +
bytes * inverse rate holds between neighbours also where it does not hold for a whole curve. If the
line of the sizes below leads under this straight line, and the line of the sizes above leads over
it, then the curve jumps between the two: it follows the one line up to an unknown size and the
other from there on, as where a cache or a buffer ends. The time is then the mean of both lines, in
logarithms, weighted by the chance that the jump is above or below the size; every byte between the
neighbours is as likely. Both lines keep to what is possible: more bytes take no less time, at no
lower rate than the neighbour's.

If the three sizes on either side all take the same time but for a few percent, the time does not
depend on the size there, and their differences are noise: the time is their median.

Beyond the measured sizes the last two show latency and rate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.stats.scatter import medians

Array = NDArray[Any]

FLAT = 1.1
"""Ratio of the longest to the shortest time up to which sizes take the same time."""
FLAT_SIZES = 3
"""Sizes on either side that show it."""
_FLAT_NEIGHBOURS = tuple(by for by in range(-FLAT_SIZES, FLAT_SIZES + 1) if by)
LEAST_JUMP = 1.25
"""Ratio of the two lines from which on the curve jumps: below, the noise of slopes makes it."""


class InterpolatedTimes(NamedTuple):
    """Times of some sizes by their neighbours."""

    seconds: Array
    gap: Array
    """How far the lines of the two sides are from the time, as a logarithm: the smaller of the
    two, since one of them may be noise. Not-a-number if there is no second neighbour on a side."""


def between(sizes: Array, times: Array, at: Array) -> InterpolatedTimes:
    """The times of the sizes ``at``. ``sizes`` ascend, and there are two or more."""
    last = len(sizes) - 1
    above = np.clip(np.searchsorted(sizes, at), 1, last)
    below = above - 1
    n0, n1, t0, t1 = sizes[below], sizes[above], times[below], times[above]
    slopes = np.diff(times) / np.diff(sizes)
    before = np.where(below > 0, slopes[np.maximum(below - 1, 0)], np.nan)
    after = np.where(above < last, slopes[np.minimum(above, last - 1)], np.nan)
    seconds, chord, sides = _at_jump(at, (n0, n1), (t0, t1), (before, after))
    outside = (at < sizes[0]) | (at > sizes[-1])
    is_between = ~outside & (at != n0) & (at != n1)
    for n in {*above[is_between].tolist()}:
        window = times[max(0, n - FLAT_SIZES) : n + FLAT_SIZES]
        if window.max() <= FLAT * window.min():
            seconds[is_between & (above == n)] = np.median(window)
    seconds = np.where(at < sizes[0], np.clip(chord, t0 * at / n0, t0), seconds)
    seconds = np.where(at > sizes[-1], np.clip(chord, t1, t1 * at / n1), seconds)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(np.log(sides / seconds))
    return InterpolatedTimes(seconds, np.fmin(gaps[0], gaps[1]))


def _at_jump(
    at: Array, sizes: tuple[Array, Array], times: tuple[Array, Array], slopes: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """(the time, that by the line between the neighbours, those by the lines of the two sides).
    ``sizes`` and ``times`` are those of the neighbours below and above, ``slopes`` those of the
    sides' lines; not-a-number for a side without one."""
    (n0, n1), (t0, t1) = sizes, times
    chord = t0 + (t1 - t0) / (n1 - n0) * (at - n0)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip(t0 + slopes[0] * (at - n0), t0, t0 * at / n0)
        right = np.clip(t1 - slopes[1] * (n1 - at), t1 * at / n1, t1)
        weight = (n1 - at) / (n1 - n0)
        jumps = (left < chord) & (chord < right) & (right > LEAST_JUMP * left)
        jumping = np.exp(weight * np.log(left) + (1 - weight) * np.log(right))
    return np.where(jumps, jumping, chord), chord, np.stack([left, right])


def held_out(sizes: Array, times: Array) -> Array:
    """The time of each size by the others alone, as `between` has it; not-a-number for the first
    and the last, which have neighbours on one side. Along the last axis: other axes are curves."""
    found = np.full(sizes.shape, np.nan)
    if sizes.shape[-1] < 3:
        return found
    slopes = np.diff(times) / np.diff(sizes)
    seconds, *_ = _at_jump(
        sizes[..., 1:-1],
        (sizes[..., :-2], sizes[..., 2:]),
        (times[..., :-2], times[..., 2:]),
        (_shifted(slopes[..., :-1], 1), _shifted(slopes[..., 1:], -1)),
    )
    near = np.stack([_shifted(times, by)[..., 1:-1] for by in _FLAT_NEIGHBOURS], axis=-1)
    flat = np.fmax.reduce(near, axis=-1) <= FLAT * np.fmin.reduce(near, axis=-1)
    found[..., 1:-1] = np.where(flat, medians(near), seconds)
    return found


def _shifted(values: Array, by: int) -> Array:
    """The values in the places of those that are so many before (or, below 0, after) them;
    not-a-number where there is none."""
    found: Array = np.full(values.shape, np.nan)
    if by > 0:
        found[..., by:] = values[..., :-by]
    else:
        found[..., :by] = values[..., -by:]
    return found
