"""The lowest and the highest of several figures in one cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from waywiser.series.line import Line

LEAST_SPANNED = 0.005
"""Half an interval over its value, at least, at both ends of a range."""

_UNIT = re.compile(r"[0-9]( ?[^0-9.]+)$")


def range_of(
    lines: Iterable[Line],
    number: Callable[[Line], float | None],
    text: Callable[[float, float | None], str],
) -> str:
    """``55.2`` or ``55.2–55.6``: both ends with as many digits as the wider interval of the two
    allows; empty if no line has the ``number``. ``text`` writes it with its relative interval."""
    known = [(value, line) for line in lines if (value := number(line)) is not None]
    known.sort(key=lambda each: each[0])
    if not known:
        return ""
    ends = [known[0], known[-1]] if len(known) > 1 else known
    widths = [line.estimate.relative if line.estimate else None for _, line in ends]
    widest = max((width for width in widths if width is not None), default=None)
    if len(ends) > 1 and widest is not None:
        widest = max(widest, LEAST_SPANNED)
    return range_text([text(value, widest) for value, _ in ends])


def range_text(ordered: Sequence[str]) -> str:
    """``48–55.3``, ``2.28–8.6 µs``: the first and the last text, once if they are the same, their
    unit once if they have the same; empty without any."""
    if not ordered:
        return ""
    first, last = ordered[0], ordered[-1]
    if first == last:
        return last
    units = [found[1] if (found := _UNIT.search(text)) else "" for text in (first, last)]
    return f"{first.removesuffix(units[0]) if units[0] == units[1] else first}–{last}"
