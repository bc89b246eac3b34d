"""Where two policies choose differently, and what each choice costs on the other machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from waywiser.analysis.policy.decision_table import CopyKind, DecisionTable, Method
from waywiser.analysis.policy.table import Policy, PolicyClass, PolicyRow
from waywiser.words import Value

MOST_THREADS = 2**31
"""Rows with the most threads are compared."""


class PolicyDifference(Value, frozen=True):
    """Adjacent sizes at which two policies choose two methods."""

    kind: CopyKind
    count: int
    first_bytes: int
    last_bytes: int
    """The smallest and the largest size at which both were measured or decide, both included."""
    methods: tuple[Method, Method]
    loss_on_first: float | None
    """How much longer the method of the second takes on the machine of the first, at the largest
    loss of these sizes; None if that is not in its policy."""
    loss_on_second: float | None


class PolicyComparison(Value, frozen=True):
    """What two policies have in common and where they differ."""

    sizes: int
    """Sizes that were compared."""
    equal: int
    differences: tuple[PolicyDifference, ...]
    only_first: tuple[CopyKind, ...]
    """Kinds of copies of which the other has no rows."""
    only_second: tuple[CopyKind, ...]


class _At(NamedTuple):
    kind: CopyKind
    pieces: int
    size: int
    first: PolicyRow
    second: PolicyRow

    @property
    def methods(self) -> tuple[Method, Method]:
        return _method(self.first), _method(self.second)


def compare_policies(
    first: Policy,
    second: Policy,
    first_tables: Sequence[DecisionTable] = (),
    second_tables: Sequence[DecisionTable] = (),
) -> PolicyComparison:
    """Compares the choices at all sizes of both, each with the most threads that it has. With the
    tables that a policy was made of, the times of all methods are known, and not of two alone."""
    ones, others = _by_kind(first), _by_kind(second)
    compared = [
        at for kind in ones if kind in others for at in _compared(kind, ones[kind], others[kind])
    ]
    # Without those that the next smaller count of pieces has as well.
    once: dict[tuple[object, ...], PolicyDifference] = {}
    for (kind, count, methods), group in groupby(
        compared, key=lambda at: (at.kind, at.pieces, at.methods)
    ):
        found = list(group)
        if methods[0] != methods[1]:
            low, high = found[0].size, found[-1].size
            losses = (
                _worst(_loss(at, at.first, at.second, first_tables) for at in found),
                _worst(_loss(at, at.second, at.first, second_tables) for at in found),
            )
            difference = PolicyDifference(kind, count, low, high, methods, *losses)
            once.setdefault((kind, low, high, methods), difference)
    return PolicyComparison(
        sizes=len(compared),
        equal=sum(at.methods[0] == at.methods[1] for at in compared),
        differences=tuple(once.values()),
        only_first=tuple(kind for kind in ones if kind not in others),
        only_second=tuple(kind for kind in others if kind not in ones),
    )


def _compared(kind: CopyKind, one: PolicyClass, other: PolicyClass) -> list[_At]:
    found = []
    contiguous = kind.host_contiguous
    known = [
        row for each in (one, other) for row in (each.host_contiguous if contiguous else each.rows)
    ]
    for count in sorted({row.count for row in known}):
        for size in sorted({row.bytes for row in known if row.count == count}):
            rows = [
                each.row(size, count, MOST_THREADS, host_contiguous=contiguous)
                for each in (one, other)
            ]
            if rows[0] is not None and rows[1] is not None:
                found.append(_At(kind, count, size, rows[0], rows[1]))
    return found


def _by_kind(policy: Policy) -> dict[CopyKind, PolicyClass]:
    return {kind: each for each in policy.classes for kind, _ in rows_by_kind(each)}


def rows_by_kind(found: PolicyClass) -> Iterator[tuple[CopyKind, tuple[PolicyRow, ...]]]:
    """The kinds of copies that a class has rows of, with these rows."""
    kind = CopyKind(found.source, found.destination, found.relation, found.peers_idle)
    for contiguous, rows in ((False, found.rows), (True, found.host_contiguous)):
        if rows:
            yield msgspec.structs.replace(kind, host_contiguous=contiguous), rows


def _method(row: PolicyRow) -> Method:
    return Method(row.executor, row.settings)


def _loss(
    at: _At, own: PolicyRow, other: PolicyRow, tables: Sequence[DecisionTable]
) -> float | None:
    """What the other's method loses on the machine of ``own``."""
    method, known = _method(other), own.next
    if known is not None and Method(known.executor, known.settings) == method:
        return known.margin
    for table in tables:
        if (table.kind, table.count) != (at.kind, own.count):
            continue
        times = zip(table.methods, table.times_at(at.size) or (), strict=False)
        known_times = {Method(m.executor, each.settings): each for m, each in times if each}
        time, used = known_times.get(method), known_times.get(_method(own))
        if time is not None and used is not None:
            return time.seconds / used.seconds - 1
    return None


def _worst(losses: Iterable[float | None]) -> float | None:
    return max((each for each in losses if each is not None), default=None)
