"""Profiles that are written to: visit by visit by the one who measures, or whole at once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from waywiser.machine import Machine
from waywiser.profile import writing
from waywiser.profile.errors import ProfileError
from waywiser.profile.lock import lock
from waywiser.profile.opening import Opened, has_locks, open_read_only, open_writable
from waywiser.profile.output_file import new_output
from waywiser.profile.profile import Profile, is_finished
from waywiser.profile.rows import series_row
from waywiser.profile.sqlite_errors import explained, no_locks
from waywiser.words import Health, Locality, Unsupported, Visit, WhoCopies, remove_parts


class WritableProfile(Profile):
    """A profile during one run. Make one with `create` or `resume`; close it, or use ``with``.

    Only one at a time is open of a file; others may read it meanwhile. What is committed is durable
    and seen by readers at once. Every method raises `NotWritable` on a full disk.
    """

    def __init__(
        self, path: Path, environment: Mapping[str, Any], command: Sequence[str] = ()
    ) -> None:
        """Begins a run in a file that is a profile."""
        self._environment = dict(environment)
        self._run: tuple[Any, ...] = ()
        self._waiting: list[Visit] = []
        self._lock = lock(path)
        remove_parts(path)
        try:
            super().__init__(path, Opened(open_writable(path)))
        except BaseException:
            os.close(self._lock)
            raise
        try:
            rows = self.visit_rows()
            self._numbers = {(row.series, row.block): row.visit for row in rows}
            self._unfinished = {row.visit for row in rows if not is_finished(row)}
            self._known = {row.series for row in rows}
            self._visits = len(rows)
            self._next_visit = max((row.visit for row in rows), default=0) + 1
            self._next_locality = max((row[0] for row in self._locality_rows()), default=0) + 1
            number = max((run.number for run in self.runs), default=0) + 1
            with self._transaction():
                run = writing.begin_run(self._connection, number, environment, command)
        except BaseException:
            self.close()
            raise
        self._run = run

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        machine: Machine,
        environment: Mapping[str, Any],
        *,
        plan_json: str | bytes = "{}",
        unsupported_paths: Sequence[Unsupported] = (),
        command: Sequence[str] = (),
        created: str = "",
    ) -> WritableProfile:
        """A new profile, ready for visits, with its first run begun. A simulated survey says when
        it was ``created``; any other is made now.

        The file gets its name only when its tables are complete. Raises `ExistingFile`,
        `NotWritable`.
        """
        file = Path(path)
        with _new_database(file, machine, plan_json, unsupported_paths, created):
            pass  # no visits yet
        try:
            return cls.resume(file, environment, command=command)
        except BaseException:  # nothing is left that holds nothing
            file.unlink(missing_ok=True)
            raise

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        environment: Mapping[str, Any],
        *,
        command: Sequence[str] = (),
    ) -> WritableProfile:
        """Opens a profile for more visits, as a further run. Raises what `Profile.open` does,
        `LockedProfile` if another survey writes to it, and `NotWritable`."""
        file = Path(path)
        open_read_only(file).close()  # a bad file is reported as such, not as unwritable
        return cls(file, environment, command)

    def close(self) -> None:
        """Ends the run, and lets go of the file. May be called twice."""
        try:
            if self._run:
                self.commit_waiting()
                with explained(self.path):
                    writing.end_run(self._connection, self._run)
        finally:
            self._run = ()
            super().close()
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def commit_visit(self, visit: Visit) -> None:
        """Stores a finished visit with all its samples, durably, in one transaction.

        Replaces an interrupted visit of the same series and block; raises `ProfileError` where
        that was finished, since nothing finished is measured twice.
        """
        self._commit([*self._waiting, visit])

    def commit_later(self, visit: Visit) -> None:
        """Stores a visit that measured nothing along with the next one, or at the end: each
        transaction waits for the disk, and a plan for many GPUs skips thousands in a row."""
        self._waiting.append(visit)

    def commit_waiting(self) -> None:
        """Stores what was left for later now."""
        if self._waiting:
            self._commit(self._waiting)

    def _commit(self, visits: Sequence[Visit]) -> None:
        """What is known of the file changes only when the transaction has succeeded."""
        numbers: dict[tuple[str, int], int] = {}
        known: set[str] = set()
        unfinished: set[int] = set()
        replaced = 0
        with self._transaction():
            for number, visit in enumerate(visits, start=self._next_visit):
                identity = visit.workload.identity
                key = identity, visit.block
                former = numbers.get(key) or self._numbers.get(key)
                if former is not None:
                    if former not in unfinished and former not in self._unfinished:
                        raise ProfileError(
                            f"block {visit.block} of {visit.workload} is finished already",
                            where=str(self.path),
                        )
                    writing.delete_visit(self._connection, former)
                    replaced += 1
                if identity not in self._known and identity not in known:
                    writing.put(self._connection, "series", series_row(visit.workload))
                    known.add(identity)
                writing.put_visit(self._connection, number, visit, self._run[0])
                numbers[key] = number
                if not is_finished(visit):
                    unfinished.add(number)
            writing.note_rows(self._connection, "visit", self._visits + len(visits) - replaced)
        self._visits += len(visits) - replaced
        self._numbers |= numbers
        self._known |= known
        self._unfinished |= unfinished
        self._next_visit += len(visits)
        self._waiting.clear()

    def commit_locality(self, found: Locality) -> None:
        """Stores what a worker found about where memory is."""
        with self._transaction():
            number, run = self._next_locality, self._run[0]
            writing.insert_locality(self._connection, number, found, run)
        self._next_locality += 1

    def commit_who_copies(self, found: WhoCopies) -> None:
        """Stores which copies of a GPU need multiprocessors, with the machine; replaces what was
        stored of the same GPU."""
        machine = self.machine
        others = tuple(each for each in machine.traits.who_copies if each.gpu != found.gpu)
        traits = replace(machine.traits, who_copies=(*others, found))
        with self._transaction():
            writing.put_machine(self._connection, replace(machine, traits=traits))

    def commit_health(self, health: Health, moment: Literal["start", "end"]) -> None:
        """Stores a reading of the GPUs' error counters for this run."""
        with self._transaction():
            writing.insert_health(self._connection, health, moment, self._run[0])

    def commit_environment(self, found: Mapping[str, Any]) -> None:
        """Adds entries to the environment of this run, or replaces them."""
        self._environment |= found
        with self._transaction():
            writing.put_environment(self._connection, self._run[0], self._environment)

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


