"""New files and folders that take the place of old ones at once, when they are on the disk.

What is written has another name in the same folder until it is complete: ``.NAME.saving-…``, which
states who writes it. It is locked too while its process lives, so that the next save knows what a
killed process has left, and removes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from waywiser.files.attributes import Attributes
from waywiser.files.file_locks import filesystem_number, take_lock
from waywiser.files.replaceable import (
    can_be_exchanged,
    exchange,
    remove_probe,
    require_replaceable,
)
from waywiser.files.unfinished import (
    remove_leftovers,
    shortened,
    sync_folder,
    unfinished_name,
)
from waywiser.transfer.errors import (
    InvalidTransfer,
    TransferError,
    TransferFileError,
    TransferFileNotFound,
)
from waywiser.transfer.replaced_files import is_part, replaced_files

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
    errno.EXDEV: "save to a new path: the file system cannot replace what is there",
    errno.EBUSY: "mount the folder of the file instead of the file, or save to another path",
}

_IN_MEMORY = (0x01021994, 0x858458F6)
"""tmpfs and ramfs, as statfs has them."""

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
        what = error.strerror or str(error)
        remedy = REMEDIES.get(error.errno or 0, "")
        raise kind(what, where=f"{CALL} {str(path)!r}", remedy=remedy, number=error.errno) from None


@contextmanager
def new_file(path: Path, nbytes: int) -> Iterator[NewFile]:
    """Makes a file of ``nbytes`` bytes, which replaces the one at the path when the block ends.

    It is on the disk then, and has the mode, the owner, the group and the other attributes of what
    it replaces. After an error or a kill the path has what it had before.
    """
    path = Path(os.path.realpath(path))
    with named_errors(path):
        former = Attributes.of(path)
        if former is not None:
            _require_file(path)
        _remove_leftovers(path)
        if former is not None:
            require_replaceable(path, _unfinished(path))
        unfinished, descriptor = _locked(path, folder=False, is_private=former is not None)
        try:
            with _filled(descriptor, path, nbytes, former) as file:
                yield file
            os.rename(unfinished, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
        finally:
            os.close(descriptor)
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Makes a folder and those above it that are missing, which are on the disk then."""
    with named_errors(path):
        missing = [each for each in (path, *path.parents) if not each.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for each in missing:
            sync_folder(each.parent)


class WrittenFolder(Protocol):
    """A folder that is being written."""

    def file(self, name: str, nbytes: int) -> AbstractContextManager[NewFile]:
        """A new file in the folder, which is on the disk when the block ends."""


class _NewFolder:
    """A folder that replaces another one, or none."""

    def __init__(self, path: Path, named: Path) -> None:
        self._path = path
        self._named = named

    def file(self, name: str, nbytes: int) -> AbstractContextManager[NewFile]:
        former = _former_attributes(self._named, name)
        return _written_file(self._path / name, self._named / name, nbytes, former)


@contextmanager
def new_folder(path: Path, names: Sequence[str]) -> Iterator[WrittenFolder]:
    """Makes a folder with files of these names, which takes the place of the one at the path when
    the block ends.

    It is on the disk then. After an error or a kill the path has what it had before. An existing
    folder is replaced only if it has nothing but safetensors files and their index. If it cannot be
    exchanged with another one, as a mount point, its files are replaced one by one
    (`waywiser.transfer.replaced_files`). `InvalidTransfer` is raised before anything is written.
    """
    path = Path(os.path.realpath(path))
    with named_errors(path):
        former = Attributes.of(path)
        _remove_leftovers(path)
        if former is not None:
            _require_folder(path)
            if not can_be_exchanged(path, _unfinished(path)):
                with replaced_files(path, names, _written_file) as replaced:
                    yield replaced
                return
            _require_parts_only(path)
        unfinished, descriptor = _locked(path, folder=True, is_private=former is not None)
        try:
            if former is not None:
                former.apply(descriptor, more=0o700)
            yield _NewFolder(unfinished, path)
            if former is not None:
                former.apply(descriptor)
            sync_folder(unfinished)
            sync_folder(path.parent)
            _put_in_place(unfinished, path)
        except BaseException:
            _remove(unfinished)
            raise
        finally:
            os.close(descriptor)
        sync_folder(path.parent)
        _remove(unfinished)  # what was replaced


def _put_in_place(unfinished: Path, path: Path) -> None:
    try:
        os.rename(unfinished, path)  # also over an empty folder
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        _require_folder(path)
        _require_parts_only(path)
        exchange(unfinished, path)


def _former_attributes(folder: Path, name: str) -> Attributes | None:
    """Those of the file of this name in a folder that is replaced, else those of another part: a
    checkpoint may have more shards than the one before."""
    with suppress(FileNotFoundError):
        parts = sorted(entry.name for entry in os.scandir(folder) if is_part(entry))
        for each in (name, *parts):
            if (found := Attributes.of(folder / each)) is not None:
                return found
    return None


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not path.is_file():
        raise InvalidTransfer(
            "it is a device, a pipe or a socket, which no file replaces",
            where=f"{CALL} {str(path)!r}",
            remedy="pass the path of a file",
        )


def _require_folder(path: Path) -> None:
    if not path.is_dir():
        raise InvalidTransfer(
            "it is a file, and shards go into a folder",
            where=f"{CALL} {str(path)!r}",
            remedy="pass the path of a folder, or leave shard_bytes out for one file",
        )


def _require_parts_only(path: Path) -> None:
    others = [entry.name for entry in os.scandir(path) if not is_part(entry)]
    if others:
        raise InvalidTransfer(
            f"the folder has {min(others)!r}"
            + (f" and {len(others) - 1} more" if len(others) > 1 else "")
            + ", which is no part of a checkpoint and would be lost",
            where=f"{CALL} {str(path)!r}",
            remedy="save to a new folder, or move the other files away",
        )


def _prefix(path: Path) -> str:
    return f".{shortened(path.name)}.saving-"


def _unfinished(path: Path) -> Path:
    """A new name beside the path."""
    return path.with_name(unfinished_name(_prefix(path)))


def _locked(path: Path, *, folder: bool, is_private: bool) -> tuple[Path, int]:
    """A new file or folder beside the path, and its descriptor, which holds the lock."""
    while True:
        made = _unfinished(path)
        if folder:
            os.mkdir(made, 0o700 if is_private else 0o777)
            try:
                descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # another save took it for a leftover
        else:
            descriptor = _create(made, 0o600 if is_private else 0o666)
        try:
            if take_lock(descriptor) is not False and _is_at(descriptor, made):
                return made, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_leftovers(path: Path) -> None:
    """Removes what killed processes have left beside the path."""
    remove_leftovers(path.parent, _prefix(path), remove=_remove)


def _remove(unfinished: Path) -> None:
    """Removes a file, or a folder with the files of a checkpoint; what else is in it stays."""
    with suppress(OSError):
        if not stat.S_ISDIR(os.lstat(unfinished).st_mode):
            os.unlink(unfinished)
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags)
        try:
            with suppress(OSError):
                os.fchmod(descriptor, 0o700)  # the folder that was replaced may be closed
            with os.scandir(descriptor) as entries:
                parts = [entry.name for entry in entries if is_part(entry)]
            for name in parts:
                with suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        remove_probe(unfinished)


