"""Bandwidth or latency over size: points with their intervals, under their bound. Lines join
neighbouring sizes of a sweep alone.

Names of curves stand at the ends of their lines if there is room for all of them, else below the
figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

from waywiser.curves import Point
from waywiser.curves.sizes import joined
from waywiser.render.figures.axes import (
    Axis,
    draw_axes,
    gb_per_s_label,
    size_axis,
    time_label,
    value_axis,
)
from waywiser.render.figures.drawing import Anchor, Drawing, Key
from waywiser.render.figures.drawn_point import DrawnPoint
from waywiser.render.figures.styles import Position, Style, colour_of, marker_of
from waywiser.render.figures.text_width import text_width
from waywiser.render.figures.theme import INK, SOFT
from waywiser.render.parts import Picture, Sheet, SheetCell, numbers
from waywiser.render.writing import spread
from waywiser.stats import Interval
from waywiser.words import Value, format_bytes, format_number, format_time

HEIGHT = 240.0
"""Height of the axes with their labels."""
LEFT = 54.0
"""Left margin of the axes; labels of the y axis are in it."""
RIGHT = 332.0
"""The right end of the axes. They are equally wide in all figures, and fit a phone's width."""
LABEL_ROOM = 16.0
"""Space after the axes for a part of the last label."""
TOP = 26.0
BOTTOM = HEIGHT - 24.0

NAME_SIZE = 10.0
"""Size of the font of names beside the axes."""
NAME_LINE = 13.0
MARKER_ROOM = 20.0
"""Space from the axes to a name at the end of a line, with the marker in it."""
MOST_NAME = 184.0
"""Widest name that stands at the end of a line, in a figure of half a page's width."""
LEADER_FROM = 0.6
"""A thin line leads to the name from a curve that ends in this part of the axes or further on."""
LINE_WIDTH = 1.4
MARKER = 4.5
FEWEST = 3
"""Points at which a curve says more than a table does, and from which on one hides another."""
BOUND_LABELS = 2
"""Bounds that are named in the figure; the tables have all."""
HIDDEN = LINE_WIDTH
"""Curves nearer to each other than this cannot be distinguished in a figure."""

BANDWIDTH_FROM = 16 * 2**10
LATENCY_TO = 2**20
"""A bandwidth at few bytes would only restate their time, and the time of many their bandwidth."""

Quantity = Literal["bandwidth", "latency"]


class Drawn(Value, frozen=True):
    """One curve of a figure."""

    label: str
    points: tuple[DrawnPoint, ...]
    style: Style

    @classmethod
    def of(cls, label: str, lines: Iterable[Point], style: Style) -> Drawn:
        """The series of a curve."""
        return cls(label, tuple(map(DrawnPoint.of, lines)), style)


class UsedRange(Value, frozen=True):
    """Sizes at which a program should use one of the curves."""

    low: int
    high: int
    """Both included."""
    curve: int
    """The position of the curve."""


class _Plotted(NamedTuple):
    """A curve as points of the drawing."""

    drawn: Drawn
    sizes: tuple[int, ...]
    points: tuple[Position, ...]


def curves_picture(
    name: str,
    title: str,
    drawn: Sequence[Drawn],
    what: Quantity,
    note: str = "",
    used: Sequence[UsedRange] = (),
) -> Picture:
    """Draws curves that share a size axis, with a ``note`` about them. With ``used`` all curves
    are drawn at all sizes, and a band along the size axis shows which one to use."""
    drawn = list(drawn) if used else with_quantity(drawn, what)
    return Picture(
        name=name,
        title=f"{title}: {what} over size",
        description=_description(drawn, what),
        draw=partial(_draw, tuple(drawn), what, note, tuple(used)),
        data=_data(f"{title}: {what}", drawn, what, used),
    )


def with_quantity(drawn: Sequence[Drawn], what: Quantity) -> list[Drawn]:
    """The curves at sizes where the quantity says more than the other one; those that have two such
    sizes, and if there are none, all at all sizes."""
    known = [(each, [point for point in each.points if _value(point, what)]) for each in drawn]
    kept = [(each, [point for point in points if _is_meant(point, what)]) for each, points in known]
    found = [(each, points) for each, points in kept if len(points) > 1]
    return [
        Drawn(each.label, tuple(points), each.style) for each, points in found or known if points
    ]


def has_quantity(drawn: Sequence[Drawn], what: Quantity) -> bool:
    """Whether any curve has enough sizes at which the quantity is meant to be shown."""
    return any(
        sum(bool(_value(point, what)) and _is_meant(point, what) for point in each.points) >= FEWEST
        for each in drawn
    )


