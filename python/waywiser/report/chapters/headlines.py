"""The headline table: bandwidth and latency of each group of headline paths."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from waywiser.curves.figure_range import range_of
from waywiser.curves.headlines import ORDER, HeadlineRow, headline_rows
from waywiser.curves.point import Point
from waywiser.report.entry import Entry
from waywiser.report.parts import Section, Sheet, SheetCell, SheetColumn, numbers
from waywiser.report.writing import percent, spread
from waywiser.stats.order import relative
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate, format_time
from waywiser.words.sizes_in_text import size_of

TITLE = "Headline bandwidth and latency"

NO_BREAK = "\N{NO-BREAK SPACE}"

COMPLETION = "call to completion"

COLUMNS = (
    SheetColumn("path"),
    *numbers("GB/s", "of the bound", "size", "latency", COMPLETION),
    SheetColumn("achieved by"),
    SheetColumn("all such paths, GB/s"),
)


def headlines(entries: Sequence[Entry]) -> Section:
    """The headline paths of one machine with all that belongs to a number, or of several side by
    side."""
    sheet = _alone(entries[0]) if len(entries) == 1 else _beside(entries)
    return Section("headlines", TITLE, (sheet,) if sheet.rows else ())


def _rows(entry: Entry, *, library: bool = False) -> list[HeadlineRow]:
    return headline_rows(entry.subject.machine, entry.curves, library=library)


def _alone(entry: Entry) -> Sheet:
    """Columns without any value are not shown."""
    rows = _rows(entry, library=True)
    smallest = {row.small.bytes for row in rows if row.small is not None}
    small = format_bytes(min(smallest)) if len(smallest) == 1 else "the size in small print"
    cells = [
        (
            SheetCell(_named(row), link=entry.links.anchor(row.first.text)),
            _bandwidth(row.large),
            _share(row.large),
            row.at,
            *_latency(row.small, sized=len(smallest) > 1),
            row.call,
            _range(row),
        )
        for row in rows
    ]
    sheet = Sheet.of("One row for each kind of path", COLUMNS, cells).without_empty_columns()
    columns = sheet.names
    caption = []
    if "GB/s" in columns:
        caption.append("GB/s: all bytes that move, ± half of the 95 % interval.")
    if smallest:
        caption.append(f"Latency: time of one copy of {small} if copies are queued.")
    if COMPLETION in columns:
        caption.append(
            "Call to completion: the time until a program has the result of a single copy."
        )
    return msgspec.structs.replace(sheet, caption=" ".join(caption))


def _named(row: HeadlineRow) -> str:
    """``H2D, numa:0 -> gpu:0``; sets of transfers by their group alone."""
    if row.first.transfer is None:
        return row.group
    source, destination = row.first.transfer.path.places
    ends = f"within {source}" if source == destination else f"{source} -> {destination}"
    return f"{row.group}, {ends}"


def _range(row: HeadlineRow) -> SheetCell:
    """``4: 55.3–55.33, at 64 MiB``: the number of paths, the slowest and the fastest."""
    if not row.paths:
        return SheetCell()
    ends = range_of(row.paths, lambda point: point.rate, format_rate)
    return SheetCell(f"{len(row.paths)}:{NO_BREAK}{ends}", note=f"at {row.paths_at}")


def _beside(entries: Sequence[Entry]) -> Sheet:
    """The first row of each group; a file is read on each machine."""
    found = [{_key(row): row for row in _rows(entry) if row.large is not None} for entry in entries]
    keys = sorted({key for rows in found for key in rows}, key=lambda key: ORDER.index(key[0]))
    sheet = []
    for key in keys:
        rows = [each.get(key) for each in found]
        base = next(filter(None, rows))
        cells = [SheetCell(f"{', '.join(filter(None, key))}, GB/s")]
        for entry, row in zip(entries, rows, strict=True):
            if row is None:
                cells.append(SheetCell("not measured"))
                continue
            cell, change = _bandwidth(row.large), _change(row, base)
            note = " ".join(filter(None, (cell.note, change)))
            link = entry.links.anchor(row.first.text)
            cells.append(SheetCell(cell.text, "", note, link))
        sheet.append(cells)
    return Sheet.of(
        "Bandwidth of the first path of each kind at its largest size",
        ("", *numbers(*(entry.name for entry in entries))),
        sheet,
        "In brackets: the difference of the number from that of the first machine that has the "
        "path, if size and call are the same; waywiser compare decides whether it is a change. "
        "Each number links to its curve.",
    )


def _key(row: HeadlineRow) -> tuple[str, str]:
    """The group, and the file if it is read."""
    if row.first.transfer is None or row.first.transfer.path.source.place.kind != "file":
        return row.group, ""
    return row.group, str(row.first.transfer.path.source.place)


def _change(row: HeadlineRow, base: HeadlineRow) -> str:
    if row is base:
        return ""
    if row.first.text != base.first.text or row.call != base.call:
        return "(another path)"
    if row.large is None or base.large is None:
        return ""
    if row.large.bytes != base.large.bytes:
        return f"(at {size_of(row.large.text)})"
    ours, theirs = (each.estimate for each in (row.large, base.large))
    if ours is None or theirs is None or ours.rate is None or theirs.rate is None:
        return ""
    return f"({percent(ours.rate.value / theirs.rate.value - 1)})"


def _bandwidth(line: Point | None) -> SheetCell:
    found = line.estimate if line is not None else None
    if found is None or found.rate is None:
        return SheetCell()
    sure = relative(found.rate.value, found.rate.interval, of_rate=True)
    return SheetCell(format_rate(found.rate.value, sure), note=spread(sure))


def _share(line: Point | None) -> SheetCell:
    share = line.of_bound if line is not None else None
    return SheetCell(f"{share:.0%}" if share else "")


def _latency(line: Point | None, *, sized: bool) -> tuple[SheetCell, SheetCell]:
    """The time of a small copy, if ``sized`` with its size, and the time that a program sees."""
    if line is None or line.estimate is None:
        return SheetCell(), SheetCell()
    found = line.estimate
    time = format_time(found.median, found.relative)
    size = size_of(line.text) if sized else ""
    note = ", ".join(filter(None, (spread(found.relative), size)))
    seen = format_time(found.host_median, found.host_relative) if found.host_median else ""
    return SheetCell(time, note=note), SheetCell(seen)
