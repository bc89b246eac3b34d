"""`waywiser.beside` with the errors of profiles and exports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import waywiser.beside
from waywiser.profile.errors import ExistingFile, NotWritable


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path`` to write to; it gets that name when the block ends well.

    Raises `ExistingFile` where ``path`` exists, before anything is written and again at the end;
    `NotWritable` where the folder is missing, full or closed. After an error nothing is left.
    """
    try:
        with waywiser.beside.beside(path) as part:
            yield part
    except FileExistsError as error:
        raise ExistingFile(
            "the file exists and is not overwritten",
            where=str(path),
            remedy="name another file, or move this one away",
        ) from error
    except OSError as error:
        raise NotWritable(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="name a file in a folder that exists, is yours and has space",
        ) from error
