"""Which collective a table of nccl-tests is of, by what names it and by what its columns show.

The columns are the witness: how it reduces, its root, and bus bandwidth over algorithm bandwidth. A
command, or a line of the tool, that names another collective contradicts them, which is an error. A
word in the name of the file is a hint among the collectives that the columns allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.exchange.imports.foreign_file import Malformed
from waywiser.exchange.imports.nccl import COLLECTIVES, RING, ROOTED
from waywiser.words import bus_factor

SUMS = ("all_reduce", "reduce_scatter", "reduce")
"""Collectives that name how they reduce."""

ROUNDING = 0.011
"""GB/s: two bandwidths are printed with two decimals each."""
SAME = 0.01
"""Printed bandwidths of three digits agree this well."""

AMBIGUOUS = (
    "the text does not name its collective and several would print such columns: name the file "
    "after it (all_gather.txt), or write nccl-tests -J FILE"
)

_KNOWN = (*COLLECTIVES, RING)
_NAMES = {
    name: re.compile(rf"(?<![a-z]){name.replace('_', '[-_ .]?')}(?![a-z])") for name in _KNOWN
}


class StatedCollective(NamedTuple):
    name: str
    source: str
    """What states it: ``its command``."""


class FoundCollective(NamedTuple):
    name: str
    """Empty: several are possible."""
    note: str = ""


def collective_of(
    stated: Sequence[StatedCollective],
    rows: Sequence[Mapping[str, Any]],
    ranks: int,
    where: str,
    file: str,
) -> FoundCollective:
    """The collective of a table. Raises `Malformed` if the sources contradict each other."""
    possible = by_columns(rows, ranks)
    for each in stated:
        other = next((one for one in stated if one.name != each.name), None)
        if other is not None:
            raise _contradiction(f"{each.source} names {each.name}",
                                 f"{other.source} {other.name}", where)  # fmt: skip
        if each.name in _KNOWN and ranks > 1 and each.name not in possible:
            raise _contradiction(
                f"{each.source} names {each.name}", _shown(rows, ranks, possible), where
            )
        return FoundCollective(each.name)
    hints = _by_file(file)
    if agreed := [each for each in hints if each in possible]:
        return FoundCollective(agreed[0] if len(agreed) == 1 else "")
    if possible == ["broadcast", RING] and "root" not in rows[-1]:
        possible = [RING]  # versions without the column had no root to choose
    if len(possible) != 1:
        return FoundCollective("")
    note = ""
    if hints:
        note = f"its columns are those of {possible[0]}, and the file is named after {hints[0]}"
    return FoundCollective(possible[0], note)


def by_columns(rows: Sequence[Mapping[str, Any]], ranks: int) -> list[str]:
    """The collectives that print such columns: those that most rows agree with. None without a
    number of ranks."""
    if ranks < 1:
        return []
    return [name for name in _KNOWN if 2 * sum(_fits(name, row, ranks) for row in rows) > len(rows)]


def _fits(name: str, row: Mapping[str, Any], ranks: int) -> bool:
    sums = row.get("redop", "none") not in ("none", "")
    if sums != (name in SUMS):
        return False
    root = str(row.get("root", ""))
    if re.fullmatch(r"-?[0-9]{1,6}", root) and (int(root) >= 0) != (name in ROOTED):
        return False
    factor = 1.0 if name == RING else bus_factor(COLLECTIVES[name], ranks)
    return all(
        abs(bus - factor * algorithm) <= ROUNDING * (1 + factor) + SAME * bus
        for algorithm, bus in _bandwidths(row)
    )


def _bandwidths(row: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    for key in ("out_of_place", "in_place"):
        result = row.get(key) or {}
        if result.get("alg_bw"):
            yield result["alg_bw"], result["bus_bw"]


def _shown(rows: Sequence[Mapping[str, Any]], ranks: int, possible: Sequence[str]) -> str:
    """What the columns show, in words."""
    ratios = [bus / algorithm for row in rows for algorithm, bus in _bandwidths(row)]
    last = rows[-1]
    parts = [f"redop {last.get('redop') or 'none'}", f"root {last.get('root', '?')}"]
    if ratios:
        parts.append(f"busbw/algbw {ratios[-1]:.2f} of {ranks} ranks")
    of = f" are of {' or '.join(possible)}" if possible else " are of no collective"
    return f"its columns ({', '.join(parts)}){of}"


def _contradiction(one: str, other: str, where: str) -> Malformed:
    return Malformed(
        f"{one}, and {other}: one of them is not of this table",
        where=where,
        remedy="keep the command of each table right above it",
    )


def _by_file(name: str) -> list[str]:
    """The collectives whose names are words of a file's name, the longest first."""
    text = Path(name).name.lower()
    spans = [(found.span(), each) for each, pattern in _NAMES.items()
             for found in pattern.finditer(text)]  # fmt: skip
    found = [
        each
        for (start, end), each in spans
        if not any(a <= start and end <= b and (a, b) != (start, end) for (a, b), _ in spans)
    ]
    return sorted(dict.fromkeys(found), key=len, reverse=True)
