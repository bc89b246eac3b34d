"""Intervals of medians of samples that depend on each other."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.stats.dependence import Dependence, dependence, intervals
from waywiser.stats.order import Segments, median_interval
from waywiser.stats.scatter import Array

SERIES = 600


def autoregression(correlation: float, count: int, rows: int = SERIES, seed: int = 7) -> Array:
    """Series around 0 whose neighbours have this correlation, as rows."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal((rows, count))
    for n in range(1, count):
        found[:, n] *= math.sqrt(1 - correlation**2)
        found[:, n] += correlation * found[:, n - 1]
    return found


def of_rows(rows: Array) -> tuple[Array, Array, Dependence]:
    samples = Segments(rows.ravel(), np.full(len(rows), rows.shape[1]))
    found = dependence(samples, np.arange(len(rows)))
    return *intervals(samples, found), found


def share_given(rows: Array) -> float:
    """The share of rows with an interval."""
    return float((~np.isnan(of_rows(rows)[0])).mean())


def covered(rows: Array) -> tuple[float, float]:
    """(share of rows with an interval, share of these whose interval has 0)."""
    low, high, _ = of_rows(rows)
    known = ~np.isnan(low)
    return float(known.mean()), float(((low <= 0) & (high >= 0))[known].mean())


@pytest.mark.parametrize(("correlation", "count"), [(0.6, 120), (0.8, 200), (0.9, 400)])
def test_twenty_autocorrelation_times_cover_the_median(correlation: float, count: int) -> None:
    given, found = covered(autoregression(correlation, count))
    assert given > 0.85 and found >= 0.93


@pytest.mark.parametrize(("correlation", "count"), [(0.8, 100), (0.9, 200), (0.95, 410)])
def test_what_ten_autocorrelation_times_give_covers_the_median(
    correlation: float, count: int
) -> None:
    given, found = covered(autoregression(correlation, count, 6000))
    assert given > 0.1 and found >= 0.93


def test_a_slow_level_under_independent_noise_is_covered_too() -> None:
    slow = autoregression(0.95, 1500, 300)
    rows = slow + np.random.default_rng(1).standard_normal(slow.shape)
    given, found = covered(rows)
    assert given > 0.95 and found >= 0.92


@pytest.mark.parametrize(("correlation", "count"), [(0.8, 24), (0.9, 60), (0.98, 200)])
def test_fewer_than_five_times_have_no_interval(correlation: float, count: int) -> None:
    assert share_given(autoregression(correlation, count)) < 0.05


@pytest.mark.parametrize(("count", "share"), [(30, 0.8), (40, 0.95), (60, 0.98), (250, 0.98)])
def test_independent_samples_keep_about_their_interval(count: int, share: float) -> None:
    rows = autoregression(0.0, count)
    low, high, _ = of_rows(rows)
    known = ~np.isnan(low)
    plain = [each.width for row in rows if (each := median_interval(row.tolist())) is not None]
    assert known.mean() > share
    assert 1 <= (high - low)[known].sum() / np.array(plain)[known].sum() < 1.4
    assert ((low <= 0) & (high >= 0))[known].mean() >= 0.93


@pytest.mark.parametrize("count", [6, 9])
def test_fewer_than_ten_samples_of_one_process_have_no_interval(count: int) -> None:
    assert share_given(autoregression(0.0, count)) == 0.0


@pytest.mark.parametrize(("count", "most"), [(10, 0.03), (20, 0.03), (50, 0.06)])
def test_few_dependent_samples_seldom_have_one(count: int, most: float) -> None:
    assert share_given(autoregression(0.8, count)) < most


def test_the_time_is_that_of_the_autoregression() -> None:
    for correlation in (0.3, 0.7, 0.9):
        *_, found = of_rows(autoregression(correlation, 2000, 60))
        expected = (1 + correlation) / (1 - correlation)
        assert np.median(found.times) == pytest.approx(expected, rel=0.2)


def test_processes_of_a_series_show_together_what_none_shows_alone() -> None:
    rows = autoregression(0.6, 16, 2000)
    samples = Segments(rows.ravel(), np.full(2000, 16))
    alone = dependence(samples, np.arange(2000))
    together = dependence(samples, np.repeat(np.arange(400), 5))
    assert len(set(together.times[:5])) == 1
    assert np.std(np.log(together.times)) < np.std(np.log(alone.times)) / 1.5
    assert together.are_enough.mean() > alone.are_enough.mean(), "80 samples are 20 times"
    assert (together.most == together.times).all() and (alone.most >= alone.times).all()


def test_a_test_decides_about_several_processes_alone() -> None:
    rows = autoregression(0.0, 12, 1200)
    samples = Segments(rows.ravel(), np.full(1200, 12))
    shares = [
        float(dependence(samples, np.repeat(np.arange(1200 // of), of)).are_enough.mean())
        for of in (1, 2, 3)
    ]
    assert shares[0] < 0.4 and shares[1] > 0.85 and shares[2] > 0.9


def test_a_drift_has_no_interval() -> None:
    rows = autoregression(0.0, 80) + np.linspace(0, 6, 80)
    low, *_ = of_rows(rows)
    assert np.isnan(low).all()


@pytest.mark.parametrize("values", [[1.0] * 30, [0.0] * 10, [2.0, 1.0] * 20])
def test_equal_and_alternating_values_are_independent(values: list[float]) -> None:
    low, high, found = of_rows(np.array([values]))
    expected = median_interval(values)
    assert expected is not None and found.times[0] == 1
    assert (low[0], high[0]) == (expected.low, expected.high)


values = st.lists(st.floats(-1e6, 1e6), max_size=40)


@settings(max_examples=60)
@given(groups=st.lists(values, min_size=1, max_size=6), data=st.data())
def test_any_groups(groups: list[list[float]], data: st.DataObject) -> None:
    """Groups of different lengths have the results that each series of them has alone."""
    steps = data.draw(st.lists(st.integers(0, 1), min_size=len(groups), max_size=len(groups)))
    series = np.cumsum(steps)
    samples = Segments(np.array(list(chain(*groups)), float), np.array(list(map(len, groups))))
    found = dependence(samples, series)
    low, high = intervals(samples, found)
    assert (found.times >= 1).all()
    for number in set(series.tolist()):
        own = [n for n in range(len(groups)) if series[n] == number]
        part = Segments(
            np.array(list(chain(*(groups[n] for n in own))), float),
            np.array([len(groups[n]) for n in own]),
        )
        alone = dependence(part, np.zeros(len(own), int))
        assert found.times[own].tolist() == alone.times.tolist()
        assert found.are_enough[own].tolist() == alone.are_enough.tolist()
    for n, group in enumerate(groups):
        plain = median_interval(group)
        assert math.isnan(low[n]) == (plain is None or not found.are_enough[n])
        if plain is not None and found.are_enough[n]:
            assert min(group) <= low[n] <= plain.low and plain.high <= high[n] <= max(group)
