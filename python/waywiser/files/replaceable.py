"""Whether a file or a folder can be replaced, tried before anything is written.

A new one is written beside the old one and takes its name at the end. If the system does not allow
that last step, all that was written is lost.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

IS_A_MOUNT = "it is a mount point, which no other file can replace"

_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2."""
_AT_FDCWD = -100

_INNER = ("one", "other")
"""Folders in that which is tried with: it must not be empty."""

_libc = ctypes.CDLL(None, use_errno=True)


def require_replaceable(path: Path, probe: Path) -> None:
    """Raises the `OSError` with which the file ``path`` could not be replaced; nothing changes.

    ``probe`` is a name in the same folder, which a folder has for a moment. To rename a file to
    the name of a folder is an error at all times, but another one if it is not allowed either.
    """
    if is_mount(path):
        raise OSError(errno.EBUSY, IS_A_MOUNT)
    if path.is_dir() and not path.is_symlink():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    with _folder(probe, ()):
        _require_error(path, probe, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY)


def can_be_exchanged(path: Path, probe: Path) -> bool:
    """Whether the folder ``path`` can be exchanged with another one in its parent; nothing
    changes. Not so are a mount point, a folder of a lower layer of an overlay, and any folder if
    the file system exchanges none (NFS) or the parent may not be written."""
    if is_mount(path):
        return False
    try:
        with _folder(probe, _INNER):
            _require_error(path, probe, errno.ENOTEMPTY, errno.EEXIST)
            exchange(*(probe / name for name in _INNER))
    except OSError:
        return False
    return True


def exchange(one: Path, other: Path) -> None:
    """Gives each of two files or folders the name of the other one, at once. Raises `OSError`."""
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def is_mount(path: Path) -> bool:
    """Whether something is mounted at the path of a file or folder, by a bind mount too."""
    own, parent = _mount_of(path, os.O_NOFOLLOW), _mount_of(path.parent)
    return own is not None and parent is not None and own != parent


def remove_probe(probe: Path) -> None:
    """Removes the folder of a trial that was killed. Raises `OSError` if it is another one."""
    for name in _INNER:
        with suppress(FileNotFoundError):
            os.rmdir(probe / name)
    os.rmdir(probe)


@contextmanager
def _folder(probe: Path, inner: tuple[str, ...]) -> Iterator[None]:
    os.mkdir(probe, 0o700)
    try:
        for name in inner:
            os.mkdir(probe / name, 0o700)
        yield
    finally:
        with suppress(OSError):
            remove_probe(probe)


def _require_error(path: Path, probe: Path, *expected: int) -> None:
    """Renames to the name of a folder that is not empty, which fails on every system."""
    try:
        os.rename(path, probe)
    except FileNotFoundError:
        return  # it was removed meanwhile
    except OSError as error:
        if error.errno not in expected:
            raise
        return
    os.rename(probe, path)
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def _mount_of(path: Path, flags: int = 0) -> tuple[str, int] | None:
    """What differs between mounts: the number of the mount, or of the device without /proc."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    except OSError:
        return None
    try:
        device = os.fstat(descriptor).st_dev
        with suppress(OSError), open(f"/proc/self/fdinfo/{descriptor}") as file:
            for line in file:
                if line.startswith("mnt_id:"):
                    return line, 0
        return "", device
    finally:
        os.close(descriptor)
