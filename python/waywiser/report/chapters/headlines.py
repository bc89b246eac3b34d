"""The figures that one asks for first: the bandwidth and the latency of each family of paths."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.shown import SMALL_BYTES, Shown
from waywiser.report.entry import Entry
from waywiser.report.families import (
    UNDRAWN,
    between,
    families,
    is_principal,
    label,
    of_family,
    stands_for_many,
    sustained,
)
from waywiser.report.parts import Section, Sheet, SheetCell, SheetRow
from waywiser.report.writing import percent, spread
from waywiser.series.line import Line
from waywiser.words import format_bytes
from waywiser.words.number_format import format_rate, format_time

EVEN = 0.005
"""Paths whose rates differ by less are equally fast: the plainest is shown."""


def headlines(entries: Sequence[Entry]) -> Section:
    """The headlines of one machine with all that belongs to a figure, or of several side by
    side."""
    sheet = _alone(entries[0]) if len(entries) == 1 else _beside(entries)
    return Section("headlines", "What it carries", (sheet,) if sheet.rows else ())


def _alone(entry: Entry) -> Sheet:
    rows = []
    for family in _moving([entry]):
        fastest, lowest_latency = _fastest(entry, family), _lowest_latency(entry, family)
        if fastest is None:
            continue
        curve, line = fastest
        text, note = _rate(line)
        rows.append(
            SheetRow(
                (
                    SheetCell(family),
                    SheetCell(text, note=note, number=True),
                    SheetCell(f"{line.of_bound:.0%}" if line.of_bound else "", number=True),
                    SheetCell(_way(curve, line), link=entry.links.anchor(curve.text)),
                    *_latency(entry, lowest_latency),
                )
            )
        )
    return Sheet(
        "The highest bandwidth and the lowest latency of each kind",
        ("", "GB/s", "of the bound", "fastest path", "latency", "a program waits", "path"),
        tuple(rows),
        "Bandwidths at the largest size; of equivalent paths the first is shown. The "
        "latency is the time of the smallest size from one to the next if several are in "
        "flight; a program that waits for a single one waits longer.",
    )


def _beside(entries: Sequence[Entry]) -> Sheet:
    rows = []
    for family in _moving(entries):
        found = [_fastest(entry, family) for entry in entries]
        base = next(filter(None, found), None)
        cells = [SheetCell(f"{family}, GB/s")]
        for entry, each in zip(entries, found, strict=True):
            if each is None:
                cells.append(SheetCell("not measured"))
                continue
            text, note = _rate(each[1])
            change = _change(each, base)
            note = f"{note} {change}".strip()
            cells.append(SheetCell(text, "", note, entry.links.anchor(each[0].text), number=True))
        rows.append(SheetRow(tuple(cells)))
    return Sheet(
        "The fastest path of each kind at its largest size",
        ("", *(entry.name for entry in entries)),
        tuple(rows),
        "In brackets the difference from the first machine that has it, if the path and its size "
        "are the same there. Each figure leads to its curve.",
    )


def _change(found: tuple[Shown, Line], base: tuple[Shown, Line] | None) -> str:
    if base is None or found is base:
        return ""
    if found[0].text != base[0].text or found[1].bytes != base[1].bytes:
        return "(another path)"
    ours, theirs = (each[1].estimate.rate if each[1].estimate else None for each in (found, base))
    if ours is None or theirs is None:
        return ""
    return f"({percent(ours.value / theirs.value - 1)})"


def _moving(entries: Sequence[Entry]) -> list[str]:
    return [family for family in families(entries) if family != UNDRAWN]


def _standing_for_many(entry: Entry, family: str) -> list[Shown]:
    found = of_family(entry, family)
    return [curve for curve in found if stands_for_many(curve)] or found


def _fastest(entry: Entry, family: str) -> tuple[Shown, Line] | None:
    """The fastest at its largest size; of what no cache holds, if there is any."""
    several = _standing_for_many(entry, family)
    sustaining = [curve for curve in several if sustained(curve)]
    if not sustaining:
        return _at_few_bytes(several)
    known = [curve for curve in sustaining if not _cached(entry, curve)] or sustaining
    most = max(map(sustained, known))
    even = [curve for curve in known if sustained(curve) >= (1 - EVEN) * most]
    found = min(even, key=lambda curve: (not is_principal(curve), curve.text))
    return found, found.measured[-1]


def _at_few_bytes(several: Sequence[Shown]) -> tuple[Shown, Line] | None:
    """The fastest at its largest size, if no size shows a sustained rate."""
    rated = [
        (line.bytes, line.estimate.rate.value, n)
        for n, line in enumerate(curve.measured[-1] for curve in several)
        if line.estimate is not None and line.estimate.rate is not None
    ]
    if not rated:
        return None
    found = several[max(rated)[2]]
    return found, found.measured[-1]


def _cached(entry: Entry, curve: Shown) -> bool:
    """Whether the caches of the CPUs can hold both sides of its largest copy."""
    if curve.transfer is None or {place.kind for place in curve.transfer.path.places} != {"numa"}:
        return False
    return 2 * curve.measured[-1].bytes <= entry.subject.machine.last_caches


def _lowest_latency(entry: Entry, family: str) -> tuple[Shown, Line] | None:
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
    return format_rate(found.rate.value, found.relative), spread(found.relative)


def _way(curve: Shown, line: Line) -> str:
    where = "" if curve.transfer is None else f"{between(curve)}, "
    return f"{where}{label(curve)}, {format_bytes(line.bytes)}"


def _latency(
    entry: Entry, lowest_latency: tuple[Shown, Line] | None
) -> tuple[SheetCell, SheetCell, SheetCell]:
    if lowest_latency is None or lowest_latency[1].estimate is None:
        return SheetCell(), SheetCell(), SheetCell()
    curve, line = lowest_latency
    found = lowest_latency[1].estimate
    text = format_time(found.median, found.relative)
    time = SheetCell(text, note=spread(found.relative), number=True)
    way = f"{label(curve)}, {format_bytes(line.bytes)}"
    seen = format_time(found.host_median, found.host_relative) if found.host_median else ""
    return time, SheetCell(seen, number=True), SheetCell(way, link=entry.links.anchor(curve.text))
