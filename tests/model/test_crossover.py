"""Comparisons of two strategies: ranges without gaps, and crossings that nothing hides."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waywiser.model.crossover import (
    StrategyComparison,
    StrategyCrossing,
    comparison,
    disagreements,
    fastest_ranges,
)
from waywiser.model.strategies import StepTime, Strategy, StrategyStep, StrategyTimes
from waywiser.render.views.strategy_texts import comparison_text, fastest_text
from waywiser.stats.order import Interval

Row = list[float | None]


def strategy(name: str, times: Row, width: float | None = 0.1) -> Strategy:
    """A strategy with the times of 1, 2, 3 … messages; without a ``width`` it has no intervals."""

    def cost(count: int, bytes: int) -> StepTime | None:
        seconds = times[count - 1]
        if seconds is None:
            return None
        around = None if width is None else Interval(seconds - width, seconds + width)
        return StepTime(seconds, around, width is not None, True)

    return Strategy(name, (StrategyStep("all", cost),))


def compared(slow: Row, fast: Row, width: float | None = 0.1) -> StrategyComparison:
    times = StrategyTimes([strategy("a", slow, width), strategy("b", fast, width)])
    return comparison(times, "a", "b", "messages", 8, range(1, len(slow) + 1))


def text(slow: Row, fast: Row, width: float | None = 0.1) -> str:
    return comparison_text(compared(slow, fast, width), str)


@pytest.mark.parametrize(
    ("slow", "fast", "says"),
    [
        ([1, 2, 3, 4], [3, 3, 2, 2], "a up to 2, b from 3 on (surely)"),
        ([1, 2, 3, 4], [3, 2.1, 2.9, 2], "a up to 2, b from 3 on (perhaps from 2, surely from 4)"),
        ([1, 2, 3], [3, 2.1, 2.9], "a up to 2, b at 3 (perhaps from 2, nowhere surely)"),
        ([3, 3, 3], [2, 2, 2], "b at every number (surely)"),
        ([3, 3, 3], [2.9, 2.9, 2.9], "b at every number (nowhere surely)"),
        ([3, 3, 3], [2, 2.9, 2], "b at every number (surely at 1, at 3)"),
        ([1, 1, 1], [2, 2, 2], "a at every number (surely)"),
        ([1, 3, 1], [2, 2, 2], "a at 1, b at 2 (surely), a at 3 (surely)"),
        ([1, 3, 3, 1], [2, 2, 2.9, 2],
         "a at 1, b 2 to 3 (surely), a at 4 (perhaps from 3, surely)"),
        ([None] * 3, [2, 2, 2], "unknown at every number"),
        ([1, None, 3], [2, 2, 2], "a at 1 (surely), unknown at 2, b at 3 (perhaps from 2, surely)"),
        ([1, 1, None], [2, 2, 2], "a up to 2 (surely), unknown at 3"),
        ([3, None, 3], [2, 2, 2], "b at 1 (surely), unknown at 2, b at 3 (surely)"),
    ],
)  # fmt: skip
def test_what_users_read(slow: Row, fast: Row, says: str) -> None:
    assert text(slow, fast) == says


def test_without_intervals_nothing_is_sure() -> None:
    assert text([1, 2, 3], [2, 1, 1], None) == "a at 1, b from 2 on"
    (crossing,) = compared([1, 2, 3], [2, 1, 1], None).crossings
    assert (crossing.at, crossing.may_be_from, crossing.surely_from) == (2, None, None)


def test_a_return_does_not_leave_an_earlier_crossing_behind() -> None:
    found = compared([1, 3, 1, 1, 3, 3], [2, 2, 2, 1.05, 2.9, 2])
    assert found.crossings == (
        StrategyCrossing("b", "a", 1, 2, False, 2, 2),
        StrategyCrossing("a", "b", 2, 3, False, 3, 3),
        StrategyCrossing("b", "a", 4, 5, False, 4, 6),
    )


def test_a_crossing_within_unknown_times_says_so() -> None:
    (crossing,) = compared([1, 1, None, None, 3], [2, 2, 2, 2, 2]).crossings
    assert crossing == StrategyCrossing("b", "a", 2, 5, True, 3, 5)


def test_nothing_is_sure_beyond_times_that_are_not_known() -> None:
    (crossing,) = compared([1, 2.05, None, 3], [2, 2, 2, 2]).crossings
    assert crossing.surely_from is None


SECONDS = st.none() | st.floats(1, 2)
ROWS = st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12)


@example([(1.0, 2.0), (None, 1.0), (2.0, 1.0), (1.0, 1.0)], 0.1)
@given(ROWS, st.none() | st.floats(0.001, 0.6))
def test_ranges_and_crossings_say_what_the_times_say(
    rows: list[tuple[float | None, float | None]], width: float | None
) -> None:
    found = compared([a for a, _ in rows], [b for _, b in rows], width)
    assert (found.ranges[0].low, found.ranges[-1].high) == (1, len(rows))
    assert all(a.high + 1 == b.low for a, b in pairwise(found.ranges))
    faster, sure = {}, {}
    for each in found.ranges:
        for value in range(each.low, each.high + 1):
            one, other = rows[value - 1]
            is_known = one is not None and other is not None
            assert bool(each.fastest) is is_known is not bool(each.unknown)
            if one is not None and other is not None:
                assert each.fastest == ("b" if other < one else "a")
                faster[value], sure[value] = each.fastest, each.is_sure
                if width is not None:
                    assert (
                        each.is_sure is (abs(one - other) > 2 * width)
                        or abs(abs(one - other) - 2 * width) < 1e-9
                    )
            assert (each.is_sure is None) is (not is_known or width is None)
    changes = [(a, b) for a, b in pairwise(sorted(faster)) if faster[a] != faster[b]]
    assert [(each.after, each.at) for each in found.crossings] == changes
    for n, each in enumerate(found.crossings):
        assert (each.slower, each.faster) == (faster[each.after], faster[each.at])
        assert each.is_within_unknown is (each.at - each.after > 1)
        if width is None:
            assert each.may_be_from is None and each.surely_from is None
            continue
        before = found.crossings[n - 1].at if n else 1
        assert each.may_be_from is not None and before <= each.may_be_from <= each.at
        assert all(not sure[value] for value in range(each.may_be_from, each.at) if value in sure)
        if each.surely_from is not None:
            assert each.at <= each.surely_from and sure[each.surely_from]
            assert all(faster.get(v) == each.faster for v in range(each.at, each.surely_from + 1))
    said = comparison_text(found, str)
    assert ("unknown" in said) is (len(faster) < len(rows))
    assert ("surely" in said) <= (width is not None)
    if len(set(faster.values())) == 1 and len(faster) == len(rows):
        assert said.startswith(f"{faster[1]} at every number")


@given(
    st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=1, max_size=10),
    st.floats(0.001, 0.6),
    st.sampled_from([(), ("d",)]),
)
def test_the_fastest_is_named_at_each_value(
    rows: list[tuple[float | None, float | None, float | None]],
    width: float,
    missing: tuple[str, ...],
) -> None:
    names = ("a", "b", "c")
    times = StrategyTimes(
        strategy(name, [row[n] for row in rows], width) for n, name in enumerate(names)
    )
    values = range(1, len(rows) + 1)
    found = fastest_ranges(times, "messages", 8, values, (*names, *missing))
    assert (found[0].low, found[-1].high) == (1, len(rows))
    assert all(a.high + 1 == b.low for a, b in pairwise(found))
    for each in found:
        for value in range(each.low, each.high + 1):
            known = {n: t for n, t in zip(names, rows[value - 1], strict=True) if t is not None}
            assert set(each.unknown) == {*names, *missing} - set(known)
            assert bool(each.fastest) is bool(known)
            if not known:
                continue
            assert known[each.fastest] == min(known.values())
            near = {n for n, t in known.items() if t - min(known.values()) < 2 * width - 1e-9}
            assert near - {each.fastest} <= set(each.perhaps) <= set(known) - {each.fastest}
            is_sure = not each.perhaps and not each.unknown
            assert each.is_sure is (None if len(known) == 1 else is_sure)
    said = fastest_text(found)
    assert all(each.fastest in said for each in found)
    assert ("surely" in said) <= any(each.is_sure for each in found)


def test_a_wrong_choice_is_reported_with_what_it_costs() -> None:
    modelled = StrategyTimes([strategy("a", [1, 1, 1]), strategy("b", [2, 2, 2])])
    measured = StrategyTimes([strategy("a", [1, 3, None]), strategy("b", [2, 2, 2])])
    compared_at, (found,) = disagreements(modelled, measured, [(1, 8), (2, 8), (3, 8)])
    assert compared_at == 2
    assert (found.count, found.predicted, found.measured) == (2, "a", "b")
    assert found.cost == pytest.approx(0.5) and found.is_within_interval is False


def test_strategies_that_only_one_side_knows_are_no_disagreement() -> None:
    modelled = StrategyTimes([strategy("a", [1]), strategy("b", [2])])
    measured = StrategyTimes([strategy("a", [1]), strategy("b", [2]), strategy("c", [0.5])])
    assert disagreements(modelled, measured, [(1, 8)]) == (1, [])
