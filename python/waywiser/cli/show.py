"""``waywiser show``: a profile as a table, with everything that speaks against its numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from waywiser.cli.figures import RATE_BYTES, format_rate, format_relative, format_time
from waywiser.cli.picture import plain_console
from waywiser.plan.course import EQUAL, OVER
from waywiser.profile import Profile
from waywiser.stats.estimate import Estimate
from waywiser.stats.overview import Group, Line, Overview, Summary, overview
from waywiser.words import format_bytes

SHOWN_MEMBERS = 3
"""Of a warning's series in the terminal; ``--json`` names all."""

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

_SIZED = re.compile(r"( by [a-z0-9-]+(?:\[[^\]]*\])?) of (\d+)\b(?! [KMGTPE]?i?B)")


def run_show(file: str, json: bool, only: Sequence[str] = ()) -> int:
    """Prints the profile; returns 0. Raises `WaywiserError` for bad files and patterns."""
    with Profile.open(file) as profile:
        found = overview(profile, only)
    if json:
        text = msgspec.json.format(msgspec.json.encode(found), indent=2)
        sys.stdout.write(text.decode() + "\n")
    else:
        print_overview(found)
    return 0


def print_overview(found: Overview, console: Console | None = None) -> None:
    """Everything for the terminal, to standard output unless told otherwise."""
    console = console or plain_console()
    marks = {group.reason: chr(ord("a") + n) for n, group in enumerate(found.warnings)}
    for _, lines in groupby(found.series, key=lambda line: line.curve):
        _print_curve(console, list(lines), marks)
    for title, groups in (("not measured", found.refusals), ("failed", found.failures)):
        for group in groups:
            _print_group(console, title, group)
    for group in found.skipped:
        if group.reason.endswith(OVER):
            _print_group(console, "left out", group)
    for group in found.warnings:
        _print_warning(console, marks[group.reason], group)
    for group in found.notes:
        _say(console, f"note: {group.reason} ({_count(len(group.members), 'visit')})")
    for group in found.unbounded:
        _say(console, f"no bound for {_count(len(group.members), 'curve')}: {group.reason}")
    if any(line.estimate for line in found.series):
        _say(console, _legend(found.series))
    if found.planned_visits and found.visits < found.planned_visits:
        text = (
            f"not complete: {found.visits} of {found.planned_visits} visits are stored; "
            f"go on with: waywiser survey --resume -o {found.profile}"
        )
        _say(console, text, style="bold yellow")
    _say(console, f"{found.hostname}: {_sentence(found.summary)}", style="bold")


def _print_curve(console: Console, lines: Sequence[Line], marks: dict[str, str]) -> None:
    measured = [line for line in lines if line.estimate is not None]
    if not measured:
        return
    _say(console, _title(measured[0]), style="bold")
    best = measured[-1].bound
    if best is not None:
        text = f"bound {best.bytes_per_second / 1e9:.1f} GB/s: {best.made_of}"
        _say(console, text, "dim", indent=2)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, width in COLUMNS.items():
        left = name in ("stopped", "")
        table.add_column(
            name, justify="left" if left else "right", min_width=width, no_wrap=bool(name)
        )
    for line in measured:
        if line.estimate is not None:
            table.add_row(*map(Text, _cells(line, line.estimate, marks)))
    console.print(table)
    left_out: dict[str, list[str]] = {}
    for line in lines:
        if line.left_out:
            # the reason's figures, behind its colon, differ from size to size
            why = line.left_out.partition(": ")[0]
            left_out.setdefault(why, []).append(format_bytes(line.bytes))
    for why, sizes in left_out.items():
        _say(console, f"left out, for {_because(why)}: {', '.join(sizes)}", "dim", indent=2)
    console.print()


def _cells(line: Line, found: Estimate, marks: dict[str, str]) -> Iterator[str]:
    """In the order of `COLUMNS`."""
    large = found.rate is not None and line.bytes >= RATE_BYTES
    yield format_bytes(line.bytes) if line.bytes else ""
    yield format_time(found.median, found.relative)
    yield format_relative(found.relative)
    yield format_rate(found.rate.value, found.relative) if large and found.rate else ""
    yield f"{line.of_bound:.0%}" if large and line.of_bound is not None else ""
    yield format_time(found.host_median, found.host_relative) if found.host_median else ""
    yield _samples(found)
    yield found.stop
    yield "".join(marks[doubt.kind] for doubt in found.doubts)


def _samples(found: Estimate) -> str:
    """``20×2``: samples of each block and blocks; ``18-20×2`` where they differ."""
    counts = sorted({block.count for block in found.blocks})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
    return f"{each}×{len(found.blocks)}"


def _because(why: str) -> str:
    return f"it is {why}" if why.startswith(EQUAL) else why


def _title(line: Line) -> str:
    """The curve's name; transfers that have none as a list."""
    body, states, _ = line.name.partition(" (")
    parts = body.split("; ")
    if len(parts) <= 2:
        return line.name
    head = f"{len(parts)} transfers at once{line.name.removeprefix(body) if states else ''}"
    return f"{head}:\n  " + "\n  ".join(parts)


def _print_group(console: Console, title: str, group: Group) -> None:
    count = len(group.members)
    _say(console, f"{title}: {group.reason}" + (f" ({count})" if count > 1 else ""), "yellow")
    for member in group.members:
        _say(console, _with_units(member), indent=2)


def _print_warning(console: Console, mark: str, group: Group) -> None:
    _say(console, f"{mark}  {group.reason}, {_count(len(group.members), 'series')}", "yellow")
    for member in group.members[:SHOWN_MEMBERS]:
        _say(console, _with_units(member), indent=5)
    if (more := len(group.members) - SHOWN_MEMBERS) > 0:
        _say(console, f"and {more} more: see --json", indent=5)
    _say(console, f"remedy: {group.remedy}", indent=5)


def _with_units(text: str) -> str:
    """The sizes of transfers: ``by cpu of 1048576`` as ``by cpu of 1 MiB``."""
    return _SIZED.sub(lambda match: f"{match[1]} of {format_bytes(int(match[2]))}", text)


def _say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """A line that hangs by its indent where a terminal folds it, and is not folded in a pipe."""
    if console.is_terminal:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent + text, style=style), soft_wrap=True)


def _legend(lines: Sequence[Line]) -> str:
    kinds = sorted({line.estimate.kind for line in lines if line.estimate}, reverse=True)
    return (
        f"±: half of the median's 95 % interval, {' or '.join(kinds)}; app sees: median time from "
        "call to completion; samples: of a block × blocks"
    )


def _sentence(summary: Summary) -> str:
    measured = summary.converged + summary.not_converged
    share = f" ({summary.converged / measured:.0%} of the measured)" if measured else ""
    parts = [
        f"{_count(summary.series, 'series')} of {_count(summary.curves, 'curve')}",
        f"{summary.converged} converged{share}",
    ]
    others = {
        "did not converge": summary.not_converged,
        "failed": summary.failed,
        "left out with a reason": summary.skipped,
    }
    parts += [f"{count} {what}" for what, count in others.items() if count]
    if summary.refused:
        parts.append(f"{_count(summary.refused, 'path')} refused")
    return ", ".join(parts) + f"; {format_time(summary.seconds, 0.005)} of measuring"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 or what == "series" else f"{number} {what}s"