@contextmanager
def _written_file(
    path: Path, shown: Path, nbytes: int, former: Attributes | None
) -> Iterator[NewFile]:
    """A new file at the path, which is on the disk when the block ends. ``shown``: the name that
    it is to have."""
    with named_errors(shown):
        descriptor = _create(path, 0o666 if former is None else 0o600)
        try:
            with _filled(descriptor, shown, nbytes, former) as file:
                yield file
        finally:
            os.close(descriptor)


@contextmanager
def _filled(
    descriptor: int, shown: Path, nbytes: int, former: Attributes | None
) -> Iterator[NewFile]:
    """A file that was just made, with the attributes of a former one from now on."""
    if former is not None:
        former.apply(descriptor, more=0o600)
    _reserve(descriptor, nbytes)
    yield NewFile(descriptor, shown)
    if former is not None:
        former.apply(descriptor)
    os.fsync(descriptor)


def _create(path: Path, mode: int) -> int:
    """A new file for direct I/O, if its file system lets it be opened so."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_DIRECT, mode)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        with suppress(FileNotFoundError):
            os.unlink(path)  # some systems have created it
        return os.open(path, flags, mode)


def _reserve(descriptor: int, nbytes: int) -> None:
    """Gives the file its size, and its blocks on a disk: a full disk is found before anything is
    written, and threads write to the file at once without extending it."""
    os.ftruncate(descriptor, nbytes)
    # In memory, to reserve blocks would fill them with zeros.
    if nbytes == 0 or filesystem_number(descriptor) in _IN_MEMORY:
        return
    size = ctypes.c_int64(nbytes)
    while _libc.fallocate(descriptor, 0, ctypes.c_int64(0), size) != 0:
        number = ctypes.get_errno()
        if number in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            return
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))