def _is_meant(point: DrawnPoint, what: Quantity) -> bool:
    return point.bytes >= BANDWIDTH_FROM if what == "bandwidth" else point.bytes <= LATENCY_TO


def _draw(
    drawn: tuple[Drawn, ...], what: Quantity, note: str, used: tuple[UsedRange, ...] = ()
) -> Drawing:
    widest = max(text_width(each.label, NAME_SIZE) for each in drawn)
    at_lines = widest <= MOST_NAME and len(drawn) * NAME_LINE <= BOTTOM - TOP
    bounds = _bounds(drawn) if what == "bandwidth" else []
    values = [v for each in drawn for point in each.points if (v := _value(point, what))]
    sizes = [point.bytes for each in drawn for point in each.points]
    x = size_axis(LEFT, RIGHT, sizes)
    label = gb_per_s_label if what == "bandwidth" else time_label
    y = value_axis(BOTTOM, TOP, min(values), max([*values, *bounds]), label)
    plotted = [_plot(each, what, x, y) for each in drawn]
    same = _drawn_once(plotted)
    axes_width = RIGHT + LABEL_ROOM
    found = Drawing(RIGHT + MARKER_ROOM + widest + 6 if at_lines else axes_width, HEIGHT)
    found.axes_width = axes_width
    found.keys = _keys(plotted, same)
    found.notes = list(filter(None, (*_overlaps(plotted, same, what), *_of_each(drawn), note)))
    draw_axes(found, x, y, _axis_title(drawn, what))
    for n, bound in enumerate(bounds):
        at = y.at(bound)
        found.line([(x.start, at), (x.end, at)], SOFT, 1.2, dashes=(6, 3.6))
        if n < BOUND_LABELS:  # the second at the other end: bounds may be near to each other
            place, anchor = _bound_label(n, x)
            found.text(place, at - 3, f"bound {bound:.4g} GB/s", SOFT, size=NAME_SIZE,
                       anchor=anchor, on_baseline=True)  # fmt: skip
    if used:
        _band(found, drawn, used, x, y)
    shown = [each for n, each in enumerate(plotted) if n not in same]
    for each in shown:
        _intervals(found, each, what, x, y)
    for each in reversed(shown):
        _curve(found, each)
    if at_lines:
        found.names_from = len(found.marks)
        _names_at_lines(found, plotted, same, x, y)
    return found


def _bound_label(number: int, x: Axis) -> tuple[float, Anchor]:
    return (x.start + 4, "start") if number else (x.end, "end")


def _axis_title(drawn: Sequence[Drawn], what: Quantity) -> str:
    if what == "bandwidth":
        return "bandwidth, GB/s"
    several = any(point.is_concurrent for each in drawn for point in each.points)
    return "time until all transfers are complete" if several else "time per transfer"


def _of_each(drawn: Sequence[Drawn]) -> Iterator[str]:
    """Says what the sizes are if several transfers start together."""
    several = [point for each in drawn for point in each.points if point.is_concurrent]
    if several:
        last = several[-1]
        yield f"Sizes are those of each transfer: {last.size} is at {format_bytes(last.bytes)}."


def _plot(each: Drawn, what: Quantity, x: Axis, y: Axis) -> _Plotted:
    points = tuple((x.at(point.bytes), y.at(_value(point, what))) for point in each.points)
    return _Plotted(each, tuple(point.bytes for point in each.points), points)


def _curve(found: Drawing, each: _Plotted) -> None:
    colour = colour_of(each.drawn.style)
    for part in joined(each.sizes):
        found.line(each.points[part], colour, LINE_WIDTH)
    found.markers(each.points, marker_of(each.drawn.style), colour, MARKER)


# Curves that hide others.


def _drawn_once(plotted: Sequence[_Plotted]) -> dict[int, int]:
    """Curves that cannot be distinguished from an earlier one at any size, with that one."""
    found: dict[int, int] = {}
    for n, each in enumerate(plotted):
        for earlier in range(n):
            other = plotted[earlier]
            ends = (each.sizes[0], each.sizes[-1]) == (other.sizes[0], other.sizes[-1])
            if ends and earlier not in found and all(_near(each, other)):
                found[n] = earlier
                break
    return found


def _near(each: _Plotted, other: _Plotted) -> list[bool]:
    """Returns for each point whether it cannot be distinguished from the other curve."""
    return [(at := _height(other, x)) is not None and abs(at - y) < HIDDEN for x, y in each.points]