def write_profile(
    path: str | os.PathLike[str],
    machine: Machine,
    environment: Mapping[str, Any],
    visits: Iterable[Visit],
    *,
    plan_json: str | bytes = "{}",
    unsupported_paths: Sequence[Unsupported] = (),
    command: Sequence[str] = (),
) -> None:
    """Writes a profile of one run in one transaction; thousands of visits in a second.

    The file gets its name when it is complete. Raises `ExistingFile`, `NotWritable`, and whatever
    ``visits`` raises; then nothing is left.
    """
    with _new_database(Path(path), machine, plan_json, unsupported_paths) as connection:
        row = writing.begin_run(connection, 1, environment, command)
        known: set[str] = set()
        number = 0
        for number, visit in enumerate(visits, start=1):
            if (identity := visit.workload.identity) not in known:
                writing.put(connection, "series", series_row(visit.workload))
                known.add(identity)
            writing.put_visit(connection, number, visit, 1)
        writing.note_rows(connection, "visit", number)
        writing.end_run(connection, row)


@contextmanager
def _new_database(
    path: Path,
    machine: Machine,
    plan_json: str | bytes,
    unsupported_paths: Sequence[Unsupported],
    created: str = "",
) -> Iterator[sqlite3.Connection]:
    """`writing.new_database` in a file that gets its name when the block ends well; after an error
    nothing is left. Raises `ExistingFile` and `NotWritable`."""
    with new_output(path) as part:
        if not has_locks(part):
            raise no_locks(path)
        with (
            explained(path, part),
            writing.new_database(
                part, machine, plan_json, unsupported_paths, created
            ) as connection,
        ):
            yield connection
