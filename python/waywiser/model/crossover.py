"""Where one strategy becomes faster than another, over numbers of messages or over sizes.

A comparison is a sequence of ranges without gaps: in each range one strategy is faster, surely or
not, or nothing is known. Surely is said where the intervals do not overlap. A crossing is where the
faster one changes; there may be none, or several. No crossing is hidden in a range of unknown
times, and none is said to be sure there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, TypeVar

from waywiser.model.strategies import StrategyTimes
from waywiser.stats import FastestRange as FastestRange
from waywiser.words import Value

T = TypeVar("T")

Axis = Literal["messages", "bytes"]
"""What varies; the other one is fixed."""


class StrategyCrossing(Value, frozen=True):
    """Where one becomes the faster."""

    faster: str
    slower: str
    after: int
    """The last value at which the slower one is the faster still."""
    at: int
    """The first value at which it is not."""
    is_within_unknown: bool
    """Values between these two are not known."""
    may_be_from: int | None
    """The first value from which on the slower one is not surely faster; None without intervals."""
    surely_from: int | None
    """The first value from which on the faster one surely is, until the times are not known or
    cross again; None if it nowhere is, or without intervals."""


class StrategyComparison(Value, frozen=True):
    """Two strategies at all values of one axis."""

    first: str
    second: str
    axis: Axis
    fixed: int
    """The bytes of each message, or the number of messages."""
    ranges: tuple[FastestRange, ...]
    """The faster one of the two over ranges; empty where one of them is not known."""
    crossings: tuple[StrategyCrossing, ...]


class Disagreement(Value, frozen=True):
    """The fastest strategy by the model, where another was measured to be faster."""

    count: int
    bytes: int
    predicted: str
    measured: str
    cost: float
    """What the predicted one takes more, as a fraction of measured times."""
    is_within_interval: bool | None
    """The intervals of the two overlap: the model does not claim that they differ; None without
    intervals."""


class _State(NamedTuple):
    faster: str
    is_sure: bool | None
    unknown: tuple[str, ...]


def comparison(
    times: StrategyTimes, first: str, second: str, axis: Axis, fixed: int, values: Sequence[int]
) -> StrategyComparison:
    """The two at ascending ``values``."""
    states = [_state(times, first, second, *_point(axis, fixed, value)) for value in values]
    return StrategyComparison(
        first,
        second,
        axis,
        fixed,
        tuple(
            FastestRange(low, high, state.faster, (), state.is_sure, state.unknown)
            for low, high, state in _grouped(values, states)
        ),
        tuple(_crossings(values, states)),
    )


def _point(axis: Axis, fixed: int, value: int) -> tuple[int, int]:
    """(messages, bytes of each)."""
    return (value, fixed) if axis == "messages" else (fixed, value)


def _grouped(values: Sequence[int], states: Sequence[T]) -> list[tuple[int, int, T]]:
    """(first value, last value, state) of neighbours in the same state."""
    found = []
    for state, group in groupby(zip(values, states, strict=True), key=lambda pair: pair[1]):
        own = [value for value, _ in group]
        found.append((own[0], own[-1], state))
    return found


def _state(times: StrategyTimes, first: str, second: str, count: int, bytes: int) -> _State:
    one, other = times.of(first, count, bytes), times.of(second, count, bytes)
    if one is None or other is None:
        missing = [n for n, time in ((first, one), (second, other)) if time is None]
        return _State("", None, tuple(missing))
    faster = second if other.seconds < one.seconds else first
    own, theirs = one.sure_interval, other.sure_interval
    is_sure = None if own is None or theirs is None else not own.overlaps(theirs)
    return _State(faster, is_sure, ())


def _crossings(values: Sequence[int], states: Sequence[_State]) -> list[StrategyCrossing]:
    known = [n for n, state in enumerate(states) if state.faster]
    changes = [(m, n) for m, n in pairwise(known) if states[m].faster != states[n].faster]
    found = []
    start = 0
    for before, at in changes:
        found.append(
            StrategyCrossing(
                faster=states[at].faster,
                slower=states[before].faster,
                after=values[before],
                at=values[at],
                is_within_unknown=at - before > 1,
                may_be_from=_may_be_from(values, states, start, at),
                surely_from=_surely_from(values, states, at),
            )
        )
        start = at
    return found


def _may_be_from(
    values: Sequence[int], states: Sequence[_State], start: int, at: int
) -> int | None:
    """The first value after those at which another is surely faster, not before ``start``."""
    first = at
    while first > start and not (states[first - 1].faster and states[first - 1].is_sure):
        first -= 1
    around = states[max(first - 1, start) : at + 1]
    if any(state.faster and state.is_sure is None for state in around):
        return None
    return values[first]


def _surely_from(values: Sequence[int], states: Sequence[_State], at: int) -> int | None:
    """The first value of the last that are sure, of those from ``at`` on that are known without a
    gap; values before the next crossing that are not sure belong to that crossing."""
    end = at
    while end < len(states) and states[end].faster == states[at].faster:
        end += 1
    if any(state.is_sure is None for state in states[at:end]):
        return None
    if end < len(states) and states[end].faster:
        while end > at and not states[end - 1].is_sure:
            end -= 1
    first = end
    while first > at and states[first - 1].is_sure:
        first -= 1
    return values[first] if first < end else None


def fastest_ranges(
    times: StrategyTimes,
    axis: Axis,
    fixed: int,
    values: Sequence[int],
    rivals: Sequence[str],
) -> tuple[FastestRange, ...]:
    """Returns the fastest strategy over ranges of the ascending ``values``. ``rivals`` are all that
    may be the fastest, known or not."""
    states = [_fastest(times, rivals, *_point(axis, fixed, value)) for value in values]
    return tuple(FastestRange(low, high, *state) for low, high, state in _grouped(values, states))


def _fastest(
    times: StrategyTimes, rivals: Sequence[str], count: int, bytes: int
) -> tuple[str, tuple[str, ...], bool | None, tuple[str, ...]]:
    """(fastest, perhaps, is_sure, unknown)."""
    found = times.at(count, bytes)
    names = {each.name for each in found}
    unknown = tuple(name for name in rivals if name not in names)
    if not found:
        return "", (), None, unknown
    intervals = {each.name: each.sure_interval for each in found}
    known = {name: around for name, around in intervals.items() if around is not None}
    best = found[0].name
    own = known.get(best)
    perhaps = tuple(name for name in rivals if own is not None and name != best
                    and name in known and own.overlaps(known[name]))  # fmt: skip
    is_sure = not perhaps and not unknown if len(known) == len(found) > 1 else None
    return best, perhaps, is_sure, unknown


def disagreements(
    modelled: StrategyTimes,
    measured: StrategyTimes,
    points: Sequence[tuple[int, int]],
) -> tuple[int, list[Disagreement]]:
    """(points at which two strategies or more are measured and modelled, those at which the
    fastest differs). Strategies of both have the same names; those that only one of them knows at a
    point, or that were not measured at just this point, are passed over. ``points`` are counts and
    bytes."""
    found = []
    compared = 0
    for count, bytes in points:
        own = {each.name: each for each in modelled.at(count, bytes)}
        true = {
            each.name: each
            for each in measured.at(count, bytes)
            if each.name in own and each.is_measured
        }
        if len(true) < 2:
            continue
        compared += 1
        best = min(true, key=lambda name: own[name].seconds)
        least = min(true.values(), key=lambda each: each.seconds)
        if best != least.name:
            around = own[best].sure_interval, own[least.name].sure_interval
            within = around[0].overlaps(around[1]) if around[0] and around[1] else None
            cost = true[best].seconds / least.seconds - 1
            found.append(Disagreement(count, bytes, best, least.name, cost, within))
    return compared, found