def _height(each: _Plotted, x: float) -> float | None:
    """The height of a curve at ``x``; None where it has neither a point nor a line."""
    for part in joined(each.sizes):
        for (start, before), (end, after) in pairwise(each.points[part]):
            if start <= x <= end:
                return before + (after - before) * (x - start) / (end - start)
    return next((y for at, y in each.points if at == x), None)


def _overlaps(plotted: Sequence[_Plotted], same: dict[int, int], what: Quantity) -> Iterator[str]:
    """Says which curves lie on one another: those drawn once, and parts of others."""
    if same:
        most = max(_difference(plotted[n], plotted[other], what) for n, other in same.items())
        yield f"“=”: lies under the curve above it, differs by at most {most * 100:.1f} %."
    for n, each in enumerate(plotted):
        hidden = (
            (run, other)
            for other in range(n)
            if n not in same and other not in same and (run := _longest(each, plotted[other]))
        )
        longest = max(hidden, default=None, key=lambda found: found[0][1])
        if longest is not None:
            (first, count), other = longest
            ends = each.sizes[first], each.sizes[first + count - 1]
            yield (
                f"{plotted[other].drawn.label} hides {each.drawn.label} from "
                f"{format_bytes(ends[0])} to {format_bytes(ends[1])}."
            )


def _longest(each: _Plotted, other: _Plotted) -> tuple[int, int] | None:
    """The longest run of points that lie on the other curve, as its first and its length; None if
    it is shorter than `FEWEST`."""
    found, first = (0, 0), 0
    near = _near(each, other)
    for n, is_near in enumerate([*near, False]):
        if not is_near:
            found = max(found, (first, n - first), key=lambda run: run[1])
            first = n + 1
    return found if found[1] >= FEWEST else None


def _difference(each: _Plotted, other: _Plotted, what: Quantity) -> float:
    values = {point.bytes: _value(point, what) for point in other.drawn.points}
    common = [(point, values[point.bytes]) for point in each.drawn.points if point.bytes in values]
    return max(abs(_value(point, what) / value - 1) for point, value in common)


# Names.


def _names_at_lines(
    found: Drawing, plotted: Sequence[_Plotted], same: dict[int, int], x: Axis, y: Axis
) -> None:
    """Names in a column beside the axes, each as near to the end of its line as others allow."""
    blocks = []
    for n, each in enumerate(plotted):
        if n not in same:
            under = [plotted[other] for other, above in same.items() if above == n]
            blocks.append((each.points[-1][1], [each, *under]))
    blocks.sort(key=lambda block: block[0])
    heights = [NAME_LINE * len(block) for _, block in blocks]
    tops = _spread_out(
        [at - NAME_LINE / 2 for at, _ in blocks], heights, y.end - 6, y.start + NAME_LINE
    )
    left = x.end + MARKER_ROOM
    for top, (end, block) in zip(tops, blocks, strict=True):
        middle = top + NAME_LINE / 2
        first, *under = block
        colour, last = colour_of(first.drawn.style), first.points[-1][0]
        if last >= x.start + LEADER_FROM * (x.end - x.start):
            found.bars([((last + 3, end), (left - 13, middle))], colour, 0.7, 0.55)
        found.markers([(left - 8, middle)], marker_of(first.drawn.style), colour, 5)
        found.text(left, middle, first.drawn.label, INK, size=NAME_SIZE)
        for each in under:
            middle += NAME_LINE
            found.text(left - 8, middle, "=", INK, size=NAME_SIZE, anchor="middle")
            found.text(left, middle, each.drawn.label, INK, size=NAME_SIZE)


def _spread_out(
    preferred: Sequence[float], heights: Sequence[float], low: float, high: float
) -> list[float]:
    """The tops of blocks that are stacked in this order and do not overlap, each as close to its
    preferred place as this allows."""
    found: list[float] = []
    for want, before in zip(preferred, [0.0, *heights], strict=False):
        found.append(max(want, found[-1] + before if found else low))
    limit = high
    for n in reversed(range(len(found))):
        found[n] = min(found[n], limit - heights[n])
        limit = found[n]
    return found


def _keys(plotted: Sequence[_Plotted], same: dict[int, int]) -> list[Key]:
    """The names of all curves, those drawn once after the one that is drawn."""
    found = []
    for n, each in enumerate(plotted):
        if n not in same:
            style = each.drawn.style
            found.append(Key(each.drawn.label, marker_of(style), colour_of(style)))
            found += [Key(plotted[under].drawn.label) for under in same if same[under] == n]
    return found


# Intervals.


