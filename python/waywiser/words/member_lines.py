"""Sums up many things with one reason in few lines of text: ``--json`` names all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from waywiser.words.grouping import grouped
from waywiser.words.number_format import count
from waywiser.words.sizes_in_text import without_sizes

MOST = 8
"""Members of the same reason that are each given a line."""

MOST_REASONS = 3
"""Reasons that are each stated in a message of few lines."""

_BLOCK = re.compile(r", block \d+$")
_EXECUTOR = re.compile(r" by ([a-z0-9-]+)")


def member_lines(members: Sequence[str]) -> Iterator[str]:
    """A line for each, or for more than `MOST` the first of each executor's: one line for all
    executors with as many."""
    if len(members) <= MOST:
        yield from members
        return
    found = ((_EXECUTOR.search(member), member) for member in members)
    groups = grouped((match[1] if match else "", member) for match, member in found)
    many_of = {name: counted(group) if len(group) > 1 else "" for name, group in groups.items()}
    as_many = grouped(((many, bool(name)), name) for name, many in many_of.items())
    for (many, _), executors in as_many.items():
        first = groups[executors[0]][0]
        if not many:
            yield from (groups[executor][0] for executor in executors)
            continue
        head = f"by {', '.join(executors)}: " if executors[0] else ""
        each = " each" if len(executors) > 1 else ""
        yield f"{head}{many}{each}, as {first}"


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


def counted(members: Sequence[str]) -> str:
    """``739 visits of 59 curves``, ``3 series``, ``2 paths and 1 operation``: how many of what."""
    sorts = Counter(map(_sort, members))
    amounts = [_amount(sort, members, sorts[sort]) for sort in _SORTS if sorts[sort]]
    return " and ".join(filter(None, (", ".join(amounts[:-1]), *amounts[-1:])))


def series_of(visit: str) -> str:
    """The name of a visit without its block."""
    return _BLOCK.sub("", visit)


def _amount(sort: str, members: Sequence[str], number: int) -> str:
    if sort == "pair":
        return f"{count(number, sort)} of memories"
    if sort != "visit":
        return count(number, sort)
    visits = filter(_BLOCK.search, members)
    curves = {without_sizes(series_of(visit)) for visit in visits}
    return f"{count(number, sort)} of {count(len(curves), 'curve')}"


_SORTS = ("visit", "series", "path", "pair", "operation")


def _sort(member: str) -> str:
    """What it names: a visit has a block, a series a size, an unsupported pair of kinds no place,
    and an operation no executor."""
    if _BLOCK.search(member):
        return "visit"
    if " by " not in member:
        return "operation"
    if without_sizes(member) != member:
        return "series"
    return "path" if "@" in member else "pair"
