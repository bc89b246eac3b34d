"""What DuckDB reads of a data set: a relation for any question, and what a check takes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from waywiser.analysis.dataset.columns import COLUMNS, NAMES
from waywiser.analysis.dataset.engines import arrow_schema, engine, numbers_of, texts_of
from waywiser.analysis.dataset.files import (
    GONE,
    DataFile,
    count_rows,
    files_in,
    read_all,
    why_foreign,
)
from waywiser.analysis.dataset.rows import SubjectRow, created_text, state_of, subject_of_rows
from waywiser.analysis.history.night import (
    PROCESSES,
    SECONDS,
    FollowedPath,
    Night,
    NightGpu,
    PathColumns,
    gpus_text,
)
from waywiser.curves import Subject
from waywiser.words import WaywiserError, WordError, grouped

T = TypeVar("T")

NIGHT_COLUMNS = (
    "run", "host", "measured", "class", "simulated", "gpus", "facts", "first_visit", "file",
    "file_bytes", "file_modified",
)  # fmt: skip

PATH_COLUMNS = ("path", "name", "group", "bytes", "seconds", "processes", "fastest")

MEMORY = "3GiB"
"""What DuckDB takes; more is kept in temporary files."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

EXPLAINED = (
    msgspec.MsgspecError, WordError, TypeError, ValueError, OverflowError, AttributeError,
)  # fmt: skip
"""What values raise that no version of Waywiser has written."""

AT_ONCE = 20_000
"""Runs whose paths are read at once."""

SUBJECTS_AT_ONCE = 1000
"""Runs whose rows are read at once with all columns."""

READING_THREADS = 2
"""Threads that read small files."""

TABLES_AT_ONCE = 256
"""Small files that are read and made into one table at once."""

TRIES = 5
"""How often files are listed again if some were packed by another process meanwhile."""


class RecordedRun(msgspec.Struct, gc=False):
    """The columns of a run that a night takes: those of `NIGHT_COLUMNS`, in their order. Many runs
    have equal texts, each once in memory."""

    run: str
    host: str
    measured: datetime
    hardware: str | None
    simulated: str | None
    gpus: str | None
    facts: str | None
    first_visit: str | None
    file: str
    file_bytes: int
    file_modified: int
    created: str = ""
    """``measured`` as profiles have it."""
    profile: str = ""
    """The file of no other run: that of its folder if it has this state, or if no other run has its
    name."""
    gpu_count: int = 0

    def night(self, paths: PathColumns) -> Night:
        """The night of the run, with its followed paths."""
        return Night(
            file=self.profile,
            host=self.host,
            created=self.created,
            gpus=_gpus(self.gpus or "[]"),
            hardware=self.hardware or "",
            facts=_facts(self.facts or "{}"),
            paths=paths,
            simulated=self.simulated or "",
            first_visit=self.first_visit or "",
        )


@lru_cache(maxsize=16384)
def _gpus(text: str) -> tuple[NightGpu, ...]:
    return msgspec.json.decode(text, type=tuple[NightGpu, ...])


@lru_cache(maxsize=16384)
def _facts(text: str) -> dict[str, str]:
    return msgspec.json.decode(text, type=dict[str, str])


class DataSetError(WaywiserError):
    """A data set that cannot be read."""


