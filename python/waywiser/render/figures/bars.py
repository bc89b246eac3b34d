"""The bandwidth of transfers that start together: a bar for each, with a mark at its bound."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from waywiser.render.figures.drawing import Anchor, Drawing
from waywiser.render.figures.drawn_point import DrawnPoint
from waywiser.render.figures.styles import Style, colour_of
from waywiser.render.figures.text_width import folded, text_width
from waywiser.render.figures.theme import INK, LINE, SOFT, Colour
from waywiser.render.parts import Picture, Sheet, SheetCell, numbers
from waywiser.render.writing import spread
from waywiser.words import Value, format_bytes, format_number

WIDTH = 360.0
"""A phone shows it without scrolling."""
VALUE_GAP = 6.0
"""Space between a bar and its value."""
EDGE = 2.0
"""Space right of the texts."""
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


def bars_picture(name: str, title: str, bars: Sequence[Bar], note: str) -> Picture:
    """Draws the bandwidth of each workload, in the order given. All must have one, and at the same
    size of each transfer."""
    kept = tuple(bars)
    first = max(kept, key=lambda bar: bar.point.rate)
    sizes = {bar.point.size for bar in kept}
    same = sizes.pop() if len(sizes) == 1 else ""
    title = f"{title}: bandwidth at {same or f'{format_bytes(first.point.bytes)} each'}"
    return Picture(
        name=name,
        title=title,
        description=(
            f"A bar for the bandwidth of each of {len(kept)} workloads. "
            f"The highest: {_text(first.point)} of {first.name}, {_detail(first, same='')}."
        ),
        draw=partial(_draw, kept, note, same),
        data=_data(title, kept),
    )


def _detail(bar: Bar, same: str) -> str:
    """What is written smaller at the right end: the method if the name is not it, and the size if
    it is not the ``same`` of all bars."""
    return ", ".join(
        filter(None, (bar.method if bar.label else "", "" if same else bar.point.size))
    )


def _draw(bars: tuple[Bar, ...], note: str, same: str) -> Drawing:
    """Each name above its bar, so that both have the figure's whole width."""
    width = WIDTH - EDGE - VALUE_GAP - max(text_width(_value(bar.point), NAME_SIZE) for bar in bars)
    most = max(max(bar.point.rate, bar.point.bound) for bar in bars)
    legend = "Thin line: 95 % interval."
    if any(bar.point.bound for bar in bars):
        legend += " Mark: bound. Percent: of the bound."
    names = [_name_lines(bar, _detail(bar, same)) for bar in bars]
    bottom = TOP + sum(NAME_LINE * len(lines) + BAR + ROW_GAP for lines in names)
    found = Drawing(WIDTH, bottom)
    found.notes = list(filter(None, (legend, note)))
    top = TOP
    for bar, lines in zip(bars, names, strict=True):
        for texts in lines:
            for n, (text, size, ink) in enumerate(texts):
                x = (
                    WIDTH - EDGE if n else 0.0
                )  # a detail ends at the right, however wide the font is
                anchor: Anchor = "end" if n else "start"
                found.text(x, top + NAME_LINE / 2, text, ink, size=size, anchor=anchor)
            top += NAME_LINE
        _bar(found, bar, top + BAR / 2, width, width / most)
        top += BAR + ROW_GAP
    found.line([(0, TOP), (0, bottom - ROW_GAP / 2)], LINE, 0.8)
    return found


def _name_lines(bar: Bar, detail: str) -> list[list[tuple[str, float, Colour]]]:
    """The lines above a bar: its name, folded, and its detail in the last line if there is room."""
    found = [[(text, NAME_SIZE, INK)] for text in folded(bar.name, NAME_SIZE, WIDTH)]
    details = [(text, DETAIL_SIZE, SOFT) for text in folded(detail, DETAIL_SIZE, WIDTH)]
    last = text_width(found[-1][0][0], NAME_SIZE) if found else WIDTH
    if len(details) == 1 and last + 8 + text_width(details[0][0], DETAIL_SIZE) <= WIDTH - EDGE:
        found[-1] += details
    else:
        found += [[detail] for detail in details]
    return found


def _bar(found: Drawing, bar: Bar, middle: float, width: float, scale: float) -> None:
    """The bar with its interval, the mark of its bound, and its value."""
    end = scale * bar.point.rate
    found.box((0, middle - BAR / 2), max(end, 0.5), BAR, colour_of(bar.style))
    if interval := bar.point.rate_interval:
        low, high = (min(scale * at, width) for at in (interval.low, interval.high))
        found.bars([((low, middle), (high, middle))], INK, 1.2, 0.8)
        end = max(end, high)
    if bar.point.bound:
        at = scale * bar.point.bound
        found.line([(at, middle - BAR / 2), (at, middle + BAR / 2)], INK, 1.2)
        end = max(end, at)
    found.text(end + VALUE_GAP, middle, _value(bar.point), INK, size=NAME_SIZE)


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
            point.size,
            SheetCell(format_number(point.rate, point.relative), note=spread(point.relative)),
            f"{point.bound:.4g}" if point.bound else "",
            f"{point.of_bound:.0%}" if point.of_bound else "",
        )
        rows.append((bar.label, *cells) if bar.label else cells)
    transfers = ("transfers",) if any(bar.label for bar in bars) else ()
    figures = numbers("GB/s", "bound, GB/s", "of the bound")
    columns = (*transfers, "method", "size", *figures)
    return Sheet.of(title, columns, rows)
