"""New files and folders that take the place of old ones at once, when they are on the disk.

What is written has another name in the same folder until it is complete: ``.NAME.saving-…``. It is
locked while its process lives, so that the next save knows what a killed process has left, and
removes it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waywiser.transfer.checkpoint import FILE_SUFFIX, INDEX_SUFFIX
from waywiser.transfer.errors import (
    InvalidTransfer,
    TransferError,
    TransferFileError,
    TransferFileNotFound,
)

CALL = "save_files"
REMEDIES = {
    errno.ENOENT: "check the path: folders above it are not created",
    errno.ENOTDIR: "check the path: a part of it is no folder",
    errno.EISDIR: "pass the path of a file in the folder, or shard_bytes for a folder of shards",
    errno.EACCES: "check the permissions of the folder",
    errno.EPERM: "check the permissions of the folder",
    errno.EROFS: "save to a file system that is mounted for writing",
    errno.ENOSPC: "free space on the disk",
    errno.EDQUOT: "free space: the quota of the user is used up",
    errno.EFBIG: "pass a smaller shard_bytes: the file system or ulimit -f bounds files",
    errno.EMFILE: "close files, or raise the limit of open files (ulimit -n)",
    errno.ENAMETOOLONG: "pass a shorter name",
    errno.EXDEV: "save to a new folder: the file system cannot exchange these two",
}

_EXCHANGE = 2
"""RENAME_EXCHANGE of renameat2."""
_AT_FDCWD = -100
_IN_MEMORY = (0x01021994, 0x858458F6)
"""tmpfs and ramfs, as statfs has them."""
_NAME_PART = 60
"""Characters of the name in that of what is being written: a name has at most 255 bytes."""

_libc = ctypes.CDLL(None, use_errno=True)


class NewFile:
    """A file that is being written: what `waywiser.transfer.write` takes for a file."""

    def __init__(self, descriptor: int, name: Path) -> None:
        self._descriptor = descriptor
        self.name = str(name)
        """The name that the file is to have, for messages."""

    def fileno(self) -> int:
        return self._descriptor


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Errors of the system as one line with the path and what to do."""
    try:
        yield
    except TransferError:  # some are errors of the system too
        raise
    except OSError as error:
        kind = TransferFileNotFound if error.errno == errno.ENOENT else TransferFileError
        what = os.strerror(error.errno) if error.errno else str(error)
        remedy = REMEDIES.get(error.errno or 0, "")
        raise kind(what, where=f"{CALL} {str(path)!r}", remedy=remedy, number=error.errno) from None


