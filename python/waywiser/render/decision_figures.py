"""Which decisions of a report have a figure, and which of their methods are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from waywiser.analysis.policy.decision_table import CopyKind, DecisionTable, MethodTime
from waywiser.render.entry import Entry
from waywiser.render.families import MOST_LINES, method_of
from waywiser.words import Place, Workload, grouped

LEAST_BYTES = 4 * 2**10
"""The smallest size in a figure: below, bandwidths only restate times."""


class DecisionFigure(NamedTuple):
    """One table of decisions that is drawn."""

    table: DecisionTable
    methods: tuple[int, ...]
    """The positions of the methods that are drawn: those in use first."""
    names: tuple[str, ...]
    """What their colours and markers are given to, as in all figures of the report."""


def by_kind(entry: Entry) -> dict[CopyKind, list[DecisionTable]]:
    """The tables of each kind of copy: of one copy first, then of lists by their counts. Copies
    from and to GPUs come first, then those between GPUs, of the host, and of files."""
    ordered = sorted(entry.decisions, key=lambda table: (_rank(table), table.count))
    return grouped((table.kind, table) for table in ordered)


_ORDER = (("numa", "gpu"), ("gpu", "numa"), ("gpu", "gpu"), ("numa", "numa"))


def _rank(table: DecisionTable) -> tuple[int, str]:
    ends = [Place.parse(end).kind for end in table.paths[0].split(" -> ")] if table.paths else []
    kinds = (*ends,)
    known = (n for n, order in enumerate(_ORDER) if order == kinds)
    return next(known, len(_ORDER)), str(table.kind)


def decision_figures(entry: Entry) -> list[DecisionFigure]:
    """The tables with a choice: of one copy, and of lists of the middle one of the counts."""
    found = []
    for tables in by_kind(entry).values():
        for chosen in of_one_and_of_lists(tables):
            positions = _drawn(chosen)
            if len(positions) > 1:
                names = tuple(_name(chosen, n, entry) for n in positions)
                found.append(DecisionFigure(chosen, positions, names))
    return found


def of_one_and_of_lists(tables: Sequence[DecisionTable]) -> Iterator[DecisionTable]:
    """The tables of a kind that stand for all of it: those that have two methods and more."""
    several = [table for table in tables if len(table.methods) > 1]
    yield from (table for table in several if table.count == 1)
    if lists := [table for table in several if table.count > 1]:
        yield lists[len(lists) // 2]


def measured(table: DecisionTable, method: int) -> list[tuple[int, MethodTime]]:
    """The sizes at which a method was measured, if they are large enough to be drawn."""
    return [
        (each.bytes, time)
        for each in table.decisions
        if (time := each.times[method]) is not None
        and not time.interpolated
        and each.bytes >= LEAST_BYTES
    ]


def _drawn(table: DecisionTable) -> tuple[int, ...]:
    """Those in use, then the plain copy, then the others that are fastest at the largest size."""
    known = {n: points for n in range(len(table.methods)) if (points := measured(table, n))}
    used = dict.fromkeys(d.chosen for d in table.decisions if d.bytes >= LEAST_BYTES)

    def rank(n: int) -> tuple[bool, bool, float]:
        size, time = known[n][-1]
        return n not in used, n != table.plain, time.seconds / size

    return tuple(sorted(known, key=rank)[:MOST_LINES])


def _name(table: DecisionTable, method: int, entry: Entry) -> str:
    series = measured(table, method)[-1][1].series
    (transfer,) = Workload.parse(series).transfers
    return method_of(transfer, entry.subject.machine.traits)
