"""JSON that is written as it is made, with the items of a list on a line each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO


def write_lines(stream: TextIO, items: Iterable[str]) -> None:
    """Writes the items of a list, each on a line of its own."""
    for position, item in enumerate(items):
        stream.write(f",\n{item}" if position else f"\n{item}")
