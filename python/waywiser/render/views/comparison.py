"""A comparison: the answer, the notes, and the paths that changed."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.comparison.comparison_text import (
    answer_lines,
    change,
    figures_before_and_now,
    interval_of_change,
    loss,
    note_lines,
    plural,
    sizes_text,
    suspected_lines,
    verdict_text,
)
from waywiser.analysis.comparison.path_change import PathChange, ProfileComparison
from waywiser.render.parts import Block, Sheet, SheetCell, SheetColumn, Tone, Words, numbers
from waywiser.stats import Interval
from waywiser.words import Reason, count, grouped, with_units

COMPARED: tuple[Reason, ...] = (
    "regression", "suspected", "improvement", "not decided", "no change",
)  # fmt: skip
"""Verdicts on paths that both sides have measured at sizes that can be compared."""

NAMED: tuple[Reason, ...] = ("missing", "no common size")
"""Verdicts on paths of one side that are named in each case."""

MOST = 8
"""Paths of one kind that are named, unless all are."""

LEAST = 132
"""Characters that the table of paths needs."""

MOST_RATIO = 100.0
"""An interval that goes further is shown to here."""

LEGEND = (
    "before, now: median over the processes at this size, without outliers, as in show; change: "
    "from before to now, of the bandwidth, or of the time where that is shown, with its 95 % "
    "confidence interval; size: if several sizes of a path "
    "changed, that of the median change; detectable: the noise hides smaller losses"
)
"""What the figures of a path are."""

TONES: dict[str, Tone] = {
    "regression": "error",
    "missing": "error",
    "suspected": "warning",
    "improvement": "good",
}

COLUMNS = (
    SheetColumn("verdict"),
    SheetColumn("path", folds=True),
    *numbers("size", "before", "now", "change", "95 %", "detectable"),
    SheetColumn("at", folds=True),
)


def comparison_parts(found: ProfileComparison, *, everything: bool = False) -> Iterator[Block]:
    """``everything``: all paths, not only those that changed."""
    for line in answer_lines(found):
        yield Words(line, "plain" if line.startswith(" ") else "lead")
    for line in note_lines(found, "" if everything else "; --all lists them"):
        yield Words(line)
    yield from _changes(found, everything)
    yield from _one_sided(found, everything)
    yield from map(Words, suspected_lines(found))


def _changes(found: ProfileComparison, everything: bool) -> Iterator[Block]:
    shown: list[PathChange] = []
    left: list[str] = []
    for verdict in COMPARED:
        paths = [path for path in found.of(verdict) if path.parts]
        most = len(paths) if everything else 0 if verdict == "no change" else MOST
        shown += paths[:most]
        if verdict != "no change" and len(paths) > most:
            left.append(f"{len(paths) - most} more {plural(verdict, len(paths) - most)}")
    if shown:
        rows = (_row(path, found) for path in shown)
        yield Sheet.of("Paths that changed", COLUMNS, rows, LEGEND, least=LEAST)
    if left:
        yield Words(f"and {', '.join(left)}: see --all")


def _row(path: PathChange, found: ProfileComparison) -> Iterator[str | SheetCell]:
    yield SheetCell(verdict_text(found, path), tone=TONES.get(path.verdict, "plain"))
    yield with_units(path.name)
    size = path.size
    if size is None:
        yield from [""] * 6
    else:
        decision = size.decision
        yield sizes_text(size)
        yield from figures_before_and_now(size)
        yield f"{change(decision.ratio, of_time=size.is_time):+.1%}"
        yield _span(decision.interval, of_time=size.is_time)
        hidden = decision.detectable
        yield "not known" if hidden is None else f"{loss(hidden, of_time=size.is_time):.1%}"
    yield path.why or ("changed if tested alone" if found.is_changed_alone(path) else "")


def _span(interval: Interval | None, *, of_time: bool) -> str:
    """``-5.9 % to -4.7 %``; empty without replicates."""
    if interval is None:
        return ""
    found = interval_of_change(interval, of_time=of_time)
    return f"{found.low:+.1%} to {min(found.high, MOST_RATIO - 1):+.1%}"


def _one_sided(found: ProfileComparison, everything: bool) -> Iterator[Block]:
    """Paths that one side has not measured, by verdict and reason; without ``everything`` the first
    that are missing, and how many others there are."""
    one_sided = found.of("missing", "no common size", "skipped", "new")
    reasons = grouped(((path.verdict, path.why), path.name) for path in one_sided)
    for (verdict, why), names in reasons.items():
        most = len(names) if everything else MOST if verdict in NAMED else 0
        for name in names[:most]:
            yield Words(f"{verdict}  {with_units(name)}: {why}")
        if len(names) > most > 0:
            yield Words(f"and {len(names) - most} more {verdict}: {why} (see --all)")
        elif not most:
            yield Words(f"{verdict}  {count(len(names), 'path')}: {why}")
