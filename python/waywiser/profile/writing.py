"""What a survey writes into the tables, statement by statement.

Transactions are the caller's, but the first one's: a database is made with what is known before
anything is measured.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from waywiser.machine import Machine
from waywiser.profile.checksum import sealed
from waywiser.profile.opening import has_table
from waywiser.profile.rows import alone_row, lanes_row, visit_row
from waywiser.profile.schema import ALONE, COUNTED, LANES, TABLE, count_key, create_sql
from waywiser.version import __version__
from waywiser.words import Health, Locality, Unsupported, Visit, json_text


@contextmanager
def new_database(
    path: Path,
    machine: Machine,
    plan_json: str | bytes,
    unsupported_paths: Sequence[Unsupported],
    created: str = "",
) -> Iterator[sqlite3.Connection]:
    """A profile without visits, as a connection to write more to before all is committed. It is
    made now, or was ``created`` (UTC, ISO 8601)."""
    plan = plan_json if isinstance(plan_json, str) else plan_json.decode()
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript("BEGIN;" + create_sql())
        meta = {
            "format": "waywiser profile",
            "created": created or now(),
            "hostname": machine.hostname,
        }
        for row in meta.items():
            put(connection, "meta", row)
        put_machine(connection, machine)
        put(connection, "plan", (1, plan))
        for unsupported in unsupported_paths:
            put(connection, "refusal", (unsupported.path, unsupported.reason))
        count_rows(connection, *COUNTED)
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()


def put(connection: sqlite3.Connection, table: str, values: Sequence[Any]) -> None:
    """Writes one row with its checksum; replaces one with the same key."""
    connection.execute(_PUT[table], sealed(values))


_PUT = {
    name: f"INSERT OR REPLACE INTO {name} VALUES ({', '.join('?' * len(table.columns))})"
    for name, table in TABLE.items()
}


def put_visit(connection: sqlite3.Connection, number: int, visit: Visit, run: int) -> None:
    """Raises `ProfileError` for samples that cannot be stored."""
    put(connection, "visit", visit_row(number, visit, run))
    more = ((LANES, lanes_row(number, visit.samples)), (ALONE, alone_row(number, visit.samples)))
    for table, row in more:
        if row is not None:
            if not has_table(connection, table.name):
                connection.execute(table.sql())
            put(connection, table.name, row)


def delete_visit(connection: sqlite3.Connection, number: int) -> None:
    for table in (LANES, ALONE):  # they refer to the visit
        if has_table(connection, table.name):
            connection.execute(f"DELETE FROM {table.name} WHERE visit = ?", (number,))
    connection.execute("DELETE FROM visit WHERE visit = ?", (number,))


def put_machine(connection: sqlite3.Connection, machine: Machine) -> None:
    put(connection, "machine", (1, json_text(machine)))


def note_rows(connection: sqlite3.Connection, table: str, count: int) -> None:
    """Stores how many rows a table has, so that readers find it if one is lost."""
    put(connection, "meta", (count_key(table), str(count)))


def count_rows(connection: sqlite3.Connection, *tables: str) -> None:
    """`note_rows` of tables that are small enough to be counted."""
    for table in tables:
        ((count,),) = connection.execute(f"SELECT count(*) FROM {table}")
        note_rows(connection, table, count)


def insert_locality(connection: sqlite3.Connection, number: int, found: Locality, run: int) -> None:
    put(connection, "locality", (number, run, found.worker, found.memory, json_text(found)))
    count_rows(connection, "locality")


def insert_health(connection: sqlite3.Connection, health: Health, moment: str, run: int) -> None:
    put(connection, "health", (run, moment, json_text(health)))
    count_rows(connection, "health")


def begin_run(
    connection: sqlite3.Connection,
    number: int,
    environment: Mapping[str, Any],
    command: Sequence[str],
) -> tuple[Any, ...]:
    """Returns the row, for `end_run`."""
    row = (number, now(), None, __version__, json_text(list(command)))
    put(connection, "run", row)
    put_environment(connection, number, environment)
    count_rows(connection, "run", "environment")
    return row


def put_environment(
    connection: sqlite3.Connection, run: int, environment: Mapping[str, Any]
) -> None:
    put(connection, "environment", (run, json_text(dict(environment))))


def end_run(connection: sqlite3.Connection, row: Sequence[Any]) -> None:
    number, started, _, *others = row
    put(connection, "run", (number, started, now(), *others))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
