"""The same questions of several machines in one table each, a column for each machine."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.questions.across import tables
from waywiser.curves.answer import Table
from waywiser.report.entry import Entry
from waywiser.report.parts import Section, Sheet, SheetCell, SheetRow


def side_by_side(entries: Sequence[Entry]) -> Section:
    """Empty for a single machine, whose own answers say the same."""
    found = tables([entry.subject for entry in entries]) if len(entries) > 1 else ()
    sheets = tuple(_sheet(entries, table) for table in found)
    return Section("side-by-side", "Side by side", sheets)


def _sheet(entries: Sequence[Entry], table: Table) -> Sheet:
    """A cell leads to the curve of the machine whose column it is in."""
    rows = []
    for first, *others in table.rows:
        cells = [SheetCell(first.text)]
        for entry, cell in zip(entries, others, strict=True):
            cells.append(SheetCell(cell.text, cell.mark, link=entry.links.to(cell.series)))
        rows.append(SheetRow(tuple(cells)))
    return Sheet(table.title, table.columns, tuple(rows), table.caption)
