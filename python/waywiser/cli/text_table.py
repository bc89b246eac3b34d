"""Tables of text. In a terminal that is too narrow, named columns are left out or folded.

A profile has thousands of rows, and a table of rich takes a millisecond for each.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

GAP = 2
"""Blanks after a column."""

LEAST_FOLDED = 8
"""Characters that a column which folds keeps."""

_ANY = (0, 2**31)


def fitting(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    spared: Sequence[str],
    bounds: Mapping[str, tuple[int, int]],
) -> list[int]:
    """The positions of the columns that fit into ``width``, after taking those of ``spared`` away
    one by one until the table fits.

    ``bounds`` are the least and the most characters of columns, whatever is in them: what is longer
    folds.
    """
    widths = []
    for n, name in enumerate(columns):
        least, most = bounds.get(name, _ANY)
        needed = max(map(_width, (name, *(row[n] for row in rows))))
        widths.append(min(max(needed, least), most))
    kept = list(range(len(columns)))
    for name in spared:
        if sum(widths[n] + GAP for n in kept) - GAP <= width:
            break
        kept = [n for n in kept if columns[n] != name]
    return kept


class TextColumn(NamedTuple):
    """A column without its cells."""

    name: str
    left: bool = False
    """Whether its cells begin below each other, as those of words do; numbers end so."""
    least: int = 0
    """Characters that it has at least."""
    folds: bool = False
    """Whether its cells continue below, in a terminal that is too narrow."""


def print_table(
    console: Console,
    columns: Sequence[TextColumn],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str] = (),
) -> None:
    """Prints the names of the columns and the rows. ``styles`` are those of the first cells."""
    widths = _widths(columns, rows, console.width)
    text = Text()
    for n, row in enumerate(([column.name for column in columns], *rows)):
        lines = _lines(columns, row, widths)
        if not n:
            text.append("\n".join(lines), "bold")
            continue
        text.append("\n")
        first = len(row[0]) if styles and styles[n - 1] else 0
        text.append(lines[0][:first], styles[n - 1] if first else "")
        text.append("\n".join((lines[0][first:], *lines[1:])))
    console.print(text, soft_wrap=True)


def _widths(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """The width of the widest cell of each column; columns that fold share what is missing, the
    widest first."""
    widths = [
        max(column.least, _width(column.name), *(_width(row[n]) for row in rows))
        for n, column in enumerate(columns)
    ]
    folding = [n for n, column in enumerate(columns) if column.folds]
    missing = sum(widths) + GAP * (len(widths) - 1) - room
    while missing > 0 and folding:
        widest = max(folding, key=lambda n: widths[n])
        least = max(columns[widest].least, LEAST_FOLDED)
        if widths[widest] <= least:
            break
        widths[widest] -= 1
        missing -= 1
    return widths


def _lines(columns: Sequence[TextColumn], row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row of the table: a line, or several if a cell folds."""
    cells = [
        textwrap.wrap(cell, width, break_on_hyphens=False)
        if column.folds and _width(cell) > width
        else [cell]
        for column, cell, width in zip(columns, row, widths, strict=True)
    ]
    lines = []
    for n in range(max(map(len, cells))):
        parts = []
        for column, cell, width in zip(columns, cells, widths, strict=True):
            part = cell[n] if n < len(cell) else ""
            blank = " " * (width - _width(part))
            parts.append(part + blank if column.left else blank + part)
        lines.append((" " * GAP).join(parts).rstrip())
    return lines


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)
