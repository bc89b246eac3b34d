"""The text in a row of a profile, fit to be shown: files come from anyone.

This is the one place where it is made so. Whatever a profile says, in a terminal, on a page or in
another file, has been here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from waywiser.profile.schema import JSON_COLUMNS, TABLE
from waywiser.words import single_line, single_line_json

ROWS_AT_ONCE = 256
"""Rows whose texts are looked at together: one by one they would cost more than reading them."""

CHECKED = ("series",)
"""Tables whose texts follow from others: they are compared with these, and not made fit."""


def single_line_rows(table: str, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of a table, whose values are in the order of its columns, with each text in one line
    and without what would steer a terminal."""
    columns, rows = _texts(table), list(rows)
    if not columns:
        return rows
    found: list[tuple[Any, ...]] = []
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        found += part if _are_fit(part, columns) else [_single_lines(row, columns) for row in part]
    return found


def _are_fit(
    rows: list[tuple[Any, ...]], columns: tuple[tuple[int, Callable[[str], str]], ...]
) -> bool:
    """Whether no text of the rows has anything to change, as in nearly all profiles."""
    by_column, found = list(zip(*rows, strict=True)), set[Any]()
    for n, _ in columns:
        found.update(by_column[n])
    whole = "".join([text for text in found if text.__class__ is str])
    return whole.isascii() and not whole.encode().translate(None, _FIT)


_FIT = bytes(set(range(0x20, 0x7F)) - {ord("\\")})
"""Printable characters but the one that begins an escape of JSON."""


def _single_lines(
    row: tuple[Any, ...], columns: tuple[tuple[int, Callable[[str], str]], ...]
) -> tuple[Any, ...]:
    changed: dict[int, str] = {}
    for position, fit in columns:
        value = row[position]
        if isinstance(value, str) and (text := fit(value)) is not value:
            changed[position] = text
    if not changed:
        return row
    return tuple(changed.get(position, value) for position, value in enumerate(row))


@cache
def _texts(table: str) -> tuple[tuple[int, Callable[[str], str]], ...]:
    """The positions of the columns that may hold text, and what makes it fit."""
    if table in CHECKED:
        return ()
    return tuple(
        (position, single_line_json if column.name in JSON_COLUMNS else single_line)
        for position, column in enumerate(TABLE[table].data)
        if "TEXT" in column.type
    )
