"""Files that appear whole or not at all: written to a temporary file, then named."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """An empty temporary file to write to; it is renamed to ``path`` when the block ends well.

    Raises `FileExistsError` if ``path`` exists, before anything is written and again at the
    end; any other `OSError` if the folder is missing, full or closed. After an error nothing is
    left. The caller reports errors in its own words.
    """
    if os.path.lexists(path):
        raise FileExistsError(str(path))
    with _part(path) as part:
        yield part
        _publish(part, path)


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Writes like `new_file`, for files that others read while they are replaced: a former
    one stays as it is until the new one takes its name. Raises `OSError`."""
    with _part(path) as part:
        yield part
        _finish(part)
        part.replace(path)


def is_part_of(name: str, entry: str) -> bool:
    """Whether the name of a file is that of a temporary file that becomes ``name``."""
    return entry.startswith(f".{name}.") and entry.endswith(".part")


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    """An empty file in the same folder, gone at the end where it still has its own name."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _publish(part: Path, path: Path) -> None:
    _finish(part)
    try:
        os.link(part, path)  # unlike a rename, a link never replaces what is there
    except FileExistsError:
        raise
    except OSError:  # file systems without hard links
        if os.path.lexists(path):
            raise FileExistsError(str(path)) from None
        part.rename(path)
    with suppress(OSError):  # some file systems do not sync folders
        _sync(path.parent)


def _finish(part: Path) -> None:
    part.chmod(0o666 & ~_umask())  # mkstemp makes private files
    _sync(part)


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
