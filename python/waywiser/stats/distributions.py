"""Normal, Student's t and F distributions. scipy is loaded for the last two: that takes as long as
to check the nights of some hundred paths, which need the first alone."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

FURTHEST = 37
"""Deviations beyond which a normal value has no chance: it is less than 10⁻²⁹⁹."""

STEPS = 64
"""Values in each deviation between which chances are interpolated, to a relative error of 10⁻¹⁰."""


def normal_tails(apart: Array) -> Array:
    """The chance of a normal value above each of these numbers, 0 or more deviations (no NaN): the
    logarithm of it by cubic polynomials between values of `math.erfc` (Hermite)."""
    logs, slopes = _normal_table()
    scaled = np.minimum(apart, FURTHEST) * STEPS
    place = np.minimum(scaled.astype(int), FURTHEST * STEPS - 1)
    rest = scaled - place
    first, last = logs[place], logs[place + 1]
    rise, begin, end = last - first, slopes[place], slopes[place + 1]
    bend = (1 - rest) * (begin - rise) + rest * (rise - end)
    found: Array = np.exp(first + rest * (rise + (1 - rest) * bend))
    found[apart > FURTHEST] = 0.0
    return found


@lru_cache(maxsize=1)
def _normal_table() -> tuple[Array, Array]:
    """The logarithms of the chances, and their slopes for each step."""
    values = [n / STEPS for n in range(FURTHEST * STEPS + 1)]
    tails = np.array([math.erfc(value / 2**0.5) / 2 for value in values])
    heights = np.array(list(map(NormalDist().pdf, values)))
    return np.log(tails), -heights / tails / STEPS


def normal_quantile(probability: float) -> float:
    """The value that a normal one stays below with this probability."""
    return NormalDist().inv_cdf(probability)


def student_tail(freedom: float, t: float) -> float:
    """Chance of a value below -|t|."""
    from scipy.special import stdtr

    return float(stdtr(freedom, -abs(t)))


@lru_cache(maxsize=4096)
def student_quantile(freedom: float, probability: float) -> float:
    """The value that Student's t stays below with this probability."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, probability))


def f_tail(freedom: float, freedom_below: float, ratio: float) -> float:
    """Chance of a ratio of variances above ``ratio``."""
    from scipy.special import fdtrc

    return float(fdtrc(freedom, freedom_below, ratio))
