"""Logarithmic axes of sizes, bandwidths and times, with few and readable labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from waywiser.render.figures.drawing import HALF_CAPITAL, Drawing
from waywiser.render.figures.text_width import text_width
from waywiser.render.figures.theme import INK, LINE, SOFT
from waywiser.words import format_bytes

MOST_SIZES = 7
"""Labels below an axis of some 350 points, if their texts have room."""

LABEL_SIZE = 11.0
LABEL_GAP = 4.0
"""Least space between two labels."""

LEAST_SPAN = math.log10(4)
"""Least span of an axis: small differences stay small to the eye."""

_SECONDS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))

_GAP = 5.0
"""Space between an axis and its labels."""

_BELOW = 10.0
"""Space between the axis of sizes and its labels: below half of a label at the y axis."""


class Axis(NamedTuple):
    """A logarithmic axis: where it begins and ends in a drawing, and in decimal logarithms."""

    start: float
    end: float
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    """Values with their labels."""

    def at(self, value: float) -> float:
        """Where a value lies, beyond the axis too; far below it if the value is not positive."""
        part = (math.log10(value) - self.low) / (self.high - self.low) if value > 0 else -1e3
        return self.start + part * (self.end - self.start)


def size_axis(start: float, end: float, sizes: Sequence[int]) -> Axis:
    """Powers of two, with labels if there is room."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    room = max((high - low) * 0.04, 0.3)
    two = math.log10(2)
    axis = Axis(start, end, (low - room) * two, (high + room) * two, ())
    step = max(1, math.ceil((high - low) / (MOST_SIZES - 1)))
    while not _has_room(axis := axis._replace(ticks=_powers(low, high, step, min(sizes)))):
        step += 1
    return axis


def _powers(low: float, high: float, step: int, smallest: int) -> tuple[tuple[float, str], ...]:
    shown = [2**n for n in range(math.ceil(low), math.floor(high) + 1, step)] or [smallest]
    return tuple((float(size), format_bytes(size)) for size in shown)


def _has_room(axis: Axis) -> bool:
    """Whether no two labels below the axis come too near to each other in any font."""
    return all(
        (text_width(label, LABEL_SIZE) + text_width(other, LABEL_SIZE)) / 2 + LABEL_GAP
        <= axis.at(next_value) - axis.at(value)
        for (value, label), (next_value, other) in pairwise(axis.ticks)
    )


def draw_axes(drawing: Drawing, x: Axis, y: Axis, title: str) -> None:
    """A light grid with its labels, a line below, and above what the y axis is."""
    for value, label in x.ticks:
        at = x.at(value)
        drawing.line([(at, y.start), (at, y.end)], LINE, 0.7)
        middle = y.start + _BELOW + HALF_CAPITAL * LABEL_SIZE
        drawing.text(at, middle, label, SOFT, anchor="middle")
    for value, label in y.ticks:
        at = y.at(value)
        drawing.line([(x.start, at), (x.end, at)], LINE, 0.7)
        drawing.text(x.start - _GAP, at, label, SOFT, anchor="end")
    drawing.line([(x.start, y.start), (x.end, y.start)], LINE, 0.8)
    drawing.text(x.start, y.end - 8, title, INK, on_baseline=True)


def value_axis(
    start: float, end: float, low: float, high: float, label: Callable[[float], str]
) -> Axis:
    """An axis of values from ``low`` to ``high``, with the ``label`` of each of its ticks."""
    bottom, top = math.log10(low), math.log10(high)
    if (missing := LEAST_SPAN - (top - bottom)) > 0:
        bottom, top = bottom - missing / 2, top + missing / 2
    room = max((top - bottom) * 0.06, 0.05)
    shown = _ticks(bottom - room, top + room)
    ticks = tuple((value, label(value)) for value in shown)
    return Axis(start, end, bottom - room, top + room, ticks)


def _ticks(bottom: float, top: float) -> list[float]:
    """Decades; in a short range also 2 and 5, or 1 to 9."""
    span = top - bottom
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span < 0.9 else (1, 2, 5) if span < 2.6 else (1,)
    stride = max(1, math.ceil(span / 7))
    decades = range(math.floor(bottom), math.ceil(top) + 1)
    values = [s * 10.0**n for n in decades if n % stride == 0 for s in steps]
    return [value for value in values if bottom <= math.log10(value) <= top]


def gb_per_s_label(rate: float) -> str:
    return f"{rate:g}"


def time_label(seconds: float) -> str:
    """Seconds with their unit."""
    for scale, unit in reversed(_SECONDS):
        if seconds >= scale * 0.9999:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