class Scan:
    """The files of a data set that can be read, and each run once."""

    def __init__(self, folder: Path | str, first_day: str = "") -> None:
        """``first_day`` is the first one that is read: ``2026-11-01``. Raises `NoEngine`."""
        self.folder = Path(folder)
        self.first_day = first_day
        self.unreadable: dict[str, str] = {}
        """File -> why it is left aside."""
        self.rows = 0
        """Rows of the files that were listed last, about."""
        self._damaged: dict[Path, str] = {}
        self.files: list[DataFile] = []
        self._small_files: Any = None
        """The rows of all files that are not packed."""
        self._connection: Any = None
        self._has_view = False
        self._list()

    @property
    def connection(self) -> Any:
        """A `duckdb.DuckDBPyConnection`, which has the relation of all rows while `reading`."""
        if self._connection is None:
            self._connection = found = engine("duckdb").connect()
            found.execute("SET TimeZone = 'UTC'")
            found.execute(f"SET memory_limit = '{MEMORY}'")
            found.execute("SET parquet_metadata_cache = true")
            found.execute(f"SET temp_directory = {_text(tempfile.gettempdir())}")
        return self._connection

    def disconnect(self) -> None:
        """Gives back what DuckDB keeps, hundreds of megabytes of a large data set, until it is
        used again."""
        self._connection = None
        self._has_view = False

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to go on with the files that were listed here."""
        known = dict(vars(self))  # at once: another thread may go on
        own = {name: value for name, value in known.items() if name not in ("runs", "_names")}
        return own | {"_connection": None, "_has_view": False}

    def _list(self) -> None:
        """Lists the files. Those that are packed meanwhile are in others then, which are listed
        again."""
        self._has_view = False
        for _ in range(TRIES):
            if not self._list_once():
                break

    def _list_once(self) -> bool:
        """Lists the files, and returns whether some were gone before they were read."""
        unlisted: dict[str, str] = {}
        found = [each for each in files_in(self.folder, unlisted) if each.day >= self.first_day]
        small = self._read_small_files([each.path for each in found if not each.is_packed])
        packed = {each.path: count_rows(each.path) for each in found if each.is_packed}
        why = small | {path: text for path, (text, _) in packed.items()}
        why |= {path: text for path, text in self._damaged.items() if path in why}
        self.rows = len(self._small_files) + sum(rows for _, rows in packed.values())
        self.files = [each for each in found if not why[each.path]]
        damaged = {str(path): text for path, text in why.items() if text and text != GONE}
        self.unreadable = unlisted | damaged
        return GONE in why.values()

    def _make_view(self) -> None:
        """Makes the relation of the newest state of each run."""
        self.connection.register("small_files", self._small_files)
        self.connection.execute("DROP VIEW IF EXISTS dataset")
        self.connection.execute(f"CREATE VIEW dataset AS {self._query(self.files)}")
        self._has_view = True

    def _read_small_files(self, paths: Sequence[Path]) -> dict[Path, str]:
        """Reads the files that are not packed, and returns why each cannot be read, empty if it
        can. Each has few rows, and each query would open all of them."""
        arrow = engine("pyarrow")
        schema = arrow_schema(arrow)
        none = arrow.Table.from_arrays(
            [arrow.nulls(0, each.type) for each in schema], schema=schema
        )
        tables = [none.append_column("filename", texts_of([]))]
        why: dict[Path, str] = {}
        with ThreadPoolExecutor(READING_THREADS) as threads:
            for first in range(0, len(paths), TABLES_AT_ONCE):  # an interruption waits for these
                some = paths[first : first + TABLES_AT_ONCE]
                for path, (why[path], table) in zip(some, threads.map(read_all, some), strict=True):
                    if not why[path]:
                        names = texts_of([str(path)] * len(table))
                        tables.append(table.append_column("filename", names))
                tables = [arrow.concat_tables(tables).combine_chunks()]
        (self._small_files,) = tables
        return why

    def _rows_of(self, source: str) -> str:
        """The rows of files with all columns; those that no file has are null."""
        known = {name for name, *_ in self.connection.execute(f"DESCRIBE {source}").fetchall()}
        columns = ", ".join(
            f'"{c.name}"'
            if c.name in known
            else f'NULL::{_TYPES.get(c.type, "VARCHAR")} AS "{c.name}"'
            for c in COLUMNS
        )
        return f"SELECT {columns}, filename FROM ({source})"

    def _query(self, files: Sequence[DataFile]) -> str:
        """The rows of files that count."""
        quoted = ", ".join(f'"{name}"' for name in NAMES)
        packed = [each.path for each in files if each.is_packed]
        names = ", ".join(_text(str(each.path)) for each in files if not each.is_packed)
        sources = [f"SELECT * FROM small_files WHERE filename IN ({names or 'NULL'})"]
        if packed:
            sources.append(self._rows_of(_source(packed)))
        where = ""
        if former := self._former(files):
            pairs = ", ".join(f"({_text(path)}, {_text(run)})" for path, run in former)
            where = f" WHERE (filename, run) NOT IN ({pairs})"
        rows = " UNION ALL ".join(sources)
        return f"SELECT {quoted}, CAST(measured AS DATE)::VARCHAR AS day FROM ({rows}){where}"

    def _former(self, files: Sequence[DataFile]) -> list[tuple[str, str]]:
        """(file, run) of rows that do not count: of a run that is there twice, those of its former
        states, and of equal ones all but the first."""
        days = grouped((each.day, each) for each in files)
        looked = [
            each
            for own in days.values()
            if len({each.run for each in own}) < len(own) or any(e.is_packed for e in own)
            if len(own) > 1
            for each in own
        ]
        if not looked:
            return []
        rows = self.connection.execute(
            f"SELECT run, file_modified, filename FROM ({_source([e.path for e in looked])}) "
            "GROUP BY ALL ORDER BY run, file_modified DESC, filename"
        ).fetchall()
        known: set[str] = set()
        former = []
        for run, _, path in rows:
            if run in known:
                former.append((path, run))
            known.add(run)
        return former

    def reading(self, read: Callable[[], T]) -> T:
        """What ``read`` returns. Files that another process packs meanwhile, and those that turn
        out to be damaged, are left aside. Raises `DataSetError`."""
        errors = engine("duckdb").Error
        for _ in range(TRIES):
            try:
                if not self._has_view:
                    self._make_view()
                return read()
            except errors as error:
                said = str(error)
                self.__dict__.pop("runs", None)
                self.__dict__.pop("_names", None)
                for each in self.files:
                    if (text := self._why_damaged(each.path)) and text != GONE:
                        self._damaged[each.path] = text
                self._list()
        raise DataSetError(
            f"cannot be read: {said.splitlines()[0]}", where=str(self.folder), remedy="try again"
        )

    def _why_damaged(self, path: Path) -> str:
        """Why a file cannot be read, all of it; empty if it can."""
        if why := why_foreign(path, whole=True):
            return why
        try:
            self.connection.execute(f"SELECT count(COLUMNS(*)) FROM ({_source([path])})").fetchall()
        except engine("duckdb").Error as error:
            return f"is damaged: {str(error).splitlines()[0]}" if path.exists() else GONE
        return ""

    @property
    def relation(self) -> Any:
        """All rows: a `duckdb.DuckDBPyRelation`."""
        return self.reading(lambda: self.connection.sql("SELECT * FROM dataset"))

    def labelled(self, labels: Mapping[str, Mapping[str, str]]) -> Any:
        """All rows with a column for each label of their host, or of a GPU of it: a
        `duckdb.DuckDBPyRelation`. What is damaged is found first, since the relation is read later.
        Raises `DataSetError` for a label whose column is there."""
        self.reading(lambda: self.connection.sql("SELECT count(run) FROM dataset").fetchall())
        names = list(dict.fromkeys(name for own in labels.values() for name in own))
        if not names:
            return self.relation
        columns = {name: name for name in (*NAMES, "day")}
        for name in names:
            if (same := columns.setdefault(name.lower(), name)) != name or name in (*NAMES, "day"):
                raise DataSetError(
                    f"the label {name} has the name of the column {same}",
                    where=str(self.folder),
                    remedy="name it otherwise: upper and lower case are the same",
                )
        with self._explained():
            own = {run.run: _labels_of(run, labels) for run in self.runs}
        arrow = engine("pyarrow")
        found = [arrow.array([each.get(n) for each in own.values()], arrow.string()) for n in names]
        runs = arrow.array(list(own), arrow.string())
        table = arrow.table([runs, *found], names=["run", *names])
        chosen = ", ".join(f'labels."{name}"' for name in names)

        def read() -> Any:  # the runs may have been the last that a former connection read
            self.connection.register("labels", table)
            return self.connection.sql(
                f"SELECT dataset.*, {chosen} FROM dataset LEFT JOIN labels USING (run)"
            )

        return self.reading(read)

    def query(self, text: str | Callable[[], str], **tables: Any) -> Any:
        """A `pyarrow.Table`; the text may depend on the files, and use further ``tables``."""

        def read() -> Any:
            for name, table in tables.items():
                self.connection.register(name, table)
            return self.connection.sql(text if isinstance(text, str) else text()).to_arrow_table()

        return self.reading(read)

    def take_runs(self, runs: list[RecordedRun]) -> None:
        """Takes the runs of some hosts, which another process has read, if this one has none."""
        vars(self).setdefault("runs", runs)

    @cached_property
    def runs(self) -> list[RecordedRun]:
        """All runs, by profile."""
        # all rows of a run have these, and each has a first one
        columns = ", ".join(f'any_value("{name}") AS "{name}"' for name in NIGHT_COLUMNS[1:])
        found = self.query(
            f"SELECT run, {columns} FROM dataset WHERE coalesce(number, 0) = 0 "
            "GROUP BY run ORDER BY any_value(measured), run"
        )
        with self._explained():
            values = zip(*map(_shared_values, found.columns), strict=True)
            rows = [RecordedRun(*row) for row in values]
            if any(row.run is None for row in rows):
                raise ValueError("a row has no run")
            for row in rows:
                row.created = created_text(row.measured)
                row.gpu_count = len(_gpus(row.gpus or "[]"))
                row.host.encode()
            prefix = str(self.folder / "x")[:-1]
            for file, same in grouped((row.file, row) for row in rows).items():
                _name_profiles(prefix + file, same)
        del found, values
        if len(rows) > AT_ONCE:
            self.disconnect()
        return sorted(rows, key=attrgetter("profile"))

    @cached_property
    def _names(self) -> set[str]:
        """The names of all runs."""
        return {run.run for run in self.runs}

    def nights(self, runs: Sequence[RecordedRun]) -> list[Night]:
        """The nights of those of these runs that can be read, in their order. Of many runs the
        paths of some hosts are read at once: the rows of all would not fit into memory."""
        found: list[Night | None] = [None] * len(runs)
        numbers = grouped((run.host, number) for number, run in enumerate(runs))
        for hosts in _host_groups(numbers):
            paths = self._paths(hosts)
            readable = self._names
            with self._explained():
                for number in (number for host in hosts for number in numbers[host]):
                    run = runs[number]
                    if run.run in readable:
                        own = paths.get(run.run, PathColumns())
                        found[number] = run.night(own)
        return [night for night in found if night is not None]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raises `DataSetError` for values that no version of Waywiser has written."""
        try:
            yield
        except EXPLAINED as error:
            raise DataSetError(
                f"has a value that Waywiser does not write: {error}",
                where=str(self.folder),
                remedy=f"waywiser export {self.folder} --format parquet -o ANOTHER makes it anew",
            ) from error

    def _paths(self, hosts: Sequence[str]) -> dict[str, PathColumns]:
        """The followed paths of the runs of some hosts."""
        own = f"WHERE followed AND host BETWEEN {_text(min(hosts))} AND {_text(max(hosts))}"
        own += f" AND host IN ({', '.join(map(_text, hosts))})"
        keys = ", ".join(f'"{name}"' for name in PATH_COLUMNS[:4])
        kinds = self.query(
            f"""SELECT *, CAST(row_number() OVER (ORDER BY {keys}) - 1 AS INTEGER) AS kind
            FROM (SELECT DISTINCT {keys} FROM dataset {own}) ORDER BY kind"""
        )
        table = self.query(
            f"""SELECT run, kind, seconds, processes, fastest FROM dataset
            JOIN kinds USING ({keys}) {own} ORDER BY run, number""",
            kinds=kinds,
        )
        with self._explained():
            rows = zip(*(kinds[name].to_pylist() for name in PATH_COLUMNS[:4]), strict=True)
            return _columns_of_runs(table, [FollowedPath(*row) for row in rows])

    def subjects(self, runs: Iterable[RecordedRun]) -> Iterator[Subject]:
        """The subjects of runs, in the order of time. Some are read at once, of their days alone:
        the rows of all would not fit into memory."""
        ordered = sorted(runs, key=lambda run: (run.measured, run.run))
        for first in range(0, len(ordered), SUBJECTS_AT_ONCE):
            yield from self._some_subjects(ordered[first : first + SUBJECTS_AT_ONCE])

    def _some_subjects(self, runs: Sequence[RecordedRun]) -> Iterator[Subject]:
        profiles = {run.run: run.profile for run in runs}
        names_of_runs = texts_of([run.run for run in runs])
        chosen = engine("pyarrow").Table.from_arrays([names_of_runs], ["run"])
        days = {created_text(run.measured)[:10] for run in runs}
        names = ", ".join(f'"{name}"' for name in SubjectRow._fields)
        table = self.query(
            lambda: (
                f"SELECT {names} FROM "
                f"({self._query([each for each in self.files if each.day in days])}) "
                "SEMI JOIN chosen USING (run) "
                # others have no path that hosts are compared by
                "WHERE coalesce(number, 0) = 0 OR coalesce(workload, '') <> '' "
                "ORDER BY run, number"
            ),
            chosen=chosen,
        )
        with self._explained():
            columns = list(map(_shared_values, table.columns))
        for run, own in _slices_of_runs(table):
            with self._explained():
                rows = list(map(SubjectRow, *(column[own] for column in columns)))
                node = subject_of_rows(rows, profiles[run])
            yield node


