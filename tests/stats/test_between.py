"""The scatter of blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from waywiser.stats.between import Between, middling, pooled, quantile_of_t, variance_of_median


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


@pytest.mark.parametrize("count", [2, 3, 6, 12])
def test_the_scatter_of_most_blocks_is_that_of_normal_ones_and_few_odd_ones_move_it_little(
    count: int,
) -> None:
    blocks = np.random.default_rng(4).normal(scale=0.01, size=(2000, count))
    found = middling(blocks.tolist())
    assert found is not None
    assert found.deviation == pytest.approx(0.01, rel=0.04)
    assert found.freedom == 1000 * (count - 1)
    blocks[::20, 0] += 1.0
    odd, all_of_them = middling(blocks.tolist()), pooled(blocks.tolist())
    assert odd is not None and odd.deviation == pytest.approx(0.01, rel=0.15)
    assert all_of_them is not None and all_of_them.deviation > 0.05


def test_too_few_blocks_have_no_scatter_of_most() -> None:
    assert middling([[1.0], [2.0]]) is None
    assert middling([[1.0, 2.0]]) is None
