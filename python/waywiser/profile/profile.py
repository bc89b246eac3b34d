"""A profile: all that is known of one machine at one time, in one file; how it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from waywiser.machine import Machine, load_of
from waywiser.machine.cpu_load import ENTRY as LOAD_ENTRY
from waywiser.profile.checksum import first_changed
from waywiser.profile.columns import BadColumn
from waywiser.profile.errors import MissingProfile, ProfileError
from waywiser.profile.opening import Opened, has_table, open_read_only, open_snapshot
from waywiser.profile.rows import (
    AloneRow,
    LanesRow,
    SeriesRow,
    VisitRow,
    alone_from,
    lanes_from,
    samples_from,
    series_row,
    visit_from,
)
from waywiser.profile.runs import Run, RunHealth
from waywiser.profile.schema import (
    ALONE,
    COUNTED,
    LANES,
    TABLE,
    SchemaTable,
    count_key,
)
from waywiser.profile.single_lines import single_line_rows
from waywiser.profile.sqlite_errors import damaged, explained
from waywiser.profile.validation import MOST_INDEX, InvalidRecord, are_moments, require_valid
from waywiser.words import (
    LIMIT,
    Closeable,
    Health,
    Locality,
    Samples,
    Series,
    Unsupported,
    Visit,
    Workload,
    grouped,
    whole_number,
)

T = TypeVar("T")

UNFINISHED = ("interrupted", LIMIT)
"""Kinds of failure that a resumed survey measures again. All others are final: what crashed or hung
would do so again and cost its time-out each time."""


def is_finished(visit: Visit | VisitRow) -> bool:
    """Whether a visit is not to be measured again."""
    return visit.failure is None or visit.failure.kind not in UNFINISHED


NO_SAMPLES = Samples()


class Profile(Closeable):
    """An open profile, read-only. Make one with `open`; close it, or use ``with``.

    Every method raises `waywiser.profile.errors.ProfileError` if the file is damaged.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        self.path = path
        self._opened = opened
        self._connection = opened.connection
        self._lanes: dict[int, LanesRow] = {}
        """Times of single GPUs, of the visits that were read last."""
        self._alone: dict[int, AloneRow] = {}
        """Times of transfers without others, of the same."""
        self._read_tables: dict[str, list[Any]] = {}
        """The rows of a snapshot's tables, once read."""

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Profile:
        """Works on other people's files and while a survey is writing.

        Raises `MissingProfile`, `NotAProfile`, `OlderProfile`, `NewerProfile`, `DamagedProfile`.
        """
        file = _named(path)
        return Profile(file, open_read_only(file))

    @staticmethod
    def open_snapshot(path: str | os.PathLike[str]) -> Profile:
        """Opens a profile as it is at one moment, for a reader of thousands of them."""
        file = _named(path)
        return Profile(file, open_snapshot(file))

    def close(self) -> None:
        """Lets go of the file. May be called twice."""
        self._opened.close()

    # What is known of the machine and of how it was measured.

    @property
    def created(self) -> str:
        """UTC, ISO 8601."""
        created = self._meta("created")
        self._require_moment("meta", created)
        return created

    @property
    def machine(self) -> Machine:
        machine = self._read(_machine_from, self._only("machine"), "machine")
        if self._meta("hostname") != machine.hostname:
            raise damaged(self.path, "meta: its hostname is not that of the machine")
        return machine

    @property
    def plan_json(self) -> str:
        """What was to be measured, as the survey wrote it."""
        return self._only("plan")

    @property
    def environments(self) -> dict[int, dict[str, Any]]:
        """Per run, by its number: what could explain a number."""
        found = sorted(self._rows("environment", tuple[int, str]))
        return {
            run: self._decode(text, dict[str, Any], f"environment of run {run}")
            for run, text in found
        }

    @property
    def environment(self) -> dict[str, Any]:
        """The environment of the latest run, with the CPU load of the run with the most."""
        environments = self.environments
        if not environments:
            return {}
        loads = (load_of(each) for each in environments.values())
        known = [each for each in loads if each is not None]
        load = max(known, key=lambda each: each.share, default=None)
        own = {} if load is None else {LOAD_ENTRY: msgspec.to_builtins(load)}
        return environments[max(environments)] | own

    @property
    def runs(self) -> tuple[Run, ...]:
        found = self._rows("run", tuple[int, str, str | None, str, str])
        for number, started, ended, *_ in found:
            for moment in (started, ended):
                if moment is not None:
                    self._require_moment(f"run {number}", moment)
        return tuple(
            Run(number, started, ended, version, self._decode(text, tuple[str, ...], "run"))
            for number, started, ended, version, text in sorted(found, key=lambda row: row[0])
        )

    @property
    def unsupported_paths(self) -> tuple[Unsupported, ...]:
        found = self._rows("refusal", tuple[str, str])
        return tuple(Unsupported(*row) for row in sorted(found, key=lambda row: (row[1], row[0])))

    def localities(self) -> list[Locality]:
        """What workers found about where memory is, in the order found."""
        return [self._locality(row) for row in sorted(self._locality_rows())]

    def health(self) -> list[RunHealth]:
        """What the GPUs' error counters showed around each run that read them, by run."""
        moments: dict[int, dict[str, Health]] = {}
        for run, moment, text in sorted(self._rows("health", tuple[int, str, str])):
            health = self._read(_health_from, text, f"health of run {run}")
            moments.setdefault(run, {})[moment] = health
        return [RunHealth(run, at.get("start"), at.get("end")) for run, at in moments.items()]

    # What was measured.

    def finished(self) -> set[tuple[str, int]]:
        """(series identity, block) of every visit that is not to be measured again."""
        return {(row.series, row.block) for row in self.visit_rows() if is_finished(row)}

    def workloads(self) -> list[Workload]:
        """Those with at least one visit, by curve, then by size. Raises as `workloads_of`."""
        visited = {row.series for row in self.visit_rows()}
        return list(self.workloads_of(visited).values())

    def series(self) -> list[Series]:
        """All series, by curve, then by size, each with its visits in block order."""
        return list(self.iter_series())

    def iter_series(self) -> Iterator[Series]:
        """As `series`, with the samples of one series in memory at a time."""
        by_series = self.rows_by_series()
        for identity, workload in self.workloads_of(by_series).items():
            rows = by_series[identity]
            yield Series(workload, tuple(self.visit_of(row, workload) for row in rows))

    def visits(self) -> Iterator[Visit]:
        """All visits in the order they were finished, with the samples of one in memory at a
        time."""
        rows = self.visit_rows()
        workloads = self.workloads_of({row.series for row in rows})
        for row in rows:
            yield self.visit_of(row, workloads[row.series])

    # What else is kept of it is found by.

    @property
    def content(self) -> str:
        """A digest of all that the file holds now; of a journal beside it nothing."""
        with explained(self.path):
            return blake2b(self._connection.serialize(), digest_size=16).hexdigest()

    @property
    def data_version(self) -> int:
        """Changes with every commit of others."""
        with explained(self.path):
            ((found,),) = self._connection.execute("PRAGMA data_version").fetchall()
        return int(found)

    # The same for readers of many visits, who unpack only what they need.

    def visit_rows(self) -> list[VisitRow]:
        """All visits in the order they were finished, their samples still compressed.

        Raises `DamagedProfile` also if one is there twice.
        """
        rows = sorted(self._rows("visit", VisitRow), key=attrgetter("visit"))
        self._lanes = {row.visit: row for row in self._optional_rows(LANES, LanesRow)}
        self._alone = {row.visit: row for row in self._optional_rows(ALONE, AloneRow)}
        if len({(row.series, row.block) for row in rows}) < len(rows):
            raise damaged(self.path, "a block of a series is there twice")
        blocks = [row.block for row in rows]
        if blocks and not 0 <= min(blocks) <= max(blocks) < MOST_INDEX:
            wrong = next(row for row in rows if not 0 <= row.block < MOST_INDEX)
            raise self.damaged_visit(wrong, f"block {wrong.block}")
        if not are_moments([row.started for row in rows]):
            for row in rows:
                self._require_moment(f"visit {row.visit}", row.started)
        return rows

    def rows_by_series(self) -> dict[str, list[VisitRow]]:
        """The same by the identity of the series, in block order."""
        rows = sorted(self.visit_rows(), key=attrgetter("block"))
        return grouped((row.series, row) for row in rows)

    def series_rows(self, identities: Iterable[str]) -> list[SeriesRow]:
        """The series with these identities, by curve, then by size. Raises `DamagedProfile` for
        one that is not there."""
        requested = set(identities)
        found = [row for row in self._rows("series", SeriesRow) if row.identity in requested]
        if missing := requested.difference(row.identity for row in found):
            raise damaged(self.path, f"series {min(missing)} is missing")
        return sorted(found, key=lambda row: (row.curve, row.bytes, row.identity))

    def workloads_of(self, identities: Iterable[str]) -> dict[str, Workload]:
        """The workloads with these identities, by curve, then by size.

        Raises `ProfileError` where their identities were made by another rule, since then no visit
        would be found.
        """
        return {row.identity: self.workload_of(row) for row in self.series_rows(identities)}

    def workload_of(self, row: SeriesRow) -> Workload:
        """Raises as `workloads_of`."""
        place = f"series {_shown(row.identity)}"
        workload, expected = self._read(_workload_from, row.workload, place)
        if expected.identity != row.identity:
            raise ProfileError(
                f"{workload} is {row.identity} in it and {expected.identity} here",
                where=str(self.path),
                remedy="read it with the version of Waywiser that made it, or survey again",
            )
        if row != expected:
            name = next(n for n in row._fields if getattr(row, n) != getattr(expected, n))
            raise damaged(self.path, f"{place}: its {name} is not that of its workload")
        return workload

    def visit_of(self, row: VisitRow, workload: Workload) -> Visit:
        """The visit with its samples."""
        return self.bare_visit_of(row, workload, self.samples_of(row))

    def bare_visit_of(
        self, row: VisitRow, workload: Workload, samples: Samples = NO_SAMPLES
    ) -> Visit:
        """The visit without its samples, or with those that are given."""
        try:
            visit = visit_from(row, workload, samples)
            require_valid(visit)
        except (msgspec.MsgspecError, RecursionError, InvalidRecord) as error:
            raise self.damaged_visit(row, error) from error
        return visit

    def samples_of(self, row: VisitRow) -> Samples:
        try:
            samples = samples_from(row)
            if (lanes := self._lanes.get(row.visit)) is not None and samples:
                samples = replace(samples, lanes=lanes_from(lanes, len(samples)))
            if (alone := self._alone.get(row.visit)) is not None and samples:
                samples = replace(samples, alone=alone_from(alone, row))
            require_valid(samples)
        except (BadColumn, InvalidRecord) as error:
            raise self.damaged_visit(row, error) from error
        return samples

    def damaged_visit(self, row: VisitRow, why: object) -> ProfileError:
        """The error for a visit that is impossible."""
        return damaged(self.path, f"visit {row.visit}: {why}")

    # How it is read.

    def _rows(self, table: str, row: type[T]) -> list[T]:
        """All rows of a table, each with the right checksum, as many as were stored, and each
        checked to be a ``row``: a table of SQLite takes any type.

        One query takes the whole table, which is as it was at one moment, and no index is used.
        """
        if table in self._read_tables:
            return self._read_tables[table]
        # read first: a survey that is writing adds to both
        stored = self._meta(count_key(table)) if table in COUNTED else "0"
        with explained(self.path):
            found = self._connection.execute(_query(table)).fetchall()
        rows = whole_number(stored)
        if rows is None or len(found) < rows:
            raise damaged(self.path, f"{table} has {len(found)} of {stored} rows")
        data = [values[:-1] for values in found]
        if changed := first_changed(found, data):
            raise damaged(self.path, f"{table} {_shown(changed[0])}: its checksum is wrong")
        try:
            known: list[T] = msgspec.convert(
                single_line_rows(table, data),
                list[row],  # type: ignore[valid-type]
            )
        except msgspec.ValidationError as error:
            raise damaged(self.path, f"{table}: {error}") from error
        if self._opened.tables is not None:
            self._read_tables[table] = known
        return known

    def _locality(self, row: tuple[int, int, int, str, str]) -> Locality:
        number, _, process, memory, text = row
        found = self._decode(text, Locality, f"locality {number}")
        if (process, memory) != (found.worker, found.memory):
            name = "memory" if process == found.worker else "process"
            raise damaged(self.path, f"locality {number}: its {name} is not that of its record")
        return found

    def _require_moment(self, place: str, moment: str) -> None:
        if not are_moments([moment]):
            raise damaged(self.path, f"{place}: {moment[:40]!r} is no moment")

    def _locality_rows(self) -> list[tuple[int, int, int, str, str]]:
        return self._rows("locality", tuple[int, int, int, str, str])

    @property
    def alone_rows(self) -> Mapping[int, AloneRow]:
        """Visit -> times of its transfers without others, of the visits that were read last."""
        return self._alone

    def _optional_rows(self, table: SchemaTable, row: type[T]) -> list[T]:
        tables = self._opened.tables
        with explained(self.path):
            is_there = (
                has_table(self._connection, table.name) if tables is None else table.name in tables
            )
        return self._rows(table.name, row) if is_there else []

    def _only(self, table: str) -> str:
        """The text in a table of one row."""
        found = self._rows(table, tuple[int, str])
        if len(found) != 1:
            raise damaged(self.path, f"{table} has {len(found)} rows")
        return found[0][1]

    def _meta(self, key: str) -> str:
        found = dict(self._rows("meta", tuple[str, str]))
        if key not in found:
            raise damaged(self.path, f"{key} is missing in meta")
        return found[key]

    def _decode(self, text: str, type: type[T], place: str) -> T:
        return self._read(lambda text: _decoded(text, type), text, place)

    def _read(self, read: Callable[[str], T], text: str, place: str) -> T:
        try:
            return read(text)
        except (msgspec.MsgspecError, TypeError, RecursionError, InvalidRecord) as error:
            raise damaged(self.path, f"{place}: {error}") from error


