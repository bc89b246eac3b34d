"""One line for each curve: the bandwidth at its largest size, the latency at its smallest.

Many settings of one path, and many paths that should be equal, are one line with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from waywiser.curves import COLLECTIVES, Curve, Point, name_of, range_of
from waywiser.curves.curve import SMALL_BYTES
from waywiser.machine import format_list
from waywiser.render.parts import Section, Sheet, SheetColumn, Sheets
from waywiser.render.views.curve_sizes import Marks, letters, operation_of
from waywiser.render.writing import spread_or_processes
from waywiser.words import (
    Memory,
    Path,
    Transfer,
    Workload,
    count,
    format_rate,
    format_time,
    grouped,
    size_of,
    with_units,
)

SHORT = 16
"""So few curves have a line each, whatever their settings."""


class Limits(NamedTuple):
    """How many curves of a kind have a line each; of more there is one line for all."""

    settings: int = 2
    """Settings of one path, or layouts."""
    equal: int = 2
    """Paths that should equal a path."""
    equal_first: int = 8
    """The same of a headline path."""
    places: int = 1
    """Places of one operation."""


ANY_FLAG = "!"
"""Stands for letters of flags that have no room."""

PATH = 52
"""Characters that a path is left before another column goes; longer ones fold."""

COLUMNS = (
    SheetColumn("GB/s", number=True),
    SheetColumn("±", number=True, spared=3),
    SheetColumn("bound", number=True),
    SheetColumn("at", number=True, spared=1),
    SheetColumn("latency", number=True),
    SheetColumn("sizes", number=True, spared=2),
    SheetColumn("", brief=ANY_FLAG),
)

COLLECTIVE_COLUMNS = (COLUMNS[0], SheetColumn("bus GB/s", number=True), *COLUMNS[1:])
"""The same for collectives, with the bus bandwidth beside the algorithm bandwidth."""

TIME_COLUMNS = tuple(
    msgspec.structs.replace(each, name="time") if each.name == "latency" else each
    for each in COLUMNS
)
"""The same for workloads without bandwidth."""

OPERATION_COLUMNS = tuple(
    SheetColumn(name, number=bool(name)) for name in ("", "±", "", "", "time", "", "")
)
"""The same for operations, which have no bandwidth and no size."""

Row = tuple[str, ...]


class PathCurves(NamedTuple):
    """A path with all its settings."""

    text: str
    """The curve that stands for the path: that with default settings, or the only one."""
    name: str
    default: Curve | None
    """The same, if it was measured."""
    settings: list[Curve]
    """The other curves, among them layouts and states of the caches."""


def curve_line_sections(
    curves: Sequence[Curve], marks: Marks, first: Sequence[str] = ()
) -> Iterator[Section]:
    """A table for each family of curves. ``first`` are the curves that precede the others of their
    family."""
    most = Limits(*[SHORT] * 4) if len(curves) <= SHORT else Limits()
    tables: list[Sheet] = []
    collectives: list[Sheet] = []
    timed: list[Sheet] = []
    operations: list[Sheet] = []
    for family, found in groupby(curves, key=lambda curve: curve.family):
        members = list(found)
        path = SheetColumn(family, folds=True, most=PATH)
        if members[0].workload.kind == "operation":
            rows = _operation_rows(members, marks, most)
            operations.append(Sheet.of(family, (path, *OPERATION_COLUMNS), rows))
        elif family == COLLECTIVES:
            rows = _path_rows(members, marks, most, first)
            collectives.append(Sheet.of(family, (path, *COLLECTIVE_COLUMNS), rows))
        elif not any(point.rate for curve in members for point in curve.measured):
            rows = _path_rows(members, marks, most, first)
            timed.append(Sheet.of(family, (path, *TIME_COLUMNS), rows))
        else:
            rows = _path_rows(members, marks, most, first)
            tables.append(Sheet.of(family, (path, *COLUMNS), rows))
    for sheets in (tables, collectives, timed, operations):
        if sheets:
            yield Section("", "", (Sheets(tuple(sheets)),))


def _path_rows(
    curves: Sequence[Curve], marks: Marks, most: Limits, first: Sequence[str]
) -> Iterator[Row]:
    """The rows of one family: each path followed by its settings, then by its equals."""
    order = {text: n for n, text in enumerate(first)}
    groups = _groups(curves)
    groups.sort(key=lambda group: order.get(group.text, len(order)))
    known = {group.text for group in groups}
    equal = grouped(
        (group.default.like, group)
        for group in groups
        if group.default is not None and group.default.like in known
    )
    members = {group.text for found in equal.values() for group in found}
    for group in groups:
        if group.text not in members:
            yield from _group_rows(group, marks, most)
            many = most.equal_first if group.text in order else most.equal
            others = equal.get(group.text, ())
            if len(others) > many:
                yield from _equal_rows(others)
                continue
            for other in others:
                yield from _group_rows(other, marks, most)


def _group_rows(group: PathCurves, marks: Marks, most: Limits) -> Iterator[Row]:
    name = with_units(group.name)
    layouts = sorted(filter(_has_layout, group.settings), key=_run)
    others = [curve for curve in group.settings if not _has_layout(curve)]
    head, what = f"{name}, ", "setting"
    if group.default is not None:
        yield _row(name, group.default, marks)
        head, what = "  ", "other setting"
    yield from _settings_rows(head, what, others, marks, most)
    yield from _settings_rows(head, "layout", layouts, marks, most)


def _settings_rows(
    head: str, what: str, curves: Sequence[Curve], marks: Marks, most: Limits
) -> Iterator[Row]:
    """``head`` begins the name of a row that is of several curves, each a ``what``."""
    if len(curves) > most.settings:
        yield _span_row(f"{head}{len(curves)} {what}s", curves)
        return
    for curve in curves:
        difference = curve.difference if head.isspace() else ""
        yield _row(f"  {difference}" if difference else with_units(curve.name), curve, marks)


def _equal_rows(groups: Sequence[PathCurves]) -> Iterator[Row]:
    """Many equivalent paths: one row for them, one for their settings."""
    curves = [group.default for group in groups if group.default is not None]
    yield _span_row(f"  {count(len(curves), 'equivalent path')}", curves)
    if settings := [curve for group in groups for curve in group.settings]:
        yield _span_row(f"  {count(len(settings), 'setting')} of these paths", settings)


def _groups(curves: Sequence[Curve]) -> list[PathCurves]:
    found: dict[str, PathCurves] = {}
    for curve in curves:
        plain = _plain(curve.workload)
        text = plain.curve
        if text not in found:
            found[text] = PathCurves(text, name_of(_plain(curve.shown)), None, [])
        if curve.text == text:
            found[text] = found[text]._replace(default=curve)
        else:
            found[text].settings.append(curve)
    return [_with_its_only_curve(group) for group in found.values()]


def _with_its_only_curve(group: PathCurves) -> PathCurves:
    """The group; of a path that was measured with one setting alone, that stands for it."""
    if group.default is not None or len(group.settings) > 1:
        return group
    (curve,) = group.settings
    return PathCurves(curve.text, curve.name, curve, [])


def _plain(workload: Workload) -> Workload:
    """The workload with all settings as they are by default; what a collective does is none."""

    def plain(memory: Memory) -> Memory:
        return msgspec.structs.replace(memory, variant={})

    paths = [transfer.path for transfer in workload.transfers]
    plain_paths = (
        Path(plain(each.source), plain(each.destination), each.executor) for each in paths
    )
    both = zip(plain_paths, workload.transfers, strict=True)
    return Workload(tuple(Transfer(path, parameters=t.collective_setting) for path, t in both))


def _has_layout(curve: Curve) -> bool:
    return any(transfer.layout for transfer in curve.workload.transfers)


def _run(curve: Curve) -> tuple[str, int]:
    """The kind of a layout and the bytes that lie together in it."""
    layouts = [transfer.layout for transfer in curve.workload.transfers if transfer.layout]
    return layouts[0].kind, layouts[0].run


def _operation_rows(curves: Sequence[Curve], marks: Marks, most: Limits) -> Iterator[Row]:
    """One row for an operation at all places of a kind, with the range of its times."""
    groups = grouped(
        ((operation.place.kind, operation.name), curve)
        for curve in curves
        if (operation := curve.workload.operation) is not None
    )
    for (_, name), members in sorted(groups.items()):
        defaults = [curve for curve in members if not operation_of(curve).parameters]
        others = [curve for curve in members if operation_of(curve).parameters]
        if len(defaults) > 1 and len(defaults) > most.places:
            places = [operation_of(curve).place for curve in defaults]
            numbers = format_list(tuple(place.index for place in places))
            yield _span_row(f"{name}@{places[0].kind}:{numbers}", defaults)
        else:
            for curve in defaults:
                yield _row(curve.name, curve, marks)
        if len(others) <= most.settings:
            for curve in others:
                yield _row(f"{'  ' if defaults else ''}{with_units(curve.name)}", curve, marks)
        else:
            head = "  " if defaults else f"{name}, "
            what = "other setting" if defaults else "setting"
            yield _span_row(f"{head}{count(len(others), what)}", others)


def _row(name: str, curve: Curve, marks: Marks) -> Row:
    """One curve. ``±`` is that of the bandwidth, or of the time if there is none."""
    large, small = curve.plateau, _smallest(curve)
    shown = (large or curve.measured[0]).measured
    return (
        name,
        large.rate_text if large else "",
        *([large.bus_rate_text if large else ""] if curve.family == COLLECTIVES else []),
        spread_or_processes(shown, shown.relative, column=True),
        f"{large.of_bound:.0%}" if large and large.of_bound is not None else "",
        size_of(large.text) if large else "",
        format_time(small.seconds, small.measured.relative) if small else "",
        str(len(curve.measured)) if curve.measured[0].bytes else "",
        letters(filter(None, (large, small)), marks),
    )


def _span_row(name: str, curves: Sequence[Curve]) -> Row:
    """Several curves: the lowest and the highest bandwidth, or time if there is none. Flags would
    be of too many sizes."""
    large = [point for curve in curves if (point := curve.plateau)]
    small = [] if large else [point for curve in curves if (point := _smallest(curve))]
    sizes = {size_of(point.text) for point in large}
    return (
        name,
        range_of(large, lambda point: point.rate, format_rate),
        *([_bus_rates(large)] if curves[0].family == COLLECTIVES else []),
        "",
        range_of(large, lambda point: point.of_bound, lambda share, _: f"{share:.0%}"),
        sizes.pop() if len(sizes) == 1 else "",
        range_of(small, lambda point: point.seconds, format_time),
        "",
        "",
    )


def _bus_rates(points: Sequence[Point]) -> str:
    """Returns the bus bandwidths; empty if there are none, as for messages of several sizes."""
    known = [point for point in points if point.bus_rate]
    return range_of(known, lambda point: point.bus_rate or None, format_rate)


def _smallest(curve: Curve) -> Point | None:
    """The smallest size, if its figure is a latency or the curve has no other."""
    point = curve.measured[0]
    return point if point.bytes <= SMALL_BYTES or curve.plateau is None else None
