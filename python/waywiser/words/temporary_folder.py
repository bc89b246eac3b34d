"""Temporary folders, of which none stays: the next start removes those of killed processes.

The name of a folder states its process. The process holds a lock on it too, which the kernel drops
with the process, so that a folder of a container that has ended is known as well.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from waywiser.files.file_locks import is_of_one_kernel, take_lock
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
            try:
                self._lock = hold(self.path)
            except OSError:
                self.path.rmdir()
                raise

    def close(self) -> None:
        """Removes it with all that is in it."""
        lock, self._lock = self._lock, None
        if lock is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(lock)


def _remove(leftover: Path) -> None:
    if leftover.is_dir():
        shutil.rmtree(leftover, ignore_errors=True)


def remove_abandoned(parent: str, prefix: str) -> None:
    """Removes the folders of this user with this prefix that no process of this kernel holds
    (`hold`). Their names do not state a process: on a file system that other hosts may use, all
    stay."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            try:
                folder = _opened(entry.path)
            except OSError:  # no folder, or that of another user
                continue
            try:
                is_own = os.fstat(folder).st_uid == os.geteuid()
                if is_own and take_lock(folder) and is_of_one_kernel(folder):
                    shutil.rmtree(entry.path, ignore_errors=True)
            finally:
                os.close(folder)


def hold(path: Path) -> int | None:
    """Holds a folder, so that no other process takes it for abandoned until the descriptor is
    closed, which is returned; several processes may hold one. None if there is none any more, or
    another start removes it. Raises `OSError` if it cannot be opened."""
    try:
        folder = _opened(path)
    except FileNotFoundError:
        return None
    if _is_held(folder, path):
        return folder
    os.close(folder)
    return None


def _opened(path: str | os.PathLike[str]) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_held(folder: int, path: Path) -> bool:
    """Whether a folder could be locked, or has no locks. False if another start removes it."""
    try:
        return take_lock(folder, is_shared=True) is not False and os.path.samestat(
            os.fstat(folder), os.stat(path)
        )
    except FileNotFoundError:
        return False
