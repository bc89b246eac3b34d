"""The distributions against scipy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from waywiser.stats.distributions import f_tail, student_quantile, student_tail

FREEDOM = st.floats(0.5, 2000)
EXACT = 1e-11


@given(FREEDOM, st.floats(1e-3, 1e3))
def test_tails_of_t(freedom: float, t: float) -> None:
    expected = float(special.stdtr(freedom, -t))
    assert student_tail(freedom, t) == pytest.approx(expected, rel=EXACT, abs=1e-300)
    assert student_tail(freedom, -t) == student_tail(freedom, t)


@given(FREEDOM, st.floats(0.55, 0.9999))
def test_quantiles_of_t(freedom: float, probability: float) -> None:
    expected = float(special.stdtrit(freedom, probability))
    assert student_quantile(freedom, probability) == pytest.approx(expected, rel=EXACT)


@given(FREEDOM, FREEDOM, st.floats(1e-3, 1e3))
def test_tails_of_f(freedom: float, below: float, ratio: float) -> None:
    expected = float(special.fdtrc(freedom, below, ratio))
    assert f_tail(freedom, below, ratio) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("freedom", [1e5, 1e6])
def test_so_much_freedom_is_nearly_normal(freedom: float) -> None:
    assert student_quantile(freedom, 0.975) == pytest.approx(1.959964, rel=1e-4)
    assert student_tail(freedom, 1.959964) == pytest.approx(0.025, rel=1e-4)


def test_extremes() -> None:
    assert student_tail(3.0, 0.0) == 0.5
    assert student_tail(3.0, math.inf) == 0.0 and student_tail(3.0, 1e200) == 0.0
    assert f_tail(3.0, 4.0, 0.0) == 1.0
