"""The tables of a profile: one description, from which the SQL and its documentation are made.

A profile is one SQLite file with a rollback journal (a write-ahead log fails on network file
systems). ``PRAGMA application_id`` says that it is a profile, ``PRAGMA user_version`` which schema
it follows. Columns are documented in the stored SQL too: ``sqlite3 host.wwp .schema`` shows it.
The last column of every table is the checksum of the others (`waywiser.profile.checksum`). No
table has an index: readers take whole tables, and what an index hides would be missing silently.
"""

from __future__ import annotations

from typing import NamedTuple

APPLICATION_ID = 0x57415957
"""The bytes ``WAYW`` at offset 68 of the file."""

SCHEMA_VERSION = 2
"""Raised when a reader of the former version would misread the file. A reader takes no other."""


class Column(NamedTuple):
    name: str
    type: str
    about: str


CHECKSUM = Column("checksum", "INTEGER NOT NULL", "CRC-32 of the other values: see above")


class SchemaTable(NamedTuple):
    name: str
    about: str
    data: tuple[Column, ...]
    """All columns but the checksum."""
    constraints: tuple[str, ...] = ()
    options: str = ""

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.data, CHECKSUM)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    def sql(self) -> str:
        """The CREATE statement, with what each column means as a comment."""
        entries = [f"{column.name} {column.type}" for column in self.columns]
        comments = [column.about for column in self.columns]
        entries += self.constraints
        comments += [""] * len(self.constraints)
        lines = []
        for position, (entry, comment) in enumerate(zip(entries, comments, strict=True)):
            comma = "," if position + 1 < len(entries) else ""
            lines.append(f"    {entry}{comma}" + (f" -- {comment}" if comment else ""))
        return f"CREATE TABLE {self.name} (\n" + "\n".join(lines) + f"\n){self.options};"


TABLES = (
    SchemaTable(
        "meta",
        "What the file is, as keys and values.",
        (
            Column("key", "TEXT PRIMARY KEY NOT NULL", "format, created, hostname, rows in TABLE"),
            Column("value", "TEXT NOT NULL", "as text; of created UTC, ISO 8601"),
        ),
        options=" WITHOUT ROWID",
    ),
    SchemaTable(
        "machine",
        "The machine that was measured: one row.",
        (
            Column("one", "INTEGER PRIMARY KEY CHECK (one = 1)", "always 1: a profile has one"),
            Column(
                "json",
                "TEXT NOT NULL",
                "packages, NUMA nodes, GPUs, links; what makes copies; JSON",
            ),
        ),
    ),
    SchemaTable(
        "plan",
        "What was to be measured: one row.",
        (
            Column("one", "INTEGER PRIMARY KEY CHECK (one = 1)", "always 1: a profile has one"),
            Column("json", "TEXT NOT NULL", "preset, sizes, seed, rules; as JSON"),
        ),
    ),
    SchemaTable(
        "run",
        "The calls of survey that wrote this file: the first, and one per resume.",
        (
            Column("run", "INTEGER PRIMARY KEY", "1 for the first"),
            Column("started", "TEXT NOT NULL", "UTC, ISO 8601"),
            Column("ended", "TEXT", "UTC, ISO 8601; NULL while it runs, and where it was killed"),
            Column("version", "TEXT NOT NULL", "of Waywiser"),
            Column("command", "TEXT NOT NULL", "the command line, as a JSON list of words"),
        ),
    ),
    SchemaTable(
        "environment",
        "What could explain a number, as it was at the start of each run, and its CPU load.",
        (
            Column("run", "INTEGER PRIMARY KEY REFERENCES run(run)", "the run"),
            Column(
                "json",
                "TEXT NOT NULL",
                "driver, governor, huge pages, virtualisation; what `tune` searched; JSON",
            ),
        ),
    ),
    SchemaTable(
        "refusal",
        "Paths that cannot be measured here, with the reason.",
        (
            Column("path", "TEXT PRIMARY KEY NOT NULL", "the path's text"),
            Column("reason", "TEXT NOT NULL", "why not, in one line"),
        ),
        options=" WITHOUT ROWID",
    ),
    SchemaTable(
        "series",
        "The workloads that were measured.",
        (
            Column("identity", "TEXT PRIMARY KEY NOT NULL", "head of SHA-256 of the workload"),
            Column("text", "TEXT NOT NULL", "the workload, as people write it"),
            Column("curve", "TEXT NOT NULL", "the text without sizes"),
            Column("bytes", "INTEGER NOT NULL", "of all transfers together; 0: an operation"),
            Column("unit", "TEXT NOT NULL", "of its performance: GB/s or s"),
            Column("cache", "TEXT NOT NULL", "CPU caches before each start: warm dirtied flushed"),
            Column("workload", "TEXT NOT NULL", "the workload as canonical JSON"),
        ),
        options=" WITHOUT ROWID",
    ),
    SchemaTable(
        "visit",
        "One block of one series: its samples and how they were taken, or the reason for none.",
        (
            Column("visit", "INTEGER PRIMARY KEY", "in the order finished"),
            Column("series", "TEXT NOT NULL REFERENCES series(identity)", "the series"),
            Column("block", "INTEGER NOT NULL", "replicates are blocks, not samples"),
            Column("run", "INTEGER NOT NULL REFERENCES run(run)", "the run that measured it"),
            Column("process", "INTEGER NOT NULL", "worker process: unique in the file; 0: none"),
            Column("mode", "TEXT NOT NULL", "who timed: device (events) or host (clock)"),
            Column("stop", "TEXT NOT NULL", "converged, budget, limit, failed or skipped"),
            Column("failure_kind", "TEXT", "NULL if there is none"),
            Column("failure_reason", "TEXT", "in one line; NULL if there is none"),
            Column("started", "TEXT NOT NULL", "UTC, ISO 8601"),
            Column("setup_seconds", "REAL NOT NULL", "buffers, verification, warm-up"),
            Column("sampling_seconds", "REAL NOT NULL", "taking the samples"),
            Column("elapsed_seconds", "REAL NOT NULL", "from order to answer"),
            Column("buffer_bytes", "INTEGER NOT NULL", "held by the workload"),
            Column("held_bytes", "INTEGER NOT NULL", "held by the worker at most so far"),
            Column("gate", "TEXT NOT NULL", "what held the work back until all was enqueued"),
            Column("buffers", "TEXT NOT NULL", "where the pages were; JSON list"),
            Column("gpu_states", "TEXT NOT NULL", "readings while it ran; JSON list"),
            Column("notes", "TEXT NOT NULL", "JSON list of lines"),
            Column("evidence", "TEXT", "links that it used; JSON, NULL: not read"),
            Column("samples", "INTEGER NOT NULL", "how many; the columns below have as many each"),
            Column("span", "BLOB", "floats: seconds of one repetition of the whole workload"),
            Column("host", "BLOB", "floats: call to completion, as an application sees it"),
            Column("skew", "BLOB", "floats: between first and last start; 0: cannot be seen"),
            Column("repetitions", "BLOB", "integers: batched; times are divided by them"),
            Column("flags", "BLOB", "integers; bit 0: void, 1: below resolution, 2: summary"),
            Column("width", "INTEGER NOT NULL", "times per sample in transfers; 0: not taken"),
            Column("transfers", "BLOB", "floats: of each transfer; NULL, width 1: as span"),
        ),
    ),
    SchemaTable(
        "health",
        "Error counters of GPUs and links, at the start and the end of each run.",
        (
            Column("run", "INTEGER NOT NULL REFERENCES run(run)", "the run"),
            Column("moment", "TEXT NOT NULL", "start or end; no end where the run was killed"),
            Column("json", "TEXT NOT NULL", "counters of each GPU, and why some are missing; JSON"),
        ),
        constraints=("PRIMARY KEY (run, moment)",),
        options=" WITHOUT ROWID",
    ),
    SchemaTable(
        "locality",
        "What it cost each GPU and some CPUs to reach blocks of memory, as each worker began.",
        (
            Column("locality", "INTEGER PRIMARY KEY", "in the order found"),
            Column("run", "INTEGER NOT NULL REFERENCES run(run)", "the run that looked"),
            Column("process", "INTEGER NOT NULL", "the worker process that looked, as in visit"),
            Column("memory", "TEXT NOT NULL", "the memory's text"),
            Column("json", "TEXT NOT NULL", "seconds of small copies and of loads, raw; JSON"),
        ),
    ),
)

