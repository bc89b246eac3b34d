"""The same questions of several machines in one table each, a column for each machine."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from waywiser.analysis.questions.across import tables
from waywiser.render.entry import Entry
from waywiser.render.parts import Section, Sheet


def side_by_side(entries: Sequence[Entry]) -> Section:
    """Empty for a single machine, whose own answers say the same."""
    names = [entry.name for entry in entries]
    found = tables([entry.subject for entry in entries], names) if len(entries) > 1 else ()
    sheets = tuple(_sheet(entries, table) for table in found)
    return Section("side-by-side", "Side by side", sheets)


def _sheet(entries: Sequence[Entry], table: Sheet) -> Sheet:
    """A cell leads to the curve of the machine whose column it is in."""
    rows = (
        (
            first.text,
            *(
                replace(cell, link=entry.links.to(cell.series))
                for entry, cell in zip(entries, others, strict=True)
            ),
        )
        for first, *others in (row.cells for row in table.rows)
    )
    return Sheet.of(table.title, table.names, rows, table.caption)
