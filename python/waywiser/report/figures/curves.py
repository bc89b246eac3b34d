"""Rates or times over sizes: points with their intervals, joined along size, under their bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

from waywiser.report.figures.axes import Axis, draw_axes, of_rates, of_sizes, of_times
from waywiser.report.figures.drawing import Drawing
from waywiser.report.figures.markers import Point
from waywiser.report.figures.theme import INK, SOFT, series
from waywiser.report.parts import Picture, Sheet, SheetCell, SheetRow
from waywiser.report.writing import spread
from waywiser.series.line import Line
from waywiser.stats.order import Interval
from waywiser.words import Value, format_bytes
from waywiser.words.number_format import format_number, format_time

WIDTH = 460.0
HEIGHT = 260.0
"""Height of the axes with their labels; the legend comes below."""
LEGEND_LINE = 17.0
LEFT = 48.0
"""Left margin of the axes; labels of the y axis are in it."""

RATES_FROM = 16 * 2**10
TIMES_TO = 2**20
"""A rate at few bytes would only restate their time, and the time of many their rate."""

Quantity = Literal["rate", "time"]


class Drawn(Value, frozen=True):
    """One curve of a figure."""

    label: str
    lines: tuple[Line, ...]


def curves_picture(name: str, title: str, drawn: Sequence[Drawn], what: Quantity) -> Picture:
    """Draws curves that share a size axis; those beyond what can be distinguished are left to
    tables."""
    noun = "Rate" if what == "rate" else "Time"
    drawn = [Drawn(each.label, kept) for each in drawn if (kept := _meaningful(each.lines, what))]
    return Picture(
        name=name,
        title=f"{title}: {noun.lower()} over size",
        description=_description(noun, drawn, what),
        draw=partial(_draw, tuple(drawn), what),
        data=_data(f"{title}: {noun.lower()}s", drawn, what),
    )


def _meaningful(lines: tuple[Line, ...], what: Quantity) -> tuple[Line, ...]:
    """The lines at sizes where the quantity says more than the other one; all if hardly any is."""
    known = tuple(line for line in lines if _value(line, what))
    if what == "rate":
        kept = tuple(line for line in known if line.bytes >= RATES_FROM)
    else:
        kept = tuple(line for line in known if line.bytes <= TIMES_TO)
    return kept if len(kept) > 1 else known


def _draw(drawn: tuple[Drawn, ...], what: Quantity) -> Drawing:
    found = Drawing(WIDTH, HEIGHT + LEGEND_LINE * len(drawn) + 8)
    bounds = _bounds(drawn) if what == "rate" else []
    values = [v for each in drawn for line in each.lines if (v := _value(line, what))]
    sizes = [line.bytes for each in drawn for line in each.lines if _value(line, what)]
    x = of_sizes(LEFT, WIDTH - 12, sizes)
    of_values = of_rates if what == "rate" else of_times
    y = of_values(HEIGHT - 32, 30, min(values), max([*values, *bounds]))
    draw_axes(found, x, y, "GB/s" if what == "rate" else "time of one execution")
    for bound in bounds:
        at = y.at(bound)
        found.line([(x.start, at), (x.end, at)], SOFT, 1.2, dashes=(6, 3.6))
        found.text(x.end, at - 3, f"bound {bound:.4g}", SOFT, size=10, anchor="end",
                   on_baseline=True)  # fmt: skip
    for number, each in enumerate(drawn):
        _intervals(found, each, number, what, x, y)
    for number, each in enumerate(drawn):
        colour = series(number)
        points = [(x.at(line.bytes), y.at(v)) for line in each.lines if (v := _value(line, what))]
        found.line(points, colour, 1.4)
        found.markers(points, number, colour, 4.5)
    for number, each in enumerate(drawn):
        middle = HEIGHT + 2 + LEGEND_LINE * (number + 0.5)
        found.line([(LEFT, middle), (LEFT + 24, middle)], series(number), 1.4)
        found.markers([(LEFT + 12, middle)], number, series(number), 5)
        found.text(LEFT + 32, middle, each.label, INK)
    return found


def _intervals(found: Drawing, each: Drawn, number: int, what: Quantity, x: Axis, y: Axis) -> None:
    """A bar for each interval, and an area that joins them."""
    low, high = [], []
    for line in each.lines:
        if value := _value(line, what):
            interval = _interval(line, what) or Interval(value, value)
            low.append((x.at(line.bytes), y.at(interval.low)))
            high.append((x.at(line.bytes), y.at(interval.high)))
    outline = _within(low, y) + _within(high, y)[::-1]
    found.area(outline, series(number), 0.2)
    ends = [(_cut(one, y), _cut(other, y)) for one, other in zip(low, high, strict=True)]
    found.bars(ends, series(number), 3.5, 0.45)


def _within(points: Sequence[Point], y: Axis) -> list[Point]:
    """The line through the points, cut off where it leaves the axes."""
    found = [_cut(point, y) for point in points[:1]]
    for (x, before), (end, after) in pairwise(points):
        crossed = sorted(
            (limit - before) / (after - before)
            for limit in (y.start, y.end)
            if min(before, after) < limit < max(before, after)
        )
        found += [
            _cut((x + part * (end - x), before + part * (after - before)), y) for part in crossed
        ]
        found.append(_cut((end, after), y))
    return found


def _cut(point: Point, y: Axis) -> Point:
    return point[0], min(max(point[1], y.end), y.start)


def _value(line: Line, what: Quantity) -> float:
    found = line.estimate
    if found is None or not line.bytes:
        return 0.0
    if what == "time":
        return found.median
    return found.rate.value / 1e9 if found.rate else 0.0


def _interval(line: Line, what: Quantity) -> Interval | None:
    found = line.estimate
    if found is None:
        return None
    if what == "time":
        return found.interval
    known = found.rate.interval if found.rate else None
    return Interval(known.low / 1e9, known.high / 1e9) if known else None


def _bounds(drawn: Sequence[Drawn]) -> list[float]:
    """The bounds in GB/s, those that differ by enough to be two lines, from the highest on."""
    rates = {
        line.bound.bytes_per_second / 1e9 for each in drawn for line in each.lines if line.bound
    }
    kept: list[float] = []
    for rate in sorted(rates, reverse=True):
        if not kept or math.log10(kept[-1] / rate) > 0.12:
            kept.append(rate)
    return kept


def _description(noun: str, drawn: Sequence[Drawn], what: Quantity) -> str:
    parts = []
    for each in drawn:
        values = [(_value(line, what), line) for line in each.lines]
        value, line = max(values, key=lambda pair: pair[0]) if what == "rate" else values[0]
        sure = line.estimate.relative if line.estimate else None
        text = format_time(value, sure) if what == "time" else f"{format_number(value, sure)} GB/s"
        parts.append(f"{each.label}: {text} at {format_bytes(line.bytes)}")
    extreme = "The highest" if what == "rate" else "At the smallest size"
    return f"{noun} over size on logarithmic axes. {extreme}: {'; '.join(parts)}."


def _data(title: str, drawn: Sequence[Drawn], what: Quantity) -> Sheet:
    """The same figures as are drawn: a row for each size, a column for each curve."""
    at = [{line.bytes: line for line in each.lines} for each in drawn]
    sizes = sorted({size for lines in at for size in lines})
    rows = (
        SheetRow((SheetCell(format_bytes(size)), *(_cell(lines.get(size), what) for lines in at)))
        for size in sizes
    )
    columns = ("size", *(each.label for each in drawn))
    caption = "GB/s; ± as in the method." if what == "rate" else "± as in the method."
    return Sheet(title, columns, tuple(rows), caption)


def _cell(line: Line | None, what: Quantity) -> SheetCell:
    if line is None or line.estimate is None:
        return SheetCell("", number=True)
    relative = line.estimate.relative
    value = _value(line, what)
    text = format_time(value, relative) if what == "time" else format_number(value, relative)
    return SheetCell(text, note=spread(relative), number=True)