MODEL = SchemaTable(
    "model",
    "What versions up to 0.1 fitted to the samples: one row. Nothing reads or "
    "writes it any more: models are kept in the user's cache.",
    (
        Column("one", "INTEGER PRIMARY KEY CHECK (one = 1)", "always 1: a profile has one"),
        Column("samples", "TEXT NOT NULL", "what it was fitted to: visits, and the last of them"),
        Column("json", "TEXT NOT NULL", "curves, capacities, versions of schema and rules; JSON"),
    ),
)
"""An optional table: files that have it are profiles all the same."""

LANES = SchemaTable(
    "lanes",
    "How long each GPU of a transfer took, of visits whose transfers were timed on several. Only "
    "files with such visits have the table.",
    (
        Column("visit", "INTEGER PRIMARY KEY REFERENCES visit(visit)", "the visit"),
        Column("counts", "TEXT NOT NULL", "GPUs that timed each transfer; JSON list"),
        Column("seconds", "BLOB NOT NULL", "floats: of each transfer each GPU, sample by sample"),
    ),
)
"""Not of `TABLES`: nothing but the times of single GPUs is missing without it."""

ALONE = SchemaTable(
    "alone",
    "How long each transfer of a set with a collective took without the others, in turn with the "
    "samples. Only files with such visits have the table.",
    (
        Column("visit", "INTEGER PRIMARY KEY REFERENCES visit(visit)", "the visit"),
        Column("seconds", "BLOB NOT NULL", "floats: of each transfer, sample by sample"),
    ),
)
"""An optional table: without it only the slowdowns of such sets are missing."""

OPTIONAL_TABLES = (MODEL, LANES, ALONE)

TABLE = {table.name: table for table in (*TABLES, *OPTIONAL_TABLES)}
"""The tables by name."""

JSON_COLUMNS = frozenset(
    ("json", "command", "workload", "buffers", "gpu_states", "notes", "evidence", "counts")
)
"""The columns that hold JSON, in whichever table."""

COUNTED = ("run", "environment", "refusal", "visit", "health", "locality")
"""Tables whose number of rows is in ``meta``. The others have one row, or are referred to."""


def count_key(table: str) -> str:
    """The key in ``meta`` of the number of rows of a table."""
    return f"rows in {table}"


def create_sql() -> str:
    """All statements that make an empty profile."""
    pragmas = f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {SCHEMA_VERSION};"
    return "\n\n".join((pragmas, *(table.sql() for table in TABLES)))
