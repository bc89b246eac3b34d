"""The headline paths of a profile in a terminal: one row for each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console

from waywiser.analysis.shown import SMALL_BYTES, Shown
from waywiser.cli.figure_range import range_of
from waywiser.cli.text_table import TextColumn, fitting, print_table
from waywiser.plan.headline import GROUPS, Group, headline
from waywiser.series.line import Line
from waywiser.topology.machine import Machine
from waywiser.words.number_format import format_rate, format_time

COLUMNS = ("headline paths", "GB/s", "bound", "latency", "paths", "path")

SPARED = ("path", "paths")
"""Columns that a narrow terminal goes without, in this order."""

WIDEST_PATH = 60
"""Characters of a path that a terminal has to have room for; longer ones fold."""


def headline_groups(machine: Machine, curves: Iterable[Shown]) -> dict[Group, list[Shown]]:
    """The headline paths among the curves by group, in the order in which they are shown."""
    curves = list(curves)
    groups = headline(machine, (curve.workload for curve in curves))
    found: dict[Group, list[Shown]] = {}
    for curve in curves:
        if group := groups.get(curve.text):
            found.setdefault(group, []).append(curve)
    return {group: found[group] for group in GROUPS if group in found}


def print_headline(console: Console, groups: Mapping[Group, Sequence[Shown]]) -> None:
    """Prints for each group of headline paths the bandwidth at the largest size and its share of
    the bound, and the latency at the smallest size if that is 4 KiB or less. Of several paths: the
    lowest and the highest. Prints nothing if there is no such path."""
    if not groups:
        return
    rows = [_row(group, found) for group, found in groups.items()]
    bounds = {"path": (0, WIDEST_PATH)}
    kept = fitting(COLUMNS, rows, console.width, spared=SPARED, bounds=bounds)
    kept = [n for n in kept if any(row[n] for row in rows)]
    columns = [
        TextColumn(COLUMNS[n], left=n in (0, len(COLUMNS) - 1), folds=COLUMNS[n] == "path")
        for n in kept
    ]
    print_table(console, columns, [[row[n] for n in kept] for row in rows])
    console.print()


def _row(group: Group, members: Sequence[Shown]) -> tuple[str, ...]:
    largest = [curve.measured[-1] for curve in members]
    smallest = [line for c in members if 0 < (line := c.measured[0]).bytes <= SMALL_BYTES]
    return (
        group,
        range_of(largest, _rate, format_rate),
        range_of(largest, lambda line: line.of_bound, lambda share, _: f"{share:.0%}"),
        range_of(smallest, _time, format_time),
        str(len(members)),
        members[0].name,
    )


def _rate(line: Line) -> float | None:
    return line.estimate.rate.value if line.estimate and line.estimate.rate else None


def _time(line: Line) -> float | None:
    return line.estimate.median if line.estimate else None
