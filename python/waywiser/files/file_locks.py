"""Which locks the file system of a file has. Imports nothing of the package.

Every part that locks files asks here: network file systems answer in many ways that they have no
locks (ENOLCK without a lock service, ENOSYS and EOPNOTSUPP on Lustre and FUSE, EBADF on NFS for a
file that is not open for writing), and none of these means that another process holds a lock.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct

_RANGE = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, len, pid

_UNUSED_BYTE = 2**62 + 2**61
"""A byte that nothing else locks: SQLite's are at 1 GiB, that of a survey at 2**62."""

_ONE_KERNEL = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x858458F6, 0x794C7630, 0x2FC12FC1, 0xF2F52010}
)
"""ext, XFS, Btrfs, tmpfs, ramfs, overlay, ZFS and F2FS, as statfs has them."""

_libc = ctypes.CDLL(None, use_errno=True)


def take_lock(descriptor: int, *, is_shared: bool = False) -> bool | None:
    """Locks an open file or folder until the descriptor and its copies are closed (``flock``).
    ``is_shared``: others may have a shared lock too.

    True: it is locked now. False: another process holds the lock. None: the file system has no
    such locks, so that nothing is known. Open a file for reading and writing: NFS needs both. A
    folder on a network file system is locked for this host alone.
    """
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except InterruptedError:
            continue
        except OSError:
            return None
        return True


def has_range_locks(descriptor: int) -> bool:
    """Whether the file system of an open file has locks of ranges, which SQLite needs.

    Tried with a lock for reading of a byte that nothing else locks; it is given back at once, and
    conflicts with none. Closing any descriptor of a file gives back what SQLite has locked of it
    in this process: ask before SQLite opens the file.
    """
    try:
        _lock_range(descriptor, fcntl.F_RDLCK)
        _lock_range(descriptor, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES)  # another process holds it
    return True


def is_of_one_kernel(descriptor: int) -> bool:
    """Whether a lock on the file system keeps out every process that can use it: that is so if
    only this kernel has it. False if that is not known."""
    found = filesystem_number(descriptor)
    return found in _ONE_KERNEL


def filesystem_number(descriptor: int) -> int | None:
    """The number of the kind of a file system, as statfs has it."""
    found = ctypes.create_string_buffer(512)
    if _libc.fstatfs(descriptor, found) != 0:
        return None
    return int.from_bytes(found.raw[: ctypes.sizeof(ctypes.c_long)], "little") & 0xFFFFFFFF


def lock_of_byte(kind: int, byte: int) -> bytes:
    """What ``fcntl`` takes to lock one byte of a file; ``kind`` is ``F_RDLCK`` or a like one."""
    return struct.pack(_RANGE, kind, os.SEEK_SET, byte, 1, 0)


def _lock_range(descriptor: int, kind: int) -> None:
    request = lock_of_byte(kind, _UNUSED_BYTE)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # Some emulated kernels only have locks of processes, as SQLite takes them.
        fcntl.fcntl(descriptor, fcntl.F_SETLK, request)
