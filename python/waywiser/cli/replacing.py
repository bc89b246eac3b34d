"""Outputs that are made anew every time: written beside, then renamed over the former one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waywiser.beside import replaced
from waywiser.words import WaywiserError


class NotWritten(WaywiserError):
    """The file or its folder does not take it."""


def write_over(path: str, content: bytes) -> None:
    """Raises `NotWritten`."""
    with explained(path), replaced(Path(path)) as part:
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
