"""The headline table: bandwidth and latency of each group of headline paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from waywiser.curves import (
    NO_BASELINE,
    Curve,
    HeadlineRow,
    NormalPath,
    Point,
    headline_rows,
    normal_paths,
    range_of,
)
from waywiser.curves.headline import headline_title
from waywiser.machine import Machine
from waywiser.render.parts import Sheet, SheetCell, SheetColumn
from waywiser.render.writing import spread_or_processes
from waywiser.stats import relative
from waywiser.words import format_bytes, format_rate, format_time, size_of

NO_BREAK = "\N{NO-BREAK SPACE}"

COMPLETION = "call to completion"

NORMAL = "normal for"

COLUMNS = (
    SheetColumn("path", short="headline paths"),
    SheetColumn("GB/s", number=True, notes="±", notes_spared=8),
    SheetColumn("of the bound", number=True, short="bound"),
    SheetColumn("size", number=True, short="at", spared=6, detail="narrow"),
    SheetColumn(
        NORMAL, short="normal", spared=5, shortened=7, folds=True, most=34, detail="narrow"
    ),
    SheetColumn("latency", number=True, notes="±", notes_spared=1),
    SheetColumn(COMPLETION, number=True, spared=2, detail="page"),
    SheetColumn("achieved by", spared=4, folds=True, most=36, detail="page"),
    SheetColumn("all such paths, GB/s", spared=3, detail="page"),
)
"""At most six of them are columns of a page."""


def headline_sheet(
    machine: Machine, curves: Sequence[Curve], link: Callable[[str], str] = lambda curve: ""
) -> Sheet:
    """A row for each group that was measured, with those columns that have a value; ``link`` gives
    the anchor of a curve."""
    rows = headline_rows(machine, curves, library=True)
    beside = normal_paths(machine, curves)
    smallest = {row.small.bytes for row in rows if row.small is not None}
    small = format_bytes(min(smallest)) if len(smallest) == 1 else "the size in small print"
    cells = (
        (
            SheetCell(headline_title(row.group, row.first.workload), link=link(row.first.text)),
            bandwidth_cell(row.large),
            _share(row.large),
            row.at,
            normal_cell(row, beside),
            *_latency(row.small, sized=len(smallest) > 1),
            row.call,
            _range(row),
        )
        for row in rows
    )
    sheet = Sheet.of("One row for each kind of path", COLUMNS, cells).without_empty_columns()
    caption = []
    if "GB/s" in sheet.names:
        caption.append(
            "GB/s: all bytes that move, ± half of the 95 % interval; none if samples of a process "
            "may depend on each other (proc.: processes)."
        )
    if smallest:
        caption.append(f"Latency: time of one copy of {small} if copies are queued.")
    if COMPLETION in sheet.names:
        caption.append(
            "Call to completion: the time until a program has the result of a single copy."
        )
    if NORMAL in sheet.names:
        caption.append(
            f"Normal for: what machines of others with such a link reach, in GB/s. {NO_BASELINE}"
        )
    return msgspec.structs.replace(sheet, caption=" ".join(caption))


def normal_cell(row: HeadlineRow, beside: Sequence[NormalPath]) -> SheetCell:
    """``PCIe 4 x16: 24.7–28.4 (7 sources)``, after how many paths of the row are below it; briefly
    ``24.7–28.4``."""
    workload = row.large.text if row.large is not None else ""
    own = next((path for path in beside if path.workload == workload), None)
    if own is None:
        return SheetCell()
    same = [path for path in beside if (path.path, path.range) == (own.path, own.range)]
    below = sum(path.verdict == "below" for path in same)
    if not below:
        return SheetCell(own.text, brief=own.brief)
    number = f"{below} of {len(same)} " if len(same) > 1 else ""
    return SheetCell(f"{number}below {own.range}", tone="warning", brief=f"{number}below")


def _range(row: HeadlineRow) -> SheetCell:
    """``4: 55.3–55.33, at 64 MiB``: the number of paths, the slowest and the fastest."""
    if not row.paths:
        return SheetCell()
    ends = range_of(row.paths, lambda point: point.rate, format_rate)
    return SheetCell(f"{len(row.paths)}:{NO_BREAK}{ends}", note=f"at {row.paths_at}")


def bandwidth_cell(point: Point | None) -> SheetCell:
    """GB/s, with ± as its note."""
    found = point.estimate if point is not None else None
    if found is None or found.rate is None:
        return SheetCell()
    sure = relative(found.rate.value, found.rate.interval, of_rate=True)
    return SheetCell(format_rate(found.rate.value, sure), note=spread_or_processes(found, sure))


def _share(point: Point | None) -> SheetCell:
    share = point.of_bound if point is not None else None
    return SheetCell(f"{share:.0%}" if share else "")


def _latency(point: Point | None, *, sized: bool) -> tuple[SheetCell, SheetCell]:
    """The time of a small copy, if ``sized`` with its size, and the time that a program sees."""
    if point is None or point.estimate is None:
        return SheetCell(), SheetCell()
    found = point.estimate
    time = format_time(found.median, found.relative)
    size = size_of(point.text) if sized else ""
    note = ", ".join(filter(None, (spread_or_processes(found, found.relative), size)))
    seen = format_time(found.host_median, found.host_relative) if found.host_median else ""
    return SheetCell(time, note=note), SheetCell(seen)
