"""The figures that one asks for first: how fast each family of ways is at best, and how quick."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.report.entry import Entry
from waywiser.report.families import (
    UNDRAWN,
    between,
    families,
    label,
    of_family,
    stands_for_many,
    sustained,
)
from waywiser.report.parts import Cell, Row, Section, Sheet
from waywiser.report.writing import percent
from waywiser.stats.figures import format_rate, format_relative, format_time
from waywiser.stats.line import Line
from waywiser.stats.shown import Shown
from waywiser.words import format_bytes

SMALL_BYTES = 4096
"""A time tells of latency up to there."""


def headlines(entries: Sequence[Entry]) -> Section:
    """Of one machine with all that belongs to a figure, of several side by side."""
    sheet = _alone(entries[0]) if len(entries) == 1 else _beside(entries)
    return Section("headlines", "What it carries", (sheet,))


def _alone(entry: Entry) -> Sheet:
    rows = []
    for family in _moving([entry]):
        fastest, quickest = _fastest(entry, family), _quickest(entry, family)
        if fastest is None:
            continue
        curve, line = fastest
        text, note = _rate(line)
        rows.append(
            Row(
                (
                    Cell(family),
                    Cell(text, note=note, number=True),
                    Cell(f"{line.of_bound:.0%}" if line.of_bound else "", number=True),
                    Cell(_way(curve, line), link=entry.links.anchor(curve.text)),
                    *_latency(entry, quickest),
                )
            )
        )
    return Sheet(
        "The fastest way of each kind, and the quickest for few bytes",
        ("", "GB/s", "of the bound", "fastest way", "quickest", "way"),
        tuple(rows),
        "Rates at the largest size; of paths that symmetry makes alike the first is told.",
    )


def _beside(entries: Sequence[Entry]) -> Sheet:
    rows = []
    for family in _moving(entries):
        found = [_fastest(entry, family) for entry in entries]
        base = next((line for each in found if each for line in [each[1]]), None)
        cells = [Cell(f"{family}, GB/s")]
        for entry, each in zip(entries, found, strict=True):
            if each is None:
                cells.append(Cell("not measured"))
                continue
            text, note = _rate(each[1])
            change = _change(each[1], base)
            note = f"{note} {change}".strip()
            cells.append(Cell(text, "", note, entry.links.anchor(each[0].text), number=True))
        rows.append(Row(tuple(cells)))
    return Sheet(
        "The fastest way of each kind at its largest size",
        ("", *(entry.name for entry in entries)),
        tuple(rows),
        "In brackets the difference from the first machine that has it.",
    )


def _change(line: Line, base: Line | None) -> str:
    ours = line.estimate.rate if line.estimate else None
    theirs = base.estimate.rate if base and base.estimate else None
    if ours is None or theirs is None or line is base:
        return ""
    return f"({percent(ours.value / theirs.value - 1)})"


def _moving(entries: Sequence[Entry]) -> list[str]:
    return [family for family in families(entries) if family != UNDRAWN]


def _standing_for_many(entry: Entry, family: str) -> list[Shown]:
    found = of_family(entry, family)
    return [curve for curve in found if stands_for_many(curve)] or found


def _fastest(entry: Entry, family: str) -> tuple[Shown, Line] | None:
    curves = [curve for curve in _standing_for_many(entry, family) if sustained(curve)]
    found = max(curves, key=sustained, default=None)
    return None if found is None else (found, found.measured[-1])


def _quickest(entry: Entry, family: str) -> tuple[Shown, Line] | None:
    def seconds(each: tuple[Shown, Line]) -> tuple[int, float]:
        assert each[1].estimate is not None
        return each[1].bytes, each[1].estimate.median

    first = [(curve, curve.measured[0]) for curve in _standing_for_many(entry, family)]
    small = [each for each in first if 0 < each[1].bytes <= SMALL_BYTES]
    return min(small, key=seconds, default=None)


def _rate(line: Line) -> tuple[str, str]:
    found = line.estimate
    if found is None or found.rate is None:
        return "", ""
    return format_rate(found.rate.value, found.relative), format_relative(found.relative)


def _way(curve: Shown, line: Line) -> str:
    where = "" if curve.transfer is None else f"{between(curve)}, "
    return f"{where}{label(curve)}, {format_bytes(line.bytes)}"


def _latency(entry: Entry, quickest: tuple[Shown, Line] | None) -> tuple[Cell, Cell]:
    if quickest is None or quickest[1].estimate is None:
        return Cell(), Cell()
    curve, line = quickest
    found = quickest[1].estimate
    text = format_time(found.median, found.relative)
    time = Cell(text, note=format_relative(found.relative), number=True)
    way = f"{label(curve)}, {format_bytes(line.bytes)}"
    return time, Cell(way, link=entry.links.anchor(curve.text))
