"""Outputs that are made anew every time: written beside, then renamed over the former one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waywiser.beside import replaced
from waywiser.words import WaywiserError


class NotWritten(WaywiserError):
    """The file or its folder does not take it."""


PROFILE = b"SQLite format 3\0"
"""How a profile begins."""


def write_over(path: str, content: bytes) -> None:
    """Writes a file anew, or into a device or a pipe as it is; a link keeps its target's place.

    Raises `NotWritten`, also for a profile: measurements are never overwritten.
    """
    target = Path(path)
    with explained(path):
        if target.is_char_device() or target.is_fifo():
            target.write_bytes(content)
            return
        if target.is_file():
            with target.open("rb") as file:
                if file.read(len(PROFILE)) == PROFILE:
                    raise NotWritten(
                        "is a profile, and is not overwritten", where=path, remedy="name another"
                    )
        with replaced(target.resolve()) as part:
            part.write_bytes(content)


@contextmanager
def explained(path: str) -> Iterator[None]:
    """The system's reasons for not writing there as `NotWritten`."""
    try:
        yield
    except OSError as error:
        raise NotWritten(
            f"cannot be written: {error.strerror or error}",
            where=path,
            remedy="name a file in a folder that exists, is yours and has space",
        ) from error
