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

import msgspec

from waywiser import __version__
from waywiser.profile import rows
from waywiser.profile.schema import TABLES, columns_of, create_sql
from waywiser.records import Health, Locality, Refusal, Summary, Visit
from waywiser.topology.machine import Machine


@contextmanager
def new_database(
    path: Path, machine: Machine, plan_json: str | bytes, refusals: Sequence[Refusal]
) -> Iterator[sqlite3.Connection]:
    """A profile without visits, as a connection to write more to before all is committed."""
    plan = plan_json if isinstance(plan_json, str) else plan_json.decode()
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript("BEGIN;" + create_sql())
        fill(connection, machine, plan, refusals)
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()


def fill(
    connection: sqlite3.Connection, machine: Machine, plan: str, refusals: Sequence[Refusal]
) -> None:
    meta = {"format": "waywiser profile", "created": now(), "hostname": machine.hostname}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    text = msgspec.json.encode(machine).decode()
    connection.execute("INSERT INTO machine VALUES (1, ?)", (text,))
    connection.execute("INSERT INTO plan VALUES (1, ?)", (plan,))
    insert_refusals(connection, refusals)


def insert_refusals(connection: sqlite3.Connection, refusals: Sequence[Refusal]) -> None:
    pairs = [(refusal.path, refusal.reason) for refusal in refusals]
    connection.executemany("INSERT OR REPLACE INTO refusal VALUES (?, ?)", pairs)


def insert_visit(
    connection: sqlite3.Connection, visit: Visit, run: int, summary: Summary | None
) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO series VALUES (?, ?, ?, ?, ?, ?, ?)",
        rows.series_row(visit.workload),
    )
    columns = (*rows.VISIT_COLUMNS, *rows.SUMMARY_COLUMNS)
    marks = ", ".join("?" * len(columns))
    cursor = connection.execute(
        f"INSERT INTO visit ({', '.join(columns)}) VALUES ({marks})",
        (*rows.visit_row(visit, run), *rows.summary_row(summary)),
    )
    connection.executemany(
        "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows.sample_rows(int(cursor.lastrowid or 0), visit.samples),
    )


def insert_locality(connection: sqlite3.Connection, found: Locality, run: int) -> None:
    text = msgspec.json.encode(found).decode()
    connection.execute(
        "INSERT INTO locality (run, worker, memory, json) VALUES (?, ?, ?, ?)",
        (run, found.worker, found.memory, text),
    )


def insert_health(connection: sqlite3.Connection, health: Health, moment: str, run: int) -> None:
    text = msgspec.json.encode(health).decode()
    connection.execute("INSERT OR REPLACE INTO health VALUES (?, ?, ?)", (run, moment, text))


def bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Adds the tables and columns that a file of an earlier program has not."""
    for table in TABLES:
        present = columns_of(connection, table.name)
        if not present:
            connection.execute(table.sql())
            continue
        for column in table.columns:
            if column.name not in present:
                connection.execute(
                    f"ALTER TABLE {table.name} ADD COLUMN {column.name} {column.type}"
                )


def begin_run(
    connection: sqlite3.Connection, environment: Mapping[str, Any], command: Sequence[str]
) -> int:
    """Returns the number of the new run."""
    cursor = connection.execute(
        "INSERT INTO run (started, version, command) VALUES (?, ?, ?)",
        (now(), __version__, msgspec.json.encode(list(command)).decode()),
    )
    run = int(cursor.lastrowid or 0)
    known = msgspec.json.encode(dict(environment)).decode()
    connection.execute("INSERT INTO environment VALUES (?, ?)", (run, known))
    return run


def end_run(connection: sqlite3.Connection, run: int) -> None:
    connection.execute("UPDATE run SET ended = ? WHERE run = ?", (now(), run))


def delete_visit(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("DELETE FROM sample WHERE visit = ?", (number,))
    connection.execute("DELETE FROM visit WHERE visit = ?", (number,))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
