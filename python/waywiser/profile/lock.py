"""One survey at a time writes to a profile, on whatever host of a shared file system it runs.

SQLite locks single commits; this lock is held for a whole survey. It is on one byte of the profile
itself, far beyond SQLite's own lock bytes, so readers are never kept out, no lock file is left
behind, and the kernel drops it with the process. It is an open-file-description lock, because
ordinary POSIX locks vanish when any part of the process closes any descriptor of the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from waywiser.files.file_locks import has_range_locks, lock_of_byte
from waywiser.profile.errors import LockedProfile, NotWritable
from waywiser.profile.sqlite_errors import no_locks

_OFFSET = 2**62


def lock(path: Path) -> int:
    """Takes the lock; returns the descriptor that holds it until it is closed.

    Raises `LockedProfile` if another survey has it, `NotWritable` if the file may not be
    opened for writing, or its file system has no locks: SQLite needs them too.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NotWritable(
            f"cannot be written: {error.strerror}",
            where=str(path),
            remedy="resume as the user who made it, or survey into a new file with -o",
        ) from error
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, lock_of_byte(fcntl.F_WRLCK, _OFFSET))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            os.close(handle)
            raise LockedProfile(
                "another survey is writing to it",
                where=str(path),
                remedy="wait until that one ends, or survey into another file with -o",
            ) from error
        if not has_range_locks(handle):
            os.close(handle)
            raise no_locks(path) from error
    return handle
