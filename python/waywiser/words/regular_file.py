"""Reads a file that a user names: only a regular file, and never more than a limit.

A FIFO would be waited for, a device may have no end, and opening some devices changes them. Every
reader of a user's file opens it here. Imports nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class NotRegular(OSError):
    """The path names a directory, a FIFO, a socket or a device."""


class TooLarge(OSError):
    """The file has more bytes than the caller reads."""


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raises `NotRegular`, and any other `OSError` of looking at a file."""
    _require_regular(os.stat(path), path)


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[int]:
    """A descriptor that reads the regular file ``path``; it is closed at the end of the block.

    Raises `NotRegular`, and any other `OSError` of opening a file.
    """
    require_regular(path)  # opening a device can have effects, as on a watchdog
    # Another file may have taken the name since: a FIFO is not waited for, and is an error below.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _require_regular(os.fstat(descriptor), path)
        yield descriptor
    finally:
        os.close(descriptor)


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """All bytes of the regular file ``path``, which may have at most ``limit`` bytes.

    The limit holds also for a file that reports no size, as those of /proc do, and for one that
    grows while it is read. Raises `NotRegular`, `TooLarge`, and any other `OSError` of opening
    and reading a file.
    """
    with open_regular(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise _too_large(f"has {_mebibytes(size)}", limit, path)
        parts = []
        count = 0
        while part := os.read(descriptor, min(max(size, 2**16), limit - count) + 1):
            parts.append(part)
            count += len(part)
            if count > limit:
                raise _too_large(f"has more than {_mebibytes(limit)}", limit, path)
        return b"".join(parts)


def why_not_read(error: OSError) -> str:
    """The reason of an error of this module, as it follows the name of the file in a message."""
    reason = error.strerror or str(error)
    return reason if isinstance(error, NotRegular | TooLarge) else f"cannot be read: {reason}"


def _require_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a special file")
        raise NotRegular(errno.EINVAL, f"is {kind} and not a regular file", str(path))


def _too_large(what: str, limit: int, path: str | os.PathLike[str]) -> TooLarge:
    return TooLarge(errno.EFBIG, f"{what}, and at most {_mebibytes(limit)} are read", str(path))


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB" if size >= 2**20 else f"{size:,} bytes"
