"""Temporary folders, of which none stays: the next start removes those of killed processes.

A process holds a lock on its folder, which the kernel drops with the process. So a folder that can
be locked is nobody's, on whatever process number it was made, in a container too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from waywiser.words.closeable import Closeable


class TemporaryFolder(Closeable):
    """A new folder, which is gone when it is closed. Raises `OSError` if none can be made.

    If the process is killed before, the next folder with this prefix that the same user makes in
    the same place removes it.
    """

    def __init__(self, prefix: str) -> None:
        remove_abandoned(tempfile.gettempdir(), prefix)
        self._lock: int | None = None
        while self._lock is None:  # another start may have removed it before it was locked
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            self._lock = hold(self.path)

    def close(self) -> None:
        """Removes it with all that is in it."""
        lock, self._lock = self._lock, None
        if lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(lock)


def remove_abandoned(parent: str, prefix: str) -> None:
    """Removes the folders of this user with this prefix that nobody holds (`hold`)."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix) or (folder := _opened(Path(entry.path))) is None:
                continue
            try:
                if os.fstat(folder).st_uid == os.geteuid() and _takes_lock(folder):
                    shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(folder)


def hold(path: Path) -> int | None:
    """Holds a folder, so that no other process takes it for abandoned until the descriptor is
    closed, which is returned; several processes may hold one. None if there is none any more, or
    another start removes it."""
    folder = _opened(path)
    if folder is None or _locked(folder, path):
        return folder
    os.close(folder)
    return None


def _opened(path: Path) -> int | None:
    """A descriptor of a folder; None if there is none."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None


def _locked(folder: int, path: Path) -> bool:
    """Locks a folder. False if another start removes it."""
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(folder), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks: nobody can lock it, and it is not removed
        return True


def _takes_lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
