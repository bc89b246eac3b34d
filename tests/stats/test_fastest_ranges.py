"""Who is faster where, and where nobody is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.method_choice import Timed, fastest_ranges, winner
from waywiser.stats.order import Interval

SIZES = (8, 64, 512, 4096)


def timed(seconds: float, half: float = 0.01) -> Timed:
    return Timed(seconds, Interval(seconds * (1 - half), seconds * (1 + half)))


def test_two_methods_cross_over() -> None:
    first = [timed(each) for each in (1.0, 1.0, 4.0, 32.0)]
    second = [timed(each) for each in (3.0, 2.0, 4.0, 8.0)]
    found = fastest_ranges(SIZES, first, second)
    assert [(each.fastest, each.low, each.high) for each in found] == [
        ("first", 8, 64),
        ("", 512, 512),
        ("second", 4096, 4096),
    ]
    assert (found[0].least, found[0].most) == pytest.approx((1.0, 2.0))
    assert found[2].most == pytest.approx(3.0)


def test_an_even_size_between_two_that_one_wins_belongs_to_them() -> None:
    first = [timed(each) for each in (1.0, 1.0, 1.0, 1.0)]
    second = [timed(2.0), timed(1.05, 0.2), timed(2.0), timed(1.01)]
    found = fastest_ranges(SIZES, first, second)
    assert [(each.fastest, each.high) for each in found] == [("first", 512), ("", 4096)]


def winners(*second: float) -> list[str]:
    """Against one that takes a second, at sizes a factor of two apart."""
    sizes = [2**n for n in range(len(second))]
    one = Timed(1.0, Interval(1.0, 1.0))
    others = [Timed(each, Interval(each, each)) for each in second]
    return [each.fastest for each in fastest_ranges(sizes, [one] * len(sizes), others)]


def test_who_wins_one_size_by_little_and_alone_wins_none() -> None:
    assert winners(1.0, 1.1, 0.9, 1.0, 1.1, 1.0) == [""]
    assert winners(1.1, 1.0, 1.0, 1.0, 1.0, 0.9) == [""]
    assert winners(1.1, 1.1, 0.9, 1.1, 1.1) == ["first"]


def test_two_sizes_or_much_are_believed() -> None:
    assert winners(1.0, 1.1, 1.1, 1.0, 1.0, 1.0) == ["", "first", ""]
    assert winners(1.0, 1.0, 1.4, 1.0, 1.0, 1.0) == ["", "first", ""]
    assert winners(1.1) == ["first"]


@pytest.mark.parametrize(
    "other", [timed(1.025, 0.0), timed(1.5, 0.5), Timed(1.2, None)], ids=["near", "wide", "none"]
)
def test_what_is_near_or_uncertain_is_even(other: Timed) -> None:
    assert winner(timed(1.0, 0.0), other) == "neither"


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=9))
def test_exchanging_the_two_exchanges_the_winners(times: list[tuple[float, float]]) -> None:
    sizes = [2**n for n in range(len(times))]
    one, other = [timed(a) for a, _ in times], [timed(b) for _, b in times]
    swapped = {"first": "second", "second": "first", "": ""}
    there, back = fastest_ranges(sizes, one, other), fastest_ranges(sizes, other, one)
    assert [swapped[each.fastest] for each in there] == [each.fastest for each in back]
    assert [each.most for each in there] == pytest.approx([each.most for each in back])
    assert sum(sizes.index(e.high) - sizes.index(e.low) + 1 for e in there) == len(sizes)


def test_without_an_interval_a_difference_must_be_large() -> None:
    assert winner(timed(1.0), Timed(1.3, None)) == "first"
