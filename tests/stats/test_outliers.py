from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.outliers import OutlierCount, classify, count_outliers

BODY = [10.0, 11.0, 12.0, 13.0, 14.0] * 4  # quartiles 11 and 13: fences 8..16 and 5..19


def test_fences_are_one_and_a_half_and_three_interquartile_ranges() -> None:
    assert classify([*BODY, 15.9, 8.1])[-2:] == ["inside", "inside"]
    assert classify([*BODY, 16.5])[-1] == "mild"
    assert classify([*BODY, 7.5])[-1] == "mild"
    assert classify([*BODY, 19.5])[-1] == "severe"
    assert classify([*BODY, 1.0])[-1] == "severe"


def test_equal_samples_have_no_outliers_and_any_other_is_severe_beside_them() -> None:
    assert count_outliers([5.0] * 10) == OutlierCount(0, 0)
    assert count_outliers([5.0] * 10 + [5.1]) == OutlierCount(0, 1)


@given(st.lists(st.floats(1e-9, 1e3), max_size=100))
def test_every_sample_is_classified_and_at_most_half_lies_outside(values: list[float]) -> None:
    kinds = classify(values)
    assert len(kinds) == len(values)
    count = count_outliers(values)
    assert count.mild + count.severe == len(values) - kinds.count("inside")
    assert count.mild + count.severe <= len(values) / 2
