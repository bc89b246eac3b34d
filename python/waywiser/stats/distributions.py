"""Student's t and F distributions, for any positive degrees of freedom.

Both follow from the regularised incomplete beta function: DLMF 8.17, its continued fraction 8.17.22
by Lentz's algorithm. Tests compare them with scipy, whose import takes longer than a comparison.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_EXACT = 1e-15
_CLOSE = 1e-9
"""A step of Newton's method squares the error: after one as small as this, nothing is left."""
_MOST_STEPS = 100_000
_TINY = 1e-300


def student_tail(freedom: float, t: float) -> float:
    """Chance of a value below -|t|."""
    total = freedom + t * t
    if math.isinf(total):
        return 0.0
    return 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / total, t * t / total)


@lru_cache(maxsize=4096)
def f_tail(freedom: float, freedom_below: float, ratio: float) -> float:
    """Chance of a ratio of variances above ``ratio``."""
    total = freedom_below + freedom * ratio
    return _incomplete_beta(
        freedom_below / 2, freedom / 2, freedom_below / total, freedom * ratio / total
    )


@lru_cache(maxsize=4096)
def student_quantile(freedom: float, probability: float) -> float:
    """The value that Student's t stays below with this probability, above 1/2.

    Newton's method on the logarithm of the tail, within bounds that each step narrows, from the
    first terms of the expansion around the normal distribution.
    """
    tail = 1 - probability
    z = NormalDist().inv_cdf(probability)
    low, high, t = 0.0, math.inf, z + (z**3 + z) / (4 * freedom)
    while True:
        found = student_tail(freedom, t)
        low, high = (t, high) if found > tail else (low, t)
        new = t + math.log(found / tail) * found / _student_density(freedom, t)
        if abs(new - t) <= _CLOSE * t or high - low <= _EXACT * low:
            return new
        t = new if low < new < high else min((low + high) / 2, 2 * low)


def _student_density(freedom: float, t: float) -> float:
    log = -(freedom + 1) / 2 * math.log1p(t * t / freedom) - _log_beta(freedom / 2, 0.5)
    return math.exp(log) / math.sqrt(freedom)


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Regularised; ``rest`` is 1 - ``x``, without what a subtraction would lose."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    log_x = math.log(x) if x < 0.5 else math.log1p(-rest)
    log_rest = math.log(rest) if rest < 0.5 else math.log1p(-x)
    factor = math.exp(a * log_x + b * log_rest - _log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return factor * _continued_fraction(a, b, x) / a
    return 1 - factor * _continued_fraction(b, a, rest) / b


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _continued_fraction(a: float, b: float, x: float) -> float:
    above, below = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    found = below
    for n in range(1, _MOST_STEPS):
        at = a + 2 * n
        even = n * (b - n) * x / ((at - 1) * at)
        below = 1 / (1 + even * below or _TINY)
        above = 1 + even / above or _TINY
        found *= above * below
        odd = -(a + n) * (a + b + n) * x / (at * (at + 1))
        below = 1 / (1 + odd * below or _TINY)
        above = 1 + odd / above or _TINY
        change = above * below
        found *= change
        if abs(change - 1) <= _EXACT:
            break
    return found
