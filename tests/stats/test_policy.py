"""The simplest good methods, few changes, and little lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.method_choice import CHANGE, TOLERANCE, Timed, choices, good
from waywiser.stats.order import Interval


def exact(*rows: list[float | None]) -> list[list[Timed | None]]:
    return [[Timed(each, None) if each is not None else None for each in row] for row in rows]


def test_each_method_is_used_where_it_is_faster() -> None:
    assert choices(exact([1, 1, 4, 4], [2, 2, 2, 2])) == [0, 0, 1, 1]


def test_a_little_loss_is_no_reason_to_change() -> None:
    assert choices(exact([1, 1.04, 1, 1], [2, 1, 2, 2])) == [0] * 4


def test_of_methods_as_fast_the_first_is_used() -> None:
    assert choices(exact([1, 1.01, 1], [0.99, 1, 0.99])) == [0] * 3


def test_what_is_not_known_to_be_slower_may_be_used() -> None:
    wide = Timed(1.3, Interval(0.9, 1.6))
    rows = [[Timed(1.0, None), wide, Timed(1.0, None)], [Timed(2.0, Interval(2, 2))] * 3]
    rows[1][1] = Timed(1.0, Interval(0.95, 1.05))
    assert choices(rows) == [0] * 3


def test_no_size_has_a_slower_method_than_both_sizes_beside_it() -> None:
    def noisy(seconds: float) -> Timed:
        return Timed(seconds, Interval(seconds * 0.75, seconds * 1.25))

    simple = [noisy(9.0), noisy(1.5), noisy(9.0)]
    used = [noisy(1.0), noisy(1.15), noisy(1.0)]
    fastest = [noisy(9.0), noisy(1.0), noisy(9.0)]
    assert good([simple[1], used[1], fastest[1]]) == [0, 1, 2]
    assert choices([simple, used, fastest]) == [1, 1, 1]
    slower = [used[0], noisy(1.55), used[2]]
    assert choices([simple, slower, fastest]) == [1, 0, 1]


def test_sizes_that_a_method_lacks_are_for_others() -> None:
    assert choices(exact([1, None, 1], [None, 5, 5])) == [0, 1, 0]
    assert choices([]) == []


@given(
    st.integers(1, 3).flatmap(
        lambda methods: st.lists(
            st.lists(st.floats(0.1, 10), min_size=methods, max_size=methods), min_size=1, max_size=5
        )
    )
)
def test_no_size_loses_more_than_is_tolerated(columns: list[list[float]]) -> None:
    rows = [list(row) for row in zip(*columns, strict=True)]
    found = choices(exact(*rows))
    assert len(found) == len(columns)
    for n, method in enumerate(found):
        assert rows[method][n] <= min(columns[n]) * (1 + TOLERANCE) + 1e-12
    every = product(range(len(rows)), repeat=len(columns))
    assert _cost(found, rows) <= min(_cost(assignment, rows) for assignment in every) + 1e-9


def _cost(assignment: Sequence[int], rows: list[list[float]]) -> float:
    """Changes, and sizes at which a simpler method is good; infinite if a size loses too much."""
    total = CHANGE * sum(a != b for a, b in pairwise(assignment))
    for n, method in enumerate(assignment):
        column = [row[n] for row in rows]
        simplest = good([Timed(each, None) for each in column])[0]
        if method not in good([Timed(each, None) for each in column]):
            return math.inf
        total += method != simplest
    return total


def test_blocks_that_disagree_change_no_way() -> None:
    def row(*blocks: tuple[float, float]) -> list[Timed]:
        return [Timed(sum(b) / 2, Interval(sum(b) / 2, sum(b) / 2), b) for b in blocks]

    steady = row((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))
    blip = row((2.0, 2.0), (0.7, 0.95), (2.0, 2.0))
    assert choices([steady, blip]) == [0] * 3
    sure = row((2.0, 2.0), (0.84, 0.85), (2.0, 2.0))
    assert choices([steady, sure]) == [0, 1, 0]
    single = [each._replace(blocks=each.blocks[:1]) for each in blip]
    assert choices([steady, single]) == [0, 1, 0]
