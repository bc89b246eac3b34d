"""The headline paths of a profile in a terminal: one row for each group."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from waywiser.analysis.headlines import HeadlineRow, rate_of
from waywiser.cli.figure_range import range_of
from waywiser.cli.text_table import TextColumn, fitting, print_table
from waywiser.series.line import Line
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate, format_relative, format_time

COLUMNS = ("headline paths", "GB/s", "±", "bound", "size", "latency", "all paths", "achieved by")

SPARED = ("achieved by", "all paths", "±")
"""Columns that a narrow terminal goes without, in this order."""

WIDEST_CALL = 60
"""Characters of a call that a terminal has to have room for; longer ones fold."""


def print_headline(console: Console, rows: Sequence[HeadlineRow]) -> None:
    """Prints for each group of headline paths the bandwidth and its share of the bound, the
    latency, and the call that achieves them, all of the first path; and the lowest and the highest
    bandwidth of several paths. Prints nothing if there is no row."""
    if not rows:
        return
    cells = [*map(_cells, rows)]
    bounds = {"achieved by": (0, WIDEST_CALL)}
    kept = fitting(COLUMNS, cells, console.width, spared=SPARED, bounds=bounds)
    kept = [n for n in kept if any(row[n] for row in cells)]
    columns = [
        TextColumn(
            COLUMNS[n], left=n == 0 or n >= len(COLUMNS) - 2, folds=COLUMNS[n] == "achieved by"
        )
        for n in kept
    ]
    print_table(console, columns, [[row[n] for n in kept] for row in cells])
    console.print()


def _cells(row: HeadlineRow) -> tuple[str, ...]:
    found, small = row.large.estimate, row.small.estimate if row.small is not None else None
    share = row.large.of_bound
    return (
        row.group,
        range_of([row.large], _rate, format_rate),
        format_relative(found.relative) if found is not None and found.interval else "",
        f"{share:.0%}" if share is not None else "",
        row.at,
        format_time(small.median, small.relative) if small is not None else "",
        _range(row.paths),
        row.call,
    )


def _range(paths: Sequence[Line]) -> str:
    """``4: 55.2–55.6 GB/s at 64 MiB``: the number of paths, the slowest and the fastest."""
    if not paths:
        return ""
    ends = range_of(paths, _rate, format_rate)
    return f"{len(paths)}: {ends} GB/s at {format_bytes(paths[0].bytes)}"


def _rate(line: Line) -> float | None:
    return rate_of(line) or None
