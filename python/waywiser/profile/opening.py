"""Opens a profile's database, and says in one line what is wrong with a file that is none.

Other people's files are opened read-only, also in folders that may not be written, and also when
a killed survey left its half-made commit beside them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from waywiser.profile.compressed import is_compressed, packing_of, unpacked, unpacked_start
from waywiser.profile.errors import (
    DamagedProfile,
    MissingProfile,
    NewerProfile,
    NotAProfile,
    NotWritable,
    OlderProfile,
    ProfileError,
)
from waywiser.profile.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES
from waywiser.words.regular_file import NotRegular, open_regular, why_not_read
from waywiser.words.temporary_folder import TemporaryFolder

BUSY_SECONDS = 20.0
"""How long to wait for another process's commit: many times the slowest seen on network disks."""

CHECKED_BYTES = 32 * 2**20
"""Files up to this size are checked page by page when opened: it takes under a second."""

_MAGIC = b"SQLite format 3\0"
_POLICY = b'"waywiser-policy"'
"""A text in the first line of a policy file (docs/policy.md)."""
_HEADER_BYTES = 100
_JOURNAL_MODE = slice(18, 20)
"""The bytes of the header that say whether there is a write-ahead log."""
_REMEDY = "name a file that waywiser survey made"


def is_profile(path: Path) -> bool:
    """Whether the file begins as profiles do; no, if it cannot be read."""
    try:
        with open_regular(path) as descriptor:
            start = os.read(descriptor, len(_MAGIC))
        if packing_of(start) is not None:
            start = unpacked_start(path, len(_MAGIC))
        return start == _MAGIC
    except (OSError, ProfileError):
        return False


