"""The error of a verb that could read none of its profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waywiser.words import WaywiserError, count, single_line


class NothingRead(WaywiserError):
    """None of the files could be read."""

    document: Any = None
    """What the verb would print as JSON, with the reason of each file."""


def none_read(unreadable: Mapping[str, str], what: str) -> NothingRead:
    """Returns the error with the first file and its reason, and how many more there are. ``what``
    says what is missing therefore: ``no host``."""
    file, reason = next(iter(unreadable.items()), ("", ""))
    others = len(unreadable) - 1
    more = f"; {count(others, 'more file')} cannot be read" if others > 0 else ""
    return NothingRead(
        f"{reason}: {what}{more}" if reason else what,
        where=single_line(file),
        remedy="name profiles of nodes, or a folder of them",
    )
