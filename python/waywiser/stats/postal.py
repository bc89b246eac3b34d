"""Latency and inverse rate of a curve: t(n) = latency + n * inverse rate, fitted to all its sizes.

Source of the model: Hockney, *The Communication Challenge for MPP* (Parallel Computing 20, 1994),
who calls latency over inverse rate the half-performance length: of so many bytes half of the time
is latency. The fit minimises squared relative deviations with Huber's weights (*Robust Estimation
of a Location Parameter*, Ann. Math. Stat. 35, 1964), so that sizes of all magnitudes count alike
and a dip does not bend the line; neither parameter is below 0.

Intervals are percentiles of a bootstrap (Efron & Tibshirani, *An Introduction to the Bootstrap*,
1993): blocks are drawn with replacement, the same for all sizes of a curve; of fewer than
`INTERVAL_SAMPLES` blocks, which say little of their own scatter, sizes are drawn as well.

All curves of a profile are fitted at once: rows are curves (or draws of one), columns are sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from waywiser.stats.order import CONFIDENCE, INTERVAL_SAMPLES, NORMAL_SCALE, Interval
from waywiser.stats.scatter import LEAST_SIZES, Array, CurveBlocks, medians
from waywiser.words import Value

LEAST_SPAN = 64
"""Least ratio of the largest size over the smallest: less shows either the latency or the rate, not
both."""
DRAWS = 200
"""Percentiles of 2.5 and 97.5 % are then the fifth from either end."""
SEED = 1
HUBER = 1.345
"""Deviations from which on a point weighs less: 95 % efficient where deviations are normal."""
LEAST_SCALE = 0.005
"""Relative deviations are not taken for finer than that, or the best points would rule alone."""
_ROUNDS, _ROUNDS_OF_DRAWS = 12, 4
_ROWS = 2048
"""Draws that are fitted together: their arrays stay in a core's cache."""

Over = Literal["blocks", "blocks and sizes"]


class Postal(Value, frozen=True):
    """A fitted curve."""

    latency: float
    """Seconds."""
    inverse_rate: float
    """Seconds per byte; 0 if larger sizes take no longer."""
    latency_interval: Interval
    inverse_rate_interval: Interval
    half_peak: float | None
    """Bytes of which half of the time is latency; None without an inverse rate."""
    half_peak_interval: Interval | None
    over: Over
    """What the bootstrap drew."""
    deviations: tuple[float, ...]
    """The relative deviation of each size: 0.1 took 10 % longer than fitted."""


