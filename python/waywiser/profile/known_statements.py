"""The statements of a profile's tables beside those of the schema.

SQLite runs what the statements of a file contain: a CHECK when a row is written or a page is
verified, a trigger when a row changes, an expression when a generated column is read. A file may
come from anyone, so its statements are compared before anything else is read from it.
"""

from __future__ import annotations

import re
import sqlite3

from waywiser.profile.schema import TABLE, TABLES, SchemaTable

MOST_STATEMENTS = 1000
"""Tables, views, indexes and triggers that are looked at. A profile has 13 at most."""


def plain_statement(sql: str) -> str:
    """A statement without comments and spaces, which differ between versions of Waywiser."""
    return re.sub(r"[ \t\n\r\f]*([(),]|$)[ \t\n\r\f]*|[ \t\n\r\f]+", _space, _commentless(sql))


def unknown_entry(connection: sqlite3.Connection) -> str:
    """The first entry of a file's schema that no version of Waywiser writes; empty if there is
    none. Reads nothing but the schema."""
    for kind, name, sql in _entries(connection):
        if kind != "table":
            return f"it has the {kind} {name}"
        if name not in _KNOWN:
            return f"it has the unknown table {name}"
        statement = plain_statement(sql or "")
        is_former = name in _OPTIONAL and _RUNS_NOTHING.fullmatch(statement) is not None
        if statement != _KNOWN[name] and not is_former:
            return f"its table {name} was made by another statement"
    return ""


def unreadable_table(connection: sqlite3.Connection) -> str:
    """What is wrong with the tables for a reader; empty if nothing is. Each table that has to be
    there is one with the columns of the schema, which are stored and not computed. Their types and
    constraints matter to writers only: SQLite ignores the CHECKs of a file that it only reads."""
    for table in TABLE.values():
        if wrong := _wrong_columns(connection, table):
            return wrong
    return ""


def _wrong_columns(connection: sqlite3.Connection, table: SchemaTable) -> str:
    query = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
    found = connection.execute(query, (table.name,)).fetchall()
    if not found:
        return f"{table.name}.{table.names[0]} is missing" if table in TABLES else ""
    if not found[0][0]:
        return f"{table.name} is a virtual table"
    query = "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0"
    stored = {name for (name,) in connection.execute(query, (table.name,))}
    missing = [column for column in table.names if column not in stored]
    if not missing or (table not in TABLES and not _has_hidden(connection, table)):
        return ""  # a model of another version is one that is not there
    return f"{table.name}.{missing[0]} is missing"


def _has_hidden(connection: sqlite3.Connection, table: SchemaTable) -> bool:
    query = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden != 0"
    return bool(connection.execute(query, (table.name,)).fetchone()[0])


def _entries(connection: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    query = f"SELECT type, name, sql FROM sqlite_master LIMIT {MOST_STATEMENTS}"
    return connection.execute(query).fetchall()


def _commentless(sql: str) -> str:
    return re.sub(r"--[^\n]*", "", sql)


def _space(found: re.Match[str]) -> str:
    return found[1] if found[1] is not None else " "


_OPTIONAL = frozenset(name for name, table in TABLE.items() if table not in TABLES)

_RUNS_NOTHING = re.compile(r"CREATE TABLE \w+\([\w,\s]*\)")
"""A statement without an expression: one needs parentheses."""

_KNOWN = {name: plain_statement(table.sql().rstrip(";")) for name, table in TABLE.items()}
