"""The chance of a normal value, by interpolation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from waywiser.stats.distributions import FURTHEST, normal_quantile, normal_tails


def test_tails_are_those_of_the_error_function() -> None:
    apart = np.random.default_rng(1).uniform(0, FURTHEST, 20_000)
    apart[:3] = 0.0, FURTHEST, 1 / 64
    expected = [math.erfc(each / 2**0.5) / 2 for each in apart]
    assert normal_tails(apart) == pytest.approx(expected, rel=1e-10)


def test_no_value_is_further_than_the_furthest() -> None:
    assert normal_tails(np.array([[FURTHEST + 1e-6, 1e300, math.inf]])).tolist() == [[0.0] * 3]


@pytest.mark.parametrize("probability", [1e-18, 1e-7, 0.2, 0.5])
def test_a_quantile_has_its_probability(probability: float) -> None:
    apart = -normal_quantile(probability)
    assert normal_tails(np.array([apart]))[0] == pytest.approx(probability, rel=1e-9)
