"""One curve as a table: a row for each size, with everything that is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console

from waywiser.cli.lines import say
from waywiser.cli.text_table import TextColumn, fitting, print_table
from waywiser.curves.curve import Curve
from waywiser.curves.point import Point
from waywiser.measure.plan.schedule import EQUAL
from waywiser.profile.estimate import Estimate
from waywiser.words.number_format import RATE_BYTES, format_rate, format_relative, format_time
from waywiser.words.sizes_in_text import size_of, with_units

Marks = Mapping[str, str]
"""The letter of each kind of quality flag."""

COLUMNS = {
    "size": 8,
    "time": 8,
    "±": 6,
    "GB/s": 6,
    "bound": 5,
    "app sees": 8,
    "samples": 7,
    "stopped": 9,
    "": 0,
}
"""Names and least widths: with up to seven marks in the last, a row fits into 80 columns."""

SPARED = ("samples", "bound", "app sees", "stopped")
"""Columns that a narrower terminal goes without, in this order: a letter at the end says as well
that sampling did not converge."""


def print_curve(console: Console, curve: Curve, marks: Marks) -> None:
    """Its name, its bound, the links it used, its sizes, and those left out with the reason."""
    say(console, _title(curve), style="bold")
    best = curve.measured[-1].bound
    if best is not None:
        text = f"bound {best.bytes_per_second / 1e9:.1f} GB/s: {best.made_of}"
        say(console, text, "dim", indent=2)
    for line in curve.measured:
        if line.link_use is not None and line.link_use.known:
            say(console, f"{size_of(line.text)} went {line.link_use}", "dim", indent=2)
    _print_sizes(console, curve, marks)
    last = curve.measured[-1]
    if rates := sorted(last.transfer_rates):
        sure = last.estimate.relative if last.estimate else None
        each = f"{format_rate(rates[0], sure)} to {format_rate(rates[-1], sure)} GB/s"
        say(console, f"each transfer of {size_of(last.text)}: {each}", "dim", indent=2)
    for why, sizes in _skipped(curve).items():
        say(console, f"skipped, as {_because(why)}: {', '.join(sizes)}", "dim", indent=2)
    console.print()


def _print_sizes(console: Console, curve: Curve, marks: Marks) -> None:
    rows = [
        tuple(_cells(line, line.estimate, marks))
        for line in curve.measured
        if line.estimate is not None
    ]
    names = tuple(COLUMNS)
    bounds = {name: (least, console.width) for name, least in COLUMNS.items()}
    kept = fitting(names, rows, console.width, spared=SPARED, bounds=bounds)
    columns = [
        TextColumn(name, left=name in ("stopped", ""), least=COLUMNS[name])
        for name in (names[n] for n in kept)
    ]
    print_table(console, columns, [[row[n] for n in kept] for row in rows])


def _cells(line: Point, found: Estimate, marks: Marks) -> Iterator[str]:
    """The cells in the order of `COLUMNS`."""
    large = found.rate is not None and line.bytes >= RATE_BYTES
    yield size_of(line.text)
    yield format_time(found.median, found.relative)
    yield format_relative(found.relative)
    yield format_rate(found.rate.value, found.relative) if large and found.rate else ""
    yield f"{line.of_bound:.0%}" if large and line.of_bound is not None else ""
    yield format_time(found.host_median, found.host_relative) if found.host_median else ""
    yield samples(found)
    yield found.stop
    yield marks_of(found, marks)


def samples(found: Estimate) -> str:
    """``20×2``: samples of each block and blocks; ``18-20×2`` if they differ."""
    counts = sorted({block.count for block in found.blocks})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
    return f"{each}×{len(found.blocks)}"


def marks_of(found: Estimate, marks: Marks) -> str:
    return "".join(marks[flag.kind] for flag in found.quality_flags)


def _title(curve: Curve) -> str:
    """The curve's name; transfers that have none as a list."""
    name = with_units(curve.name)
    body, states, _ = name.partition(" (")
    parts = body.split("; ")
    if len(parts) <= 2:
        return name
    head = f"{len(parts)} concurrent transfers{name.removeprefix(body) if states else ''}"
    return f"{head}:\n  " + "\n  ".join(parts)


def _skipped(curve: Curve) -> dict[str, list[str]]:
    """Sizes by reason, without the figures behind its colon, which differ from size to size."""
    found: dict[str, list[str]] = {}
    for line in curve.points:
        if line.skipped:
            why = line.skipped.partition(": ")[0]
            found.setdefault(why, []).append(size_of(line.text))
    return found


def _because(why: str) -> str:
    return f"it is {why}" if why.startswith(EQUAL) else why
