"""Why a file takes no more: found by writing beside it what it did not take.

SQLite does not pass on what the system has said, and says "disk I/O error" of a quota, a limit of
file sizes and a broken disk alike.
"""

from __future__ import annotations

import errno
import os
import resource
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from waywiser.machine.met_limit import how_to_raise
from waywiser.words import format_bytes

PROBE_BYTES = 8 * 2**20
"""More than one transaction of a survey writes to the journal and to the file."""

OBSTACLES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""What the system says if a disk, a quota or a limit takes no more."""

_PIECE_BYTES = 256 * 2**10


class WriteObstacle(NamedTuple):
    """Why nothing more can be written to a file, and what to do."""

    what: str
    remedy: str


def write_obstacle(path: Path) -> WriteObstacle | None:
    """Writes a file beside ``path`` that begins where that ends, and removes it. None if all of it
    was written. Raises `OSError` for what is no obstacle of files: no descriptor or memory is
    left."""
    try:
        _write_beside(path)
    except OSError as error:
        return obstacle_of(error, path)
    return None


def obstacle_of(error: OSError, path: Path) -> WriteObstacle:
    """The obstacle that an error of writing to a file shows. Raises the error if it is one of open
    files or memory."""
    number = error.errno
    if number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise error
    if number == errno.ENOSPC:
        return _full(path)
    if number == errno.EFBIG:
        return _too_large(path)
    if number == errno.EDQUOT:
        remedy = "make space within it, or have it raised; quota -s shows it"
        return WriteObstacle("the quota is used up", remedy)
    if number == errno.EROFS:
        return WriteObstacle("the file system is read-only", "write to another one")
    if number in (errno.EACCES, errno.EPERM):
        return WriteObstacle(
            f"cannot be written: {error.strerror}",
            "both the file and its folder must be writable",
        )
    remedy = "see what the kernel's log (dmesg) says about the disk or the network of the file"
    return WriteObstacle(f"cannot be written: {error.strerror or error}", remedy)


def _full(path: Path) -> WriteObstacle:
    with suppress(OSError):
        found = os.statvfs(path.parent)
        if found.f_files and not found.f_favail:
            return WriteObstacle(
                "the disk is full: it has no inode for another file", "remove files there"
            )
        if found.f_bavail * found.f_frsize > PROBE_BYTES:
            what = "the disk is full: it has space, and the quota of a folder may be used up"
            return WriteObstacle(what, "make space in the folder")
        free = format_bytes(found.f_bavail * found.f_frsize >> 10 << 10)
        return WriteObstacle(f"the disk is full: {free} are free", "make space")
    return WriteObstacle("the disk is full", "make space")


def _too_large(path: Path) -> WriteObstacle:
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft != resource.RLIM_INFINITY:
        limit = format_bytes(soft)
        return WriteObstacle(
            f"ulimit -f bounds files to {limit}",
            how_to_raise("-f", resource.RLIMIT_FSIZE, unit=1024),
        )
    size = format_bytes(_size(path) >> 10 << 10)
    return WriteObstacle(
        f"the file system takes no larger file: it has {size}", "write to another one"
    )


def _write_beside(path: Path) -> None:
    """Has as many files open as SQLite: the file, its folder, and one beside it."""
    probe = path.with_name(f"{path.name}-probe")  # as long as the name of the journal
    with ExitStack() as stack:
        if path.exists():
            _opened(path, os.O_WRONLY | os.O_NONBLOCK, stack)
        _opened(path.parent, os.O_RDONLY | os.O_DIRECTORY, stack)
        try:
            descriptor = _opened(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stack)
        except FileExistsError:  # another reader or writer of the same file looks now
            return
        os.unlink(probe)
        at, piece = _size(path), os.urandom(_PIECE_BYTES)
        for start in range(at, at + PROBE_BYTES, _PIECE_BYTES):
            written = 0
            while written < len(piece):
                written += os.pwrite(descriptor, piece[written:], start + written)
        os.fsync(descriptor)


def _opened(path: Path, flags: int, stack: ExitStack) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, descriptor)
    return descriptor


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
