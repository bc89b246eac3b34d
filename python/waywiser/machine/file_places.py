"""The places where files are: those that the user names, and those that the survey makes its own.

    scratch      a folder on a disk, in which the survey makes files that vanish with it
    tmpfs        the same in memory, at /dev/shm
    /data/x      a file that exists, and is read and never written

A folder is tried by making a file in it that has no name, so nothing is left behind; a file that
exists is opened for reading.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from waywiser.machine.filesystem import IN_MEMORY, filesystem_of
from waywiser.machine.machine import FilePlace
from waywiser.words import Memory, Place, Transfer, WaywiserError, format_bytes
from waywiser.words import Path as MemoryPath

SCRATCH = "scratch"
TMPFS = "tmpfs"

SHARED_MEMORY = "/dev/shm"
"""Where Linux has a file system in memory for everybody."""

MOST_SCRATCH = 4 << 30
"""Bytes of all scratch files at a place together, at most..."""

FREE_SHARE = 10
"""... and at most this part of what is free."""

LEFT_FREE = 1 << 30
"""Bytes that others are left in any case."""

LEAST_SCRATCH = 128 << 20
"""Least bytes with room for both ends of a transfer that is long enough to show a rate."""

LEAST_FILE = 4096
"""Bytes of a named file, at least: the least that is read of one."""


_LARGER = (
    f"make it larger: docker run --shm-size=4g, an emptyDir of medium Memory at {SHARED_MEMORY} in "
    f"Kubernetes, or mount -o remount,size=4g {SHARED_MEMORY}"
)


class FileError(WaywiserError):
    """A file or a folder that cannot be measured."""


def existing_file(path: str) -> FilePlace:
    """The place of a file that the user named. Raises `FileError` with what is wrong with it."""
    name = os.path.abspath(path)
    _require_speakable(name)
    try:
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not an ordinary file"
            raise FileError(f"it is {what}", where=name, remedy="--file takes a file that exists")
        direct = _opens_directly(name, os.O_RDONLY)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FileError(
            f"it cannot be read: {reason}", where=name, remedy="--file takes a file that exists"
        ) from None
    if status.st_size < LEAST_FILE:
        has = f"has {status.st_size} B" if status.st_size else "is empty"
        raise FileError(f"it {has}", where=name, remedy="name a file with some MiB to read")
    kind = filesystem_of(name).filesystem
    return FilePlace(name, name, False, status.st_size, kind, direct and kind not in IN_MEMORY)


def scratch_folder(folder: str, name: str = SCRATCH) -> FilePlace:
    """The place of scratch files in a folder. Raises `FileError`: it cannot be written, or is too
    full."""
    path = os.path.abspath(folder)
    try:
        direct = _writes_directly(path)
        disk = os.statvfs(path)
    except OSError as error:
        raise FileError(
            f"no scratch file can be made there: {error.strerror}",
            where=path,
            remedy="name a folder that can be written with --scratch",
        ) from None
    free = disk.f_bavail * disk.f_frsize
    allowed = min(MOST_SCRATCH, free // FREE_SHARE, max(free - LEFT_FREE, 0))
    if allowed < LEAST_SCRATCH:
        needed = max(FREE_SHARE * LEAST_SCRATCH, LEFT_FREE + LEAST_SCRATCH)
        raise FileError(
            f"{format_bytes(free >> 20 << 20)} are free, and {format_bytes(needed)} are needed: "
            f"scratch files take a tenth, of at least {format_bytes(LEAST_SCRATCH)}, and leave "
            f"{format_bytes(LEFT_FREE)}",
            where=path,
            remedy=_LARGER if name == TMPFS else "name another folder with --scratch",
        )
    kind = filesystem_of(path).filesystem
    whole = allowed >> 20 << 20
    return FilePlace(name, path, True, whole, kind, direct and kind not in IN_MEMORY)


def same_places(before: Sequence[FilePlace], now: Sequence[FilePlace]) -> str:
    """Why a survey over ``before`` cannot go on with ``now``; empty if it can. The room for
    scratch files may differ."""
    here = {place.name: place for place in now}
    for place in before:
        found = here.get(place.name)
        if found is None:
            return f"file:{place.name} ({place.path}) cannot be measured now"
        if not place.scratch and found.bytes != place.bytes:
            return f"{place.path} has {found.bytes} bytes now, it had {place.bytes}"
        if found.filesystem != place.filesystem:
            return f"{place.path} is on {found.filesystem} now, it was on {place.filesystem}"
    return ""


def _require_speakable(name: str) -> None:
    """Raises for a path that the grammar of transfers would take apart."""
    memory = Memory("any", Place("file", file=name))
    transfer = Transfer(MemoryPath(memory, memory, "any"))
    try:
        readable = name.isprintable() and Transfer.parse(str(transfer)) == transfer
    except WaywiserError:
        readable = False
    if not readable or ";" in name:
        raise FileError(
            "its path cannot be written into the name of a series",
            where=repr(name),
            remedy="link to it from a path without ' by ', '->' and ';'",
        )


def _opens_directly(path: str, flags: int) -> bool:
    """Whether the file, which can be opened, can be opened with ``O_DIRECT`` as well."""
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK))
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_DIRECT))
    except OSError:
        return False
    return True


def _writes_directly(folder: str) -> bool:
    """The same for a file that is made in the folder and has no name."""
    try:
        made = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        if not Path(folder).is_dir():
            raise
        made, name = tempfile.mkstemp(prefix=".waywiser-scratch-", dir=folder)
        os.unlink(name)
    try:
        return _opens_directly(f"/proc/self/fd/{made}", os.O_RDWR)
    finally:
        os.close(made)
