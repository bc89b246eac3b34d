"""What MPI leaves behind when its processes are killed: shared memory and temporary files.

A launch has two folders of its own, for temporary files and for shared memory. Libraries that make
shared memory elsewhere in ``/dev/shm``, as MPICH does, are known by the names of their files, and a
file is removed if no process has it mapped or open.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

SHARED_MEMORY = "/dev/shm/"

_PREFIX = "waywiser-ranks-"
_DELETED = " (deleted)"

_NAMES = re.compile(
    r"(mpich_shm_|sm_segment\.|vader_segment\.|ucx_shm_posix_|psm\d*_shm|Intel_MPI_)"
)
"""What the names of shared memory of MPI libraries begin with."""


@contextmanager
def folders() -> Iterator[str]:
    """The folder for temporary files of a launch. That for shared memory is made too, if there is
    ``/dev/shm``. Both are gone in the end."""
    temporary = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        with suppress(OSError):
            os.mkdir(shared_folder(temporary), 0o700)
        yield temporary
    finally:
        remove_folders(temporary)


def shared_folder(temporary: str) -> str:
    """The folder for shared memory of the launch with that folder for temporary files."""
    return SHARED_MEMORY + os.path.basename(temporary)


def remove_folders(temporary: str) -> None:
    """Removes both folders of a launch; does nothing for another folder."""
    if os.path.basename(temporary).startswith(_PREFIX):
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(shared_folder(temporary), ignore_errors=True)


def mapped_files(pid: int | str = "self") -> set[str]:
    """The files in ``/dev/shm`` that a process has mapped and that still have their name. Empty for
    a process that has ended or is somebody else's."""
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
    return found - _used_files() if found else found


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
