"""What SQLite's errors mean for a profile: its extended result codes, and what the system says.

Damaged is a file of which SQLite or a checksum says so. Whatever keeps a whole file from being read
or written is named as that: a full disk, a limit, a file system without locks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waywiser.files.file_locks import has_range_locks
from waywiser.profile.errors import DamagedProfile, NotReadable, NotWritable, ProfileError
from waywiser.profile.header import database_bytes, stated_bytes
from waywiser.profile.write_probe import WriteObstacle, write_obstacle
from waywiser.words import open_regular

_IO = sqlite3.SQLITE_IOERR
_NO_MEMORY = _IO | 12 << 8
_RENAMED = sqlite3.SQLITE_READONLY | 4 << 8
_LOCKS = frozenset(
    (sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, *(_IO | n << 8 for n in (8, 9, 11, 14, 15)))
)
"""What is said if the system has no locks: UNLOCK, RDLOCK, BLOCKED, CHECKRESERVEDLOCK and LOCK. For
ENOLCK it is SQLITE_BUSY. Not all builds of Python have names for these numbers of SQLite."""

_READS = frozenset(_IO | n << 8 for n in (1, 2, 7, 22, 24, 32, 33))
"""READ, SHORT_READ, FSTAT, SEEK, MMAP, DATA and CORRUPTFS."""

_WRITES = frozenset(
    (
        sqlite3.SQLITE_FULL,
        _IO,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
    )
)
_READ_BYTES = 2**20


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another program seems to hold the file."""
    return _code(error) & 0xFF == sqlite3.SQLITE_BUSY


def is_final(error: sqlite3.Error) -> bool:
    """Whether a file cannot be read, whatever is tried: it is damaged, in use, or its disk fails.
    Not so if SQLite may not lock it, or roll back a commit that was cut short."""
    code = _code(error)
    final = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CORRUPT
    return code in _READS or code & 0xFF in (*final, sqlite3.SQLITE_NOTADB)


@contextmanager
def explained(path: Path, part: Path | None = None) -> Iterator[None]:
    """Turns SQLite's errors into this package's, with the file's name and the remedy. ``part`` is
    the file that is written meanwhile, which gets the name ``path`` at the end."""
    try:
        yield
    except sqlite3.ProgrammingError:  # a mistake of the caller, as a connection that is closed
        raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _meaning(error, path, part or path) from error


def damaged(path: Path, detail: str) -> DamagedProfile:
    """The error for a profile that does not read, recognises a truncated one by its size."""
    stated, size = stated_bytes(path), database_bytes(path)
    if size < stated:
        detail = f"truncated: it has {size} bytes of {stated}"
    readable = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
    return DamagedProfile(
        f"the profile is damaged ({readable})",
        where=str(path),
        remedy="copy it again, or survey again",
    )


def no_locks(path: Path) -> NotWritable:
    """The error for a profile that cannot be written since nothing keeps two writers apart."""
    return NotWritable(
        "cannot be written: the file system has no locks",
        where=str(path),
        remedy="write to another file system, as a local one, and copy the profile afterwards",
    )


_CODES = {
    "disk is full": sqlite3.SQLITE_FULL,
    "disk I/O error": _IO,
    "readonly database": sqlite3.SQLITE_READONLY,
    "unable to open": sqlite3.SQLITE_CANTOPEN,
    "locked": sqlite3.SQLITE_BUSY,
}
"""Result codes of texts of SQLite, for errors that come without a code."""


def _code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    """0 for an error that is not SQLite's own."""
    text = str(error)
    known = next((code for part, code in _CODES.items() if part in text), 0)
    return getattr(error, "sqlite_errorcode", known)


def _meaning(error: sqlite3.Error | UnicodeDecodeError, path: Path, file: Path) -> Exception:
    code, where = _code(error), str(path)
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_NOMEM or code == _NO_MEMORY:
        return MemoryError(str(error))
    if code in _LOCKS or (primary == sqlite3.SQLITE_BUSY and not _has_locks(file)):
        return no_locks(path)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        remedy = "another program holds it: close that, try again"
        return ProfileError("is busy", where=where, remedy=remedy)
    if code in _READS:
        return _not_read(path, file)
    if code == _RENAMED:
        return NotWritable(
            "was renamed or removed while it was written", where=where, remedy="survey again"
        )
    if primary in _WRITES:
        return _not_written(code, str(error), path, file)
    return damaged(path, str(error))


def _has_locks(file: Path) -> bool:
    with suppress(OSError), open_regular(file) as descriptor:
        return has_range_locks(descriptor)
    return True


def _not_read(path: Path, file: Path) -> ProfileError:
    """The error for a file of which some bytes cannot be read; damaged if it is too short."""
    why = os.strerror(5)
    try:
        with open_regular(file) as descriptor:
            while os.read(descriptor, _READ_BYTES):
                pass
    except OSError as error:
        why = error.strerror or str(error)
    else:
        if file.stat().st_size < stated_bytes(file):
            return damaged(path, "truncated")
    return NotReadable(
        f"cannot be read: {why}",
        where=str(path),
        remedy="see what the kernel's log (dmesg) says about the disk or the network of the file",
    )


def _not_written(code: int, text: str, path: Path, file: Path) -> ProfileError:
    obstacle = write_obstacle(file)
    if obstacle is None and code & 0xFF == sqlite3.SQLITE_FULL:
        obstacle = WriteObstacle("the disk is full", "make space")
    if obstacle is None:
        # What was full has space again, or only this one call failed.
        remedy = "see that the disk has space and that the kernel's log (dmesg) names no fault"
        return NotWritable(f"could not be written: {text}", where=str(path), remedy=remedy)
    return NotWritable(obstacle.what, where=str(path), remedy=obstacle.remedy)
