"""Outputs that are made anew every time: written beside, then renamed over the former one."""

from __future__ import annotations

from pathlib import Path

from waywiser.beside import replaced
from waywiser.words import WaywiserError


class NotWritten(WaywiserError):
    """The file or its folder does not take it."""


def write_over(path: str, content: bytes) -> None:
    """Raises `NotWritten`."""
    try:
        with replaced(Path(path)) as part:
            part.write_bytes(content)
    except OSError as error:
        raise NotWritten(
            f"cannot be written: {error.strerror or error}",
            where=path,
            remedy="name a file in a folder that exists, is yours and has space",
        ) from error
