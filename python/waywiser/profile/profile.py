"""A profile: all that is known of one machine at one time, in one file; how it is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from waywiser.closing import Closing
from waywiser.profile import rows
from waywiser.profile.errors import ProfileError
from waywiser.profile.opening import Opened, damaged, explained, open_read_only
from waywiser.profile.runs import Run, RunHealth
from waywiser.profile.schema import columns_of
from waywiser.profile.sound import Unsound, require_sound
from waywiser.records import Health, Locality, Refusal, Samples, Series, Visit
from waywiser.topology.machine import Machine
from waywiser.words import Workload

T = TypeVar("T")

UNFINISHED = ("interrupted",)
"""Kinds of failure that a resumed survey measures again. All others are final: what crashed or hung
would do so again and cost its time-out each time."""


def is_finished(visit: Visit) -> bool:
    """Whether a visit is not to be measured again."""
    return visit.failure is None or visit.failure.kind not in UNFINISHED


class Head(NamedTuple):
    """A visit without its samples."""

    number: int
    visit: Visit
    told: Any
    """What was kept of the samples, as the file has it; see `waywiser.stats.told`."""


SERIES_AT_ONCE = 256
"""Whose visits are read by one query: in memory they take a few megabytes."""


class Profile(Closing):
    """An open profile, read-only. Make one with `open`; close it, or use ``with``.

    Every method raises `waywiser.profile.errors.ProfileError` where the file is damaged.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        self.path = path
        self._opened = opened
        self._connection = opened.connection
        self._present: dict[str, set[str]] = {}
        self._queries: tuple[str, str] | None = None

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Profile:
        """Works on other people's files and while a survey is writing.

        Raises `MissingProfile`, `NotAProfile`, `NewerProfile`, `DamagedProfile`.
        """
        file = Path(path)
        return Profile(file, open_read_only(file))

    def close(self) -> None:
        """Lets go of the file. May be called twice."""
        self._connection.close()
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

    def heads_of(self, workloads: Iterable[Workload]) -> Iterator[tuple[Workload, list[Head]]]:
        """Of each of those workloads, in their order, its visits in block order, without samples:
        a few hundred series in one query, and in memory at a time."""
        remaining = iter(workloads)
        while batch := list(islice(remaining, SERIES_AT_ONCE)):
            by_identity = {workload.identity: workload for workload in batch}
            found: dict[str, list[Head]] = {identity: [] for identity in by_identity}
            of_visit, _ = self._visit_sql()
            marks = ", ".join("?" * len(batch))
            with explained(self.path):
                heads = self._connection.execute(
                    f"{of_visit} WHERE series IN ({marks}) ORDER BY block", tuple(found)
                ).fetchall()
            for number, told, *head in heads:
                identity = head[rows.SERIES_COLUMN]
                visit = self._visit(number, head, by_identity[identity], Samples())
                found[identity].append(Head(number, visit, told))
            for identity, workload in by_identity.items():
                yield workload, found[identity]

    def samples_of(self, head: Head) -> Samples:
        """Those of one visit."""
        return self._samples(head.number)

    def localities(self) -> list[Locality]:
        """What workers found about where memory is, in the order found."""
        if not self.columns("locality"):
            return []  # a file of an earlier program
        found = self.select("SELECT json FROM locality ORDER BY locality", tuple[str])
        return [self._decode(text, Locality) for (text,) in found]

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

    # How it is read.

    def _visits(self, which: str, value: object, workload: Workload) -> Iterator[Visit]:
        of_visit, _ = self._visit_sql()
        with explained(self.path):
            heads = self._connection.execute(f"{of_visit} WHERE {which}", (value,)).fetchall()
        for number, _, *head in heads:
            yield self._visit(number, head, workload, self._samples(number))

    def _visit(
        self, number: int, head: Sequence[Any], workload: Workload, samples: Samples
    ) -> Visit:
        try:
            visit = rows.visit_from(head, workload, samples)
            require_sound(visit)
        except (msgspec.MsgspecError, TypeError, Unsound) as error:
            raise damaged(self.path, f"visit {number}: {error}") from error
        return visit

    def _samples(self, number: int) -> Samples:
        _, of_samples = self._visit_sql()
        with explained(self.path):
            found = self._connection.execute(of_samples, (number,)).fetchall()
        try:
            samples = rows.samples_from(found)
            require_sound(samples)
        except (msgspec.MsgspecError, TypeError, Unsound) as error:
            raise damaged(self.path, f"visit {number}: {error}") from error
        return samples

    def _visit_sql(self) -> tuple[str, str]:
        """The queries of visits, and of the samples of one."""
        if not self._queries:
            present = self.columns("visit")
            wanted = ("told", *rows.VISIT_COLUMNS)
            head = ", ".join(c if c in present else f"NULL AS {c}" for c in wanted)
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
                self._present[table] = columns_of(self._connection, table)
        return self._present[table]

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
            value = msgspec.json.decode(text, type=type)
            require_sound(value)
            return value
        except (msgspec.MsgspecError, TypeError, RecursionError, Unsound) as error:
            raise damaged(self.path, str(error)) from error
