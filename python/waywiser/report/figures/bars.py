"""The bandwidth of transfers that start together: a bar for each, with a mark at its bound."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from waywiser.report.figures.drawing import Drawing
from waywiser.report.figures.drawn_point import DrawnPoint
from waywiser.report.figures.styles import Style, colour_of
from waywiser.report.figures.text_width import folded, text_width
from waywiser.report.figures.theme import INK, LINE, SOFT, Colour
from waywiser.report.parts import Picture, Sheet, SheetCell, numbers
from waywiser.report.writing import spread
from waywiser.words import Value, format_bytes
from waywiser.words.number_format import format_number

WIDTH = 360.0
"""A phone shows it without scrolling."""
VALUE_ROOM = 112.0
"""Space for ``1234 GB/s, 100 %`` after the longest bar."""
TOP = 4.0
NAME_SIZE = 11.0
DETAIL_SIZE = 10.0
NAME_LINE = 14.0
BAR = 12.0
ROW_GAP = 8.0


class Bar(Value, frozen=True):
    """One workload."""

    label: str
    """What starts together; empty if the title of the figure says it."""
    method: str
    point: DrawnPoint
    style: Style

    @property
    def name(self) -> str:
        return self.label or self.method

    @property
    def detail(self) -> str:
        """Smaller, after the name."""
        size = format_bytes(self.point.bytes)
        return f"{self.method}, {size}" if self.label else size


def bars_picture(name: str, title: str, bars: Sequence[Bar], note: str) -> Picture:
    """Draws the bandwidth of each workload, in the order given. All must have one."""
    kept = tuple(bars)
    first = max(kept, key=lambda bar: bar.point.rate)
    return Picture(
        name=name,
        title=f"{title}: bandwidth",
        description=(
            f"A bar for the bandwidth of each of {len(kept)} workloads. "
            f"The highest: {_text(first.point)} of {first.name}, {first.detail}."
        ),
        draw=partial(_draw, kept, note),
        data=_data(f"{title}: bandwidth", kept),
    )


def _draw(bars: tuple[Bar, ...], note: str) -> Drawing:
    """Each name above its bar, so that both have the figure's whole width."""
    width = WIDTH - VALUE_ROOM
    most = max(max(bar.point.rate, bar.point.bound) for bar in bars)
    legend = "Thin line: 95 % interval."
    if any(bar.point.bound for bar in bars):
        legend += " Mark: bound. Percent: of the bound."
    names = [_name_lines(bar) for bar in bars]
    bottom = TOP + sum(NAME_LINE * len(lines) + BAR + ROW_GAP for lines in names)
    found = Drawing(WIDTH, bottom)
    found.notes = list(filter(None, (legend, note)))
    top = TOP
    for bar, lines in zip(bars, names, strict=True):
        for texts in lines:
            x = 0.0
            for text, size, ink in texts:
                found.text(x, top + NAME_LINE / 2, text, ink, size=size)
                x += text_width(text, size) + 8
            top += NAME_LINE
        _bar(found, bar, top + BAR / 2, width / most)
        top += BAR + ROW_GAP
    found.line([(0, TOP), (0, bottom - ROW_GAP / 2)], LINE, 0.8)
    return found


def _name_lines(bar: Bar) -> list[list[tuple[str, float, Colour]]]:
    """The lines above a bar: its name, folded, and its detail in the last line if there is room."""
    found = [[(text, NAME_SIZE, INK)] for text in folded(bar.name, NAME_SIZE, WIDTH)]
    details = [(text, DETAIL_SIZE, SOFT) for text in folded(bar.detail, DETAIL_SIZE, WIDTH)]
    last = text_width(found[-1][0][0], NAME_SIZE) if found else WIDTH
    if len(details) == 1 and last + 8 + text_width(details[0][0], DETAIL_SIZE) <= WIDTH:
        found[-1] += details
    else:
        found += [[detail] for detail in details]
    return found


def _bar(found: Drawing, bar: Bar, middle: float, scale: float) -> None:
    """The bar with its interval, the mark of its bound, and its value."""
    end = scale * bar.point.rate
    found.box((0, middle - BAR / 2), max(end, 0.5), BAR, colour_of(bar.style))
    if interval := bar.point.rate_interval:
        limit = WIDTH - VALUE_ROOM
        low, high = (min(scale * at, limit) for at in (interval.low, interval.high))
        found.bars([((low, middle), (high, middle))], INK, 1.2, 0.8)
        end = max(end, high)
    if bar.point.bound:
        at = scale * bar.point.bound
        found.line([(at, middle - BAR * 0.7), (at, middle + BAR * 0.7)], INK, 1.2)
        end = max(end, at)
    found.text(end + 6, middle, _value(bar.point), INK)


def _text(point: DrawnPoint) -> str:
    return f"{format_number(point.rate, point.relative)} GB/s"


def _value(point: DrawnPoint) -> str:
    return f"{_text(point)}, {point.of_bound:.0%}" if point.of_bound else _text(point)


def _data(title: str, bars: Sequence[Bar]) -> Sheet:
    rows = []
    for bar in bars:
        point = bar.point
        cells = (
            bar.method,
            format_bytes(point.bytes),
            SheetCell(format_number(point.rate, point.relative), note=spread(point.relative)),
            f"{point.bound:.4g}" if point.bound else "",
            f"{point.of_bound:.0%}" if point.of_bound else "",
        )
        rows.append((bar.label, *cells) if bar.label else cells)
    transfers = ("transfers",) if any(bar.label for bar in bars) else ()
    figures = numbers("GB/s", "bound, GB/s", "of the bound")
    columns = (*transfers, "method", "size", *figures)
    return Sheet.of(title, columns, rows, "The size is the bytes of all transfers together.")
