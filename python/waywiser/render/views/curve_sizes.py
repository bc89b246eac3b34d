"""Every size of curves: a table for one curve, or a row for each of several.

In a row, the figure is a rate in GB/s from 64 KiB up and a time below, with as many digits as its
interval allows; of layouts both are from call to completion, by which the fastest is found.
``--only`` with a curve's words shows the interval itself, and ``--json`` all of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from waywiser.curves import Curve, Point, name_of
from waywiser.curves.curve import by_text
from waywiser.measure.plan.schedule import EQUAL
from waywiser.profile import Estimate, layout_crossovers
from waywiser.render.parts import Block, Section, Sheet, SheetCell, SheetColumn, SheetRow, Words
from waywiser.render.writing import spread, spread_or_processes
from waywiser.words import (
    RATE_BYTES,
    Operation,
    Transfer,
    Workload,
    bytes_of_each,
    count,
    format_bytes,
    format_number,
    format_rate,
    format_settings,
    format_time,
    grouped,
    nearest_power_of_two,
    size_of,
    with_units,
)

Marks = Mapping[str, str]
"""The letter of each kind of quality flag."""

MOST_COLUMNS = 6
"""Sizes beside the names of curves in 100 columns."""

MOST_ROWS = 8
"""Rows for a class of equal curves: of more, the extremes are shown; ``--json`` shows all."""

Row = tuple[str, Sequence[Point]]

COLUMNS = (
    SheetColumn("size", number=True, least=8),
    SheetColumn("time", number=True, least=8),
    SheetColumn("±", number=True, least=6),
    SheetColumn("GB/s", number=True, least=6),
    SheetColumn("bound", number=True, least=5, spared=2),
    SheetColumn("app sees", number=True, least=8, spared=3),
    SheetColumn("samples", number=True, least=7, spared=1),
    SheetColumn("stopped", least=9, spared=4),
    SheetColumn(""),
)
"""With up to seven letters in the last, a row fits into 80 columns. A letter says as well as the
column before it that sampling did not converge."""

COLLECTIVE_COLUMNS = (*COLUMNS[:4], SheetColumn("bus", number=True, least=6), *COLUMNS[4:])
"""The same of a collective, with the bus bandwidth in GB/s."""

OPERATION_COLUMNS = (
    SheetColumn("place"),
    SheetColumn("operation", folds=True),
    SheetColumn("settings", folds=True, most=24),
    SheetColumn("time", number=True, notes="±"),
    SheetColumn("application sees", number=True, short="app sees", spared=2),
    SheetColumn("samples", number=True, spared=1),
    SheetColumn(""),
)


def letters(points: Iterable[Point], marks: Marks) -> str:
    """Those of all quality flags of some points."""
    return "".join(sorted({letter for point in points for letter in _letters(point, marks)}))


def _letters(point: Point, marks: Marks) -> str:
    return "".join(marks[flag.kind] for flag in point.measured.quality_flags)


# One curve.


def curve_section(curve: Curve, marks: Marks) -> Section:
    """Its name, its bound, the links it used, its sizes, and those left out with the reason."""
    return Section("", _title(curve), (*_curve_blocks(curve, marks),))


def _curve_blocks(curve: Curve, marks: Marks) -> Iterator[Block]:
    last = curve.measured[-1]
    if last.bound is not None:
        rate = f"{last.bound.bytes_per_second / 1e9:.1f} GB/s"
        yield Words(f"bound {rate}: {last.bound.made_of}", "note", indent=2)
    for point in curve.measured:
        if point.link_use is not None and point.link_use.known:
            yield Words(f"{size_of(point.text)} went {point.link_use}", "note", indent=2)
    columns = COLLECTIVE_COLUMNS if curve.workload.kind == "collective" else COLUMNS
    yield Sheet.of(curve.name, columns, (_cells(point, marks) for point in curve.measured))
    if rates := sorted(last.transfer_rates):
        sure = last.measured.relative
        each = f"{format_rate(rates[0], sure)} to {format_rate(rates[-1], sure)} GB/s"
        yield Words(f"each transfer of {size_of(last.text)}: {each}", "note", indent=2)
    for why, sizes in _skipped(curve).items():
        because = f"it is {why}" if why.startswith(EQUAL) else why
        yield Words(f"skipped, as {because}: {', '.join(sizes)}", "note", indent=2)


def _cells(point: Point, marks: Marks) -> Iterator[str]:
    """The cells in the order of `COLUMNS`."""
    found = point.measured
    large = found.rate is not None and point.bytes >= RATE_BYTES
    yield size_of(point.text)
    yield format_time(found.median, found.relative)
    yield spread_or_processes(found, found.relative, column=True)
    yield format_rate(found.rate.value, found.relative) if large and found.rate else ""
    if point.workload.kind == "collective":
        yield point.bus_rate_text if large else ""
    yield f"{point.of_bound:.0%}" if large and point.of_bound is not None else ""
    yield from _seen_and_samples(found)
    yield found.stop
    yield _letters(point, marks)


def _seen_and_samples(found: Estimate) -> Iterator[str]:
    """The time that a program sees; then ``20×2``: samples of each block and blocks; ``18-20×2`` if
    they differ."""
    yield format_time(found.host_median, found.host_relative) if found.host_median else ""
    counts = sorted({block.count for block in found.blocks})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
    yield f"{each}×{len(found.blocks)}"


def _title(curve: Curve) -> str:
    """The curve's name; transfers that have none as a list."""
    name = with_units(curve.name)
    body, states, _ = name.partition(" (")
    parts = body.split("; ")
    if len(parts) <= 2:
        return name
    head = f"{len(parts)} concurrent transfers{name.removeprefix(body) if states else ''}"
    return f"{head}:\n  " + "\n  ".join(parts)