def _intervals(found: Drawing, each: _Plotted, what: Quantity, x: Axis, y: Axis) -> None:
    """A bar for each interval, and an area that joins them along each line."""
    low, high = [], []
    for point in each.drawn.points:
        value = _value(point, what)
        interval = _interval(point, what) or Interval(value, value)
        low.append((x.at(point.bytes), y.at(interval.low)))
        high.append((x.at(point.bytes), y.at(interval.high)))
    colour = colour_of(each.drawn.style)
    for part in joined(each.sizes):
        found.area(_within(low[part], y) + _within(high[part], y)[::-1], colour, 0.2)
    ends = [(_cut(one, y), _cut(other, y)) for one, other in zip(low, high, strict=True)]
    found.bars(ends, colour, 3.5, 0.45)


def _within(points: Sequence[Position], y: Axis) -> list[Position]:
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


def _cut(point: Position, y: Axis) -> Position:
    return point[0], min(max(point[1], y.end), y.start)


# Values.


def _value(point: DrawnPoint, what: Quantity) -> float:
    if not point.bytes:
        return 0.0
    return point.seconds if what == "latency" else point.rate


def _interval(point: DrawnPoint, what: Quantity) -> Interval | None:
    return point.seconds_interval if what == "latency" else point.rate_interval


def _bounds(drawn: Sequence[Drawn]) -> list[float]:
    """The bounds in GB/s, those that differ by enough to be two lines, from the highest on."""
    rates = {point.bound for each in drawn for point in each.points if point.bound}
    kept: list[float] = []
    for rate in sorted(rates, reverse=True):
        if not kept or math.log10(kept[-1] / rate) > 0.12:
            kept.append(rate)
    return kept


def _text(point: DrawnPoint, what: Quantity) -> str:
    value = _value(point, what)
    if what == "latency":
        return format_time(value, point.relative)
    return format_number(value, point.relative)


def _description(drawn: Sequence[Drawn], what: Quantity) -> str:
    parts = []
    for each in drawn:
        first = each.points[0]
        if what == "bandwidth":
            first = max(each.points, key=lambda point: point.rate)
        unit = " GB/s" if what == "bandwidth" else ""
        parts.append(f"{each.label}: {_text(first, what)}{unit} at {first.size}")
    extreme = "The highest" if what == "bandwidth" else "At the smallest size"
    noun = what[0].upper() + what[1:]
    return f"{noun} over size on logarithmic axes. {extreme}: {'; '.join(parts)}."


def _data(
    title: str, drawn: Sequence[Drawn], what: Quantity, used: Sequence[UsedRange] = ()
) -> Sheet:
    """The same values as are drawn: a row for each size, a column for each curve."""
    at = [{point.bytes: point for point in each.points} for each in drawn]
    sizes = {point.bytes: point.size for points in at for point in points.values()}
    rows = ((sizes[n], *_cells(at, n, what), _used_at(n, drawn, used)) for n in sorted(sizes))
    columns = ("size", *numbers(*(each.label for each in drawn)), "use")
    caption = "GB/s; ± as in the method." if what == "bandwidth" else "± as in the method."
    return Sheet.of(title, columns, rows, caption).without_empty_columns()


def _cells(at: Sequence[dict[int, DrawnPoint]], size: int, what: Quantity) -> Iterator[SheetCell]:
    for points in at:
        point = points.get(size)
        if point is None or not _value(point, what):
            yield SheetCell()
        else:
            yield SheetCell(_text(point, what), note=spread(point.relative))


# The curve to use.


def _used_at(size: int, drawn: Sequence[Drawn], used: Sequence[UsedRange]) -> str:
    return next((drawn[each.curve].label for each in used if each.low <= size <= each.high), "")


BAND = 7.0
"""Height of the band that shows which curve to use."""


def _band(
    found: Drawing, drawn: Sequence[Drawn], used: Sequence[UsedRange], x: Axis, y: Axis
) -> None:
    """A band along the size axis in the colour of the curve to use, with its marker; a line through
    the axes where the curve changes."""
    starts = [max(x.start, x.at(each.low)) for each in used]
    starts[0] = x.start
    ends = [*starts[1:], x.end]
    for n, (each, start, end) in enumerate(zip(used, starts, ends, strict=True)):
        style = drawn[each.curve].style
        middle = y.start - BAND / 2
        found.line([(start, middle), (end, middle)], colour_of(style), BAND)
        found.markers([((start + end) / 2, middle)], marker_of(style), INK, MARKER)
        if n:
            found.line([(start, y.start), (start, y.end)], SOFT, 1.0, dashes=(2, 3))
