from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.words.number_format import (
    format_in_matrix,
    format_number,
    format_rate,
    format_relative,
    format_time,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (55.2991, "55.3"), (55.0, "55.0"), (382.1, "382"), (1885.4, "1885"), (2.4, "2.40"),
        (0.00707, "0.007"), (0.0002, "<0.001"), (9.999, "10.0"), (0.0, "0"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_cells_of_a_matrix_have_one_format(value: float, text: str) -> None:
    assert format_in_matrix(value) == text


@pytest.mark.parametrize(
    ("value", "relative", "text"),
    [
        (55.4217, 0.08 / 55.4217, "55.42"),
        (55.4217, 0.2 / 55.4217, "55.4"),
        (55.4217, 2.0 / 55.4217, "55"),
        (14.6, 2.8 / 14.6, "15"),
        (104.2, 0.2, "100"),
        (388.888, 1e-9, "388.9"),
        (0.000412, 0.01, "0.000412"),
        (9.996, 0.0005, "9.996"),
        (9.9996, 0.0005, "10.000"),
        (5.5, None, "5.50"),
        (5.4321, None, "5.432"),
        (1234.5, None, "1234"),
        (12345.0, None, "12345"),
        (12.48, None, "12.48"),
        (11.5, None, "11.5"),
        (346.0, None, "346"),
        (0.98, None, "0.980"),
        (1234.5, math.inf, "1200"),
        (7.0, 3.0, "7.0"),
        (0.0, 0.1, "0"),
        (math.inf, 0.1, "inf"),
    ],
)
def test_the_last_digit_is_the_one_that_is_uncertain(
    value: float, relative: float | None, text: str
) -> None:
    assert format_number(value, relative) == text


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1.0))
def test_rounding_stays_within_the_interval_or_four_digits(value: float, relative: float) -> None:
    off = abs(float(format_number(value, relative)) - value)
    # half a unit of the last place, which is no larger than the half-width's first digit
    assert off <= max(value * relative, value * 0.0005) * 1.001


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (5.5e-6, "5.50 µs"),
        (19.37e-3, "19.4 ms"),
        (3.25e-8, "32.5 ns"),
        (1e-10, "0.100 ns"),
        (12.0, "12.0 s"),
        (0.99996e-3, "1.000 ms"),
    ],
)
def test_times_are_in_their_own_unit(seconds: float, text: str) -> None:
    assert format_time(seconds, 0.01) == text


def test_a_time_never_has_four_digits_before_its_point() -> None:
    assert format_time(998e-9, 0.2) == "1.00 µs"
    assert format_time(999.99e-9) == "1.000 µs"
    assert format_time(999.6e-6, 0.1) == "1.00 ms"


def test_rates_are_decimal() -> None:
    assert format_rate(55.42e9, 0.001) == "55.42"


@pytest.mark.parametrize(
    ("relative", "text"),
    [
        (None, "—"),
        (0.0004, "<0.1 %"),
        (0.0062, "±0.6 %"),
        (0.0996, "±10 %"),
        (0.19, "±19 %"),
        (1.0, "±100 %"),
        (67.41, ">100 %"),
        (math.inf, ">100 %"),
    ],
)
def test_half_widths(relative: float | None, text: str) -> None:
    assert format_relative(relative) == text


@given(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_values_without_an_interval_that_differ_by_a_percent_look_different(
    one: float, other: float
) -> None:
    if abs(one - other) > 0.01 * max(one, other):
        assert format_number(one) != format_number(other)
