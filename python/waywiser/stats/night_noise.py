"""The noise of series that have one value a night, by what they and equivalent series show of it.

The deviation of a series is one of a grid, each with a weight. Before anything is known all are
equally probable: of normal values this gives Student's t. Equivalent series show how probable each
deviation is (nonparametric maximum likelihood: Kiefer & Wolfowitz, Annals of Mathematical
Statistics 27, 1956; for variances: Lu & Stephens, Bioinformatics 32, 2016), and together count
against equal probabilities as their number against `PRIOR_WEIGHT`. So a series of few nights
borrows from the others, and if a few of these have much more noise, it may be one of those.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from waywiser.stats.distributions import normal_quantile, normal_tails
from waywiser.stats.night_rows import chunks
from waywiser.stats.noise_model import LEAST_VARIANCE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

LEAST_DEVIATION = math.sqrt(LEAST_VARIANCE)
"""Least deviation of a logarithm."""

DEVIATIONS: Array = np.geomspace(LEAST_DEVIATION, 1.0, 97)
"""The grid: each is a tenth larger than the one before it."""

PRIOR_WEIGHT = 1.0
"""Weight of equal probabilities of all deviations, in series."""

SIZE_ERROR = 1e-6
"""The relative error of a size that noise makes with some chance."""

NO_CHANCE = 1e-11
"""The share of a chance below which a deviation adds nothing to it."""

SAME_VARIANCE = 0.002
"""The difference of logarithms up to which the variances of series count as equal."""

ROUNDS = 40
"""Rounds of expectation and maximization. More make the distribution of deviations spikier than its
series show."""


class NightNoise(NamedTuple):
    """What is known of the noise of one night of a series."""

    weights: Array
    """The probability of each of `DEVIATIONS`."""
    deviation: float
    """The deviation of one night; of a series without equivalent ones, that of its values."""

    @classmethod
    def of(cls, weights: Array) -> NightNoise:
        return cls(weights, float(_deviations(weights)))

    def chance(self, size: float, share: float) -> float:
        """The chance that noise alone makes a difference as large as ``size``, whose variance is
        ``share`` of that of a night."""
        return float(noise_chances(self.weights, np.array([size]), np.array([share]))[0])


def noise_chances(weights: Array, sizes: Array, shares: Array) -> Array:
    """The chance that noise alone makes each difference: see `NightNoise.chance`. ``weights`` are
    those of each noise, or of one."""
    tails = normal_tails(np.abs(sizes)[:, None] / (DEVIATIONS * np.sqrt(shares)[:, None]))
    found: Array = 2 * (weights * tails).sum(axis=1)
    return found


def _deviations(weights: Array) -> Array:
    found: Array = 1 / np.sqrt((weights / DEVIATIONS**2).sum(axis=-1))
    return found


UNKNOWN_NOISE = NightNoise.of(np.full(len(DEVIATIONS), 1 / len(DEVIATIONS)))
"""Each deviation is as probable as any other."""

_LOGS = np.log(DEVIATIONS)
_HALF_PRECISIONS = 0.5 / DEVIATIONS**2


def usual_noise(squares: Array, freedom: Array) -> NightNoise:
    """What equivalent series show of one another, in whatever order they come: each has a sum of
    squares with so many degrees of freedom. Series with nearly equal variances count as one of
    their mean, as often as there are: a fleet has many."""
    variances = np.maximum(squares / freedom, LEAST_DEVIATION**2)
    steps = np.rint(np.log(variances) / SAME_VARIANCE)
    order = np.lexsort((variances, steps, freedom))
    variances, steps, freedom = variances[order], steps[order], freedom[order]
    is_first = np.append(True, (np.diff(steps) != 0) | (np.diff(freedom) != 0))
    first = np.flatnonzero(is_first)
    count = np.diff(first, append=len(steps))
    mean, freedom = np.add.reduceat(variances, first) / count, freedom[first]
    likely = _likelihood((mean * freedom)[:, None], freedom[:, None])
    weights = UNKNOWN_NOISE.weights
    for _ in range(ROUNDS if len(variances) > 1 else 0):
        mixed = likely @ weights
        held = weights * ((count / mixed) @ likely)
        weights = (held + PRIOR_WEIGHT * UNKNOWN_NOISE.weights) / (len(variances) + PRIOR_WEIGHT)
    return NightNoise.of(weights)


def own_noise(usual: NightNoise, squares: float, freedom: float) -> NightNoise:
    """The noise of a series by that of equivalent ones and by its own squares."""
    weights, deviations = own_weights(usual.weights, np.array([squares]), np.array([freedom]))
    return NightNoise(weights[0], float(deviations[0]))


def own_weights(usual: Array, squares: Array, freedom: Array) -> tuple[Array, Array]:
    """Returns the weights and the deviation of the noise of each of several series. ``usual`` are
    the weights of the noise of equivalent series, of each or of all."""
    weights = usual * _likelihood(squares[:, None], freedom[:, None])
    weights /= weights.sum(axis=1, keepdims=True)
    return weights, _deviations(weights)


def least_sizes(weights: Array, chance: float, shares: Array) -> Array:
    """The difference that the noise of each series alone makes with this chance, to `SIZE_ERROR`,
    where the variance of the difference is a share of that of a night: the root of the logarithm of
    the chance by Newton's method, which is concave, within a bracket."""
    found = np.zeros(len(weights))
    if chance >= 1:
        return found
    # those of nearly equal deviations have the same part of the grid
    order = np.argsort(_deviations(weights), kind="stable")
    for part in chunks(len(order), len(DEVIATIONS)):
        rows = order[part]
        found[rows] = _least_of_chunk(weights[rows], chance) * np.sqrt(shares[rows])
    return found