def _skipped(curve: Curve) -> dict[str, list[str]]:
    """Sizes by reason, without the figures behind its colon, which differ from size to size."""
    return grouped(
        (point.skipped.partition(": ")[0], size_of(point.text))
        for point in curve.points
        if point.skipped
    )


# Several curves.


def other_settings_section(rows: Sequence[Curve], marks: Marks, title: str = "") -> Section:
    """Other settings of a path under its own table."""
    own = [(curve.difference, curve.measured) for curve in rows]
    return Section("", title, (_rows_sheet(own, marks),))


def class_section(first: str, rows: Sequence[Curve], marks: Marks) -> Section:
    """The other members of a class of curves that should be equal."""
    title = f"{count(len(rows), 'path')} equivalent to {with_units(name_of(Workload.parse(first)))}"
    if len(rows) > MOST_ROWS:
        title += "; the extremes"
        rows = _extremes(rows)
    return titled_section(title, rows, marks)


def titled_section(title: str, rows: Sequence[Curve], marks: Marks) -> Section:
    """Curves by their names, with a title above them."""
    named = [(with_units(curve.name), curve.measured) for curve in rows]
    return Section("", "", (Words(title, "note", indent=2), _rows_sheet(named, marks)))


def layouts_section(
    ends: str, rows: Sequence[Curve], all_: Sequence[Curve], marks: Marks
) -> Section:
    """The layouts between two memories by every executor, under the contiguous bytes of each: from
    call to completion, by which the fastest methods are found."""
    known = by_text(all_)
    executors = dict.fromkeys(c.path.executor for c in rows if c.path is not None)
    contiguous = {
        executor: same.measured
        for executor in executors
        if (same := known.get(f"{ends} by {executor}")) is not None
    }
    named: list[Row] = []
    for executor, points in contiguous.items():
        shown = points[0].shown.transfer
        named.append((f"contiguous by {shown.path.executor if shown else executor}", points))
    for curve in sorted(rows, key=_by_layout):
        if (shown := curve.shown_transfer) is not None:
            by = f"{shown.path.executor}{format_settings(shown.parameters)}"
            named.append((with_units(f"{shown.layout} by {by}"), curve.measured))
    meaning = "from call to completion"
    if any(point.of_contiguous for curve in rows for point in curve.measured):
        meaning += "; × share of contiguous by the same executor"

    def cell(point: Point) -> str:
        (executor,) = Workload.parse(point.curve).methods
        return _seen(point, contiguous.get(executor, ()))

    sizes = {_nominal(point) for curve in rows for point in curve.measured}
    sheet = _rows_sheet(named, marks, only=sizes, cell=cell)
    crossovers = (Words(str(each), indent=2) for each in layout_crossovers(_estimates(rows)))
    return Section("", f"{ends}, laid out ({meaning})", (sheet, *crossovers))


def _estimates(rows: Sequence[Curve]) -> Iterator[tuple[Transfer, Estimate]]:
    for curve in rows:
        for point in curve.measured if curve.workload.cache == "warm" else ():
            if point.shown.transfer is not None and point.estimate is not None:
                yield point.shown.transfer, point.estimate