def _name_profiles(plain: str, runs: Sequence[RecordedRun]) -> None:
    """Names the profiles of runs whose files have one name."""
    state = state_of(plain)
    own = [run for run in runs if (run.file_bytes, run.file_modified) == state]
    if not own and len(runs) == 1 and not any(state):
        own = list(runs)
    for run in runs:
        is_own = bool(own) and run is own[-1]
        run.profile = plain if is_own else f"{plain}#{run.run}"


def _host_groups(runs: Mapping[str, Sequence[int]]) -> Iterator[Sequence[str]]:
    """The hosts of runs in groups with at most `AT_ONCE` runs together, or of one host."""
    group: list[str] = []
    total = 0
    for host in sorted(runs):
        if group and total + len(runs[host]) > AT_ONCE:
            yield group
            group, total = [], 0
        group.append(host)
        total += len(runs[host])
    if group:
        yield group


def _shared_values(column: Any) -> list[Any]:
    """The values of a column, equal texts as one object: thousands of runs have the same."""
    arrow = engine("pyarrow")
    if arrow.types.is_timestamp(column.type):  # by far faster than by Arrow itself
        numbers = column.cast(arrow.timestamp("us", "UTC")).cast(arrow.int64()).to_pylist()
        moments = {n: EPOCH + timedelta(microseconds=n) for n in {*numbers} - {None}}
        return [moments.get(n) for n in numbers]
    column = column.combine_chunks()
    if arrow.types.is_list(column.type):  # much faster than Arrow itself
        values, ends = column.values.to_pylist(), column.offsets.to_pylist()
        lists = [values[start:stop] for start, stop in pairwise(ends)]
        known = column.is_valid().to_pylist()
        return [own if is_known else None for own, is_known in zip(lists, known, strict=True)]
    if not arrow.types.is_string(column.type):
        found: list[Any] = column.to_pylist()
        return found
    encoded = column.dictionary_encode()
    texts: dict[int | None, Any] = dict(enumerate(encoded.dictionary.to_pylist()))
    texts[None] = None
    return [texts[n] for n in encoded.indices.to_pylist()]


