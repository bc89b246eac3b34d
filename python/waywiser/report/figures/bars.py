"""The bandwidth of transfers that start together: a bar for each, with a mark at its bound."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from waywiser.report.figures.drawing import Drawing
from waywiser.report.figures.styles import Style, colour_of
from waywiser.report.figures.text_width import folded, shortened, text_width
from waywiser.report.figures.theme import INK, LINE, SOFT
from waywiser.report.parts import Picture, Sheet, SheetCell, SheetRow
from waywiser.report.writing import spread
from waywiser.series.line import Line
from waywiser.stats.order import Interval
from waywiser.words import Value, format_bytes
from waywiser.words.number_format import format_rate

WIDTH = 430.0
"""A phone shows 0.85 of it without scrolling."""
MOST_NAME = 215.0
VALUE_ROOM = 112.0
"""Space for ``1234 GB/s, 100 %`` after the longest bar."""
TOP = 6.0
ROW = 36.0
BAR = 13.0
NOTE_LINE = 13.0


class Bar(Value, frozen=True):
    """One workload."""

    label: str
    """What starts together; empty if the title of the figure says it."""
    method: str
    line: Line
    style: Style

    @property
    def name(self) -> str:
        return self.label or self.method

    @property
    def detail(self) -> str:
        """Smaller, below the name."""
        size = format_bytes(self.line.bytes)
        return f"{self.method}, {size}" if self.label else size


def bars_picture(name: str, title: str, bars: Sequence[Bar], note: str) -> Picture:
    """Draws the bandwidth of each workload, in the order given. All must have one."""
    kept = tuple(bars)
    first = max(kept, key=lambda bar: _bandwidth(bar.line))
    return Picture(
        name=name,
        title=f"{title}: bandwidth",
        description=(
            f"A bar for the bandwidth of each of {len(kept)} workloads. "
            f"The highest: {_text(first.line)} of {first.name}, {first.detail}."
        ),
        draw=partial(_draw, kept, note),
        data=_data(f"{title}: bandwidth", kept),
    )


def _draw(bars: tuple[Bar, ...], note: str) -> Drawing:
    left = 10 + min(
        MOST_NAME,
        max(max(text_width(b.name, 11), text_width(b.detail, 9.5)) for b in bars),
    )
    width = WIDTH - left - VALUE_ROOM
    most = max(max(_bandwidth(bar.line), _bound(bar.line)) for bar in bars)
    legend = "Thin line: 95 % interval."
    if any(bar.line.bound for bar in bars):
        legend += " Mark: bound. Percent: of the bound."
    notes = [line for text in (legend, note) for line in folded(text, 10, WIDTH)]
    bottom = TOP + ROW * len(bars)
    found = Drawing(WIDTH, bottom + 6 + NOTE_LINE * len(notes))
    found.line([(left, TOP), (left, bottom)], LINE, 0.8)
    for n, bar in enumerate(bars):
        middle = TOP + ROW * (n + 0.5)
        colour = colour_of(bar.style)
        found.text(0, middle - 7, shortened(bar.name, 11, left - 8), INK)
        found.text(0, middle + 7, shortened(bar.detail, 9.5, left - 8), SOFT, size=9.5)
        long = width * _bandwidth(bar.line) / most
        found.box((left, middle - BAR / 2), max(long, 0.5), BAR, colour)
        end = left + long
        if interval := _interval(bar.line):
            low, high = (left + width * min(at / most, 1.0) for at in (interval.low, interval.high))
            found.bars([((low, middle), (high, middle))], INK, 1.2, 0.8)
            end = max(end, high)
        if bound := _bound(bar.line):
            at = left + width * bound / most
            found.line([(at, middle - BAR), (at, middle + BAR)], INK, 1.2)
            end = max(end, at)
        found.text(end + 6, middle, _value(bar.line), INK)
    for n, line in enumerate(notes):
        found.text(0, bottom + 4 + NOTE_LINE * (n + 0.5), line, SOFT, size=10)
    return found


def _bandwidth(line: Line) -> float:
    """GB/s; 0 if there is none."""
    found = line.estimate
    return found.rate.value / 1e9 if found and found.rate else 0.0


def _interval(line: Line) -> Interval | None:
    found = line.estimate
    if found is None or found.rate is None or found.rate.interval is None:
        return None
    known = found.rate.interval
    return Interval(known.low / 1e9, known.high / 1e9)


def _bound(line: Line) -> float:
    return line.bound.bytes_per_second / 1e9 if line.bound else 0.0


def _number(line: Line) -> str:
    relative = line.estimate.relative if line.estimate else None
    return format_rate(_bandwidth(line) * 1e9, relative)


def _text(line: Line) -> str:
    return f"{_number(line)} GB/s"


def _value(line: Line) -> str:
    return f"{_text(line)}, {line.of_bound:.0%}" if line.of_bound else _text(line)


def _data(title: str, bars: Sequence[Bar]) -> Sheet:
    rows = []
    for bar in bars:
        relative = bar.line.estimate.relative if bar.line.estimate else None
        share = f"{bar.line.of_bound:.0%}" if bar.line.of_bound else ""
        cells = (
            *((SheetCell(bar.label),) if bar.label else ()),
            SheetCell(bar.method),
            SheetCell(format_bytes(bar.line.bytes)),
            SheetCell(_number(bar.line), note=spread(relative), number=True),
            SheetCell(f"{_bound(bar.line):.4g}" if bar.line.bound else "", number=True),
            SheetCell(share, number=True),
        )
        rows.append(SheetRow(cells))
    columns: tuple[str, ...] = ("method", "size", "GB/s", "bound, GB/s", "of the bound")
    if any(bar.label for bar in bars):
        columns = ("transfers", *columns)
    return Sheet(title, columns, tuple(rows), "The size is the bytes of all transfers together.")
