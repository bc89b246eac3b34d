"""The lowest and the highest of several figures in one cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from waywiser.curves.line import Line

LEAST_SPANNED = 0.005
"""Half an interval over its value, at least, at both ends of a range."""

_NUMBER = re.compile(r"[0-9.]+")

_UNIT = re.compile(r"[0-9]( ?[^0-9.]+)$")


def range_of(
    lines: Iterable[Line],
    number: Callable[[Line], float | None],
    text: Callable[[float, float | None], str],
) -> str:
    """``55.2`` or ``55.2–55.6``: each end with the digits that its interval allows, or if these do
    not show which is higher, with those of the narrower interval; empty if no line has the
    ``number``. ``text`` writes it with its relative interval."""
    known = [(value, line) for line in lines if (value := number(line)) is not None]
    known.sort(key=lambda each: each[0])
    if len(known) < 2:
        return range_text([text(value, _relative(line, 0.0)) for value, line in known])
    ends = known[0], known[-1]
    widths = [_relative(line, LEAST_SPANNED) for _, line in ends]
    texts = [text(value, width) for (value, _), width in zip(ends, widths, strict=True)]
    numbers = [_NUMBER.match(each) for each in texts]
    if all(numbers) and _unit(texts[0]) == _unit(texts[1]):
        low, high = (float(found[0]) for found in numbers if found)
        if low >= high:
            narrower = min((width for width in widths if width is not None), default=None)
            texts = [text(value, narrower) for value, _ in ends]
    return range_text(texts)


def _relative(line: Line, least: float) -> float | None:
    known = line.estimate.relative if line.estimate else None
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
