"""A document as text for a terminal, or for a pipe.

In a terminal, paragraphs fold at its width and hang by their indent; in a pipe they are one line.
A blank line is between two sections. Their titles are bold; that of a section with sections below
it is a rule. Commands in texts are named as this one was called.

A table has the names of its columns, then a line for each row. If there is no room for it,

1. each row is a paragraph, if the table needs more room (`Sheet.least`);
2. columns are left out in the order of `SheetColumn.spared`, while one that folds has
   `SheetColumn.most` characters, or what its cells need if that is less;
3. `SheetColumn.brief` stands for the texts of a column that has one;
4. columns that fold share what is missing, the widest first;
5. of a matrix, the columns that have no room follow in a further table.

Tables that are laid out together (`Sheets`) have columns of the same widths. Notes are a column of
their own (`SheetColumn.notes`), or follow the text; those of a matrix are left out. What a page
shows when the reader opens it (`Fold`) is shown; figures are not.

This is plain text: a profile has thousands of rows, and a table of rich takes a millisecond for
each.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from waywiser.render.parts import (
    MARKS,
    Block,
    Code,
    Facts,
    Fold,
    Listing,
    Outline,
    Remark,
    Remarks,
    Section,
    Sheet,
    SheetCell,
    SheetColumn,
    Sheets,
    Tone,
    Words,
)
from waywiser.render.program_name import as_called

GAP = 2
"""Blanks after a column."""

LEAST_FOLDED = 8
"""Characters that a column which folds keeps."""

STYLES: dict[Tone, str] = {
    "plain": "",
    "good": "green",
    "info": "cyan",
    "warning": "yellow",
    "error": "bold red",
    "unknown": "dim",
}

INDENT = 8
"""Blanks below the severity of a remark."""

KINDS = {"plain": "", "lead": "bold", "note": "dim"}

SIGNED = ("yes", "no", "unclear")
"""Marks that stand before the text of a cell; the others have a colour."""


def print_parts(console: Console, parts: Iterable[Block | Section]) -> None:
    """Prints blocks and sections, with a blank line on both sides of a section."""
    before: Block | Section | None = None
    for part in parts:
        if before is not None and Section in (type(before), type(part)):
            console.print()
        if isinstance(part, Section):
            _print_section(console, part)
        else:
            _print_block(console, part)
        before = part


def _print_section(console: Console, section: Section) -> None:
    if section.title and section.sections:
        console.rule(Text(section.title, style="bold"), align="left")
    elif section.title:
        _say(console, section.title, "bold")
    print_parts(console, (*section.blocks, *section.sections))


def _print_block(console: Console, block: Block) -> None:
    match block:
        case Words(label=""):
            style = f"{KINDS[block.kind]} {STYLES[block.tone]}".strip()
            _say(console, block.text, style, block.indent)
        case Words():
            _print_labelled(console, block)
        case Sheet() if console.width < block.least:
            _print_paragraphs(console, block)
        case Sheet():
            _print_tables(console, [block])
        case Sheets():
            _print_tables(console, block.sheets, are_joint=True)
        case Code():
            text = block.text if block.is_elsewhere else as_called(block.text)
            for line in text.splitlines():
                console.print(Text(" " * block.indent + line), soft_wrap=True)
        case Remarks():
            for remark in block.remarks:
                _print_remark(console, remark)
        case Listing():
            more = (f"and {block.more} more",) if block.more else ()
            for point in (*block.points, *more):
                _say(console, point, indent=2)
        case Outline():
            console.print(_tree(block))
        case Facts():
            for name, meaning in block.facts:
                _say(console, f"{name}: {meaning}")
        case Fold():
            print_parts(console, block.blocks)


def _say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    text = as_called(text)
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent), expand=False))
    else:
        console.print(Text(" " * indent + text, style=style), soft_wrap=True)


def _print_labelled(console: Console, words: Words) -> None:
    text = Text(as_called(words.text))
    lines = text.wrap(console, console.width - words.indent) if console.is_terminal else [text]
    for n, line in enumerate(lines):
        label = f"{'' if n else words.label:<{words.indent}}"
        style = "" if n else STYLES[words.tone]
        console.print(Text.assemble((label, style), line), soft_wrap=True)


def _tree(outline: Outline) -> Tree:
    gap = "  " if outline.name else ""
    tree = Tree(Text.assemble((outline.name, "bold"), gap, outline.about))
    for below in outline.below:
        tree.add(_tree(below))
    return tree


def _print_remark(console: Console, remark: Remark) -> None:
    severity = remark.severity
    _print_labelled(console, Words(remark.statement, tone=severity, label=severity, indent=INDENT))
    if remark.detail:
        _say(console, remark.detail, indent=INDENT)
    for each in remark.evidence:
        _say(console, each.text, "dim", INDENT)
    if remark.remedy:
        _say(console, f"remedy: {remark.remedy}", indent=INDENT)


# Tables.


def _print_paragraphs(console: Console, sheet: Sheet) -> None:
    """For each row the first cell, the second beside it, and below it the others, numbers with
    their names."""
    grid = _grid(sheet)
    indent = 1 + max(_width(row[0]) for row in grid.rows)
    for row, first in zip(grid.rows, sheet.rows, strict=True):
        tone = first.cells[0].tone
        _print_labelled(console, Words(row[1], tone=tone, label=row[0], indent=indent))
        others = [
            f"{_name(column)} {text}" if column.number else text
            for column, text in list(zip(grid.columns, row, strict=True))[2:]
            if text
        ]
        if others:
            _say(console, "; ".join(others), indent=indent)
    _print_caption(console, sheet)


def _print_caption(console: Console, sheet: Sheet) -> None:
    if sheet.caption:
        _say(console, sheet.caption)


class _Grid(NamedTuple):
    """A table as texts; notes with a column of their own are in it."""

    columns: list[SheetColumn]
    rows: list[list[str]]
    brief: list[list[str]]
    """What may stand for the texts of the rows."""
    styles: Sequence[str]
    """Those of the first cells."""
    notes: frozenset[int]
    """The columns of notes."""


def _print_tables(console: Console, sheets: Sequence[Sheet], *, are_joint: bool = False) -> None:
    grids = [_grid(sheet) for sheet in sheets]
    widths = _fitted(grids, console.width, are_joint)
    for number, (sheet, grid) in enumerate(zip(sheets, grids, strict=True)):
        if number:
            console.print()
        shown = list(widths)
        if are_joint:
            shown = [n for n in widths if not n or any(row[n] for row in grid.rows)]
        for part in _parts(shown, widths, console.width) if sheet.is_matrix else [shown]:
            _print_grid(console, grid, {n: widths[n] for n in part})
        _print_caption(console, sheet)


def _grid(sheet: Sheet) -> _Grid:
    columns: list[SheetColumn] = []
    notes = set()
    for column in sheet.columns:
        columns.append(column)
        if column.notes:
            notes.add(len(columns))
            columns.append(SheetColumn(column.notes, number=True, spared=column.notes_spared))
    rows = [
        [
            text
            for column, cell in zip(sheet.columns, row.cells, strict=True)
            for text in _texts(column, cell, sheet.is_matrix)
        ]
        for row in sheet.rows
    ]
    brief = [
        [
            text
            for column, cell in zip(sheet.columns, row.cells, strict=True)
            for text in (cell.brief, *([""] if column.notes else []))
        ]
        for row in sheet.rows
    ]
    styles = [STYLES[row.cells[0].tone] for row in sheet.rows]
    return _Grid(columns, rows, brief, styles, frozenset(notes))


def _texts(column: SheetColumn, cell: SheetCell, is_matrix: bool) -> tuple[str, ...]:
    text = f"{MARKS[cell.mark][0]} {cell.text}".strip() if cell.mark in SIGNED else cell.text
    if column.notes:
        return text, cell.note
    if is_matrix:
        return (text,)
    return (f"{text} {cell.note}".strip() if cell.note else text,)


def _fitted(grids: Sequence[_Grid], room: int, are_joint: bool) -> dict[int, int]:
    """The widths of the columns that there is room for, by position."""
    columns = grids[0].columns
    shown = (n for n in range(len(columns)) if _is_shown(grids, n, are_joint))
    widths = {n: _needed(grids, n) for n in shown}
    least = {n: min(width, columns[n].most or width) for n, width in widths.items()}
    while (spared := [n for n in widths if columns[n].spared]) and _total(
        [least[n] for n in widths]
    ) > room:
        first = min(spared, key=lambda n: columns[n].spared)
        if columns[first].shortened:
            _shorten(grids, first)
            widths[first] = least[first] = _needed(grids, first)
        else:
            del widths[first]
    for n in widths:
        brief = cell_len(columns[n].brief)
        taken = _total([min(least[each], widths[each]) for each in widths])
        if brief and widths[n] > brief and taken > room:
            widths[n] = brief
    _fold(columns, widths, room)
    return widths


def _shorten(grids: Sequence[_Grid], n: int) -> None:
    """Replaces the texts of a column by brief ones."""
    for grid in grids:
        column = grid.columns[n]
        grid.columns[n] = msgspec.structs.replace(column, spared=column.shortened, shortened=0)
        for row, brief in zip(grid.rows, grid.brief, strict=True):
            row[n] = brief[n]


def _is_shown(grids: Sequence[_Grid], n: int, are_joint: bool) -> bool:
    """Whether any cell of a column has a text, or it is shown for its name: not of notes, and not
    of joint tables."""
    has_name = bool(_name(grids[0].columns[n])) and n not in grids[0].notes and not are_joint
    return not n or has_name or any(row[n] for grid in grids for row in grid.rows)


def _needed(grids: Sequence[_Grid], n: int) -> int:
    """The width of the widest cell of a column, or of its name."""
    texts = (text for g in grids for text in (_name(g.columns[n]), *(row[n] for row in g.rows)))
    return max(grids[0].columns[n].least, *map(_width, texts))


def _fold(columns: Sequence[SheetColumn], widths: dict[int, int], room: int) -> None:
    """Takes what is missing from the columns that fold."""
    folding = [n for n in widths if columns[n].folds]
    for _ in range(_total(list(widths.values())) - room):
        widest = max(folding, key=lambda n: widths[n], default=0)
        if not folding or widths[widest] <= max(columns[widest].least, LEAST_FOLDED):
            return
        widths[widest] -= 1


def _parts(shown: Sequence[int], widths: dict[int, int], room: int) -> Iterator[list[int]]:
    """The columns of a matrix in parts that fit, one at least in each, after the first column."""
    first, *others = shown
    part = [first]
    for n in others:
        if len(part) > 1 and _total([widths[each] for each in (*part, n)]) > room:
            yield part
            part = [first]
        part.append(n)
    yield part


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _print_grid(console: Console, grid: _Grid, widths: dict[int, int]) -> None:
    text = Text()
    text.append("\n".join(_lines(grid.columns, list(map(_name, grid.columns)), widths)), "bold")
    for row, style in zip(grid.rows, grid.styles, strict=True):
        lines = "\n".join(_lines(grid.columns, row, widths))
        first = len(row[0]) if style else 0
        text.append("\n").append(lines[:first], style).append(lines[first:])
    console.print(text, soft_wrap=True)


def _lines(columns: Sequence[SheetColumn], row: Sequence[str], widths: dict[int, int]) -> list[str]:
    """A row of the table: a line, or several if a cell folds. Cells have folded then, and what may
    not break has a plain space, which people search for."""
    cells = {n: _folded(columns[n], row[n], width) for n, width in widths.items()}
    lines = []
    for number in range(max(map(len, cells.values()))):
        parts = []
        for n, width in widths.items():
            part = cells[n][number] if number < len(cells[n]) else ""
            blank = " " * (width - _width(part))
            parts.append(blank + part if columns[n].number else part + blank)
        lines.append((" " * GAP).join(parts).rstrip().replace("\N{NO-BREAK SPACE}", " "))
    return lines


def _folded(column: SheetColumn, text: str, width: int) -> list[str]:
    if _width(text) <= width:
        return [text]
    if column.folds:
        return textwrap.wrap(text, width, break_on_hyphens=False)
    return [column.brief or text]


def _name(column: SheetColumn) -> str:
    return column.name if column.shortened else column.short or column.name


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)