def fit_all(curves: Sequence[CurveBlocks], draws: int = DRAWS) -> list[Postal | None]:
    """The fits in the order given; None if a curve has too few sizes (`LEAST_SIZES`,
    `LEAST_SPAN`). Deterministic: the draws are seeded."""
    found: list[Postal | None] = [None] * len(curves)
    rng = np.random.default_rng(SEED)
    fitted = [n for n, curve in enumerate(curves) if _is_enough(curve)]
    at_once = max(1, _ROWS // draws)
    for start in range(0, len(fitted), at_once):
        some = fitted[start : start + at_once]
        for n, fit in zip(some, _fit_some([curves[n] for n in some], draws, rng), strict=True):
            found[n] = fit
    return found


def _is_enough(curve: CurveBlocks) -> bool:
    sizes = curve.bytes
    return len(sizes) >= LEAST_SIZES and sizes[-1] >= LEAST_SPAN * max(sizes[0], 1)


def _fit_some(curves: Sequence[CurveBlocks], draws: int, rng: Any) -> list[Postal]:
    width = max(len(curve.bytes) for curve in curves)
    sizes = np.ones((len(curves), width))
    times = np.ones((len(curves), width))
    counts = np.zeros((len(curves), width))
    drawn = np.ones((len(curves), draws, width))
    weights = np.zeros((len(curves), draws, width))
    for row, curve in enumerate(curves):
        count = len(curve.bytes)
        blocks = curve.table
        sizes[row, :count] = curve.bytes
        times[row, :count] = medians(blocks)
        counts[row, :count] = 1
        drawn[row, :, :count], weights[row, :, :count] = _draw(blocks, draws, rng)
    line, scale = robust_lines(sizes, times, counts)
    deviations = times / (line[:, :1] + line[:, 1:] * sizes) - 1
    rows = (len(curves) * draws, width)
    many, _ = robust_lines(
        np.repeat(sizes, draws, axis=0),
        drawn.reshape(rows),
        weights.reshape(rows),
        start=np.repeat(line, draws, axis=0),
        scale=np.repeat(scale, draws),
    )
    lines = many.reshape(len(curves), draws, 2)
    return [
        _postal(curve, line[row], lines[row], deviations[row, : len(curve.bytes)])
        for row, curve in enumerate(curves)
    ]


def _draw(blocks: Array, draws: int, rng: Any) -> tuple[Array, Array]:
    """(times, how often each size was drawn), both [draw, size]."""
    count, width = blocks.shape
    chosen = rng.integers(0, width, (draws, width))
    times = medians(blocks[:, chosen]).T
    times = np.where(np.isfinite(times), times, medians(blocks))  # drew none of that size
    if width >= INTERVAL_SAMPLES:
        return times, np.ones((draws, count))
    picked = rng.integers(0, count, (draws, count))
    # the ends show latency and rate: a draw without any of them would be no such measurement
    picked[:, 0], picked[:, -1] = rng.integers(0, 2, draws), count - 1 - rng.integers(0, 2, draws)
    weights = np.zeros((draws, count))
    np.add.at(weights, (np.arange(draws)[:, None], picked), 1)
    return times, weights


def robust_lines(
    sizes: Array,
    times: Array,
    counts: Array,
    start: Array | None = None,
    scale: Array | None = None,
) -> tuple[Array, Array]:
    """((latency, inverse rate), robust scale of deviations) of each row: of the sizes whose counts
    are above 0."""
    line = _least_squares(sizes, times, counts / times**2) if start is None else start
    rounds = _ROUNDS if scale is None else _ROUNDS_OF_DRAWS
    found = np.zeros(len(sizes)) if scale is None else scale
    for _ in range(rounds):
        fitted = line[:, :1] + line[:, 1:] * sizes
        product = times * np.maximum(fitted, 1e-3 * times)
        off = np.abs(times - fitted) / np.sqrt(product)
        if scale is None:
            inside = np.where(counts > 0, off, np.nan)
            found = np.maximum(NORMAL_SCALE * medians(inside), LEAST_SCALE)
        huber = np.minimum(1.0, HUBER * found[:, None] / np.maximum(off, 1e-30))
        line = _least_squares(sizes, times, counts * huber / product)
    return line, found


def _least_squares(sizes: Array, times: Array, weights: Array) -> Array:
    """Weighted lines of each row, neither parameter below 0."""
    one = weights.sum(axis=1)
    n = (weights * sizes).sum(axis=1)
    nn = (weights * sizes**2).sum(axis=1)
    t = (weights * times).sum(axis=1)
    nt = (weights * sizes * times).sum(axis=1)
    spread = np.maximum(one * nn - n * n, 1e-300)
    with np.errstate(over="ignore", invalid="ignore"):  # sizes that are all but equal
        rate = (one * nt - n * t) / spread
        latency = (t - rate * n) / one
    through_zero, flat = nt / nn, t / one
    rate, latency = (
        np.where(latency < 0, through_zero, np.maximum(rate, 0.0)),
        np.where(latency < 0, 0.0, np.where(rate < 0, flat, latency)),
    )
    return np.stack([latency, rate], axis=1)


def _postal(curve: CurveBlocks, line: Array, lines: Array, deviations: Array) -> Postal:
    latency, rate = float(line[0]), float(line[1])
    half = latency / rate if rate > 0 else None
    sloped = lines[lines[:, 1] > 0]
    halves = sloped[:, 0] / sloped[:, 1]
    width = len(set().union(*curve.blocks))
    return Postal(
        latency=latency,
        inverse_rate=rate,
        latency_interval=_interval(lines[:, 0], latency),
        inverse_rate_interval=_interval(lines[:, 1], rate),
        half_peak=half,
        half_peak_interval=_interval(halves, half) if half is not None and len(halves) else None,
        over="blocks" if width >= INTERVAL_SAMPLES else "blocks and sizes",
        deviations=tuple(map(float, np.asarray(deviations))),
    )


def _interval(values: Array, estimate: float) -> Interval:
    """Percentiles; never without the value that is estimate."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, (tail, 1 - tail))
    return Interval(min(float(low), estimate), max(float(high), estimate))
