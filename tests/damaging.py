"""Profiles with one thing wrong: a value, a part of a JSON text, rows gone or twice.

A table of SQLite takes anything where its columns are declared without types and constraints, so a
hostile file may hold anything in any place, with the right checksums.
"""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kept import RESULTS, unpacked
from waywiser.profile.checksum import checksum
from waywiser.profile.schema import COUNTED, count_key

CATALOGUE = RESULTS / "2026-11-20-h200-catalogue"
RECORDED = CATALOGUE / "four-gpus-busy" / "check.wwp.xz"
KEPT_SERIES = 6

VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 2.5, "text", "", 1e308, -1e308, 1e-320, math.inf, 2**63 - 1, -(2**63),
    b"\xff\x00\x01", "{", "[]", "{}", "null", "[null]", "[1e999]", "\x1b[31m\nred", "[" * 2000,
)  # fmt: skip
"""Damage of a column."""

PARTS: tuple[Any, ...] = (
    None, -1, 0, 1.5, "text", "", 1e308, 2**63, -(2**63), 10**30, True, [], {}, [[]], [None],
    "\x1b[31m", "..", "gpu:99999999999999999999",
)  # fmt: skip
"""Damage of a part of a JSON text."""

JSON_COLUMNS = (
    ("machine", "json"), ("plan", "json"), ("environment", "json"), ("health", "json"),
    ("locality", "json"), ("series", "workload"), ("visit", "buffers"), ("visit", "gpu_states"),
    ("run", "command"),
)  # fmt: skip


def recorded(folder: Path, profile: Path = RECORDED) -> tuple[Path, Path]:
    """(a real profile, cut down to a few series; the same without types and constraints)."""
    whole, loose = unpacked(profile, folder / "whole.wwp"), folder / "loose.wwp"
    with sqlite3.connect(whole) as connection:
        _thin(connection)
    connection.execute("VACUUM")
    connection.close()
    loose.write_bytes(whole.read_bytes())
    with sqlite3.connect(loose) as connection:
        for table, columns in tables(connection).items():
            connection.execute(f"CREATE TABLE loose ({', '.join(columns)})")
            connection.execute(f"INSERT INTO loose SELECT * FROM {table}")
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"ALTER TABLE loose RENAME TO {table}")
    connection.close()
    return whole, loose


def _thin(connection: sqlite3.Connection) -> None:
    known = [row[0] for row in connection.execute("SELECT identity FROM series ORDER BY text")]
    kept = known[:: len(known) // KEPT_SERIES][:KEPT_SERIES]
    others = f"NOT IN ({', '.join('?' * len(kept))})"
    connection.execute(f"DELETE FROM visit WHERE series {others}", kept)
    connection.execute(f"DELETE FROM series WHERE identity {others}", kept)
    path = "pinned@numa:0 -> device@gpu:9 by cpu"
    connection.execute("INSERT INTO refusal VALUES (?, 'no', 0)", (path,))
    for table in COUNTED:
        ((count,),) = connection.execute(f"SELECT count(*) FROM {table}")
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = ?", (str(count), count_key(table))
        )
    reseal(connection)


def reseal(connection: sqlite3.Connection) -> None:
    """Gives every row the checksum of its values."""
    for table, columns in tables(connection).items():
        if columns[-1:] != ["checksum"]:
            continue
        for row in connection.execute(f"SELECT * FROM {table}").fetchall():
            values, key = row[:-1], " AND ".join(f"{column} IS ?" for column in columns[:-1])
            connection.execute(
                f"UPDATE {table} SET checksum = ? WHERE {key}", (checksum(values), *values)
            )


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Their columns."""
    names = [r[0] for r in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names
    }


def damage(loose: Path, file: Path, rng: random.Random) -> str:
    """Writes ``file`` as a copy of ``loose`` with one thing wrong, and says which."""
    file.write_bytes(loose.read_bytes())
    with sqlite3.connect(file) as connection:
        kind = rng.choice((_column, _column, _part, _part, _part, _rows))
        said = kind(connection, rng)
        if hostile := rng.random() < 0.75:
            reseal(connection)
    connection.close()
    return f"{said}, with the right checksums" if hostile else said


def _column(connection: sqlite3.Connection, rng: random.Random) -> str:
    found = tables(connection)
    table = rng.choice(list(found))
    column, value = rng.choice(found[table]), rng.choice(VALUES)
    rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
    some = rows if rng.random() < 0.5 else [rng.choice(rows)]
    connection.executemany(
        f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [(value, row) for row in some]
    )
    return f"{table}.{column} = {value!r:.40} in {len(some)} of {len(rows)} rows"


def _part(connection: sqlite3.Connection, rng: random.Random) -> str:
    table, column = rng.choice(JSON_COLUMNS)
    row, text = rng.choice(connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall())
    document = json.loads(text)
    path, value = rng.choice(list(_paths(document))), rng.choice(PARTS)
    changed = set_part(document, path, value, gone=rng.random() < 0.2)
    connection.execute(
        f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (json.dumps(changed), row)
    )
    return f"{table}.{column} at {path} = {value!r:.40}"


def set_part(document: Any, path: tuple[Any, ...], value: Any, gone: bool = False) -> Any:
    """The document with another part there, or without it."""
    if not path:
        return value
    around = document
    for key in path[:-1]:
        around = around[key]
    if gone:
        del around[path[-1]]
    else:
        around[path[-1]] = value
    return document


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for key, each in inside:
        yield from _paths(each, (*path, key))


def _rows(connection: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(list(tables(connection)))
    if rng.random() < 0.3:
        connection.execute(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 3")
        return f"rows of {table} twice"
    rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
    some = rng.sample(rows, rng.choice((1, len(rows))))
    connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(row,) for row in some])
    return f"{len(some)} of {len(rows)} rows of {table} gone"
