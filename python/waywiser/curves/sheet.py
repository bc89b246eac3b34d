"""Tables of answers and reports: cells, rows and columns, with what a form may do that has no room
for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from waywiser.words import Severity, Value

Mark = Literal["", "yes", "no", "unclear"]
"""The mark of a cell: yes, no or ?, as in the thesis chapter's tables; none if it holds a figure
alone."""

Tone = Literal["plain", "good", "info", "warning", "error", "unknown"]
"""How good or grave something is, where a form can show it without a word."""


class SheetCell(Value, frozen=True):
    """What stands in a table."""

    text: str = ""
    mark: Mark | Severity = ""
    series: str = ""
    """The text of the series (or curve) that shows why; empty if none does. A page links it."""
    note: str = ""
    """Smaller, after the text."""
    link: str = ""
    """The anchor that it leads to, without ``#``."""
    tone: Tone = "plain"
    brief: str = ""
    """What stands for the text in a column that is `SheetColumn.shortened`."""


class SheetRow(Value, frozen=True):
    """The first cell names it."""

    cells: tuple[SheetCell, ...]
    anchor: str = ""
    more: str = ""
    """What has no column; the table says what it is."""


class SheetColumn(Value, frozen=True):
    """A column of a table without its cells, with what a table may do that has no room for all."""

    name: str
    number: bool = False
    """Its cells are aligned so that digits stand below digits."""
    short: str = ""
    """Its name where there is little room."""
    notes: str = ""
    """The name of the column of its notes, where notes have a column of their own."""
    spared: int = 0
    """The column with the lowest number is omitted first; one with 0 stays."""
    notes_spared: int = 0
    """The same of its notes."""
    folds: bool = False
    """Whether its cells may continue below."""
    most: int = 0
    """Characters that a column which folds is left before another column goes; 0: all."""
    least: int = 0
    """Characters that it has at least."""
    brief: str = ""
    """What may stand for any of its texts before a column that folds gets less than ``most``."""
    shortened: int = 0
    """The number of the column once its cells are brief. They become brief, under the short name,
    instead of being omitted; 0: they do not."""
    detail: Literal["", "narrow", "page"] = ""
    """Whether its cells are in the details of their rows instead of a column: of a page, or of a
    narrow one. Other forms have a column."""


class Sheet(Value, frozen=True):
    """A table."""

    title: str
    columns: tuple[SheetColumn, ...]
    rows: tuple[SheetRow, ...]
    caption: str = ""
    anchor: str = ""
    more: str = ""
    """The heading of what rows have beside their cells; empty if none has more."""
    least: int = 0
    """Characters that it needs: where there are fewer, each row is a paragraph."""
    is_matrix: bool = False
    """Whether all columns but the first are alike: those without room follow in a further table."""

    @classmethod
    def of(
        cls,
        title: str,
        columns: Iterable[object],
        rows: Iterable[Iterable[object] | SheetRow],
        caption: str = "",
        **others: Any,
    ) -> Sheet:
        """Names stand for columns of text, texts and numbers for cells, sequences of cells for
        rows."""
        return cls(
            title,
            tuple(
                each if isinstance(each, SheetColumn) else SheetColumn(str(each))
                for each in columns
            ),
            tuple(each if isinstance(each, SheetRow) else _row(each) for each in rows),
            caption,
            **others,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the columns."""
        return tuple(column.name for column in self.columns)

    def without_empty_columns(self) -> Sheet:
        """The table with those columns that any cell has a text in, and the first."""
        kept = [
            n
            for n in range(len(self.columns))
            if not n or any(row.cells[n].text for row in self.rows)
        ]
        rows = (
            msgspec.structs.replace(row, cells=tuple(row.cells[n] for n in kept))
            for row in self.rows
        )
        return msgspec.structs.replace(
            self, columns=tuple(self.columns[n] for n in kept), rows=tuple(rows)
        )


def _row(cells: Iterable[object]) -> SheetRow:
    return SheetRow(tuple(c if isinstance(c, SheetCell) else SheetCell(str(c)) for c in cells))


def numbers(*names: str) -> tuple[SheetColumn, ...]:
    """Columns of numbers."""
    return tuple(SheetColumn(name, number=True) for name in names)
