"""Opens a profile's database, of any user and in any place.

Other people's files are opened read-only, also in folders that may not be written, on file systems
without locks, and also when a killed survey left its half-made commit beside them.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from waywiser.files.file_locks import has_range_locks
from waywiser.profile.compressed import is_compressed, unpacked
from waywiser.profile.errors import MissingProfile, NotReadable, NotWritable
from waywiser.profile.header import stated_bytes
from waywiser.profile.known_statements import unknown_entry, unreadable_table
from waywiser.profile.quiet_copy import copy_quietly, not_copied
from waywiser.profile.sqlite_errors import damaged, explained, is_busy, is_final, no_locks
from waywiser.words import TemporaryFolder, open_regular, why_not_read
from waywiser.words.regular_file import require_regular

BUSY_SECONDS = 20.0
"""How long to wait for another process's commit: many times the slowest seen on network disks."""

_FIRST_BUSY_SECONDS = 0.5
"""How long to wait before the locks of a file are tried again: a lock service may have ended."""

CHECKED_BYTES = 32 * 2**20
"""Files up to this size are checked page by page when opened: it takes under a second."""

_JOURNAL_MODE = slice(18, 20)
"""The bytes of the header that say whether there is a write-ahead log."""

_LONGEST_STATEMENT = 2**20
"""Bytes of a statement that SQLite parses; that of the largest table has 3,000."""


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the file has the table, which not all files have."""
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    ((tables,),) = connection.execute(query, (name,)).fetchall()
    return bool(tables)


class Opened(NamedTuple):
    connection: sqlite3.Connection
    copy: TemporaryFolder | None = None
    """Holds the copy that is read instead of the file itself."""
    tables: frozenset[str] | None = None
    """The tables of a snapshot, all of which is read as it was at one moment; else None."""

    def close(self) -> None:
        """May be called twice."""
        self.connection.close()
        if self.copy is not None:
            self.copy.close()


def open_read_only(path: Path) -> Opened:
    """A checked connection that cannot write. Raises every `ProfileError` of a bad file."""
    stated_bytes(path)
    _require_regular_journal(path)
    with _present(path), explained(path):
        opened = _connect_read_only(path)
        try:
            _check(opened.connection, path)
        except BaseException:
            opened.close()
            raise
        return opened


def open_snapshot(path: Path) -> Opened:
    """Opens a profile within one transaction, and without a check of every page: half the cost for
    a reader of thousands of small files. Each row is checked when it is read, as always."""
    stated = stated_bytes(path)
    _require_regular_journal(path)
    with _present(path), explained(path):
        opened = _connect_read_only(path)
        try:
            opened.connection.execute("BEGIN")
            tables = _require_columns(opened.connection, path)
            if _present_bytes(opened.connection, path) < stated:
                raise damaged(path, "truncated")
        except BaseException:
            opened.close()
            raise
        return opened._replace(tables=tables)


def open_writable(path: Path) -> sqlite3.Connection:
    """A checked connection that writes; a commit that a kill cut short is rolled back. Raises
    `NotWritable` for tables that Waywiser did not make: what is in them may run when a row is
    written, or when the file is checked."""
    stated_bytes(path)
    with _present(path):
        if is_compressed(path):
            raise NotWritable(
                "is compressed, and not written to", where=str(path), remedy="unpack it first"
            )
        _require_regular_journal(path)
        if not has_locks(path):
            raise no_locks(path)
    with _present(path), explained(path):
        connection = _connect(path, "mode=rw")
        try:
            _require_known(connection, path)
        except BaseException:
            connection.close()
            raise
        _check(connection, path, "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON")
        return connection


@contextmanager
def _present(path: Path) -> Iterator[None]:
    """Names a file that has gone, or cannot be read any more, since its first bytes were read. A
    limit of this process is met at the edge (`waywiser.machine.met_limit`)."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingProfile(
            "there is no such file any more",
            where=str(path),
            remedy="another program has removed or renamed it",
        ) from error
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        raise NotReadable(
            why_not_read(error), where=str(path), remedy="see that its file system is there"
        ) from error


