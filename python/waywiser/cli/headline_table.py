"""The headline paths of a profile, one line for each group."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from waywiser.cli.text_table import TextColumn, fitting, print_table
from waywiser.curves.curve import Curve
from waywiser.curves.figure_range import range_of
from waywiser.curves.headlines import HeadlineRow, headline_rows
from waywiser.machine.machine import Machine
from waywiser.words.number_format import format_rate, format_relative, format_time

COLUMNS = (
    *("headline paths", "GB/s", "±", "bound", "at", "latency"),
    *("all such paths, GB/s", "achieved by"),
)

TEXTS = ("headline paths", "all such paths, GB/s", "achieved by")
"""Columns that are aligned left."""

SPARED = ("all such paths, GB/s", "achieved by", "at", "±")
"""Columns that a narrow terminal goes without, in this order."""

WIDEST_CALL = 60
"""Characters of a call that a terminal has to have room for; longer ones fold."""


def print_headline(console: Console, machine: Machine, shown: Sequence[Curve]) -> None:
    """Prints for each group of headline paths the bandwidth and its share of the bound, the
    latency, and the call that achieves them: of the first path, and the lowest and the highest
    bandwidth of all. Prints nothing if there is no such path."""
    rows = [_row(row) for row in headline_rows(machine, shown, library=True)]
    if not rows:
        return
    bounds = {"achieved by": (0, WIDEST_CALL)}
    kept = fitting(COLUMNS, rows, console.width, spared=SPARED, bounds=bounds)
    kept = [n for n in kept if any(row[n] for row in rows)]
    columns = [
        TextColumn(COLUMNS[n], left=COLUMNS[n] in TEXTS, folds=COLUMNS[n] == "achieved by")
        for n in kept
    ]
    print_table(console, columns, [[row[n] for n in kept] for row in rows])
    console.print()


def _row(row: HeadlineRow) -> tuple[str, ...]:
    large, small = row.large, row.small.estimate if row.small is not None else None
    relative = large.estimate.relative if large is not None and large.estimate else None
    share = large.of_bound if large is not None else None
    return (
        row.group,
        format_rate(large.rate, relative) if large is not None else "",
        format_relative(relative) if large is not None else "",
        f"{share:.0%}" if share is not None else "",
        row.at,
        format_time(small.median, small.relative) if small is not None else "",
        _range(row),
        row.call,
    )


def _range(row: HeadlineRow) -> str:
    """``4: 55.2–55.6 at 64 MiB``: the lowest and the highest; empty if there is one path."""
    if not row.paths:
        return ""
    ends = range_of(row.paths, lambda point: point.rate, format_rate)
    return f"{len(row.paths)}: {ends} at {row.paths_at}"
