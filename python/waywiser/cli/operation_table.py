"""All operations of a profile in one table: seconds per call, by place."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from waywiser.cli.curve_table import Marks, marks_of, samples
from waywiser.cli.lines import say
from waywiser.cli.text_table import TextColumn, fitting, print_table
from waywiser.curves.curve import Curve
from waywiser.words import format_settings
from waywiser.words.number_format import format_relative, format_time
from waywiser.words.sizes_in_text import with_units

COLUMNS = ("place", "operation", "settings", "time", "±", "app sees", "samples", "")

SETTINGS = 24
"""Characters that the settings are left before another column goes; longer ones fold."""

SPARED = ("samples", "app sees")
"""Columns that a narrow terminal goes without, in this order."""


def print_operations(console: Console, curves: Sequence[Curve], marks: Marks) -> None:
    """Sorted by place, then name, the defaults of each first."""
    say(console, "operations: time per call", "bold")
    cells = [row for _, row in sorted((_row(each, marks) for each in curves), key=lambda r: r[0])]
    bounds = {"settings": (0, SETTINGS)}
    kept = fitting(COLUMNS, cells, console.width, spared=SPARED, bounds=bounds)
    columns = [
        TextColumn(
            name,
            left=name in ("place", "operation", "settings", ""),
            folds=name in ("operation", "settings"),
        )
        for name in (COLUMNS[n] for n in kept)
    ]
    print_table(console, columns, [[row[n] for n in kept] for row in cells])
    console.print()


def _row(curve: Curve, marks: Marks) -> tuple[tuple[str, int, str, int, str], list[str]]:
    """What it is sorted by, and its cells."""
    operation = curve.workload.operation
    found = curve.measured[0].estimate
    if operation is None or found is None:
        raise TypeError(f"{curve.text} is no operation that was measured")
    place = operation.place
    settings = with_units(format_settings(operation.parameters)).strip("[]")
    order = (place.kind, place.index, operation.name, len(curve.text), curve.text)
    return order, [
        str(place),
        operation.name,
        settings.replace(",", ", "),
        format_time(found.median, found.relative),
        format_relative(found.relative),
        format_time(found.host_median, found.host_relative) if found.host_median else "",
        samples(found),
        marks_of(found, marks),
    ]
