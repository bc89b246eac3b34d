"""Student's t and F distributions. scipy is loaded when one is asked for: that takes a while."""

from __future__ import annotations

from functools import lru_cache


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
