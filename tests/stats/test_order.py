from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.order import (
    CONFIDENCE,
    INTERVAL_SAMPLES,
    Interval,
    Segments,
    lower_quartile,
    lower_rank,
    median,
    median_interval,
    ratio_of,
)

times = st.floats(1e-9, 1e3)
samples = st.lists(times, min_size=1, max_size=200)
enough = st.lists(times, min_size=6, max_size=200)


def quantiles(values: list[float], probabilities: list[float]) -> list[float]:
    found = Segments(np.array(values), np.array([len(values)]))
    return [float(found.quantiles(probability)[0]) for probability in probabilities]


@given(samples, st.floats(0, 1))
def test_quantiles_are_those_of_numpy(values: list[float], probability: float) -> None:
    assert quantiles(values, [probability]) == pytest.approx([np.quantile(values, probability)])


@given(samples)
def test_median_is_numpys(values: list[float]) -> None:
    assert median(values) == pytest.approx(np.median(values), rel=1e-12)


@given(samples)
def test_the_lower_quartile_is_numpys_median_unbiased_one(values: list[float]) -> None:
    expected = np.quantile(values, 0.25, method="median_unbiased")
    assert lower_quartile(values) == pytest.approx(expected, rel=1e-12)


def test_nothing_has_no_lower_quartile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        lower_quartile([])


@given(samples, st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_quantiles_grow_with_the_probability(
    values: list[float], probabilities: list[float]
) -> None:
    found = quantiles(values, sorted(probabilities))
    assert all(before <= after for before, after in pairwise(found))
    assert min(values) <= found[0] and found[-1] <= max(values)


def test_rank_is_the_greatest_whose_exact_confidence_is_enough() -> None:
    from scipy.stats import binom

    below = binom.cdf
    allowed = (1 - CONFIDENCE) / 2
    for count in (*range(1, 200), 999, 5000, 100_001):
        rank = lower_rank(count)
        assert (rank is None) == (count < INTERVAL_SAMPLES)
        if rank is None:
            assert below(0, count, 0.5) > allowed
            continue
        assert below(rank - 1, count, 0.5) <= allowed * (1 + 1e-9)
        assert rank == (count + 1) // 2 or below(rank, count, 0.5) > allowed * (1 - 1e-9)


def test_textbook_ranks_at_95_percent() -> None:
    # Hahn & Meeker, table A.15: symmetric ranks of two-sided intervals for the median
    found = [lower_rank(count) for count in (5, 6, 10, 20, 50, 100)]
    assert found == [None, 1, 2, 6, 18, 40]


@given(enough, st.randoms(use_true_random=False))
def test_interval_does_not_depend_on_the_order(values: list[float], rng: random.Random) -> None:
    shuffled = values[:]
    rng.shuffle(shuffled)
    assert median_interval(shuffled) == median_interval(values)
    assert median(shuffled) == median(values)


@given(enough, st.integers(-20, 20))
def test_interval_scales_with_the_unit(values: list[float], power: int) -> None:
    factor = 2.0**power  # exact in binary, so equality is
    plain, scaled = median_interval(values), median_interval([v * factor for v in values])
    assert plain is not None
    assert scaled == Interval(plain.low * factor, plain.high * factor)


@given(enough)
def test_interval_holds_the_median_and_lies_within_the_samples(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert min(values) <= interval.low <= median(values) <= interval.high <= max(values)
    assert interval.low in values and interval.high in values


@given(st.lists(times, max_size=5))
def test_under_six_samples_have_no_interval(values: list[float]) -> None:
    assert median_interval(values) is None


@pytest.mark.parametrize("count", [6, 10, 23, 60])
@pytest.mark.parametrize("shape", ["normal", "exponential", "two humps"])
def test_interval_covers_the_true_median_as_often_as_it_says(count: int, shape: str) -> None:
    from scipy.stats import binom

    rng = np.random.default_rng(20261120)
    rounds = 3000
    if shape == "normal":
        true, drawn = 10.0, rng.normal(10, 1, (rounds, count))
    elif shape == "exponential":
        true, drawn = float(np.log(2)), rng.exponential(1, (rounds, count))
    else:
        humps = rng.normal(0, 1, (rounds, count)) + 20 * rng.integers(0, 2, (rounds, count))
        true, drawn = 10.0, humps
    hits = 0
    for row in drawn:
        interval = median_interval(row.tolist())
        assert interval is not None
        hits += interval.low <= true <= interval.high
    rank = lower_rank(count)
    assert rank is not None
    exact = 1 - 2 * binom.cdf(rank - 1, count, 0.5)
    assert exact >= 0.95
    assert hits / rounds == pytest.approx(exact, abs=4 * (0.05 * 0.95 / rounds) ** 0.5)


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median([])


def test_intervals_that_touch_overlap() -> None:
    assert Interval(1, 2).overlaps(Interval(2, 3))
    assert not Interval(1, 2).overlaps(Interval(2.1, 3))


@given(st.floats(allow_nan=False))
def test_a_ratio_is_a_number_however_little_is_known(log: float) -> None:
    assert 0.0 <= ratio_of(log) < float("inf")
    if abs(log) < 700:
        assert ratio_of(log) == pytest.approx(np.exp(log))
