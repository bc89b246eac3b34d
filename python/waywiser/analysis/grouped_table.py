"""The table of a question that pairs of curves answer: a row for each kind of transfer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.analysis.answer import Cell, Table
from waywiser.analysis.grouped import Grouped
from waywiser.analysis.related import RATE_BYTES, START_BYTES, AtSize
from waywiser.words import format_bytes

COLUMNS = ("transfer", "large", "medium", "small", "at the largest size", "pairs")

Told = Callable[[AtSize], str]
"""An effect, as the question writes it."""


def table_of(title: str, groups: Sequence[Grouped], told: Told, marks: str) -> Table:
    """``marks`` says what ✓, × and the effects mean."""
    return Table(
        title=title,
        columns=COLUMNS,
        rows=tuple(_row(group, told) for group in groups),
        caption=f"Large from {format_bytes(RATE_BYTES)} on, small below "
        f"{format_bytes(START_BYTES)}. {marks}",
    )


def _row(group: Grouped, told: Told) -> tuple[Cell, ...]:
    return (
        Cell(group.label),
        _verdict(group.rates, told),
        _verdict(group.medium, told),
        _verdict(group.small, told),
        _largest(group.at_large, told),
        Cell(str(len(group.pairs))),
    )


def _verdict(group: Grouped, told: Told) -> Cell:
    """The mark, and of those that differ the middle one."""
    if not group.pairs:
        return Cell("—")
    if not group.differing:
        return Cell("", group.mark, group.pairs[0].a.text)
    pair, at = group.typical
    few = "" if group.verdict == "different" else f" ({len(group.differing)})"
    return Cell(f"{told(at)} at {format_bytes(at.bytes)}{few}", group.mark, pair.a.text)


def _largest(at: AtSize | None, told: Told) -> Cell:
    if at is None:
        return Cell("—")
    return Cell(f"{told(at)} at {format_bytes(at.bytes)}", "", at.a.line.workload)
