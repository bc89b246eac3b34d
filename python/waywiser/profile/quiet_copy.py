"""Copies a profile that no lock protects, at a moment at which no program writes to it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from waywiser.profile.errors import NotReadable
from waywiser.words import open_regular, why_not_read

ATTEMPTS = 8
FIRST_SECONDS = 0.02
"""Seconds to wait before the second attempt; each further one waits twice as long, 2.5 s in all:
a survey commits a few times each second, and takes milliseconds for it."""

_PIECE_BYTES = 2**20
_JOURNAL_SHARE, _JOURNAL_BYTES = 4, 16 * 2**20
"""A journal has at most the pages of the file, each once, and some headers."""


class _State(NamedTuple):
    """What changes with a commit. The beginning of the file has SQLite's counter of commits."""

    file: tuple[int, ...]
    beginning: bytes
    journal: tuple[int, ...] | None


def copy_quietly(path: Path, copy: Path) -> None:
    """Copies the profile, and its journal if there is one, so that both are of one moment: they
    are the same before and after. Raises `NotReadable` if they keep changing."""
    journal = path.with_name(path.name + "-journal")
    copied_journal = copy.with_name(copy.name + "-journal")
    seconds = FIRST_SECONDS
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(seconds)
            seconds *= 2
        before = _state(path, journal)
        if before.journal is not None and attempt < ATTEMPTS // 2:
            continue  # a commit is being made now, or was cut short
        size = before.file[1]
        _copy(path, copy, size)
        copied_journal.unlink(missing_ok=True)
        if before.journal is not None:
            with suppress(FileNotFoundError):
                _copy(journal, copied_journal, _JOURNAL_SHARE * size + _JOURNAL_BYTES)
        if _state(path, journal) == before:
            return
    raise NotReadable(
        "changes while it is read, and its file system has no locks",
        where=str(path),
        remedy="wait until its survey has ended, or read it on the host of the survey",
    )


def _state(path: Path, journal: Path) -> _State:
    try:
        with open_regular(path) as descriptor:
            file, beginning = _status(descriptor), os.pread(descriptor, 100, 0)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        with open_regular(journal) as descriptor:
            return _State(file, beginning, _status(descriptor))
    except FileNotFoundError:
        return _State(file, beginning, None)
    except OSError as error:
        raise _unreadable(journal, error) from error


def _status(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _copy(path: Path, copy: Path, limit: int) -> None:
    """Copies at most ``limit`` bytes."""
    try:
        with open_regular(path) as source, copy.open("wb") as target:
            left = limit
            while left and (piece := _read(path, source, min(left, _PIECE_BYTES))):
                target.write(piece)
                left -= len(piece)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise not_copied(path, error) from error


def not_copied(path: Path, error: OSError) -> NotReadable:
    """The error for a profile of which no copy can be made."""
    return NotReadable(
        f"cannot be copied, as is needed to read it here: {error.strerror or error}",
        where=str(path),
        remedy="name a folder with space in TMPDIR",
    )


def _read(path: Path, source: int, count: int) -> bytes:
    try:
        return os.read(source, count)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> NotReadable:
    return NotReadable(
        why_not_read(error), where=str(path), remedy="see whether its disk or network is at fault"
    )
