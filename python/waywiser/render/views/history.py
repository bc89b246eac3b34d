"""A history in a terminal: the counts, what changed on whole nodes, a line with a small chart for
each path that changed, and what was not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from waywiser.analysis.history.history import (
    NIGHT_REASONS,
    History,
    NightValue,
    NodeHistory,
    PathHistory,
)
from waywiser.analysis.history.history_texts import change_text, node_change_text
from waywiser.render.parts import Block, Sheet, SheetCell, SheetColumn, Words, tone_of
from waywiser.words import by_wording, count, format_rate, single_line

BARS = "▁▂▃▄▅▆▇█"

CHART = 30
"""Characters of a small chart; more nights are taken together."""

LEAST_RANGE = 0.1
"""The least range of a chart, relative to its middle: noise looks small then."""

MOST_ROWS = 40
"""Paths that are listed in a terminal, the worst first."""


def history_parts(found: History, *, everything: bool = False) -> Iterator[Block]:
    """The worst paths first; with ``everything`` those without a change too."""
    yield Words(headline(found), "lead")
    for node in found.nodes:
        for change in node.changes:
            yield Words(f"{node.name}: {node_change_text(change)}", indent=2)
    listed = [p for p in found.paths if everything or p.status not in ("steady", "too few nights")]
    shown = listed if everything else listed[:MOST_ROWS]
    if shown:
        yield path_sheet(found, shown)
    if len(shown) < len(listed):
        yield Words(f"and {count(len(listed) - len(shown), 'more path')}: --all lists them", "note")
    if found.suspects:
        yield Words(f"to measure again: {', '.join(found.suspects)}", indent=2)
    if simulated := [node for node in found.nodes if node.simulated]:
        are = "is" if len(simulated) == 1 else "are"
        yield Words(f"note: {count(len(simulated), 'node')} {are} simulated", "note")
    notes = [f"{node.name}: {note}" for node in found.nodes for note in node.notes]
    for line, _ in by_wording(notes):
        yield Words(f"note: {line}")
    for file, why in found.unreadable.items():
        yield Words(f"not read: {single_line(file)}: {why}")


def headline(found: History) -> str:
    """``1 slower, 2 suspected, 3997 steady of 4000 paths of 400 nodes``."""
    unread = f"; {count(len(found.unreadable), 'file')} not used" if found.unreadable else ""
    if not found.paths:
        return f"no path that can be followed{unread}"
    counts = ((len(found.of(status)), status) for status in NIGHT_REASONS)
    text = ", ".join(f"{number} {status}" for number, status in counts if number)
    nodes = count(len(found.nodes), "node")
    nights = max(node.nights for node in found.nodes)
    since = looked_at(found)
    if before := sum(path.slower_before for path in found.paths):
        since += f"; {count(before, 'path')} slower since an earlier day: leave --since out"
    paths = count(len(found.paths), "path")
    return f"{text} of {paths} of {nodes}, up to {count(nights, 'night')}{since}{unread}"


def looked_at(found: History) -> str:
    """Returns the days that were looked at and whose changes are listed, such as `` from 2026-11-01
    on, changes since 2026-11-20``; nothing if these are all."""
    first = found.first_day_text
    since = f"{', changes' if first else ''} since {found.since}" if found.since else ""
    return f"{first}{since}"


def path_sheet(found: History, paths: Sequence[PathHistory], title: str = "") -> Sheet:
    """A line for each path."""
    labels = {node.name: label_text(node) for node in found.nodes}
    rows = [
        (
            SheetCell(path.node, note=labels[path.node]),
            path.path,
            SheetCell(
                path.status,
                tone=tone_of(path.status),
            ),
            format_rate(path.rate, path.noise or 0.01),
            chart(path.nights),
            change_text(path.last_change) if path.last_change else "",
            "; ".join(path.last_change.since) if path.last_change else "",
        )
        for path in paths
    ]
    columns = (
        SheetColumn("node", notes="labels", notes_spared=2),
        "path",
        "status",
        SheetColumn("GB/s", number=True),
        SheetColumn("nights", spared=3),
        "last change",
        SheetColumn("what else changed then", spared=1, folds=True, most=30, least=16),
    )
    return Sheet.of(title or "Paths, the worst first", columns, rows).without_empty_columns()


def label_text(node: NodeHistory) -> str:
    """``rack=r12 owner=physics``."""
    return " ".join(f"{name}={value}" for name, value in node.labels.items())


def chart(nights: Sequence[NightValue]) -> str:
    """The bandwidth of each night as a bar; a dot for nights without a survey."""
    days = [date.fromisoformat(night.date[:10]).toordinal() for night in nights]
    cells = min(CHART, days[-1] - days[0] + 1)
    span = max(days[-1] - days[0], 1)
    found: list[list[float]] = [[] for _ in range(cells)]
    for day, night in zip(days, nights, strict=True):
        found[min(int((day - days[0]) / span * cells), cells - 1)].append(night.rate)
    rates = sorted(night.rate for night in nights)
    middle = rates[len(rates) // 2]
    low, high = rates[0], rates[-1]
    missing = max(0.0, LEAST_RANGE * middle - (high - low)) / 2
    low, high = low - missing, high + missing

    def bar(values: Sequence[float]) -> str:
        if not values:
            return "·"
        part = (sum(values) / len(values) - low) / (high - low or 1.0)
        return BARS[min(int(part * len(BARS)), len(BARS) - 1)]

    return "".join(map(bar, found))
