"""The distributions against those of scipy."""

from __future__ import annotations

import math

import pytest
from scipy import special

from waywiser.stats.distributions import f_tail, normal_tail, student_quantile, student_tail

FREEDOMS = (0.3, 1.0, 2.0, 2.5, 3.0, 7.0, 11.4, 30.0, 99.5, 1000.0, 12345.6, 1e6)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_tails_of_students_t(freedom: float) -> None:
    for t in (0.0, 1e-9, 1e-3, 0.1, 0.7, 1.0, 1.96, -3.0, 5.0, 12.0, 38.0, 1e3, 1e8):
        expected = special.stdtr(freedom, -abs(t))
        assert student_tail(freedom, t) == pytest.approx(expected, rel=1e-8, abs=1e-290), t


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_of_students_t(freedom: float) -> None:
    for chance in (1e-12, 1e-6, 1e-3, 0.0249, 0.2, 0.4999, 0.5, 0.75, 0.95, 0.975, 1 - 1e-6):
        expected = special.stdtrit(freedom, chance)
        assert student_quantile(freedom, chance) == pytest.approx(expected, rel=1e-8), chance


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("below", FREEDOMS)
def test_tails_of_f(freedom: float, below: float) -> None:
    for ratio in (1e-6, 0.2, 0.99, 1.0, 1.5, 4.0, 100.0):
        expected = special.fdtrc(freedom, below, ratio)
        assert f_tail(freedom, below, ratio) == pytest.approx(expected, rel=1e-7, abs=1e-290), ratio


def test_of_the_normal_distribution_and_beyond_all_values() -> None:
    for z in (0.0, 0.5, -1.96, 6.0, 37.0):
        assert normal_tail(z) == pytest.approx(special.ndtr(-abs(z)), rel=1e-12)
        assert student_tail(math.inf, z) == normal_tail(z)
    assert student_quantile(math.inf, 0.975) == pytest.approx(1.959963984540054)
    assert (f_tail(3, 4, 0.0), f_tail(3, 4, math.inf)) == (1.0, 0.0)
    assert student_tail(5, math.inf) == 0.0
    assert (student_quantile(5, 0.0), student_quantile(5, 1.0)) == (-math.inf, math.inf)
    unknown = (student_tail(0.0, 1.0), student_tail(5, math.nan), student_quantile(0.0, 0.9),
               student_quantile(5, 1.1), f_tail(0.0, 4, 1.0), f_tail(3, 4, math.nan))  # fmt: skip
    assert all(map(math.isnan, unknown))
