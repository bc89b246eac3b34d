"""All curves by family: figures of those that stand for the others, and a table of all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from waywiser.analysis.shown import Shown
from waywiser.report.entry import Entry
from waywiser.report.families import (
    UNDRAWN,
    families,
    is_principal,
    label,
    of_family,
    principal_groups,
)
from waywiser.report.figures.curves import Drawn, curves_picture
from waywiser.report.parts import (
    Block,
    Fold,
    Picture,
    Pictures,
    Section,
    Sheet,
    SheetCell,
    SheetRow,
)
from waywiser.report.writing import figure
from waywiser.series.line import Line
from waywiser.words import format_bytes
from waywiser.words.number_format import count, format_time
from waywiser.words.sizes_in_text import with_units

MOST_COLUMNS = 10
"""Sizes in a table of a family."""

MOST_SHARED = 4
"""Curves of a family that are drawn with all machines in one figure."""

_FLAGGED = "?"


def curves(entries: Sequence[Entry]) -> Section:
    below = tuple(_family(entries, family) for family in families(entries))
    return Section("curves", "Curves", (), below)


def _family(entries: Sequence[Entry], family: str) -> Section:
    pictures = list(_pictures(entries, family)) if family != UNDRAWN else []
    blocks: list[Block] = [Pictures(tuple(pictures))] if pictures else []
    for entry in entries:
        found = of_family(entry, family)
        if not found:
            continue
        whose = f" of {entry.name}" if len(entries) > 1 else ""
        sheet = operations(entry, found) if family == UNDRAWN else table(entry, found, family)
        summary = f"All figures{whose}: {count(len(found), 'curve')}"
        blocks.append(Fold(summary, (sheet,)))
    return Section(f"family-{_slug(family)}", family[0].upper() + family[1:], tuple(blocks))


def _pictures(entries: Sequence[Entry], family: str) -> Iterator[Picture]:
    if len(entries) > 1:
        yield from _shared(entries, family)
        return
    for ends, group in principal_groups(of_family(entries[0], family)).items():
        drawn = [Drawn(label(curve), tuple(curve.measured)) for curve in group]
        name = _slug(ends)
        title = ends if ends != family else family[0].upper() + family[1:]
        for what in ("rate", "time"):
            yield curves_picture(f"{what}-{name}", title, drawn, what)


def _shared(entries: Sequence[Entry], family: str) -> Iterator[Picture]:
    """A figure for each curve that several machines have, with one line for each."""
    having: Counter[str] = Counter()
    first: dict[str, Shown] = {}
    for entry in entries:
        for group in principal_groups(of_family(entry, family)).values():
            for curve in group:
                having[curve.text] += 1
                first.setdefault(curve.text, curve)
    shared = [text for text, many in having.most_common() if many > 1][:MOST_SHARED]
    for text in shared:
        drawn = [
            Drawn(entry.name, tuple(curve.measured))
            for entry in entries
            for curve in entry.curves
            if curve.text == text
        ]
        title = with_units(first[text].name)
        yield curves_picture(f"rate-{_slug(title)}", title, drawn, "rate")


def table(entry: Entry, found: Sequence[Shown], family: str) -> Sheet:
    """A row for each curve, with its anchor, and a column for each of the usual sizes."""
    counted = Counter(line.bytes for curve in found for line in curve.measured)
    usual = sorted(size for size, _ in counted.most_common(MOST_COLUMNS))
    ordered = sorted(found, key=lambda curve: (not is_principal(curve), bool(curve.like)))
    others = len(counted) > len(usual)
    return Sheet(
        title=family[0].upper() + family[1:],
        columns=(
            "path",
            *map(format_bytes, usual),
            *(["at other sizes"] if others else []),
            "of the bound",
        ),
        rows=tuple(_row(entry, curve, usual, others) for curve in ordered),
        caption=(
            "GB/s from 64 KiB on, times below, each with ±; the share of the bound is that of the "
            "largest size. "
            f"{_FLAGGED} has a quality flag: see Quality of the numbers."
        ),
    )


def _row(entry: Entry, curve: Shown, usual: Sequence[int], others: bool) -> SheetRow:
    at = {line.bytes: line for line in curve.measured}
    cells = [SheetCell(with_units(curve.name))]
    cells += [_cell(at.get(size)) for size in usual]
    if others:
        rest = [line for line in curve.measured if line.bytes not in usual]
        cells.append(SheetCell("; ".join(map(_other, rest))))
    shares = [line.of_bound for line in curve.measured if line.of_bound]
    cells.append(SheetCell(f"{shares[-1]:.0%}" if shares else "", number=True))
    return SheetRow(tuple(cells), entry.links.anchor(curve.text))


def _cell(line: Line | None) -> SheetCell:
    if line is None or line.estimate is None:
        return SheetCell("", number=True)
    text, note = figure(line)
    flagged = _FLAGGED if line.estimate.quality_flags else ""
    return SheetCell(f"{text}{flagged}", note=note, number=True)


def _other(line: Line) -> str:
    return f"{format_bytes(line.bytes)}: {' '.join(figure(line))}"


def operations(entry: Entry, found: Sequence[Shown]) -> Sheet:
    """A row for each operation, with its anchor."""
    rows = []
    for curve in sorted(found, key=lambda curve: (_at(curve), curve.text)):
        line = curve.measured[0]
        text, note = figure(line)
        flagged = _FLAGGED if line.estimate and line.estimate.quality_flags else ""
        estimate = line.estimate
        seen = estimate.host_median if estimate else None
        name = with_units(str(curve.workload.operation).partition("@")[0])
        cells = (
            SheetCell(name),
            SheetCell(_at(curve)),
            SheetCell(f"{text}{flagged}", note=note, number=True),
            SheetCell(
                format_time(seen, estimate.host_relative) if estimate and seen else "", number=True
            ),
        )
        rows.append(SheetRow(cells, entry.links.anchor(curve.text)))
    return Sheet(
        "Operations",
        ("operation", "place", "time", "application sees"),
        tuple(rows),
        f"Median time of one call. {_FLAGGED} has a quality flag.",
    )


def _at(curve: Shown) -> str:
    operation = curve.workload.operation
    return str(operation.place) if operation else ""


def _slug(text: str) -> str:
    text = text.replace("<->", "and back")
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
