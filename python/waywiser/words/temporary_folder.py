"""Temporary folders, of which none stays: the next start removes those of killed processes.

The name of a folder states its process. The process holds a lock on it too, which the kernel drops
with the process, so that a folder of a container that has ended is known as well.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from waywiser.files.file_locks import take_lock
from waywiser.files.unfinished import remove_leftovers, unfinished_name
from waywiser.words.closeable import Closeable


class TemporaryFolder(Closeable):
    """A new folder, which is gone when it is closed. Raises `OSError` if none can be made.

    If the process is killed before, the next folder with this prefix that the same user makes in
    the same place removes it.
    """

    def __init__(self, prefix: str) -> None:
        place = Path(tempfile.gettempdir())
        remove_leftovers(place, prefix, remove=_remove, user=os.geteuid())
        self._lock: int | None = None
        while self._lock is None:  # another start may have removed it before it was locked
            self.path = place / unfinished_name(prefix)
            self.path.mkdir(mode=0o700)
            self._lock = _locked(self.path)

    def close(self) -> None:
        """Removes it with all that is in it."""
        lock, self._lock = self._lock, None
        if lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(lock)


def _remove(leftover: Path) -> None:
    if leftover.is_dir():
        shutil.rmtree(leftover, ignore_errors=True)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock on a folder that was just made; without one if the file
    system has no locks. None if another start removes the folder."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if take_lock(folder) is not False and os.path.samestat(os.fstat(folder), os.stat(path)):
            return folder
    except FileNotFoundError:
        pass
    os.close(folder)
    return None