def _slices_of_runs(table: Any) -> Iterator[tuple[str, slice]]:
    """Yields each run of a table that is in their order, and its rows."""
    runs = table["run"].combine_chunks().dictionary_encode()
    first = np.flatnonzero(np.diff(numbers_of(runs.indices), prepend=-1)).tolist()
    rows = map(slice, first, (*first[1:], len(table)))
    yield from zip(runs.dictionary.to_pylist(), rows, strict=True)


def _columns_of_runs(table: Any, kinds: Sequence[FollowedPath]) -> dict[str, PathColumns]:
    """The paths of each run of a table that is in their order; equal ones are one object."""
    for name, what in (("seconds", "time"), ("fastest", "time"), ("processes", "processes")):
        if table[name].null_count:
            raise ValueError(f"a path that is followed has no {what}")
    kind, seconds, fastest, processes = (
        numbers_of(table[name]).astype(number, copy=False)
        for name, number in (
            ("kind", np.int32), ("seconds", SECONDS), ("fastest", SECONDS), ("processes", PROCESSES)
        )
    )  # fmt: skip
    if not all((np.isfinite(times) & (times > 0)).all() for times in (seconds, fastest)):
        raise ValueError("a path that is followed has no time")
    known: dict[bytes, tuple[FollowedPath, ...]] = {}
    found = {}
    for run, own in _slices_of_runs(table):
        if (same := kind[own].tobytes()) not in known:
            known[same] = tuple(kinds[number] for number in kind[own].tolist())
        found[run] = PathColumns(
            known[same],
            seconds[own].tobytes(),
            fastest[own].tobytes(),
            processes[own].tobytes(),
        )
    return found


def _labels_of(run: RecordedRun, labels: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The labels of the host of a run and of its GPUs."""
    found: dict[str, str] = {}
    for key in (*sorted(gpus_text(run.gpus or "[]")), run.host):
        found |= labels.get(key, {})
    return found


_TYPES = {
    "timestamp[ms, UTC]": "TIMESTAMPTZ", "int64": "BIGINT", "int32": "INTEGER", "bool": "BOOLEAN",
    "float": "FLOAT", "list<int32>": "INTEGER[]",
}  # fmt: skip


def _source(paths: Iterable[Path]) -> str:
    listed = ", ".join(_text(str(path)) for path in paths)
    return (
        f"SELECT * FROM read_parquet([{listed}], union_by_name = true, filename = true, "
        "hive_partitioning = false)"
    )


def _text(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
