"""Values by what several of them have in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Each = TypeVar("Each")


def grouped(pairs: Iterable[tuple[Key, Each]]) -> dict[Key, list[Each]]:
    """The values of each key of (key, value), in the order given."""
    found: dict[Key, list[Each]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
