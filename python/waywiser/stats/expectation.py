"""The slowest ordinary time of each size of a curve, as its neighbouring sizes predict it.

An ordinary curve is a line t(n), latency and rate; or a power law; or either with a bend, where it
switches to a faster protocol or a pipeline fills. No single interpolation serves them all, and one
that does not would call a bend a dip. So several are made of two neighbours on either side, and the
slowest counts: lines in t(n) through each pair of a left and a right neighbour, and the cubic in
log t(log n) through all four, which follows a power law exactly and the knee of a line within 0.5 %
where sizes double (near the ends of a curve, where one is missing, the power law through two).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from waywiser.stats.scatter import Array, CurveNoise

NEAR = 4.0
"""Neighbouring sizes are no further apart, or nothing local is known; those behind them, no further
than the square."""
LEAST_EXCESS = 0.015
"""Logarithm by which what one side lets expect is exceeded at least."""
SHARE = 0.5
"""Share of the excess over what both sides let expect by which either alone must be exceeded. The
last size before a better protocol exceeds the one that both make, and not that of its own side."""
SURELY, VERY_SURELY = 1.5, 3.0
"""Standard errors of a size's excess over the line of one side: extrapolation is noisy. The latter
where the other side is faster than that line by more than `FASTER`, as after a jump to a better
protocol."""
FASTER = 0.1


class Expected(NamedTuple):
    """What windows of some width let expect, one for each first position: [window, size of the
    window]."""

    sizes: Array
    """Positions in the curve."""
    between: Array
    """Logarithm of the slowest interpolation; not-a-number if neighbours are missing or far."""
    nearest: Array
    """Logarithm of the ordinary interpolation nearest to what was measured."""
    exceeded: Array
    """[window]: whether it exceeds what either side alone lets expect."""


class _Side(NamedTuple):
    """The neighbours of each window on one side: bytes and seconds, [window, 1]."""

    n: Array
    t: Array
    noise: Array
    """Variance of the logarithm."""
    far_n: Array
    far_t: Array
    far_noise: Array


def expected(curves: Sequence[CurveNoise], width: int) -> list[Expected]:
    """The expectation of each curve, all worked out at once; windows do not touch the ends."""
    if not curves:
        return []
    lengths = [len(curve.n) for curve in curves]
    starts = np.cumsum([0, *lengths[:-1]])
    firsts = [np.arange(1, max(1, length - width)) for length in lengths]
    made = _expected(
        np.concatenate([each.n for each in curves]),
        np.concatenate([each.y for each in curves]),
        np.concatenate([each.noise for each in curves]),
        np.repeat(np.arange(len(curves)), lengths),
        np.concatenate([first + start for first, start in zip(firsts, starts, strict=True)]),
        width,
    )
    bounds = np.cumsum([0, *map(len, firsts)])
    return [
        Expected(made.sizes[own] - start, made.between[own], made.nearest[own], made.exceeded[own])
        for start, own in zip(starts, map(slice, bounds, bounds[1:]), strict=True)
    ]


def _expected(n: Array, y: Array, noise: Array, curve: Array, first: Array, width: int) -> Expected:
    """The expectation of the windows that begin ``first``; ``curve`` is which each point is of."""
    sizes = first[:, None] + np.arange(width)
    x = n[sizes]
    t = np.exp(y)
    left = _side(n, t, noise, curve, first - 1, -1, x[:, :1])
    right = _side(n, t, noise, curve, first + width, +1, x[:, -1:])
    edges = np.concatenate([left.n, x, right.n], axis=1)
    local = (edges[:, 1:] <= NEAR * edges[:, :-1]).all(axis=1, keepdims=True)
    lines = [
        _through(x, a, ta, b, tb)
        for (a, ta), (b, tb) in product(
            ((left.n, left.t), (left.far_n, left.far_t)),
            ((right.n, right.t), (right.far_n, right.far_t)),
        )
    ]
    cubic, chord = _cubic(x, left, right), _chord(x, left, right)
    power = np.where(np.isfinite(cubic), cubic, chord)
    between = np.log(np.fmax.reduce([*lines, power]))
    measured = y[sizes]
    ordinary = np.log(np.stack([lines[0], power]))
    nearest = np.take_along_axis(ordinary, np.abs(ordinary - measured).argmin(0)[None], 0)[0]
    excess = measured - between
    own = noise[sizes]
    exceeded = _exceeds(x, measured, excess, own, 0, left, right)
    exceeded &= _exceeds(x, measured, excess, own, -1, right, left)
    nothing = np.where(local, 0.0, np.nan)
    return Expected(sizes, between + nothing, nearest + nothing, exceeded)


def _side(
    n: Array, t: Array, noise: Array, curve: Array, at: Array, step: int, edge: Array
) -> _Side:
    """Neighbours at and beyond ``at``; the far one is not-a-number if there is none near."""
    beyond = np.clip(at + step, 0, len(n) - 1)
    there = (beyond == at + step) & (curve[beyond] == curve[at])
    far_n, far_t = n[beyond][:, None], t[beyond][:, None]
    apart = np.maximum(far_n / edge, edge / far_n)
    missing = np.where(there[:, None] & (apart <= NEAR**2 * NEAR), 0.0, np.nan)
    near_n, near_t, near_noise = (each[at][:, None] for each in (n, t, noise))
    far_noise = noise[beyond][:, None]
    return _Side(near_n, near_t, near_noise, far_n + missing, far_t + missing, far_noise)


def _through(x: Array, a: Array, ta: Array, b: Array, tb: Array) -> Array:
    line: Array = ta + (tb - ta) * (x - a) / (b - a)
    return line


def _cubic(x: Array, left: _Side, right: _Side) -> Array:
    """The cubic through all four neighbours in logarithms (Lagrange); not-a-number if one is
    missing."""
    nodes = [np.log(each) for each in (left.far_n, left.n, right.n, right.far_n)]
    values = [np.log(each) for each in (left.far_t, left.t, right.t, right.far_t)]
    at = np.log(x)
    total = np.zeros_like(at)
    for j, value in enumerate(values):
        weight = np.ones_like(at)
        for k, node in enumerate(nodes):
            if k != j:
                weight = weight * (at - node) / (nodes[j] - node)
        total = total + value * weight
    return np.exp(total)


def _chord(x: Array, left: _Side, right: _Side) -> Array:
    """The power law through the nearest neighbours: above any line's knee."""
    exponent = np.log(right.t / left.t) / np.log(right.n / left.n)
    return left.t * (x / left.n) ** exponent


