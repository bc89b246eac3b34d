"""Several curves in one table: a row each, a column for each size, a figure in each cell.

The figure is a rate in GB/s from 64 KiB up and a time below, with as many digits as its interval
allows; of layouts both are from call to completion, by which the fastest is found. ``--only`` with
a curve's words shows the interval itself, and ``--json`` all of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec
from rich.console import Console

from waywiser.cli.curve_table import Marks, marks_of
from waywiser.cli.lines import say
from waywiser.cli.text_table import GAP, TextColumn, print_table
from waywiser.curves.curve import Curve, by_text
from waywiser.curves.name import name_of
from waywiser.curves.point import Point
from waywiser.profile.estimate import Estimate
from waywiser.profile.layout_crossover import layout_crossovers
from waywiser.words import Transfer, Workload, format_bytes
from waywiser.words.number_format import RATE_BYTES, count, format_number, format_rate, format_time
from waywiser.words.sizes import nearest_power_of_two
from waywiser.words.sizes_in_text import bytes_of_each, with_units

MOST_COLUMNS = 6
"""Sizes beside the names of curves in 100 columns."""

NAME, SIZE, MARKS = 24, 7, 7
"""Least widths of a curve's name and of a size, and room for the letters of flags: a narrower
terminal shows fewer sizes, so that the letters stay."""

MOST_ROWS = 8
"""Rows for a class of equal curves: of more, the extremes are shown; ``--json`` shows all."""

Row = tuple[str, Sequence[Point]]


def print_other_settings(console: Console, rows: Sequence[Curve], marks: Marks) -> None:
    """Other settings of a path under its own table."""
    print_rows(console, "", [(curve.difference, curve.measured) for curve in rows], marks)


def print_pairs(console: Console, rows: Sequence[Curve], marks: Marks) -> None:
    """Several transfers at once: sizes are of each."""
    found = [(with_units(curve.name), curve.measured) for curve in rows]
    print_rows(console, "sizes are of each transfer", found, marks)


def print_class(console: Console, first: str, rows: Sequence[Curve], marks: Marks) -> None:
    """The other members of a class of curves that should be equal."""
    title = f"{count(len(rows), 'path')} equivalent to {with_units(name_of(Workload.parse(first)))}"
    if len(rows) > MOST_ROWS:
        title += "; the extremes"
        rows = _extremes(rows)
    print_rows(console, title, [(with_units(curve.name), curve.measured) for curve in rows], marks)


def print_layouts(
    console: Console, ends: str, rows: Sequence[Curve], all_: Sequence[Curve], marks: Marks
) -> None:
    """The layouts between two memories by every executor, under the contiguous bytes of each: from
    call to completion, by which the fastest methods are found."""
    known = by_text(all_)
    named: list[Row] = []
    contiguous_lines: dict[str, Sequence[Point]] = {}
    for executor in dict.fromkeys(t.path.executor for c in rows if (t := c.transfer)):
        if contiguous := known.get(f"{ends} by {executor}"):
            contiguous_lines[executor] = contiguous.measured
            named.append((f"contiguous by {executor}", contiguous.measured))
    laid_out = sorted(rows, key=_by_layout)
    for curve in laid_out:
        if curve.transfer is not None:
            path, layout = curve.transfer.path, curve.transfer.layout
            text = with_units(f"{layout} by {path.executor}{_settings(curve)}")
            named.append((text, curve.measured))
    sizes = {_nominal(line) for curve in rows for line in curve.measured}
    meaning = "from call to completion"
    if any(line.of_contiguous for curve in rows for line in curve.measured):
        meaning += "; × share of contiguous by the same executor"
    say(console, f"{ends}, laid out ({meaning})", "bold")

    def cell(line: Point) -> str:
        executor = Workload.parse(line.curve).transfers[0].path.executor
        return _seen(line, contiguous_lines.get(executor, ()))

    print_rows(console, "", named, marks, only=sizes, cell=cell)
    for each in layout_crossovers(_estimates(rows)):
        say(console, str(each), indent=2)
    console.print()


def _estimates(rows: Sequence[Curve]) -> Iterator[tuple[Transfer, Estimate]]:
    for curve in rows:
        for line in curve.measured if curve.workload.cache == "warm" else ():
            if curve.transfer is not None and line.estimate is not None:
                yield msgspec.structs.replace(curve.transfer, bytes=line.bytes), line.estimate


def _settings(curve: Curve) -> str:
    settings = curve.transfer.parameters if curve.transfer else {}
    return "[" + ",".join(f"{k}={v}" for k, v in settings.items()) + "]" if settings else ""


def _by_layout(curve: Curve) -> tuple[str, int, str]:
    layout = curve.transfer.layout if curve.transfer else None
    return (layout.kind, layout.run, curve.text) if layout else ("", 0, curve.text)


def print_rows(
    console: Console,
    title: str,
    rows: Sequence[Row],
    marks: Marks,
    *,
    only: set[int] | None = None,
    cell: Callable[[Point], str] | None = None,
) -> None:
    """``only`` keeps these columns; ``cell`` writes another figure than `_cell`."""
    if title:
        say(console, title, "dim", indent=2)
    room = (console.width - NAME - GAP - MARKS) // (SIZE + GAP)
    columns = _columns(rows, only, min(MOST_COLUMNS, max(1, room)))
    table = [
        TextColumn("  GB/s, or time", left=True, least=NAME, folds=True),
        *(TextColumn(format_bytes(column), least=SIZE) for column in columns),
        TextColumn("", left=True),
    ]
    cells = []
    for name, lines in rows:
        at = {_nominal(line): line for line in lines}
        shown = [at[column] for column in columns if column in at]
        letters = {letter for line in shown for letter in _letters(line, marks)}
        figures = [(cell or _cell)(at[column]) if column in at else "" for column in columns]
        cells.append([f"  {name}", *figures, "".join(sorted(letters))])
    print_table(console, table, cells)
    console.print()


def _columns(rows: Sequence[Row], only: set[int] | None, many: int) -> list[int]:
    """The sizes that most rows have, the larger of equals, ascending; at most ``many``."""
    counted = Counter(_nominal(line) for _, lines in rows for line in lines)
    selected = [size for size in counted if only is None or size in only]
    most = sorted(selected, key=lambda size: (counted[size], size), reverse=True)[:many]
    return sorted(most)


def _nominal(line: Point) -> int:
    """The power of two next to the size of each transfer: layouts take whole numbers of their
    units."""
    return nearest_power_of_two(bytes_of_each(line.text))


def _letters(line: Point, marks: Marks) -> str:
    return marks_of(line.estimate, marks) if line.estimate else ""


def _cell(line: Point) -> str:
    found = line.estimate
    if found is None:
        return ""
    if found.rate is None or line.bytes < RATE_BYTES:
        return format_time(found.median, found.relative)
    text = format_rate(found.rate.value, found.relative)
    return text + _share(line.of_contiguous)


def _seen(line: Point, contiguous: Sequence[Point]) -> str:
    """The figure from call to completion; of a layout with its share of that of ``contiguous``
    bytes at the nearest size."""
    found = line.estimate
    if found is None:
        return ""
    if line.bytes < RATE_BYTES:
        return format_time(found.seen_median, found.seen_relative)
    rate = line.bytes / found.seen_median
    text = format_rate(rate, found.seen_relative)
    if line.of_contiguous is None or not contiguous:
        return text
    near = min(contiguous, key=lambda each: abs(math.log(each.bytes / line.bytes)))
    assert near.estimate is not None
    return text + _share(rate / (near.bytes / near.estimate.seen_median))


def _share(of_contiguous: float | None) -> str:
    return "" if of_contiguous is None else f" ×{format_number(of_contiguous, 0.05)}"


def _extremes(rows: Sequence[Curve]) -> list[Curve]:
    """Those that are the fastest or the slowest at any size."""
    at: dict[int, list[tuple[float, Curve]]] = {}
    for curve in rows:
        for line in curve.measured:
            if line.estimate is not None:
                at.setdefault(line.bytes, []).append((line.estimate.median, curve))
    ends = set()
    for found in at.values():
        ends.add(min(found, key=lambda each: each[0])[1].text)
        ends.add(max(found, key=lambda each: each[0])[1].text)
    return [curve for curve in rows if curve.text in ends]
