"""Tests by rank against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from waywiser.stats.ranks import p_above, p_apart, shift, shift_interval

values = st.lists(st.integers(-1000, 1000), min_size=1, max_size=9, unique=True)


@given(values, values)
def test_p_values_are_those_of_scipy(a: list[int], b: list[int]) -> None:
    b = [value + 0.5 for value in b]  # type: ignore[misc]
    exact = scipy_stats.mannwhitneyu(a, b, alternative="greater", method="exact").pvalue
    assert p_above(a, b) == pytest.approx(exact)
    both = scipy_stats.mannwhitneyu(a, b, method="exact").pvalue
    assert p_apart(a, b) == pytest.approx(both)


def test_large_groups_take_the_normal_distribution() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(0.3, 1, 60).tolist(), random.normal(0, 1, 50).tolist()
    exact = scipy_stats.mannwhitneyu(a, b, alternative="greater", method="exact").pvalue
    assert p_above(a, b) == pytest.approx(exact, abs=1e-3)


def test_ties_speak_for_no_difference() -> None:
    assert p_apart([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0
    assert p_above([2.0, 2.0], [1.0, 2.0]) >= p_above([2.0, 2.1], [1.0, 1.9])


def test_the_shift_is_the_median_of_all_differences() -> None:
    assert shift([1.0, 2.0, 3.0], [0.0]) == 2.0


@pytest.mark.parametrize(
    ("m", "n", "some"), [(3, 4, False), (4, 4, True), (3, 5, True), (2, 7, False), (2, 8, True)]
)
def test_an_interval_needs_enough_values(m: int, n: int, some: bool) -> None:
    found = shift_interval([float(k) for k in range(m)], [k / 2 for k in range(n)])
    assert (found is not None) == some


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(2)
    held = 0
    for _ in range(1000):
        a, b = random.exponential(size=6) + 0.5, random.exponential(size=6)
        found = shift_interval(a.tolist(), b.tolist())
        assert found is not None
        held += found.low <= 0.5 <= found.high
    assert held >= 940
