"""Tables of answers to questions about a machine."""

from __future__ import annotations

from collections.abc import Callable

from waywiser.curves.answer import Table
from waywiser.report.parts import Sheet, SheetCell, SheetColumn


def answer_sheet(
    table: Table, link: Callable[[str], str] = lambda series: "", most: int | None = None
) -> Sheet:
    """The table with its first ``most`` rows; ``link`` gives the anchor of a series."""
    rows = [
        [SheetCell(cell.text, cell.mark, link=link(cell.series)) for cell in row]
        for row in table.rows[:most]
    ]
    left = len(table.rows) - len(rows)
    caption = f"{table.caption} {left} more rows are not shown.".strip() if left else table.caption
    columns = (SheetColumn(name, folds=n > 0) for n, name in enumerate(table.columns))
    return Sheet.of(table.title, columns, rows, caption)
