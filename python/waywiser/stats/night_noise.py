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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

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

ROUNDS = 40
"""Rounds of expectation and maximization. More make the distribution of deviations spikier than its
series show."""


class NightNoise(NamedTuple):
    """What is known of the noise of one night of a series."""

    weights: Array
    """The probability of each of `DEVIATIONS`."""

    @property
    def deviation(self) -> float:
        """The deviation of one night; of a series without equivalent ones, that of its values."""
        return 1 / math.sqrt(float((self.weights / DEVIATIONS**2).sum()))

    def chance(self, size: float, share: float) -> float:
        """The chance that noise alone makes a difference as large as ``size``, whose variance is
        ``share`` of that of a night."""
        from scipy.special import ndtr

        tails = ndtr(-abs(size) / (DEVIATIONS * share**0.5))
        return 2 * float(self.weights @ tails)

    def least_size(self, chance: float, share: float) -> float:
        """The difference that noise alone makes with this chance, to `SIZE_ERROR`: the root of the
        logarithm of the chance by Newton's method, which is concave, within a bracket."""
        if chance >= 1:
            return 0.0
        scales = DEVIATIONS * math.sqrt(share)
        low, high = 0.0, 100 * math.sqrt(share)
        size = self.deviation * math.sqrt(share)
        while high - low > SIZE_ERROR * high:
            found = self.chance(size, share)
            low, high = (size, high) if found > chance else (low, size)
            slope = -2 * float(self.weights @ (np.exp(-0.5 * (size / scales) ** 2) / scales))
            slope /= math.sqrt(2 * math.pi)
            step = found * math.log(chance / found) / slope if found > 0 > slope else math.inf
            # a little further than the root, so that it gets between two sizes
            size += step + math.copysign(SIZE_ERROR * size / 4, step)
            if not low < size < high:
                size = (low + high) / 2
        return high


UNKNOWN_NOISE = NightNoise(np.full(len(DEVIATIONS), 1 / len(DEVIATIONS)))
"""Each deviation is as probable as any other."""

_LOGS = np.log(DEVIATIONS)
_HALF_PRECISIONS = 0.5 / DEVIATIONS**2


def usual_noise(squares: Sequence[float], freedom: Sequence[float]) -> NightNoise:
    """What equivalent series show of one another: each has a sum of squares with so many degrees of
    freedom."""
    likely = _likelihood(np.array(squares, float)[:, None], np.array(freedom, float)[:, None])
    weights = UNKNOWN_NOISE.weights
    for _ in range(ROUNDS if len(likely) > 1 else 0):
        mixed = likely @ weights
        held = weights * (likely / mixed[:, None]).sum(axis=0)
        weights = (held + PRIOR_WEIGHT * UNKNOWN_NOISE.weights) / (len(likely) + PRIOR_WEIGHT)
    return NightNoise(weights)


def own_noise(usual: NightNoise, squares: float, freedom: float) -> NightNoise:
    """The noise of a series by that of equivalent ones and by its own squares."""
    weights = usual.weights * _likelihood(np.array(squares), np.array(freedom))
    return NightNoise(weights / weights.sum())


def _likelihood(squares: Array, freedom: Array) -> Array:
    """The likelihood of each deviation, of the most probable one 1."""
    logs = -freedom * _LOGS - np.maximum(squares, freedom * LEAST_DEVIATION**2) * _HALF_PRECISIONS
    found: Array = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return found