@cache
def _query(table: str) -> str:
    return f"SELECT {', '.join(TABLE[table].names)} FROM {table}"


def _decoded(text: str, type: type[T]) -> T:
    """Raises `msgspec.MsgspecError` and `InvalidRecord`."""
    value = msgspec.json.decode(text, type=type)
    require_valid(value)
    return value


# Profiles of one node have the same machine, and those of equal nodes the same workloads. Counters
# of errors seldom change.


@lru_cache(512)
def _machine_from(text: str) -> Machine:
    return _decoded(text, Machine)


@lru_cache(512)
def _health_from(text: str) -> Health:
    return _decoded(text, Health)


@lru_cache(4096)
def _workload_from(text: str) -> tuple[Workload, SeriesRow]:
    """The workload, and the row that it should have."""
    workload = _decoded(text, Workload)
    return workload, series_row(workload)


def _named(path: str | os.PathLike[str]) -> Path:
    """Raises `MissingProfile` for a name that no file can have."""
    name = os.fspath(path)
    if not name or "\0" in name:
        raise MissingProfile(
            f"{name!r} is not the name of a file",
            remedy="name a file that waywiser survey made",
        )
    return Path(name)


def _shown(key: object) -> str:
    """The key of a row in few characters."""
    return repr(key)[:60]
