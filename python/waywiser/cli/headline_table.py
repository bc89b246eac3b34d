"""The headline paths of a profile in a terminal: one row for each group."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from waywiser.analysis.headlines import HeadlineRow, headline_rows, rate_of
from waywiser.analysis.shown import Shown
from waywiser.cli.text_table import TextColumn, print_table
from waywiser.series.line import Line
from waywiser.topology.machine import Machine
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate, format_relative, format_time

COLUMNS = (
    TextColumn("", left=True),
    TextColumn("GB/s"),
    TextColumn("±"),
    TextColumn("of bound"),
    TextColumn("at"),
    TextColumn("latency"),
    TextColumn("all such paths, GB/s", left=True, folds=True),
    TextColumn("achieved by", left=True, folds=True),
)


def print_headline(console: Console, machine: Machine, shown: Sequence[Shown]) -> None:
    """Prints for each group of headline paths the bandwidth and its share of the bound, the
    latency, and the call that achieves them: of the first path, and the lowest and the highest
    bandwidth of all. Prints nothing if there is no such path."""
    rows = headline_rows(machine, shown)
    if not rows:
        return
    console.rule(Text("headline paths", style="bold"), align="left")
    cells = [*map(_row, rows)]
    kept = [n for n in range(len(COLUMNS)) if not n or any(row[n] for row in cells)]
    columns = [COLUMNS[n] for n in kept]
    print_table(console, columns, [tuple(row[n] for n in kept) for row in cells])


def _row(row: HeadlineRow) -> tuple[str, ...]:
    found, small = row.large.estimate, row.small.estimate if row.small is not None else None
    share = row.large.of_bound
    return (
        row.group,
        _rate(row.large),
        format_relative(found.relative) if found else "",
        f"{share:.0%}" if share is not None else "",
        row.at,
        format_time(small.median, small.relative) if small is not None else "",
        _range(row.paths),
        row.call,
    )


def _rate(line: Line) -> str:
    return format_rate(rate_of(line), line.estimate.relative if line.estimate else None)


def _range(paths: Sequence[Line]) -> str:
    """``4: 55.2 to 55.6 at 64 MiB``: the lowest and the highest; empty if there is one path."""
    if not paths:
        return ""
    ends = " to ".join(dict.fromkeys((_rate(paths[0]), _rate(paths[-1]))))
    return f"{len(paths)}: {ends} at {format_bytes(paths[0].bytes)}"
