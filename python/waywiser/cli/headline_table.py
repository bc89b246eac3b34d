"""The headline paths of a profile in a terminal: one row for each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.text import Text

from waywiser.analysis.shown import SMALL_BYTES, Shown
from waywiser.cli.text_table import TextColumn, print_table
from waywiser.plan.headline import GROUPS, Group, group_of
from waywiser.series.line import Line
from waywiser.words.number_format import format_rate, format_time

COLUMNS = (
    TextColumn("", left=True),
    TextColumn("GB/s"),
    TextColumn("of bound"),
    TextColumn("latency"),
    TextColumn("path", left=True, folds=True),
)


def print_headline(console: Console, shown: Iterable[Shown]) -> None:
    """Prints for each group of headline paths the bandwidth at the largest size and its share of
    the bound, and the latency at the smallest size if that is 4 KiB or less. Of several paths: the
    lowest and the highest. Prints nothing if there is no such path."""
    groups: dict[Group, list[Shown]] = {}
    for curve in shown:
        if group := group_of(curve.workload):
            groups.setdefault(group, []).append(curve)
    if not groups:
        return
    console.rule(Text("headline paths", style="bold"), align="left")
    ordered = sorted(groups, key=GROUPS.index)
    print_table(console, COLUMNS, [_row(group, groups[group]) for group in ordered])


def _row(group: Group, members: Sequence[Shown]) -> tuple[str, ...]:
    largest = [curve.measured[-1] for curve in members]
    smallest = [line for c in members if 0 < (line := c.measured[0]).bytes <= SMALL_BYTES]
    more = f" and {len(members) - 1} more" if len(members) > 1 else ""
    return (
        group,
        _span(largest, _rate, format_rate),
        _span(largest, lambda line: line.of_bound, lambda share, _: f"{share:.0%}"),
        _span(smallest, _time, format_time),
        members[0].name + more,
    )


def _rate(line: Line) -> float | None:
    return line.estimate.rate.value if line.estimate and line.estimate.rate else None


def _time(line: Line) -> float | None:
    return line.estimate.median if line.estimate else None


def _span(
    lines: Sequence[Line],
    number: Callable[[Line], float | None],
    text: Callable[[float, float | None], str],
) -> str:
    """``55.2`` or ``55.2 to 55.6``: the lowest and the highest, if they read differently; empty if
    there is none."""
    known = [(n, line) for line in lines if (n := number(line)) is not None]
    if not known:
        return ""
    ends = [min(known, key=lambda each: each[0]), max(known, key=lambda each: each[0])]
    texts = [text(n, line.estimate.relative if line.estimate else None) for n, line in ends]
    return " to ".join(dict.fromkeys(texts))
