"""Many things with one reason in few lines of text: ``--json`` names all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MOST = 8
"""Of the same reason that are each given a line."""

_EXECUTOR = re.compile(r" by ([a-z0-9-]+)")


def told(members: Sequence[str]) -> Iterator[str]:
    """A line for each, or for more than `MOST` a line for each executor with the first of them."""
    if len(members) <= MOST:
        yield from members
        return
    groups: dict[str, list[str]] = {}
    for member in members:
        found = _EXECUTOR.search(member)
        groups.setdefault(f"by {found[1]}" if found else "", []).append(member)
    for executor, group in groups.items():
        if len(group) == 1:
            yield group[0]
            continue
        head = f"{executor}: " if executor else ""
        yield f"{head}{len(group)} {_what(group[0])}, as {group[0]}"


def _what(member: str) -> str:
    """A refused pair of kinds names no place."""
    if " by " not in member:
        return "in all"
    return "paths" if "@" in member else "pairs of memories"
