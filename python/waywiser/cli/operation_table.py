"""All operations of a profile in one table: seconds per call, by place."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from waywiser.cli.curve_table import Marks, marks_of, samples
from waywiser.cli.lines import say
from waywiser.stats.figures import format_relative, format_time
from waywiser.stats.shown import Shown
from waywiser.stats.sizes_in_text import with_units
from waywiser.words import format_settings

COLUMNS = ("place", "operation", "settings", "time", "±", "app sees", "samples", "")


def print_operations(console: Console, curves: Sequence[Shown], marks: Marks) -> None:
    """Sorted by place, then name, the defaults of each first."""
    say(console, "operations: time per call", "bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in COLUMNS:
        left = name in ("place", "operation", "settings", "")
        folds = name == "settings"
        table.add_column(
            name, justify="left" if left else "right", no_wrap=not folds, overflow="fold"
        )
    for cells in sorted((_row(curve, marks) for curve in curves), key=lambda row: row[0]):
        table.add_row(*map(Text, cells[1]))
    console.print(table)
    console.print()


def _row(curve: Shown, marks: Marks) -> tuple[tuple[str, int, str, int, str], list[str]]:
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