@contextmanager
def new_file(path: Path, nbytes: int) -> Iterator[NewFile]:
    """Makes a file of ``nbytes`` bytes, which replaces the one at the path when the block ends.

    It is on the disk then. After an error or a kill the path has what it had before.
    """
    path = Path(os.path.realpath(path))
    with named_errors(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        _remove_leftovers(path)
        unfinished, descriptor = _locked(path, folder=False)
        try:
            _reserve(descriptor, nbytes)
            yield NewFile(descriptor, path)
            os.fsync(descriptor)
            os.rename(unfinished, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
        finally:
            os.close(descriptor)
        _sync_folder(path.parent)


class NewFolder:
    """A folder that is being written."""

    def __init__(self, path: Path, named: Path) -> None:
        self._path = path
        self._named = named

    @contextmanager
    def file(self, name: str, nbytes: int) -> Iterator[NewFile]:
        """A new file in the folder, which is on the disk when the block ends."""
        shown = self._named / name
        with named_errors(shown):
            descriptor = _create(self._path / name)
            try:
                _reserve(descriptor, nbytes)
                yield NewFile(descriptor, shown)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@contextmanager
def new_folder(path: Path) -> Iterator[NewFolder]:
    """Makes a folder, which takes the place of the one at the path when the block ends.

    It is on the disk then. After an error or a kill the path has what it had before. An existing
    folder is replaced only if it has nothing but safetensors files and their index, and if its file
    system can exchange two folders at once; else `InvalidTransfer` is raised, and nothing is
    written.
    """
    path = Path(os.path.realpath(path))
    with named_errors(path):
        _remove_leftovers(path)
        replaces = os.path.lexists(path)
        if replaces:
            _check_replaceable(path)
        unfinished, descriptor = _locked(path, folder=True)
        try:
            if replaces:
                _check_exchange(path, unfinished)
            yield NewFolder(unfinished, path)
            os.fsync(descriptor)
            _sync_folder(path.parent)
            _put_in_place(unfinished, path)
        except BaseException:
            _remove(unfinished)
            raise
        finally:
            os.close(descriptor)
        _sync_folder(path.parent)
        _remove(unfinished)  # what was replaced


def _put_in_place(unfinished: Path, path: Path) -> None:
    try:
        os.rename(unfinished, path)  # also over an empty folder
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        _check_replaceable(path)
        _exchange(unfinished, path)


def _check_replaceable(path: Path) -> None:
    remedy = "save to a new folder, or move the other files away"
    if not path.is_dir():
        raise InvalidTransfer(
            "it is a file, and shards go into a folder",
            where=f"{CALL} {str(path)!r}",
            remedy="pass the path of a folder, or leave shard_bytes out for one file",
        )
    others = [entry.name for entry in os.scandir(path) if not _is_part(entry)]
    if others:
        raise InvalidTransfer(
            f"the folder has {min(others)!r}"
            + (f" and {len(others) - 1} more" if len(others) > 1 else "")
            + ", which is no part of a checkpoint and would be lost",
            where=f"{CALL} {str(path)!r}",
            remedy=remedy,
        )


def _is_part(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith((FILE_SUFFIX, INDEX_SUFFIX)) and not entry.is_dir(
        follow_symlinks=False
    )


def _check_exchange(path: Path, unfinished: Path) -> None:
    """Tries with two empty folders, before anything is written."""
    one, other = unfinished / "one", unfinished / "other"
    os.mkdir(one)
    os.mkdir(other)
    try:
        _exchange(one, other)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        raise InvalidTransfer(
            "the folder exists, and its file system cannot exchange two folders at once",
            where=f"{CALL} {str(path)!r}",
            remedy="save to a new folder",
        ) from None
    finally:
        os.rmdir(one)
        os.rmdir(other)


def _exchange(one: Path, other: Path) -> None:
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _prefix(path: Path) -> str:
    return f".{path.name[:_NAME_PART]}.saving-"


def _locked(path: Path, *, folder: bool) -> tuple[Path, int]:
    """A new file or folder beside the path, and its descriptor, which holds the lock."""
    while True:
        made = path.parent / f"{_prefix(path)}{os.getpid()}-{secrets.token_hex(4)}"
        if folder:
            os.mkdir(made)
            try:
                descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # another save took it for a leftover
        else:
            descriptor = _create(made)
        try:
            if _lock(descriptor) and _is_at(descriptor, made):
                return made, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Whether the lock could be taken; also true if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno != errno.EINTR
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_leftovers(path: Path) -> None:
    """Removes what killed processes have left. What another process writes now is locked."""
    with suppress(FileNotFoundError):
        for name in os.listdir(path.parent):
            if name.startswith(_prefix(path)):
                _remove_leftover(path.parent / name)


def _remove_leftover(leftover: Path) -> None:
    try:
        descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # it is being written, or nobody can say
        _remove(leftover)
    finally:
        os.close(descriptor)


def _remove(unfinished: Path) -> None:
    """Removes a file, or a folder with the files of a checkpoint; what else is in it stays."""
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(unfinished).st_mode):
            for entry in list(os.scandir(unfinished)):
                with suppress(OSError):
                    if _is_part(entry):
                        os.unlink(entry.path)
                    else:
                        os.rmdir(entry.path)  # of _check_exchange
            os.rmdir(unfinished)
        else:
            os.unlink(unfinished)


def _create(path: Path) -> int:
    """A new file for direct I/O, if its file system lets it be opened so."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_DIRECT, 0o666)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        with suppress(FileNotFoundError):
            os.unlink(path)  # some systems have created it
        return os.open(path, flags, 0o666)


def _reserve(descriptor: int, nbytes: int) -> None:
    """Gives the file its size, and its blocks on a disk: a full disk is found before anything is
    written, and threads write to the file at once without extending it."""
    os.ftruncate(descriptor, nbytes)
    if nbytes == 0 or _in_memory(descriptor):
        return
    size = ctypes.c_int64(nbytes)
    while _libc.fallocate(descriptor, 0, ctypes.c_int64(0), size) != 0:
        number = ctypes.get_errno()
        if number in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            return
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def _in_memory(descriptor: int) -> bool:
    """Whether the file is in memory: to reserve it there would fill it with zeros."""
    found = ctypes.create_string_buffer(512)
    if _libc.fstatfs(descriptor, found) != 0:
        return False
    return int.from_bytes(found.raw[: ctypes.sizeof(ctypes.c_long)], "little") in _IN_MEMORY


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync folders
            raise
    finally:
        os.close(descriptor)
