"""What MPI leaves behind when its processes are killed: shared memory and temporary files.

A launch has two folders of its own, for temporary files and for shared memory. Libraries that make
shared memory elsewhere in ``/dev/shm``, as MPICH does, are known by the names of their files, and a
file is removed if no process has it mapped or open.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from waywiser.words.temporary_folder import hold, remove_abandoned

SHARED_MEMORY = "/dev/shm/"

_PREFIX = "waywiser-ranks-"
_DELETED = " (deleted)"

_MOMENT_SECONDS = 1.0
"""MPICH closes shared memory that it has made before it opens it to use it."""

_RECENT_SECONDS = 24 * 3600.0
"""Older shared memory of this user is of no launch that ends now."""

_NAMES = re.compile(
    r"(mpich_shm_|sm_segment\.|vader_segment\.|ucx_shm_posix_|psm\d*_shm|Intel_MPI_)"
)
"""What the names of shared memory of MPI libraries begin with."""


@contextmanager
def folders(secret: str) -> Iterator[str]:
    """The folder for temporary files of the launch with that secret. That for shared memory is made
    too, if there is ``/dev/shm``. Both are gone in the end. If this process is killed, the next
    launch of this user removes them. Raises `OSError`."""
    temporary = folder_of(secret)
    for parent in (os.path.dirname(temporary), SHARED_MEMORY):
        remove_abandoned(parent, _PREFIX)
    _in_use.add(temporary)
    with ExitStack() as held:
        try:
            held.callback(os.close, _made(temporary))
            with suppress(OSError):
                held.callback(os.close, _made(shared_folder(temporary)))
            yield temporary
        finally:
            remove_folders(temporary)
            _in_use.discard(temporary)


def _made(folder: str) -> int:
    """Makes a folder; returns a descriptor, and while that is open no launch takes the folder for
    abandoned. Raises `OSError`."""
    while True:
        os.mkdir(folder, 0o700)
        descriptor = None
        try:
            descriptor = hold(Path(folder))
        finally:
            if descriptor is None:  # another launch removes it, or it cannot be opened
                with suppress(OSError):
                    os.rmdir(folder)
        if descriptor is not None:
            return descriptor


_in_use: set[str] = set()
"""Folders of the launches of this process."""


@atexit.register
def _remove_in_use() -> None:
    """Removes folders of launches that a thread has begun and not ended, as after Ctrl-C."""
    for temporary in tuple(_in_use):
        remove_folders(temporary)


def shared_folder(temporary: str) -> str:
    """The folder for shared memory of the launch with that folder for temporary files."""
    return SHARED_MEMORY + os.path.basename(temporary)


def folder_of(secret: str) -> str:
    """The folder for temporary files of the launch with that secret. A rank may have another
    ``TMPDIR`` than its launcher: Slurm sets it where there is no such folder."""
    name = name_of(secret)
    own = os.environ.get("TMPDIR", "")
    return own if os.path.basename(own) == name else os.path.join(tempfile.gettempdir(), name)


def name_of(secret: str) -> str:
    """The name of the launch with that secret, which anyone may know."""
    return _PREFIX + hashlib.sha256(secret.encode()).hexdigest()[:16]


def enter_folders(temporary: str) -> bool:
    """Makes both folders of a launch if they are missing, as on another node than that of the
    launch, and holds them until this process ends; whether they were missing."""
    were_missing = False
    for folder in (temporary, shared_folder(temporary)):
        with suppress(OSError):
            try:
                _made(folder)
                were_missing = True
            except FileExistsError:
                hold(Path(folder))
    return were_missing


def remove_leftovers(secret: str) -> None:
    """Removes what the launch with that secret has left on a node where its ranks have ended."""
    remove_folders(folder_of(secret))
    remove(abandoned_files(time.time() - _RECENT_SECONDS))


def remove_folders(temporary: str) -> None:
    """Removes both folders of a launch; does nothing for another folder."""
    if os.path.basename(temporary).startswith(_PREFIX):
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(shared_folder(temporary), ignore_errors=True)


def mapped_files(pid: int | str = "self") -> set[str]:
    """The files in ``/dev/shm`` that a process has mapped and that still have their name. Empty for
    a process that has ended or is another user's."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            names = {line.split(maxsplit=5)[-1].strip() for line in maps if SHARED_MEMORY in line}
    except OSError:
        return set()
    return {name for name in names if name.startswith(SHARED_MEMORY) and _DELETED not in name}


def abandoned_files(since: float) -> set[str]:
    """The shared memory of MPI libraries that this user's processes have made since then (seconds
    of the clock of the file system), and that no process has mapped or open any more."""
    found = set()
    with suppress(OSError), os.scandir(SHARED_MEMORY) as entries:
        for entry in entries:
            with suppress(OSError):
                if _NAMES.match(entry.name) and entry.stat().st_ctime >= since:
                    found.add(entry.path)
    unused = found - _used_files() if found else found
    if unused:  # a rank of another launch may have made it, and open it in a moment
        time.sleep(_MOMENT_SECONDS)
        unused -= _used_files()
    return unused


def _used_files() -> set[str]:
    used = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        used |= mapped_files(pid)
        with suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    used.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return used


def remove(files: Iterable[str]) -> None:
    """Removes those that still exist and belong to this user."""
    for name in files:
        with suppress(OSError):
            if os.stat(name).st_uid == os.geteuid():
                os.unlink(name)
