"""Files that appear whole or not at all: written beside, then named, never over another."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waywiser.profile.errors import ExistingFile, NotWritable


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path`` to write to; it gets that name when the block ends well.

    Raises `ExistingFile` where ``path`` exists, before anything is written and again at the end;
    `NotWritable` where the folder is missing, full or closed. After an error nothing is left.
    """
    if os.path.lexists(path):
        raise _exists(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise _not_writable(path, error) from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        _publish(part, path)
    except OSError as error:
        raise _not_writable(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _publish(part: Path, path: Path) -> None:
    part.chmod(0o666 & ~_umask())  # mkstemp makes private files
    _sync(part)
    try:
        os.link(part, path)  # unlike a rename, a link never replaces what is there
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError:  # file systems without hard links
        if os.path.lexists(path):
            raise _exists(path) from None
        part.rename(path)
    with suppress(OSError):  # some file systems do not sync folders
        _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _exists(path: Path) -> ExistingFile:
    return ExistingFile(
        "the file exists and is not overwritten",
        where=str(path),
        remedy="name another file, or move this one away",
    )


def _not_writable(path: Path, error: OSError) -> NotWritable:
    return NotWritable(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        remedy="name a file in a folder that exists, is yours and has space",
    )
