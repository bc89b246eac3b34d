"""Shared memory that MPI leaves behind when a process is killed: found while it is mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

SHARED_MEMORY = "/dev/shm/"
_DELETED = " (deleted)"


def mapped_files(pid: int | str = "self") -> set[str]:
    """The files in ``/dev/shm`` that a process has mapped and that still have their name. Empty for
    a process that has ended or is somebody else's."""
    try:
        with open(f"/proc/{pid}/maps") as maps:
            names = {line.split(maxsplit=5)[-1].strip() for line in maps if SHARED_MEMORY in line}
    except OSError:
        return set()
    return {name for name in names if name.startswith(SHARED_MEMORY) and _DELETED not in name}


def remove(files: Iterable[str]) -> None:
    """Removes those that still exist and belong to this user."""
    for name in files:
        with suppress(OSError):
            if os.stat(name).st_uid == os.geteuid():
                os.unlink(name)
