"""Many things with one reason in few lines of text: ``--json`` names all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

MOST = 8
"""Of the same reason that are each given a line."""

_EXECUTOR = re.compile(r" by ([a-z0-9-]+)")


def told(members: Sequence[str]) -> Iterator[str]:
    """A line for each, or for more than `MOST` the first of each executor's: one line for all
    executors with as many."""
    if len(members) <= MOST:
        yield from members
        return
    groups: dict[str, list[str]] = {}
    for member in members:
        found = _EXECUTOR.search(member)
        groups.setdefault(found[1] if found else "", []).append(member)
    as_many: dict[tuple[int, str], list[str]] = {}
    for executor, group in groups.items():
        as_many.setdefault((len(group), _what(group[0])), []).append(executor)
    for (count, what), executors in as_many.items():
        first = groups[executors[0]][0]
        if count == 1:
            yield from (groups[executor][0] for executor in executors)
            continue
        head = f"by {', '.join(executors)}: " if executors[0] else ""
        each = " each" if len(executors) > 1 else ""
        yield f"{head}{count} {what}{each}, as {first}"


def merged(groups: Iterable[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
    """Reasons that differ only in the kind of memory that they begin with, as one of all kinds."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for reason, members in groups:
        kind, _, rest = reason.partition(" ")
        named = any(re.search(rf"\b{re.escape(kind)}(\[.*?\])?(@| ->|$| by )", m) for m in members)
        kinds, all_members = found.setdefault(rest if named else reason, ([], []))
        kinds += [kind] if named else []
        all_members += members
    return [
        (f"{', '.join(kinds)} {rest}" if kinds else rest, members)
        for rest, (kinds, members) in found.items()
    ]


def _what(member: str) -> str:
    """A refused pair of kinds names no place."""
    if " by " not in member:
        return "in all"
    return "paths" if "@" in member else "pairs of memories"
