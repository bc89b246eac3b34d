"""The headline table: bandwidth and latency of each group of headline paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waywiser.curves import NO_BASELINE, HeadlineRow, NormalPath, headline_rows, normal_paths
from waywiser.curves.headlines import ORDER
from waywiser.machine import DECLARED
from waywiser.render.entry import Entry
from waywiser.render.parts import Section, Sheet, SheetCell, SheetColumn, Tile, numbers
from waywiser.render.views.headline import NORMAL, bandwidth_cell, headline_sheet, normal_cell
from waywiser.render.writing import percent
from waywiser.words import format_time, size_of

TITLE = "Headline bandwidth and latency"

MOST_TILES = 6
"""Numbers on the first screen of a page."""


def headlines(entries: Sequence[Entry]) -> Section:
    """The headline paths of one machine with all that belongs to a number, or of several side by
    side."""
    if len(entries) > 1:
        sheet = _beside(entries)
    else:
        machine, link = entries[0].subject.machine, entries[0].links.anchor
        sheet = headline_sheet(machine, entries[0].curves, link)
    return Section("headlines", TITLE, (sheet,) if sheet.rows else ())


def tiles(entry: Entry) -> tuple[Tile, ...]:
    """The bandwidth of the first groups of headline paths with a GPU, if there are any, with its
    interval, the share of the bound, the latency, and whether it is normal for its link."""
    rows = headline_rows(entry.subject.machine, entry.curves)
    rows = [row for row in rows if row.large is not None]
    with_gpu = [row for row in rows if _is_of_gpus(row)]
    beside = normal_paths(entry.subject.machine, entry.curves)
    return tuple(_tile(entry, row, beside) for row in (with_gpu or rows)[:MOST_TILES])


def _tile(entry: Entry, row: HeadlineRow, beside: Sequence[NormalPath]) -> Tile:
    assert row.large is not None
    small = row.small.estimate if row.small is not None else None
    own = next((path for path in beside if path.workload == row.large.text), None)
    verdict = own.verdict if own is not None else ""
    normal = normal_cell(row, beside)
    is_low = normal.tone == "warning"
    bandwidth = bandwidth_cell(row.large)
    return Tile(
        name=row.group,
        bandwidth=bandwidth.text,
        sure=bandwidth.note,
        share=row.large.of_bound,
        latency=format_time(small.median, small.relative) if small and row.first.transfer else "",
        normal=f"{normal.brief} normal" if is_low else _WORDS_OF_NORMAL.get(verdict, ""),
        tone="warning" if is_low else "plain",
        link=entry.links.anchor(row.first.text),
    )


_WORDS_OF_NORMAL = {"normal": "normal", "above": "above normal"}


def _is_of_gpus(row: HeadlineRow) -> bool:
    ends = (end for each in row.first.workload.transfers for end in each.path.ends)
    return any(map(DECLARED.is_of_gpu, ends))


def _beside(entries: Sequence[Entry]) -> Sheet:
    """The first row of each group; a file is read on each machine."""
    rows_of = (headline_rows(entry.subject.machine, entry.curves) for entry in entries)
    found = [{_key(row): row for row in rows if row.large is not None} for rows in rows_of]
    keys = sorted({key for rows in found for key in rows}, key=lambda key: ORDER.index(key[0]))
    normal = [normal_paths(entry.subject.machine, entry.curves) for entry in entries]
    sheet = []
    for key in keys:
        rows = [each.get(key) for each in found]
        base = next(filter(None, rows))
        cells = [SheetCell(f"{', '.join(filter(None, key))}, GB/s")]
        for entry, row in zip(entries, rows, strict=True):
            if row is None:
                cells.append(SheetCell("not measured"))
                continue
            cell, change = bandwidth_cell(row.large), _change(row, base)
            note = " ".join(filter(None, (cell.note, change)))
            link = entry.links.anchor(row.first.text)
            cells.append(SheetCell(cell.text, note=note, link=link))
        names = (entry.name for entry in entries)
        beside = (
            normal_cell(row, own) if row is not None else None
            for row, own in zip(rows, normal, strict=True)
        )
        sheet.append([*cells, _normal(dict(zip(names, beside, strict=True)))])
    caption = f" Normal for: what machines of others with such a link reach. {NO_BASELINE}"
    return Sheet.of(
        "Bandwidth of the first path of each kind at its largest size",
        (
            "",
            *numbers(*(entry.name for entry in entries)),
            SheetColumn(NORMAL, spared=1, folds=True),
        ),
        sheet,
        "In brackets: the difference of the number from that of the first machine that has the "
        "path, if size and call are the same; waywiser compare decides whether it is a change. "
        "Each number links to its curve."
        + (caption if any(cells[-1].text for cells in sheet) else ""),
    ).without_empty_columns()


def _normal(cells: Mapping[str, SheetCell | None]) -> SheetCell:
    """What is normal for each machine, by its name: once if it is the same for all."""
    known = {name: cell for name, cell in cells.items() if cell is not None and cell.text}
    texts = list(dict.fromkeys(cell.text for cell in known.values()))
    if len(texts) > 1:
        texts = [f"{name}: {cell.text}" for name, cell in known.items()]
    is_low = any(cell.tone == "warning" for cell in known.values())
    return SheetCell("; ".join(texts), tone="warning" if is_low else "plain")


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
