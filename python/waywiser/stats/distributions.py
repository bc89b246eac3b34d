"""Student's t and F distributions, by the incomplete beta function: `scipy.special`, which has them
too, takes 0.2 s of CPU to load."""

from __future__ import annotations

import math
from functools import lru_cache

_MOST_TERMS = 100_000
_PRECISION = 1e-15
_LEAST = 1e-300
"""Instead of 0 in a continued fraction."""


def student_tail(freedom: float, t: float) -> float:
    """Chance of a value below -|t|; not-a-number without a positive number of degrees of
    freedom."""
    if math.isnan(t) or not freedom > 0:
        return math.nan
    if math.isinf(freedom):
        return normal_tail(t)
    if abs(t) > 1e150:  # its square is infinite
        return 0.0
    square = t * t
    total = freedom + square
    return 0.5 * _beta_share(freedom / 2, 0.5, freedom / total, square / total)


@lru_cache(maxsize=4096)
def student_quantile(freedom: float, probability: float) -> float:
    """The value that Student's t stays below with this probability; not-a-number without a positive
    number of degrees of freedom, or if it is no probability."""
    if not freedom > 0 or not 0 <= probability <= 1:
        return math.nan
    if probability in (0, 1):
        return math.inf if probability else -math.inf
    if probability == 0.5:
        return 0.0
    chance = min(probability, 1 - probability)
    t = _first_guess(freedom, chance)
    # Newton's method for the logarithm of the chance over that of t: the curve is concave and
    # falls, so that it converges from any guess.
    for _ in range(100):
        tail = student_tail(freedom, t)
        if tail <= 0:
            t /= 2
            continue
        step = tail * math.log(tail / chance) / (t * _student_density(freedom, t))
        t *= math.exp(min(step, 50.0))
        if abs(step) < 1e-9:  # the next one is its square
            break
    return t if probability > 0.5 else -t


def f_tail(freedom: float, freedom_below: float, ratio: float) -> float:
    """Chance of a ratio of variances above ``ratio``; not-a-number without positive, finite numbers
    of degrees of freedom."""
    if math.isnan(ratio) or not (0 < freedom < math.inf and 0 < freedom_below < math.inf):
        return math.nan
    if ratio <= 0:
        return 1.0
    if math.isinf(ratio):
        return 0.0
    scaled = freedom * ratio
    total = freedom_below + scaled
    return _beta_share(freedom_below / 2, freedom / 2, freedom_below / total, scaled / total)


def normal_tail(z: float) -> float:
    """Chance of a normal value below -|z|."""
    return 0.5 * math.erfc(abs(z) / math.sqrt(2))


def _first_guess(freedom: float, chance: float) -> float:
    """About the value above which Student's t is with this chance (Abramowitz and Stegun, 26.2.23
    and 26.7.5)."""
    root = math.sqrt(-2 * math.log(chance))
    above = 2.515517 + root * (0.802853 + root * 0.010328)
    below = 1 + root * (1.432788 + root * (0.189269 + root * 0.001308))
    z = max(root - above / below, 1e-3)
    return z + z * (z * z + 1) / (4 * freedom)


def _student_density(freedom: float, t: float) -> float:
    if math.isinf(freedom):
        return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    log = -(freedom + 1) / 2 * math.log1p(t * t / freedom)
    return math.exp(log - _log_beta(freedom / 2, 0.5)) / math.sqrt(freedom)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _beta_share(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta function I_x(a, b), where ``rest`` is 1 - x and exact where x
    is not."""
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(a * math.log(x) + b * math.log(rest) - _log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of I_x(a, b), by Lentz's method (Press et al., Numerical Recipes,
    6.4)."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _LEAST else _LEAST)
    value = d
    for m in range(1, _MOST_TERMS):
        even, odd = a + 2 * m, a + 2 * m + 1
        for term in (
            m * (b - m) * x / ((even - 1) * even),
            -(a + m) * (a + b + m) * x / (even * odd),
        ):
            d, c = 1 + term * d, 1 + term / c
            d = 1 / (d if abs(d) > _LEAST else _LEAST)
            c = c if abs(c) > _LEAST else _LEAST
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value
