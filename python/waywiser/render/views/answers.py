"""Tables of answers to questions about a machine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from waywiser.render.parts import Sheet


def answer_sheet(
    table: Sheet, link: Callable[[str], str] = lambda series: "", most: int | None = None
) -> Sheet:
    """The table with its first ``most`` rows; ``link`` gives the anchor of a series."""
    rows = tuple(
        replace(row, cells=tuple(replace(cell, link=link(cell.series)) for cell in row.cells))
        for row in table.rows[:most]
    )
    left = len(table.rows) - len(rows)
    caption = f"{table.caption} {left} more rows are not shown.".strip() if left else table.caption
    return replace(table, rows=rows, caption=caption)
