from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import profiles
from waywiser.profile.block import OutlierCount

BODY = [10.0, 11.0, 12.0, 13.0, 14.0] * 4  # quartiles 11 and 13: fences 8..16 and 5..19


def outliers(*times: float) -> OutlierCount:
    return profiles.block_of_times(times).outliers


def test_fences_are_one_and_a_half_and_three_interquartile_ranges() -> None:
    assert outliers(*BODY, 15.9, 8.1) == OutlierCount(0, 0)
    assert outliers(*BODY, 16.5) == outliers(*BODY, 7.5) == OutlierCount(1, 0)
    assert outliers(*BODY, 19.5) == outliers(*BODY, 1.0) == OutlierCount(0, 1)


def test_equal_samples_have_no_outliers_and_any_other_is_severe_beside_them() -> None:
    assert outliers(*[5.0] * 10) == OutlierCount(0, 0)
    assert outliers(*[5.0] * 10, 5.1) == OutlierCount(0, 1)


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=100))
def test_at_most_half_lies_outside(values: list[float]) -> None:
    count = outliers(*values)
    assert count.mild + count.severe <= len(values) / 2