def _least_of_chunk(weights: Array, chance: float) -> Array:
    """Returns these differences if their variance is that of one night."""
    # normal values with the mean precision have this one; a mixture has none that is less, since
    # the chance is a convex function of the precision
    low = -normal_quantile(chance / 2) * _deviations(weights)
    high, size = np.full(len(weights), 100.0), low.copy()
    furthest = -normal_quantile(chance * NO_CHANCE)
    is_used = (weights > chance * NO_CHANCE) & (DEVIATIONS * furthest > low[:, None])
    used = np.flatnonzero(is_used.any(axis=0))
    # what another series needs is zero here, and changes no digit: deviations are added one by one
    weights = np.ascontiguousarray(np.where(is_used, weights, 0.0)[:, used].T)
    rows = np.arange(len(low))
    while len(rows):
        is_low, step = _step_to_chance(size[rows], weights[:, rows], DEVIATIONS[used], chance)
        low[rows] = np.where(is_low, size[rows], low[rows])
        high[rows] = np.where(is_low, high[rows], size[rows])
        # a little further than the root, so that it gets between two sizes
        tried = size[rows] + step + np.copysign(SIZE_ERROR * size[rows] / 4, step)
        is_inside = (low[rows] < tried) & (tried < high[rows])
        size[rows] = np.where(is_inside, tried, (low[rows] + high[rows]) / 2)
        rows = rows[high[rows] - low[rows] > SIZE_ERROR * high[rows]]
    return high


def _step_to_chance(
    sizes: Array, weights: Array, deviations: Array, chance: float
) -> tuple[Array, Array]:
    """Returns whether noise makes each size with a larger chance than this one, and Newton's step
    towards the size that it makes with it. ``weights`` has a row for each deviation."""
    apart = sizes / deviations[:, None]
    found = 2 * _added(weights * normal_tails(apart))
    heights = np.exp(-0.5 * apart**2) / deviations[:, None]
    slope = -((2 / math.pi) ** 0.5) * _added(weights * heights)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = found * np.log(chance / found) / slope
    step[~((found > 0) & (slope < 0))] = np.inf
    return found > chance, step


def _added(rows: Array) -> Array:
    """The sum of rows, one after another: numpy's own depends on how many columns there are."""
    found: Array = np.cumsum(rows, axis=0)[-1]
    return found


def _likelihood(squares: Array, freedom: Array) -> Array:
    """The likelihood of each deviation, of the most probable one 1."""
    logs = -freedom * _LOGS - np.maximum(squares, freedom * LEAST_DEVIATION**2) * _HALF_PRECISIONS
    found: Array = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return found