def _connect(path: Path, options: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?{options}"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    _limit(connection)
    return connection


_locks: dict[tuple[int, str], bool] = {}
"""Whether the file systems of folders have locks, by number of the device and folder."""


def has_locks(path: Path, *, again: bool = False) -> bool:
    """Whether the file system of a profile has locks: tried once for each folder, and ``again``.
    Raises `OSError`."""
    with open_regular(path) as descriptor:
        key = os.fstat(descriptor).st_dev, os.path.dirname(os.path.abspath(path))
        if again or key not in _locks:
            _locks[key] = has_range_locks(descriptor)
        return _locks[key]


def _journal(path: Path) -> Path:
    return Path(f"{path}-journal")


def _require_regular_journal(path: Path) -> None:
    """SQLite would wait for a FIFO that has the name of the journal. Raises `NotReadable`."""
    for companion in (f"{path}-journal", f"{path}-wal"):
        try:
            with suppress(FileNotFoundError):
                require_regular(companion)
        except OSError as error:
            raise NotReadable(
                why_not_read(error), where=companion, remedy="remove it to read the profile"
            ) from error


def _require_known(connection: sqlite3.Connection, path: Path) -> None:
    if found := unknown_entry(connection):
        raise NotWritable(
            f"is not written to: {found}", where=str(path), remedy="survey into a new file with -o"
        )


def _connect_read_only(path: Path) -> Opened:
    """SQLite does not read without locks, nor past a hot journal, which a kill in the middle of a
    commit leaves, and may not roll it back through a read-only connection. Roll back in place
    where this user may write, as the next resume would; else in a private copy."""
    if is_compressed(path):
        return Opened(_connect_unpacked(path))
    if not has_locks(path):
        return _open_copy(path)
    connection = _connect(path, "mode=ro")
    try:
        _wait_for_lock(connection, path)
        return Opened(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        if is_final(error) and has_locks(path):
            raise
    if _journal(path).exists():
        with suppress(sqlite3.OperationalError):
            _roll_back(path, "mode=rw")
            return Opened(_connect(path, "mode=ro"))
    return _open_copy(path)


def _connect_unpacked(path: Path) -> sqlite3.Connection:
    """A connection to a compressed profile in memory. SQLite would run what other tables have when
    it checks them, which it does not in a file that is opened read-only."""
    data = unpacked(path, stated_bytes(path))
    data[_JOURNAL_MODE] = b"\1\1"  # a write-ahead log needs a file
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(data)
        _limit(connection)
        connection.execute("PRAGMA query_only = ON")
        if found := unknown_entry(connection):
            raise NotReadable(
                f"is compressed, and {found}", where=str(path), remedy="unpack it to read it"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _limit(connection: sqlite3.Connection) -> None:
    """The file may come from anyone."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_STATEMENT)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _wait_for_lock(connection: sqlite3.Connection, path: Path) -> None:
    """Takes a lock for reading once. SQLite says that a file is in use also if its file system has
    lost its locks: that is not waited for."""
    query = "SELECT count(*) FROM sqlite_master"
    _set_busy_seconds(connection, min(_FIRST_BUSY_SECONDS, BUSY_SECONDS))
    try:
        connection.execute(query).fetchone()
    except sqlite3.OperationalError as error:
        if not is_busy(error) or not has_locks(path, again=True):
            raise
        _set_busy_seconds(connection, BUSY_SECONDS)
        connection.execute(query).fetchone()
    _set_busy_seconds(connection, BUSY_SECONDS)


def _set_busy_seconds(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")


def _open_copy(path: Path) -> Opened:
    """A private copy, in which a commit that was cut short is rolled back."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(TemporaryFolder("waywiser-copy-"))
        except OSError as error:
            raise not_copied(path, error) from error
        copy = folder.path / "copy"
        copy_quietly(path, copy)
        if _journal(copy).exists():
            _roll_back(copy, "mode=rw&nolock=1")
        opened = Opened(_connect(copy, "mode=ro&immutable=1"), folder)
        stack.pop_all()
        return opened


def _roll_back(path: Path, options: str) -> None:
    connection = _connect(path, options)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        connection.close()


def _check(connection: sqlite3.Connection, path: Path, *pragmas: str) -> None:
    """Sets the pragmas, and closes a connection to a file that is damaged."""
    try:
        for pragma in pragmas:
            connection.execute(pragma)
        _require_whole(connection, path)
    except BaseException:
        connection.close()
        raise


def _require_whole(connection: sqlite3.Connection, path: Path) -> None:
    """The tables are there, nothing is cut off, and (small files) every page is valid."""
    _require_columns(connection, path)
    if _bytes_missing(connection, path):
        raise damaged(path, "truncated")
    if _present_bytes(connection, path) <= CHECKED_BYTES:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(path, verdict)


_complete: set[tuple[tuple[str, str], ...]] = set()
"""Names and statements of tables that were found complete: profiles of one version have equal
ones."""

MOST_COMPLETE = 64


def _require_columns(connection: sqlite3.Connection, path: Path) -> frozenset[str]:
    """Every table of a profile is there with its columns. Returns the names of all tables."""
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
    statements = tuple(connection.execute(query).fetchall())
    if statements not in _complete:
        if wrong := unreadable_table(connection):
            raise damaged(path, wrong)
        if len(_complete) < MOST_COMPLETE:
            _complete.add(statements)
    return frozenset(name for name, _ in statements)


def _bytes_missing(connection: sqlite3.Connection, path: Path) -> bool:
    """SQLite itself forgives a last page that is cut short. Size and page count are compared in a
    transaction, since another process may be committing."""
    connection.execute("BEGIN")
    try:
        return _present_bytes(connection, path) < _page_bytes(connection)
    finally:
        connection.execute("COMMIT")


def _present_bytes(connection: sqlite3.Connection, path: Path) -> int:
    """The size of a file that SQLite has open; of a compressed one that of the database in it.
    Opens no file: closing one would give back SQLite's locks of it in this process."""
    connection.text_factory = bytes  # the name of a file may be no text
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    connection.text_factory = str
    return path.stat().st_size if file.startswith(b"/") else _page_bytes(connection)


def _page_bytes(connection: sqlite3.Connection) -> int:
    query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    return int(connection.execute(query).fetchone()[0])
