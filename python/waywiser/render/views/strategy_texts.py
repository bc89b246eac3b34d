"""Comparisons of strategies in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from waywiser.model.crossover import (
    FastestRange,
    StrategyComparison,
    StrategyCrossing,
)
from waywiser.words import format_bytes


def span_of(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _within(low: int, high: int, ends: tuple[int, int], text: Callable[[int], str]) -> str:
    """Where a range is of all values, of which ``ends`` are the first and the last."""
    if low == high:
        return f"at {text(low)}"
    if low == ends[0]:
        return f"up to {text(high)}"
    return f"from {text(low)} on" if high == ends[1] else f"{text(low)} to {text(high)}"


MOST_NAMES = 2
"""More strategies that are not known are counted, not named."""


def fastest_text(ranges: Sequence[FastestRange], *, unknown: bool = True) -> str:
    """``direct up to 64KiB (surely), 3-step from 128KiB on (perhaps direct)``, with the strategies
    that are ``unknown`` there."""
    groups = [list(own) for _, own in groupby(ranges, key=lambda each: each.fastest)]
    ends = ranges[0].low, ranges[-1].high
    pieces = []
    for own in groups:
        where = _within(own[0].low, own[-1].high, ends, format_bytes)
        if len(groups) == 1:
            where = "at every size"
        more = "; ".join((*_sureness(own), *(_not_known(own) if unknown else ())))
        name = own[0].fastest or "unknown"
        pieces.append(" ".join(filter(None, (name, where, f"({more})" if more else ""))))
    return ", ".join(pieces)


def _sureness(own: Sequence[FastestRange]) -> Iterator[str]:
    if not own[0].fastest:
        return
    if all(each.is_sure for each in own):
        yield "surely"
    elif all(each.is_sure is not None and not each.perhaps for each in own):
        yield "intervals of the known do not overlap"
    if perhaps := dict.fromkeys(name for each in own for name in each.perhaps):
        yield f"perhaps {' or '.join(perhaps)}"


def _not_known(own: Sequence[FastestRange]) -> Iterator[str]:
    if not own[0].fastest:
        return
    always = set.intersection(*(set(each.unknown) for each in own))
    unknown = dict.fromkeys(name for each in own for name in each.unknown)
    for names, how in (
        ([n for n in unknown if n in always], "unknown"),
        ([n for n in unknown if n not in always], "unknown at some"),
    ):
        if names:
            yield f"{', '.join(names) if len(names) <= MOST_NAMES else len(names)} {how}"


def comparison_text(found: StrategyComparison, text: Callable[[int], str]) -> str:
    """``direct up to 4, 3-step from 5 on (perhaps from 4, surely from 6)``: which of the two is
    faster at each value, and which is not known."""
    crossings = {each.at: each for each in found.crossings}
    ends = found.ranges[0].low, found.ranges[-1].high
    groups = [list(own) for _, own in groupby(found.ranges, key=lambda each: each.fastest)]
    axis = "number" if found.axis == "messages" else "size"
    pieces = []
    for n, own in enumerate(groups):
        low, high = own[0].low, own[-1].high
        where = _within(low, high, ends, text) if len(groups) > 1 else f"at every {axis}"
        if not own[0].fastest:
            pieces.append(f"unknown {where}")
            continue
        crossing = crossings.get(low)
        is_crossed = n + 1 < len(groups) and groups[n + 1][0].low in crossings
        more = _of_crossing(crossing, own, text) if crossing else _sure(own, text, is_crossed)
        pieces.append(" ".join(filter(None, (own[0].fastest, where, more))))
    return ", ".join(pieces)


def _of_crossing(
    crossing: StrategyCrossing, own: Sequence[FastestRange], text: Callable[[int], str]
) -> str:
    """``(perhaps from 4, surely from 6)``; empty without intervals."""
    if any(each.is_sure is None for each in own):
        return ""
    may, sure = crossing.may_be_from, crossing.surely_from
    words = []
    if may is not None and may != crossing.at:
        words.append(f"perhaps from {text(may)}")
    if sure == crossing.at:
        words.append("surely")
    else:
        words.append("nowhere surely" if sure is None else f"surely from {text(sure)}")
    return f"({', '.join(words)})"


def _sure(own: Sequence[FastestRange], text: Callable[[int], str], is_crossed: bool) -> str:
    """Where the faster one surely is; empty without intervals, and where only the values before a
    crossing are not sure, which that one names."""
    if any(each.is_sure is None for each in own):
        return ""
    if all(each.is_sure for each in own):
        return "" if is_crossed else "(surely)"
    if is_crossed and [each.is_sure for each in own] == [True, False]:
        return ""
    ends = own[0].low, own[-1].high
    spans = [_within(each.low, each.high, ends, text) for each in own if each.is_sure]
    return f"(surely {', '.join(spans)})" if spans else "(nowhere surely)"
