from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.profile.estimate import Rate, rate
from waywiser.stats.order import Interval


def test_the_slow_end_of_the_time_is_the_low_end_of_the_rate() -> None:
    assert rate(1000, 2.0, Interval(1.0, 4.0)) == Rate(500.0, Interval(250.0, 1000.0))


@given(
    st.integers(1, 2**40),
    st.lists(st.floats(1e-9, 1e3), min_size=3, max_size=3).map(sorted),
)
def test_interval_stays_around_the_rate(size: int, times: list[float]) -> None:
    low, middle, high = times
    found = rate(size, middle, Interval(low, high))
    assert found is not None and found.interval is not None
    assert found.interval.low <= found.value <= found.interval.high


def test_nothing_moved_has_no_rate_and_no_bound_without_one() -> None:
    assert rate(0, 1.0) is None
    assert rate(8, 0.0) is None
    assert rate(8, 1.0) == Rate(8.0)
    assert rate(8, 1.0, Interval(0.0, 2.0)) == Rate(8.0)


def test_relative_width_survives_inversion_to_first_order() -> None:
    found = rate(10**9, 1.0, Interval(0.99, 1.01))
    assert found is not None and found.interval is not None
    assert found.interval.width / 2 / found.value == pytest.approx(0.01, rel=1e-3)
