"""Processes of a survey that are outliers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.noise_model import (
    LEAST_WITH_OUTLIERS,
    MOST_OUTLIERS,
    Noise,
    Surveys,
    Variance,
    median_share,
    of_difference,
    process_variance,
    without_outliers,
)

H100_D2H = (54.1, 55.2, 55.1, 25.3, 55.1, 54.8, 54.7, 55.1)
"""GB/s of the processes of a `check` of a shared H100 machine, 2026-11-23."""

logarithms = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20)


def logs(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(map(math.log, values))


def test_a_process_that_another_user_slowed_down_is_no_noise_of_the_machine() -> None:
    kept = without_outliers(logs(H100_D2H))
    assert kept == logs(tuple(rate for rate in H100_D2H if rate > 50))
    noise = process_variance([kept], 0.0)
    assert noise.deviation < 0.01
    assert noise.freedom == 6


def test_of_few_processes_none_is_an_outlier() -> None:
    few = logs((*H100_D2H[2:5], 54.9))
    assert len(few) < LEAST_WITH_OUTLIERS
    assert without_outliers(few) == few


def test_more_slow_processes_than_outliers_may_be_are_noise() -> None:
    rates = (25.0, 26.0, 27.0, 55.0, 55.1, 55.2, 55.3, 55.4)
    kept = without_outliers(logs(rates))
    assert kept == logs(rates[2:])
    assert process_variance([kept], 0.0).deviation > 0.2


def test_a_difference_below_the_threshold_is_no_outlier() -> None:
    close = (0.0,) * 7 + (0.02,)
    assert without_outliers(close) == close


@given(logarithms)
def test_at_most_a_quarter_goes_and_the_order_stays(values: list[float]) -> None:
    kept = without_outliers(values)
    assert len(values) - len(kept) <= MOST_OUTLIERS * len(values)
    rest = iter(values)
    assert all(value in rest for value in kept)


@given(logarithms)
def test_the_sign_does_not_matter(values: list[float]) -> None:
    negative = [-value for value in values]
    same = [-value for value in without_outliers(values)]
    if len(set(values)) == len(values):
        assert list(without_outliers(negative)) == pytest.approx(same)


@pytest.mark.parametrize("count", [*range(1, 10), 20, 21])
def test_the_variance_of_a_median_is_that_of_normal_values(count: int) -> None:
    values = np.random.default_rng(count).normal(size=(50_000, count))
    assert median_share(count) == pytest.approx(np.var(np.median(values, axis=1)), rel=0.06)


@pytest.mark.parametrize("surveys", [1, 3])
def test_the_variance_of_a_change_is_that_of_simulated_surveys(surveys: int) -> None:
    """Processes deviate by 1 %, surveys by half of that."""
    rng = np.random.default_rng(surveys)
    level = rng.normal(0, 0.005, (4000, 2, surveys, 1))
    seconds = np.exp(level + rng.normal(0, 0.01, (4000, 2, surveys, 8))).tolist()
    sides = [[Surveys(side) for side in each] for each in seconds]
    changes = [math.log(now.middle / before.middle) for before, now in sides]
    process = Variance(1e-4, 10)
    between = Variance(0.25e-4 + median_share(8) * 1e-4, 10) if surveys > 1 else None
    known = of_difference(*sides[0], Noise(process, between))
    assert np.std(changes) == pytest.approx(known.deviation, rel=0.06)