def stated_bytes(path: Path) -> int:
    """The size that the first 100 bytes of the file state: page size times page count (SQLite's
    file format, section 1.3). Raises `MissingProfile`, `NotAProfile`, `OlderProfile`, or
    `NewerProfile`."""
    where, data = str(path), _first_bytes(path)
    page_size, pages, version, application_id = struct.unpack_from(">H10xI28xI4xI", data, 16)
    if application_id != APPLICATION_ID:
        raise NotAProfile("is another program's database", where=where, remedy=_REMEDY)
    if version != SCHEMA_VERSION:
        what = f"is a profile of version {version}; this program reads version {SCHEMA_VERSION}"
        if version > SCHEMA_VERSION:
            raise NewerProfile(what, where=where, remedy="update Waywiser")
        remedy = "survey the machine again, or read it with the Waywiser that made it"
        raise OlderProfile(what, where=where, remedy=remedy)
    return int((65536 if page_size == 1 else page_size) * pages)


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the file has the table, which not all files have."""
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?"
    ((tables,),) = connection.execute(query, (name,)).fetchall()
    return bool(tables)


def _first_bytes(path: Path) -> bytes:
    """The header of a database, unread. Raises `MissingProfile` and `NotAProfile`."""
    where = str(path)
    try:
        with open_regular(path) as descriptor:
            data = os.read(descriptor, _HEADER_BYTES)
        if is_packed := packing_of(data) is not None:
            data = unpacked_start(path, _HEADER_BYTES)
    except FileNotFoundError:
        if where == "-":
            raise MissingProfile(
                "a profile cannot be read from standard input", remedy="name a file"
            ) from None
        raise MissingProfile(
            "there is no such file", where=where, remedy="waywiser survey -o FILE makes one"
        ) from None
    except OSError as error:
        raise NotAProfile(
            why_not_read(error),
            where=where,
            remedy=_REMEDY if isinstance(error, NotRegular) else "ask its owner",
        ) from error
    if not data:
        raise NotAProfile("the file is empty", where=where, remedy=_REMEDY)
    if len(data) < _HEADER_BYTES or not data.startswith(_MAGIC):
        if is_packed:
            what = "is compressed, and what is in it is not a profile"
            raise NotAProfile(what, where=where, remedy=_REMEDY)
        if _POLICY in data:
            raise NotAProfile("is a policy, and no profile", where=where, remedy=_REMEDY)
        raise NotAProfile("is not a profile", where=where, remedy=_REMEDY)
    return data


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into this package's, with the file's name and the remedy."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        text = str(error)
        where = str(path)
        if "locked" in text or "busy" in text:
            raise ProfileError(
                "is busy", where=where, remedy="another program holds it: close that, try again"
            ) from error
        if "full" in text:
            raise NotWritable(
                "the disk is full", where=where, remedy="make space, then --resume"
            ) from error
        if "readonly" in text or "unable to open" in text:
            raise NotWritable(
                f"cannot be written: {text}",
                where=where,
                remedy="both the file and its folder must be writable",
            ) from error
        raise damaged(path, text) from error


def damaged(path: Path, detail: str) -> DamagedProfile:
    """The error for a profile that does not read, recognises a truncated one by its size."""
    stated, size = stated_bytes(path), _bytes_of(path)
    if size < stated:
        detail = f"truncated: it has {size} bytes of {stated}"
    readable = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
    return DamagedProfile(
        f"the profile is damaged ({readable})",
        where=str(path),
        remedy="copy it again, or survey again",
    )


class Opened(NamedTuple):
    connection: sqlite3.Connection
    copy: TemporaryFolder | None = None
    """Holds the copy that is read instead of the file itself."""
    is_snapshot: bool = False
    """Whether all is read as it was at one moment."""

    def close(self) -> None:
        """May be called twice."""
        self.connection.close()
        if self.copy is not None:
            self.copy.close()


def open_read_only(path: Path) -> Opened:
    """A checked connection that cannot write. Raises every `ProfileError` of a bad file."""
    stated_bytes(path)
    with explained(path):
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
    with explained(path):
        opened = _connect_read_only(path)
        try:
            opened.connection.execute("BEGIN")
            _require_columns(opened.connection, path)
            if _bytes_of(path) < stated:
                raise damaged(path, "truncated")
        except BaseException:
            opened.close()
            raise
        return opened._replace(is_snapshot=True)


def open_writable(path: Path) -> sqlite3.Connection:
    """A checked connection that writes; a commit that a kill cut short is rolled back."""
    stated_bytes(path)
    if is_compressed(path):
        raise NotWritable(
            "is compressed, and not written to", where=str(path), remedy="unpack it first"
        )
    with explained(path):
        connection = _connect(path, "mode=rw")
        _check(connection, path, "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON")
        return connection


def _connect(path: Path, options: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?{options}"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from anyone
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _connect_unpacked(path: Path) -> sqlite3.Connection:
    """A connection to a compressed profile in memory."""
    data = unpacked(path, stated_bytes(path))
    data[_JOURNAL_MODE] = b"\1\1"  # a write-ahead log needs a file
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(data)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "query_only = ON"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _bytes_of(path: Path) -> int:
    """The size of the file; of a compressed one that of the database in it."""
    return stated_bytes(path) if is_compressed(path) else path.stat().st_size


def _connect_read_only(path: Path) -> Opened:
    """SQLite does not read past a hot journal, which a kill in the middle of a commit leaves, and
    may not roll it back through a read-only connection. Roll back in place where this user may
    write, as the next resume would; else in a private copy."""
    if is_compressed(path):
        return Opened(_connect_unpacked(path))
    connection = _connect(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return Opened(connection)
    except sqlite3.OperationalError as error:
        connection.close()
        if "malformed" in str(error) or "locked" in str(error):
            raise
    journal = path.with_name(path.name + "-journal")
    if not journal.exists():
        # the folder or the file system does not even take read locks
        return Opened(_connect(path, "mode=ro&immutable=1"))
    with suppress(sqlite3.OperationalError):
        _roll_back(path)
        return Opened(_connect(path, "mode=ro"))
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryFolder("waywiser-copy-"))
        copy = folder.path / path.name
        shutil.copyfile(path, copy)
        shutil.copyfile(journal, copy.with_name(copy.name + "-journal"))
        _roll_back(copy)
        opened = Opened(_connect(copy, "mode=ro"), folder)
        stack.pop_all()
        return opened


def _roll_back(path: Path) -> None:
    connection = _connect(path, "mode=rw")
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
    if _bytes_of(path) <= CHECKED_BYTES:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(path, verdict)


_complete: set[tuple[tuple[str, str], ...]] = set()
"""Names and statements of tables that were found complete: profiles of one version have equal
ones."""

MOST_COMPLETE = 64


def _require_columns(connection: sqlite3.Connection, path: Path) -> None:
    """Every table of a profile is there with its columns."""
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
    statements = tuple(connection.execute(query).fetchall())
    if statements in _complete:
        return
    names = [(table.name, column) for table in TABLES for column in table.names]
    present = set(
        connection.execute(
            "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
            " WHERE m.type = 'table'"
        )
    )
    missing = [f"{table}.{column}" for table, column in names if (table, column) not in present]
    if missing:
        raise damaged(path, f"{missing[0]} is missing")
    if len(_complete) < MOST_COMPLETE:
        _complete.add(statements)


def _bytes_missing(connection: sqlite3.Connection, path: Path) -> bool:
    """SQLite itself forgives a last page that is cut short. Size and page count are compared in a
    transaction, since another process may be committing."""
    connection.execute("BEGIN")
    try:
        (pages,) = connection.execute("SELECT page_count FROM pragma_page_count").fetchone()
        (page_bytes,) = connection.execute("SELECT page_size FROM pragma_page_size").fetchone()
        return bool(_bytes_of(path) < pages * page_bytes)
    finally:
        connection.execute("COMMIT")
