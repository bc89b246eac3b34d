"""The same questions of several machines in one table each, a column for each machine."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.questions.across import tables
from waywiser.curves.answer import Table
from waywiser.report.entry import Entry
from waywiser.report.parts import Section, Sheet, SheetCell


def side_by_side(entries: Sequence[Entry]) -> Section:
    """Empty for a single machine, whose own answers say the same."""
    names = [entry.name for entry in entries]
    found = tables([entry.subject for entry in entries], names) if len(entries) > 1 else ()
    sheets = tuple(_sheet(entries, table) for table in found)
    return Section("side-by-side", "Side by side", sheets)


def _sheet(entries: Sequence[Entry], table: Table) -> Sheet:
    """A cell leads to the curve of the machine whose column it is in."""
    rows = (
        (
            first.text,
            *(
                SheetCell(cell.text, cell.mark, link=entry.links.to(cell.series))
                for entry, cell in zip(entries, others, strict=True)
            ),
        )
        for first, *others in table.rows
    )
    return Sheet.of(table.title, table.columns, rows, table.caption)
