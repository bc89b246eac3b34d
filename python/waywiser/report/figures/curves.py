"""Rates or times over sizes: points with their intervals, joined along size, under their bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from waywiser.report.figures import axes as scale
from waywiser.report.figures.render import canvas
from waywiser.report.figures.theme import INK, SOFT, series
from waywiser.report.parts import Cell, Picture, Row, Sheet
from waywiser.report.writing import spread
from waywiser.series.line import Line
from waywiser.stats.order import Interval
from waywiser.words import Value, format_bytes
from waywiser.words.number_format import format_number, format_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

WIDTH = 460.0
HEIGHT = 260.0
"""Of the axes with their labels; the legend comes below."""
LEGEND_LINE = 17.0

RATES_FROM = 16 * 2**10
TIMES_TO = 2**20
"""A rate at few bytes would only restate their time, and the time of many their rate."""

Quantity = Literal["rate", "time"]


class Drawn(Value, frozen=True):
    """One curve of a figure."""

    label: str
    lines: tuple[Line, ...]


def curves_picture(name: str, title: str, drawn: Sequence[Drawn], what: Quantity) -> Picture:
    """Of curves that share a size axis; those beyond what can be told apart are left to tables."""
    noun = "Rate" if what == "rate" else "Time"
    drawn = [Drawn(each.label, told) for each in drawn if (told := _told(each.lines, what))]
    return Picture(
        name=name,
        title=f"{title}: {noun.lower()} over size",
        description=_description(noun, drawn, what),
        draw=_drawing(tuple(drawn), what),
        data=_data(f"{title}: {noun.lower()}s", drawn, what),
    )


def _told(lines: tuple[Line, ...], what: Quantity) -> tuple[Line, ...]:
    """Those of the sizes that the quantity tells of; all of them where hardly any is."""
    known = tuple(line for line in lines if _value(line, what))
    if what == "rate":
        kept = tuple(line for line in known if line.bytes >= RATES_FROM)
    else:
        kept = tuple(line for line in known if line.bytes <= TIMES_TO)
    return kept if len(kept) > 1 else known


def _drawing(drawn: tuple[Drawn, ...], what: Quantity) -> Callable[[], Canvas]:
    return lambda: _draw(drawn, what)


def _draw(drawn: tuple[Drawn, ...], what: Quantity) -> Canvas:
    height = HEIGHT + LEGEND_LINE * len(drawn) + 8
    found = canvas(WIDTH, height)
    axes: Any = found.add_axes((48 / WIDTH, 1 - (HEIGHT - 32) / height, (WIDTH - 60) / WIDTH,
                                (HEIGHT - 62) / height))  # fmt: skip
    scale.plain(axes)
    bounds = _bounds(drawn) if what == "rate" else []
    values = [v for each in drawn for line in each.lines if (v := _value(line, what))]
    sizes = [line.bytes for each in drawn for line in each.lines if _value(line, what)]
    scale.of_sizes(axes, sizes)
    spread = (min(values), max([*values, *bounds]))
    scale.of_rates(axes, *spread) if what == "rate" else scale.of_times(axes, *spread)
    scale.title(axes, "GB/s" if what == "rate" else "time of one execution")
    for bound in bounds:
        axes.axhline(bound, color=SOFT.sentinel, linewidth=1.2, dashes=(5, 3), zorder=2)
        axes.annotate(f"bound {bound:.4g}", (1, bound), xycoords=("axes fraction", "data"),
                      xytext=(0, 3), textcoords="offset points", ha="right",
                      color=SOFT.sentinel, fontsize=10)  # fmt: skip
    for number, each in enumerate(drawn):
        _curve(axes, each, number, what)
    for number, each in enumerate(drawn):
        _legend(found, each.label, number, height)
    return found


def _curve(axes: Any, each: Drawn, number: int, what: Quantity) -> None:
    colour, marker = series(number)
    known = [line for line in each.lines if _value(line, what)]
    x = [line.bytes for line in known]
    y = [_value(line, what) for line in known]
    bars = [_interval(line, what) for line in known]
    low = [bar.low if bar else v for bar, v in zip(bars, y, strict=True)]
    high = [bar.high if bar else v for bar, v in zip(bars, y, strict=True)]
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0, zorder=3)
    axes.vlines(x, low, high, color=colour, linewidth=3.5, alpha=0.45, zorder=3)
    axes.plot(x, y, color=colour, linewidth=1.4, marker=marker, markersize=4.5, zorder=4,
              markeredgewidth=0)  # fmt: skip


def _legend(found: Any, label: str, number: int, height: float) -> None:
    from matplotlib.lines import Line2D

    colour, marker = series(number)
    y = 1 - (HEIGHT + 2 + LEGEND_LINE * (number + 0.5)) / height
    x = [48 / WIDTH, 60 / WIDTH, 72 / WIDTH]
    key = Line2D(x, [y, y, y], color=colour, linewidth=1.4, marker=marker, markersize=5)
    key.set(markevery=[1], markeredgewidth=0)
    found.add_artist(key)
    found.text(80 / WIDTH, y, label, color=INK.sentinel, fontsize=11, va="center_baseline")


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
    """In GB/s, those that differ by enough to be two lines, from the highest on."""
    rates = {
        line.bound.bytes_per_second / 1e9 for each in drawn for line in each.lines if line.bound
    }
    told: list[float] = []
    for rate in sorted(rates, reverse=True):
        if not told or math.log10(told[-1] / rate) > 0.12:
            told.append(rate)
    return told


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
        Row((Cell(format_bytes(size)), *(_cell(lines.get(size), what) for lines in at)))
        for size in sizes
    )
    columns = ("size", *(each.label for each in drawn))
    caption = "GB/s; ± as in the method." if what == "rate" else "± as in the method."
    return Sheet(title, columns, tuple(rows), caption)


def _cell(line: Line | None, what: Quantity) -> Cell:
    if line is None or line.estimate is None:
        return Cell("", number=True)
    relative = line.estimate.relative
    value = _value(line, what)
    text = format_time(value, relative) if what == "time" else format_number(value, relative)
    return Cell(text, note=spread(relative), number=True)
