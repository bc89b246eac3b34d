"""A profile: all that is known of one machine at one time, in one file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from waywiser.closing import Closing
from waywiser.profile import rows, writing
from waywiser.profile.beside import beside
from waywiser.profile.errors import NotWritable, ProfileError
from waywiser.profile.lock import lock
from waywiser.profile.opening import (
    Opened,
    damaged,
    explained,
    open_read_only,
    open_writable,
)
from waywiser.profile.schema import create_sql
from waywiser.records import Health, Locality, Refusal, Series, Summary, Visit
from waywiser.topology.machine import Machine
from waywiser.words import Value, Workload

T = TypeVar("T")

UNFINISHED = ("interrupted",)
"""Kinds of failure that a resumed survey measures again. All others are final: what crashed or hung
would do so again and cost its time-out each time."""


class Run(Value, frozen=True):
    """One call of ``survey`` that wrote to a profile. Times are UTC, ISO 8601."""

    number: int
    started: str
    ended: str | None
    """None while it runs, and where it was killed."""
    version: str
    command: tuple[str, ...]


class RunHealth(Value, frozen=True):
    """Error counters around one run; None where they were not read, as where it was killed."""

    run: int
    start: Health | None
    end: Health | None


class Profile(Closing):
    """An open profile. Make one with `create`, `open` or `resume`; close it, or use ``with``.

    Every method raises `waywiser.profile.errors.ProfileError` where the file is damaged.
    """

    def __init__(self, path: Path, opened: Opened, lock_handle: int = -1, run: int = 0) -> None:
        self.path = path
        self._opened = opened
        self._connection = opened.connection
        self._lock = lock_handle
        self._run = run
        self._present: dict[str, set[str]] = {}
        self._queries: tuple[str, str] | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        machine: Machine,
        environment: Mapping[str, Any],
        *,
        plan_json: str | bytes = "{}",
        refusals: Sequence[Refusal] = (),
        command: Sequence[str] = (),
    ) -> Profile:
        """A new profile, ready for visits, with its first run begun.

        The file gets its name only when its tables are complete. Raises `ExistingFile`,
        `NotWritable`.
        """
        file = Path(path)
        plan = plan_json if isinstance(plan_json, str) else plan_json.decode()
        with beside(file) as part:
            try:
                with explained(part):
                    _write_new(part, machine, plan, refusals)
            except NotWritable as error:  # nothing is left that could be named or resumed
                raise NotWritable(
                    error.what, where=str(file), remedy="make space, or name a file elsewhere"
                ) from error
        return cls.resume(file, environment, command=command)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Profile:
        """Read-only; works on other people's files and while a survey is writing.

        Raises `MissingProfile`, `NotAProfile`, `NewerProfile`, `DamagedProfile`.
        """
        file = Path(path)
        return cls(file, open_read_only(file))

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        environment: Mapping[str, Any],
        *,
        command: Sequence[str] = (),
    ) -> Profile:
        """For more visits, as a further run. Raises what `open` does, `LockedProfile` where another
        survey writes to it, and `NotWritable`."""
        file = Path(path)
        open_read_only(file).connection.close()  # a bad file is told as such, not as unwritable
        handle = lock(file)
        try:
            profile = cls(file, Opened(open_writable(file)), handle)
        except BaseException:
            os.close(handle)
            raise
        try:
            profile._begin_run(environment, command)
        except BaseException:
            profile.close()
            raise
        return profile

    def close(self) -> None:
        """Ends the run, where one was begun, and lets go of the file. May be called twice."""
        connection, self._run, run = self._connection, 0, self._run
        try:
            if run:
                with explained(self.path):
                    connection.execute(
                        "UPDATE run SET ended = ? WHERE run = ?", (writing.now(), run)
                    )
        finally:
            connection.close()
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1
            if self._opened.copy is not None:
                self._opened.copy.cleanup()

    # What is known of the machine and of how it was measured.

    @property
    def schema_version(self) -> int:
        return self._one("PRAGMA user_version", tuple[int])[0]

    @property
    def created(self) -> str:
        """UTC, ISO 8601."""
        return self._one("SELECT value FROM meta WHERE key = 'created'", tuple[str])[0]

    @property
    def machine(self) -> Machine:
        return self._decode(self._one("SELECT json FROM machine", tuple[str])[0], Machine)

    @property
    def plan_json(self) -> str:
        """What was to be measured, as the survey wrote it."""
        return self._one("SELECT json FROM plan", tuple[str])[0]

    @property
    def environments(self) -> dict[int, dict[str, Any]]:
        """Per run, by its number: what could explain a number."""
        found = self.select("SELECT run, json FROM environment ORDER BY run", tuple[int, str])
        return {run: self._decode(text, dict[str, Any]) for run, text in found}

    @property
    def environment(self) -> dict[str, Any]:
        """Of the latest run."""
        environments = self.environments
        return environments[max(environments)] if environments else {}

    @property
    def runs(self) -> tuple[Run, ...]:
        found = self.select(
            "SELECT run, started, ended, version, command FROM run ORDER BY run",
            tuple[int, str, str | None, str, str],
        )
        return tuple(
            Run(number, started, ended, version, self._decode(text, tuple[str, ...]))
            for number, started, ended, version, text in found
        )

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        found = self.select(
            "SELECT path, reason FROM refusal ORDER BY reason, path", tuple[str, str]
        )
        return tuple(Refusal(path, reason) for path, reason in found)

    # What was measured.

    def finished(self) -> set[tuple[str, int]]:
        """(series identity, block) of every visit that is not to be measured again."""
        marks = ", ".join("?" * len(UNFINISHED))
        found = self.select(
            "SELECT series, block FROM visit"
            f" WHERE failure_kind IS NULL OR failure_kind NOT IN ({marks})",
            tuple[str, int],
            UNFINISHED,
        )
        return set(found)

    def workloads(self) -> list[Workload]:
        """Those with at least one visit, by curve, then by size.

        Raises `ProfileError` where their identities were made by another rule, since then no visit
        would be found.
        """
        found = self.select(
            "SELECT identity, workload FROM series WHERE identity IN (SELECT series FROM visit)"
            " ORDER BY curve, bytes, identity",
            tuple[str, str],
        )
        workloads = []
        for identity, text in found:
            workload = self._decode(text, Workload)
            if workload.identity != identity:
                raise ProfileError(
                    f"{workload} is {identity} in it and {workload.identity} here",
                    where=str(self.path),
                    remedy="read it with the version of Waywiser that made it, or survey anew",
                )
            workloads.append(workload)
        return workloads

    def series(self) -> list[Series]:
        """All series, by curve, then by size, each with its visits in block order."""
        return list(self.iter_series())

    def iter_series(self) -> Iterator[Series]:
        """As `series`, one at a time in memory."""
        for workload in self.workloads():
            yield Series(workload, tuple(self.visits_of(workload)))

    def visits(self) -> Iterator[Visit]:
        """All visits in the order they were finished, one at a time in memory."""
        found = self.select("SELECT visit, series FROM visit ORDER BY visit", tuple[int, str])
        # read after the visits: a survey that is writing may begin a series in between
        workloads = {workload.identity: workload for workload in self.workloads()}
        for number, identity in found:
            if identity not in workloads:
                raise damaged(self.path, f"visit {number} is of no series")
            yield from self._visits("visit = ?", number, workloads[identity])

    def visits_of(self, workload: Workload) -> Iterator[Visit]:
        """Those of one series in block order, one at a time in memory."""
        yield from self._visits("series = ? ORDER BY block", workload.identity, workload)

    def commit_visit(self, visit: Visit, summary: Summary | None = None) -> None:
        """Stores a finished visit with all its samples, durably, in one transaction.

        ``summary`` is what `waywiser.stats.summary` makes of the samples; without it readers of
        `waywiser.profile.digest` make it again each time.

        Replaces an interrupted visit of the same series and block; raises `ProfileError` where
        that was finished, since nothing finished is measured twice, `NotWritable` on a full disk.
        """
        if not self._run:
            raise ProfileError("is open for reading only", where=str(self.path))
        identity = visit.workload.identity
        with self._transaction():
            former = self._connection.execute(
                "SELECT visit, failure_kind FROM visit WHERE series = ? AND block = ?",
                (identity, visit.block),
            ).fetchone()
            if former is not None and former[1] not in UNFINISHED:
                raise ProfileError(
                    f"block {visit.block} of {visit.workload} is finished already",
                    where=str(self.path),
                )
            if former is not None:
                writing.delete_visit(self._connection, former[0])
            writing.insert_visit(self._connection, visit, self._run, summary)

    def localities(self) -> list[Locality]:
        """What workers found about where memory is, in the order found."""
        if not self.columns("locality"):
            return []  # a file of an earlier program
        found = self.select("SELECT json FROM locality ORDER BY locality", tuple[str])
        return [self._decode(text, Locality) for (text,) in found]

    def commit_locality(self, found: Locality) -> None:
        """Stores what a worker found about where memory is. Raises `ProfileError` where the
        profile was opened for reading, `NotWritable` on a full disk."""
        if not self._run:
            raise ProfileError("is open for reading only", where=str(self.path))
        with self._transaction():
            writing.insert_locality(self._connection, found, self._run)

    def health(self) -> list[RunHealth]:
        """What the GPUs' error counters showed around each run that read them, by run."""
        if not self.columns("health"):
            return []  # a file of an earlier program
        found = self.select(
            "SELECT run, moment, json FROM health ORDER BY run", tuple[int, str, str]
        )
        moments: dict[int, dict[str, Health]] = {}
        for run, moment, text in found:
            moments.setdefault(run, {})[moment] = self._decode(text, Health)
        return [RunHealth(run, at.get("start"), at.get("end")) for run, at in moments.items()]

    def commit_health(self, health: Health, moment: Literal["start", "end"]) -> None:
        """Stores a reading of the counters for this run. Raises as `commit_locality` does."""
        if not self._run:
            raise ProfileError("is open for reading only", where=str(self.path))
        with self._transaction():
            writing.insert_health(self._connection, health, moment, self._run)

    def add_refusals(self, refusals: Sequence[Refusal]) -> None:
        """Notes further paths that cannot be measured; a later reason replaces an earlier one."""
        with self._transaction():
            writing.insert_refusals(self._connection, refusals)

    # How it is read.

    def _begin_run(self, environment: Mapping[str, Any], command: Sequence[str]) -> None:
        with self._transaction():
            writing.bring_up_to_date(self._connection)
            run = writing.begin_run(self._connection, environment, command)
        self._run = run

    def _visits(self, which: str, value: object, workload: Workload) -> Iterator[Visit]:
        of_visit, of_samples = self._visit_sql()
        with explained(self.path):
            heads = self._connection.execute(f"{of_visit} WHERE {which}", (value,)).fetchall()
        for number, *head in heads:
            with explained(self.path):
                samples = self._connection.execute(of_samples, (number,)).fetchall()
            try:
                yield rows.visit_from(head, workload, rows.samples_from(samples))
            except (msgspec.MsgspecError, TypeError) as error:
                raise damaged(self.path, f"visit {number}: {error}") from error

    def _visit_sql(self) -> tuple[str, str]:
        """The queries of visits, and of the samples of one."""
        if not self._queries:
            present = self.columns("visit")
            head = ", ".join(c if c in present else f"NULL AS {c}" for c in rows.VISIT_COLUMNS)
            columns = ", ".join(rows.SAMPLE_COLUMNS)
            self._queries = (
                f"SELECT visit, {head} FROM visit",
                f"SELECT {columns} FROM sample WHERE visit = ? ORDER BY n",
            )
        return self._queries

    def columns(self, table: str) -> set[str]:
        """Of a table of this file, which an earlier program may have made; none where it is not
        there."""
        if table not in self._present:
            with explained(self.path):
                self._present[table] = writing.columns_of(self._connection, table)
        return self._present[table]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def select(self, sql: str, row: type[T], values: Sequence[Any] = ()) -> list[T]:
        """All rows of a query of this database, each checked to be a ``row``: a table of SQLite
        takes any type. For what no other method reads."""
        with explained(self.path):
            found = self._connection.execute(sql, values).fetchall()
        try:
            return msgspec.convert(found, list[row])  # type: ignore[valid-type]
        except msgspec.ValidationError as error:
            raise damaged(self.path, str(error)) from error

    def _one(self, sql: str, row: type[T], values: Sequence[Any] = ()) -> T:
        found = self.select(sql, row, values)
        if not found:
            raise damaged(self.path, f"nothing answers {sql!r}")
        return found[0]

    def _decode(self, text: Any, type: type[T]) -> T:
        try:
            return msgspec.json.decode(text, type=type)
        except (msgspec.MsgspecError, TypeError) as error:
            raise damaged(self.path, str(error)) from error


def _write_new(part: Path, machine: Machine, plan: str, refusals: Sequence[Refusal]) -> None:
    connection = sqlite3.connect(part, isolation_level=None)
    try:
        connection.executescript("BEGIN;" + create_sql())
        writing.fill(connection, machine, plan, refusals)
        connection.execute("COMMIT")
    finally:
        connection.close()