def _exceeds(
    x: Array,
    measured: Array,
    excess: Array,
    own: Array,
    edge: int,
    side: _Side,
    other: _Side,
) -> Array:
    """[window]: whether it exceeds the line that one side lets expect, on the whole, and surely at
    the edge next to that side. A line rises more steeply than any curve whose rate still grows, so
    that these are safe as well."""
    line, error = _line(x, side, other)
    alone = measured - line
    faster = _line(other.n, side, other)[0] - np.log(other.t) > FASTER
    times = np.where(faster[:, 0], VERY_SURELY, SURELY)
    at_edge, surely = alone[:, edge], times * np.sqrt(own[:, edge] + error[:, edge])
    with np.errstate(invalid="ignore"):
        found: Array = alone.mean(axis=1) >= SHARE * excess.mean(axis=1)
        found &= at_edge >= np.maximum(SHARE * excess[:, edge], surely)
        found &= at_edge >= LEAST_EXCESS
    return found


def _line(x: Array, side: _Side, other: _Side) -> tuple[Array, Array]:
    """(logarithm, its variance), within what may be if more bytes take no less time, at no lower
    rate. If there is but one neighbour, the slope is that towards the other side."""
    lacks = np.isnan(side.far_n)
    n, t = np.where(lacks, other.n, side.far_n), np.where(lacks, other.t, side.far_t)
    steps = (x - side.n) / (side.n - n)
    same, by_rate = np.broadcast_to(side.t, x.shape), side.t * x / side.n
    line = side.t + (side.t - t) * steps
    line = np.clip(line, np.minimum(same, by_rate), np.maximum(same, by_rate))
    far = np.where(lacks, other.noise, side.far_noise)
    variance: Array = ((1 + steps) * side.t / line) ** 2 * side.noise + (
        steps * t / line
    ) ** 2 * far
    return np.log(line), variance
