"""`waywiser.words.atomic_write` with the errors of profiles and exports."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import waywiser.words.atomic_write
from waywiser.profile.errors import ExistingFile, NotWritable
from waywiser.profile.name import SUFFIX

STANDARD_OUTPUT = "-"

OTHER_FORMATS = ("csv", "html", "json", "md", "parquet", "pdf", "png", "svg", "txt", "xml")
"""Names of files that other commands write or read: no profile is named so."""


@contextmanager
def new_output(path: Path) -> Iterator[Path]:
    """An empty temporary file to write to; it is renamed to ``path`` when the block ends well.

    Raises `ExistingFile` if ``path`` exists, before anything is written and again at the end;
    `NotWritable` if the folder is missing, full or closed. After an error nothing is left.
    """
    try:
        with waywiser.words.atomic_write.new_file(path) as part:
            yield part
    except FileExistsError as error:
        raise _existing(path) from error
    except OSError as error:
        raise _not_writable(path, error.strerror or str(error)) from error


def require_new_output(path: Path) -> None:
    """Asks, before long work, whether `new_output` could begin.

    Raises `ExistingFile` if ``path`` exists, `NotWritable` if its folder is missing or closed.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:  # a name that is too long
        raise _not_writable(path, error.strerror or str(error)) from error
    else:
        raise _existing(path)
    if not path.parent.is_dir():
        raise _not_writable(path, os.strerror(errno.ENOENT))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise _not_writable(path, os.strerror(errno.EACCES))


def require_profile_name(path: Path) -> None:
    """Raises `NotWritable` for standard output (``-``), for the name of another format, and for
    one that is not UTF-8: a profile stores the command that made it as text."""
    if str(path) == STANDARD_OUTPUT:
        raise NotWritable(
            "a profile cannot be written to standard output", remedy="name a file: -o node.wwp"
        )
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise NotWritable(
            "the name is not UTF-8", where=ascii(str(path)), remedy="name a file in UTF-8"
        ) from None
    suffix = path.suffix.removeprefix(".").lower()
    if suffix in OTHER_FORMATS:
        raise NotWritable(
            f"a profile is not {suffix}",
            where=str(path),
            remedy=f"name it {path.with_suffix(SUFFIX).name}; waywiser export and waywiser report "
            "write other formats",
        )


def _existing(path: Path) -> ExistingFile:
    if path.is_dir():
        return ExistingFile("is a directory", where=str(path), remedy="name a file in it")
    return ExistingFile(
        "the file exists and is not overwritten",
        where=str(path),
        remedy="name another file, or move this one away",
    )


def _not_writable(path: Path, why: str) -> NotWritable:
    return NotWritable(
        f"cannot be written: {why}",
        where=str(path),
        remedy="name a file in a folder that exists, is yours and has space",
    )
