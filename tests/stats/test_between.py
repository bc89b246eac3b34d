"""The scatter of blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from waywiser.stats.between import Between, pooled, quantile_of_t, variance_of_median


def test_it_is_pooled_around_each_series_own_mean() -> None:
    found = pooled([[1.0, 1.2], [5.0, 5.2, 5.4], [9.0], []])
    assert found is not None
    assert found.freedom == 3
    assert found.deviation == pytest.approx(math.sqrt((0.02 + 0.08) / 3))


def test_single_blocks_tell_none_and_it_is_never_less_than_asked() -> None:
    assert pooled([[1.0], [2.0]]) is None
    assert pooled([[1.0, 1.0]], least=0.001) == Between(0.001, 1)


def test_p_values_and_intervals_are_students() -> None:
    between = Between(0.01, 8)
    assert between.p_value(0.03, 1.0) == pytest.approx(2 * scipy_stats.t.sf(3, 8))
    assert quantile_of_t(8) == pytest.approx(scipy_stats.t.ppf(0.975, 8))
    around = between.around(0.03, 1.0)
    assert around.width / 2 == pytest.approx(0.01 * scipy_stats.t.ppf(0.975, 8))


def test_without_scatter_any_difference_is_one() -> None:
    assert Between(0.0, 1).p_value(0.0, 1.0) == 1.0
    assert Between(0.0, 1).p_value(1e-9, 1.0) == 0.0


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 9])
def test_the_variance_of_a_median_is_not_told_too_small(count: int) -> None:
    random = np.random.default_rng(3)
    found = np.median(random.normal(size=(200_000, count)), axis=1).var()
    assert variance_of_median(count) >= found * 0.985
    assert variance_of_median(count) <= found * 1.3
