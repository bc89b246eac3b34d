"""How far blocks scatter where each series has too few of them to tell: what others lend.

With two blocks a side a variance has two degrees of freedom, and may be tiny by luck. The variances
of many series that are alike say what is usual and how much series differ in it; each series' own
is then drawn towards the usual one, by as much as the others agree (Smyth, "Linear Models and
Empirical Bayes Methods for Assessing Differential Expression ...", Statistical Applications in
Genetics and Molecular Biology 3, 2004). Series that differ widely lend little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from waywiser.stats.between import Between
from waywiser.words import Value

FEWEST = 5
"""Series below which nothing is lent: how much so few differ in their variance is luck."""


class Prior(Value, frozen=True):
    """What others lend: the variance of one block's logarithm, and how many degrees of freedom of
    one's own it is worth."""

    variance: float
    freedom: float

    def lend(self, variance: float, freedom: float) -> Between:
        """The scatter of a series that has a ``variance`` with ``freedom`` of its own."""
        total = self.freedom + freedom
        if total <= 0:
            raise ValueError("neither the series nor others tell how blocks scatter")
        mixed = (self.freedom * self.variance + freedom * variance) / total
        return Between(math.sqrt(mixed), max(1, math.floor(total)))


NOTHING = Prior(0.0, 0.0)


def fit_prior(variances: Sequence[float], freedoms: Sequence[float]) -> Prior:
    """From the variances of series that are alike, all above 0, each with its degrees of freedom.

    Smyth's estimate from the mean and the variance of their logarithms (section 6.2). It is never
    worth more degrees than there are series. `NOTHING` for fewer than `FEWEST`.
    """
    if len(variances) < FEWEST:
        return NOTHING
    from scipy.special import digamma

    usual = [_of_log_variance(freedom) for freedom in freedoms]
    shifted = [
        math.log(variance) - mean for variance, (mean, _) in zip(variances, usual, strict=True)
    ]
    mean = sum(shifted) / len(shifted)
    scatter = sum((value - mean) ** 2 for value in shifted) / (len(shifted) - 1)
    scatter -= sum(chance for _, chance in usual) / len(usual)
    most = float(len(variances))
    if scatter <= 0:  # no more than chance alone: all have one variance
        return Prior(math.exp(mean), most)
    half = _inverse_trigamma(scatter)
    return Prior(math.exp(mean + float(digamma(half)) - math.log(half)), min(most, 2 * half))


@lru_cache(maxsize=1024)
def _of_log_variance(freedom: float) -> tuple[float, float]:
    """(mean, variance) of the logarithm of a variance of normal values whose true one is 1."""
    from scipy.special import digamma, polygamma

    half = freedom / 2
    return float(digamma(half)) - math.log(half), float(polygamma(1, half))


def _inverse_trigamma(value: float) -> float:
    """Newton's method on 1/trigamma, which is nearly straight (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    found = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, found))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, found))
        found += step
        if -step / found < 1e-8:
            break
    return found
