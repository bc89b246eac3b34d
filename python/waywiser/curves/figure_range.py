"""The lowest and the highest of several figures in one cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from waywiser.curves.curve import Point

LEAST_SPANNED = 0.005
"""Half an interval over its value, at least, at both ends of a range."""

_NUMBER = re.compile(r"[0-9.]+")

_UNIT = re.compile(r"[0-9]( ?[^0-9.]+)$")


def range_of(
    points: Iterable[Point],
    number: Callable[[Point], float | None],
    text: Callable[[float, float | None], str],
) -> str:
    """``55.2`` or ``55.2–55.6``: each end with the digits that its interval allows, or if these do
    not show which is higher, with those of the narrower interval; empty if no point has the
    ``number``. ``text`` writes it with its relative interval."""
    known = [(value, point) for point in points if (value := number(point)) is not None]
    known.sort(key=lambda each: each[0])
    if len(known) < 2:
        return range_text([text(value, _relative(point, 0.0)) for value, point in known])
    ends = known[0], known[-1]
    widths = [_relative(point, LEAST_SPANNED) for _, point in ends]
    texts = [text(value, width) for (value, _), width in zip(ends, widths, strict=True)]
    numbers = [_NUMBER.match(each) for each in texts]
    if all(numbers) and _unit(texts[0]) == _unit(texts[1]):
        low, high = (float(found[0]) for found in numbers if found)
        if low >= high:
            narrower = min((width for width in widths if width is not None), default=None)
            texts = [text(value, narrower) for value, _ in ends]
    return range_text(texts)


def _relative(point: Point, least: float) -> float | None:
    known = point.estimate.relative if point.estimate else None
    return None if known is None else max(known, least)


def _unit(text: str) -> str:
    found = _UNIT.search(text)
    return found[1] if found else ""


def range_text(ordered: Sequence[str]) -> str:
    """``48–55.3``, ``2.28–8.6 µs``: the first and the last text, once if they are the same, their
    unit once if they have the same; empty without any."""
    if not ordered:
        return ""
    first, last = ordered[0], ordered[-1]
    if first == last:
        return last
    unit = _unit(first)
    return f"{first.removesuffix(unit) if unit == _unit(last) else first}–{last}"