def _by_layout(curve: Curve) -> tuple[str, int, str]:
    layout = curve.transfer.layout if curve.transfer else None
    return (layout.kind, layout.run, curve.text) if layout else ("", 0, curve.text)


def _rows_sheet(
    rows: Sequence[Row],
    marks: Marks,
    *,
    only: set[int] | None = None,
    cell: Callable[[Point], str] | None = None,
) -> Sheet:
    """``only`` keeps these sizes; ``cell`` writes another figure than `_cell`."""
    counted = Counter(_nominal(point) for _, points in rows for point in points)
    selected = [size for size in counted if only is None or size in only]
    by_rows = sorted(selected, key=lambda size: (counted[size], size), reverse=True)
    ranked = by_rows[:MOST_COLUMNS]
    columns = sorted(ranked)
    lines = []
    for name, points in rows:
        at = {_nominal(point): point for point in points if _nominal(point) in columns}
        figures = ((cell or _cell)(at[size]) if size in at else "" for size in columns)
        lines.append((f"  {name}", *figures, letters(at.values(), marks)))
    # The size that most rows have stays; of equals the largest.
    ranks = {size: len(ranked) - n for n, size in enumerate(ranked) if n}
    sizes = (
        SheetColumn(format_bytes(size), number=True, least=7, spared=ranks.get(size, 0))
        for size in columns
    )
    path = SheetColumn("  GB/s, or time", least=24, folds=True, most=24)
    return Sheet.of("Several curves", (path, *sizes, SheetColumn("")), lines)


def _nominal(point: Point) -> int:
    """The power of two next to the size of each transfer: layouts take whole numbers of their
    units."""
    return nearest_power_of_two(bytes_of_each(point.text))


def _cell(point: Point) -> str:
    found = point.measured
    if found.rate is None or point.bytes < RATE_BYTES:
        return format_time(found.median, found.relative)
    text = format_rate(found.rate.value, found.relative)
    return text + _share(point.of_contiguous)


def _seen(point: Point, contiguous: Sequence[Point]) -> str:
    """The figure from call to completion; of a layout with its share of that of ``contiguous``
    bytes at the nearest size."""
    found = point.measured
    if point.bytes < RATE_BYTES:
        return format_time(found.seen_median, found.seen_relative)
    rate = point.bytes / found.seen_median
    text = format_rate(rate, found.seen_relative)
    if point.of_contiguous is None or not contiguous:
        return text
    near = min(contiguous, key=lambda each: abs(math.log(each.bytes / point.bytes)))
    return text + _share(rate / (near.bytes / near.measured.seen_median))


def _share(of_contiguous: float | None) -> str:
    return "" if of_contiguous is None else f" ×{format_number(of_contiguous, 0.05)}"


def _extremes(rows: Sequence[Curve]) -> list[Curve]:
    """Those that are the fastest or the slowest at any size."""
    at = grouped(
        (point.bytes, (point.seconds, curve.text)) for curve in rows for point in curve.measured
    )
    texts = {end(found, key=itemgetter(0))[1] for found in at.values() for end in (min, max)}
    return [curve for curve in rows if curve.text in texts]


# Operations.


def operations_sheet(
    curves: Sequence[Curve], marks: Marks, anchor: Callable[[str], str] = lambda curve: ""
) -> Sheet:
    """Sorted by place, then name, the defaults of each first; ``anchor`` gives that of a curve."""
    rows = (
        SheetRow((*_operation_cells(curve, marks),), anchor(curve.text))
        for curve in sorted(curves, key=_by_place)
    )
    return Sheet.of("Operations", OPERATION_COLUMNS, rows)


def _by_place(curve: Curve) -> tuple[str, int, str, int, str]:
    operation = operation_of(curve)
    place = operation.place
    return place.kind, place.index, operation.name, len(curve.text), curve.text


def _operation_cells(curve: Curve, marks: Marks) -> Iterator[SheetCell]:
    operation, point = operation_of(curve), curve.measured[0]
    found = point.measured
    settings = with_units(format_settings(operation.parameters)).strip("[]").replace(",", ", ")
    yield from map(SheetCell, (str(operation.place), operation.name, settings))
    yield SheetCell(format_time(found.median, found.relative), note=spread(found.relative))
    yield from map(SheetCell, (*_seen_and_samples(found), letters([point], marks)))


def operation_of(curve: Curve) -> Operation:
    """Raises `TypeError` for a curve that moves bytes."""
    if curve.workload.operation is None:
        raise TypeError(f"{curve.text} is no operation")
    return curve.workload.operation
