from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import block_of_times

times = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=60)


def drift(values: list[float]) -> float:
    return block_of_times(values).drift


def test_spread_is_the_interquartile_range_over_the_median() -> None:
    assert block_of_times([9.0, 10.0, 11.0]).spread == pytest.approx(0.1)


def test_largest_deviation_is_on_either_side() -> None:
    assert block_of_times([10.0, 10.0, 25.0]).largest_deviation == pytest.approx(1.5)
    assert block_of_times([2.0, 10.0, 10.0]).largest_deviation == pytest.approx(0.8)


def test_drift_is_second_half_over_first() -> None:
    assert drift([1.0] * 6 + [1.1] * 6) == pytest.approx(0.1)
    assert drift([1.1] * 6 + [1.0] * 7) == pytest.approx(1 / 1.1 - 1)


def test_halves_without_an_interval_do_not_drift() -> None:
    assert drift([1.0] * 5 + [2.0] * 5) == 0.0


def test_noise_alone_rarely_drifts() -> None:
    rng = random.Random(20261120)
    found = [drift([rng.gauss(1.0, 0.01) for _ in range(40)]) != 0.0 for _ in range(400)]
    assert sum(found) / len(found) < 0.02  # disjoint 95 % intervals are rarer than 5 %


@given(times, st.integers(-10, 10))
def test_none_depends_on_the_unit(values: list[float], power: int) -> None:
    one, other = block_of_times(values), block_of_times([value * 2.0**power for value in values])
    for name in ("spread", "largest_deviation", "drift"):
        assert getattr(other, name) == pytest.approx(getattr(one, name))
