"""Files that appear whole or not at all: written to a temporary file, then named."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from waywiser.files.attributes import Attributes
from waywiser.files.replaceable import remove_probe, require_replaceable
from waywiser.files.unfinished import (
    remove_leftovers,
    shortened,
    sync_folder,
    unfinished_name,
)

_SUFFIX = ".part"


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """An empty temporary file to write to; it is renamed to ``path`` when the block ends well.

    Raises `FileExistsError` if ``path`` exists, before anything is written and again at the
    end; any other `OSError` if the folder is missing, full or closed. After an error nothing is
    left. What a killed process has left is removed by the next one that writes to ``path``. The
    caller reports errors in its own words.
    """
    with suppress(FileNotFoundError):
        os.lstat(path)  # raises for a name that is too long, too
        remove_parts(path)
        raise FileExistsError(str(path))
    with _part(path, None) as part:
        yield part.path
        part.finish()
        _publish(part.path, path)


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Writes like `new_file`, for files that others read while they are replaced: a former
    one stays as it is until the new one takes its name.

    The new one has the mode, the owner, the group and the other attributes of the former one, if
    the system allows it. Raises `OSError`, before anything is written if the former one cannot be
    replaced.
    """
    try_to_replace(path)
    with _part(path, Attributes.of(path) if _is_regular(path) else None) as part:
        yield part.path
        part.finish()
        part.path.replace(path)


@contextmanager
def private_file(path: Path) -> Iterator[Path]:
    """Writes like `replaced_file` a file that only this user can read and write, whatever the
    former one and the umask allow."""
    with _part(path, None, mode=0o600) as part:
        yield part.path
        part.finish()
        part.path.replace(path)


def try_to_replace(path: Path) -> None:
    """Raises the `OSError` with which `replaced_file` could not replace the file, if there is one.
    Nothing is written."""
    if os.path.lexists(path):
        require_replaceable(path, _unnamed(path))


def remove_parts(path: Path) -> None:
    """Removes the temporary files that killed processes have left next to ``path``. One killed just
    after the file got its name leaves a second name of it. Raises nothing."""
    remove_leftovers(path.parent, _prefix(path), _SUFFIX, remove=_remove, is_locked=False)


class _Part(NamedTuple):
    """A file that has no name of its own yet."""

    path: Path
    made: os.stat_result
    attributes: Attributes | None

    def finish(self) -> None:
        """Puts it on the disk. A program that was to write to it may have made another one."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            if self.attributes is not None:
                self.attributes.apply(descriptor)
            elif os.fstat(descriptor).st_mode != self.made.st_mode:
                os.fchmod(descriptor, stat.S_IMODE(self.made.st_mode))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_part_of(name: str, entry: str) -> bool:
    """Whether the name of a file is that of a temporary file that becomes ``name``."""
    return entry.startswith(f".{name}.") and entry.endswith(".part")


@contextmanager
def _part(path: Path, attributes: Attributes | None, mode: int = 0o666) -> Iterator[_Part]:
    """An empty file in the same folder, gone at the end where it still has its own name."""
    remove_parts(path)
    part = _unnamed(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(part, flags, mode if attributes is None else 0o600)
    try:
        try:
            if attributes is not None:
                attributes.apply(descriptor, more=0o600)
            made = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        yield _Part(part, made, attributes)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _prefix(path: Path) -> str:
    return f".{shortened(path.name)}."


def _unnamed(path: Path) -> Path:
    """A name in the same folder that states who writes. It has no lock: one on NFS would keep out
    SQLite, which writes profiles."""
    return path.with_name(unfinished_name(_prefix(path), _SUFFIX))


def _remove(leftover: Path) -> None:
    if leftover.is_dir():
        remove_probe(leftover)
    else:
        leftover.unlink()


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _publish(part: Path, path: Path) -> None:
    try:
        os.link(part, path)  # unlike a rename, a link never replaces what is there
    except FileExistsError:
        raise
    except OSError:  # file systems without hard links
        if os.path.lexists(path):
            raise FileExistsError(str(path)) from None
        part.rename(path)
    with suppress(OSError):  # some file systems do not sync folders
        sync_folder(path.parent)
