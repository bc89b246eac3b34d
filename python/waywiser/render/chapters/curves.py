"""All curves by family: figures of those that stand for the others, and a table of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from waywiser.curves import COLLECTIVES, Curve, Point
from waywiser.machine import Traits
from waywiser.profile.quality_flags import REMEDIES
from waywiser.render.decision_figures import decision_figures
from waywiser.render.entry import Entry
from waywiser.render.families import (
    MOST_BARS,
    MOST_LINES,
    OPERATIONS,
    UNDRAWN,
    DrawnGroup,
    curve_groups,
    families,
    is_principal,
    is_reference,
    method,
    of_family,
    set_label,
)
from waywiser.render.figures.bars import Bar, bars_picture
from waywiser.render.figures.curves import (
    Drawn,
    Quantity,
    curves_picture,
    has_quantity,
    with_quantity,
)
from waywiser.render.figures.drawn_point import DrawnPoint
from waywiser.render.figures.styles import Style, assigned
from waywiser.render.links import slug
from waywiser.render.parts import (
    Block,
    Fold,
    Picture,
    Pictures,
    Section,
    Sheet,
    SheetCell,
    SheetRow,
    numbers,
)
from waywiser.render.views.curve_sizes import operations_sheet
from waywiser.render.writing import figure
from waywiser.words import bytes_of_each, count, format_bytes, grouped, size_of, with_units

MOST_COLUMNS = 10
"""Sizes in a table of a family."""

MOST_SHARED = 4
"""Curves of a family that are drawn with all machines in one figure."""

_FLAGGED = "?"

_LAST = {COLLECTIVES: ("bus GB/s", "GB/s are algorithm bandwidth; the bus bandwidth is")}
"""The last column of a family and what it has, if that is not the share of the bound."""


def curves(entries: Sequence[Entry]) -> Section:
    pictures = _pictures(entries[0]) if len(entries) == 1 else _shared(entries)
    below = tuple(_family(entries, name, pictures.get(name, [])) for name in families(entries))
    return Section("curves", "Curves", (), below)


def _family(entries: Sequence[Entry], family: str, pictures: Sequence[Picture]) -> Section:
    blocks: list[Block] = [Pictures(tuple(pictures))] if pictures else []
    for entry in entries:
        if found := of_family(entry, family):
            whose = f" of {entry.name}" if len(entries) > 1 else ""
            sheet = _operations if family == OPERATIONS else table
            summary = f"Table{whose}: {count(len(found), 'curve')}"
            blocks.append(Fold(summary, (sheet(entry, found, family),)))
    return Section(f"family-{slug(family)}", _title(family), tuple(blocks))


class _Figure(NamedTuple):
    """Curves that are drawn together, each with what its colour and marker are given to."""

    family: str
    group: DrawnGroup
    curves: tuple[Curve, ...]
    as_bars: int
    """The size of each transfer whose bandwidth bars show: no curve has enough sizes for a line; 0
    for lines."""
    methods: tuple[str, ...]


def _pictures(entry: Entry) -> dict[str, list[Picture]]:
    """The figures of each family. A method has the same colour and marker in all of them."""
    traits, styles = entry.subject.machine.traits, styles_of(entry)
    return grouped(
        (each.family, picture)
        for each in _figures(entry)
        for picture in (_bars if each.as_bars else _curves)(each, traits, styles)
    )


def styles_of(entry: Entry) -> dict[str, Style]:
    """The colour and marker of each method in all figures of the report of one machine."""
    traits, figures = entry.subject.machine.traits, _figures(entry)
    begin = [
        name
        for each in figures
        for curve, name in zip(each.curves, each.methods, strict=True)
        if is_reference(curve, traits)
    ]
    drawn = (*(each.methods for each in figures), *(d.names for d in decision_figures(entry)))
    return assigned(drawn, begin)


def styles_of_several(entries: Sequence[Entry]) -> dict[str, Style]:
    """The same in the report of several machines, whose own colours are no method's."""
    drawn = [each.names for entry in entries for each in decision_figures(entry)]
    found = assigned([[entry.key for entry in entries], *drawn], [entry.key for entry in entries])
    return {name: style for name, style in found.items() if style >= len(entries)}


def _figures(entry: Entry) -> list[_Figure]:
    traits = entry.subject.machine.traits
    return [
        _figure(family, group, traits)
        for family in families([entry])
        if family not in UNDRAWN
        for group in curve_groups(of_family(entry, family), traits)
    ]


def _figure(family: str, group: DrawnGroup, traits: Traits) -> _Figure:
    several = [Drawn.of("", curve.measured, 0) for curve in group.curves]
    as_bars = 0
    if not any(has_quantity(several, what) for what in QUANTITIES):
        as_bars = _common_size(group.curves)
        having = [curve for curve in group.curves if _at_each(curve, as_bars)][:MOST_BARS]
        kept = sorted(having, key=lambda curve: -_bar_point(curve, as_bars).rate)
    else:
        kept = [curve for curve in group.curves if len(curve.measured) > 1][:MOST_LINES]
    names = [method(curve, traits) for curve in kept]
    methods = names if as_bars else _one_each(kept, names)
    return _Figure(family, group, tuple(kept), as_bars, tuple(methods))


def _common_size(curves: Sequence[Curve]) -> int:
    """The size of each transfer that most curves have, the largest of several."""
    sizes = Counter(bytes_of_each(point.text) for curve in curves for point in curve.measured)
    return max(sizes, key=lambda size: (sizes[size], size))


def _at_each(curve: Curve, size: int) -> Point | None:
    """Its point with transfers of this size; None without a bandwidth there."""
    points = (p for p in curve.measured if bytes_of_each(p.text) == size and p.rate)
    return next(points, None)


def _bar_point(curve: Curve, size: int) -> Point:
    found = _at_each(curve, size)
    assert found is not None, curve.text
    return found


def _one_each(curves: Sequence[Curve], names: Sequence[str]) -> Iterator[str]:
    """The methods of curves; several curves of one method have a name each. Bars need no colour to
    be distinguished."""
    seen = set()
    for curve, name in zip(curves, names, strict=True):
        yield name if name not in seen else f"{name}: {curve.text}"
        seen.add(name)


def _curves(figure: _Figure, traits: Traits, styles: Mapping[str, Style]) -> Iterator[Picture]:
    drawn = [
        Drawn.of(_label(curve, figure, traits), curve.measured, styles[name])
        for curve, name in zip(figure.curves, figure.methods, strict=True)
    ]
    for what in QUANTITIES:
        if has_quantity(drawn, what):
            note = _note(len(with_quantity(drawn, what)), figure.group)
            name, title = f"{what}-{_name_of(figure)}", _title_of(figure)
            yield curves_picture(name, title, drawn, what, note)


def _bars(figure: _Figure, traits: Traits, styles: Mapping[str, Style]) -> Iterator[Picture]:
    if len(figure.curves) == 1 and figure.curves[0].transfer is not None:
        return
    named = not _common_label(figure)
    bars = [
        Bar(
            set_label(curve) if named else "",
            f"{method(curve, traits)}{curve.workload.states}",
            DrawnPoint.of(_bar_point(curve, figure.as_bars)),
            styles[name],
        )
        for curve, name in zip(figure.curves, figure.methods, strict=True)
    ]
    name, note = f"bandwidth-{_name_of(figure)}", _note(len(bars), figure.group)
    yield bars_picture(name, _title_of(figure), bars, note)


QUANTITIES: tuple[Quantity, ...] = ("bandwidth", "latency")


def _name_of(figure: _Figure) -> str:
    """``numa-0-gpu-0``, ``concurrent-host-and-gpu``."""
    title = figure.group.title
    alone = figure.curves[0].transfer is not None
    return slug(title if alone else f"{figure.family} {title}")


def _title_of(figure: _Figure) -> str:
    """``Host to device (H2D), numa:0 -> gpu:0``."""
    where = _common_label(figure) or figure.group.title
    return f"{_title(figure.family)}, {where.removeprefix('within ')}"


def _common_label(figure: _Figure) -> str:
    """What starts together in all of a figure, or its pair of places; empty if that differs."""
    if figure.curves[0].transfer is not None:
        return figure.group.title
    labels = {set_label(curve) for curve in figure.curves}
    return labels.pop() if len(labels) == 1 else ""


def _label(curve: Curve, figure: _Figure, traits: Traits) -> str:
    """The method, and what starts together if the figure has several of it."""
    name = method(curve, traits)
    if sum(method(each, traits) == name for each in figure.curves) == 1:
        return name
    return f"{set_label(curve)}, {name}{curve.workload.states}"


def _note(shown: int, group: DrawnGroup) -> str:
    """How many curves are not drawn."""
    if shown == group.total:
        return ""
    of = f" ({group.title})" if group.title else ""
    drawn = f"{shown} of {count(group.total, 'curve')}{of} are drawn"
    return f"{drawn}; the table below has all of the family."


def _shared(entries: Sequence[Entry]) -> dict[str, list[Picture]]:
    """The figures of each family: one for each curve that several machines have, a line each. A
    machine has the same colour and marker in all figures."""
    found: dict[str, list[Picture]] = {}
    for family in families(entries):
        having: Counter[str] = Counter()
        first: dict[str, Curve] = {}
        for entry in entries if family not in UNDRAWN else ():
            for group in curve_groups(of_family(entry, family), entry.subject.machine.traits):
                for curve in group.curves:
                    having[curve.text] += len(curve.measured) > 1
                    first.setdefault(curve.text, curve)
        shared = [text for text, many in having.most_common() if many > 1][:MOST_SHARED]
        for text in shared:
            drawn = [
                Drawn.of(entry.name, curve.measured, number)
                for number, entry in enumerate(entries)
                for curve in entry.curves
                if curve.text == text
            ]
            title = with_units(first[text].name)
            if len(with_quantity(drawn, "bandwidth")) > 1 and has_quantity(drawn, "bandwidth"):
                picture = curves_picture(f"bandwidth-{slug(title)}", title, drawn, "bandwidth")
                found.setdefault(family, []).append(picture)
    return found


def _title(family: str) -> str:
    return family[0].upper() + family[1:]


def table(entry: Entry, found: Sequence[Curve], family: str) -> Sheet:
    """A row for each curve, with its anchor, and a column for each of the usual sizes."""
    counted = Counter(bytes_of_each(point.text) for curve in found for point in curve.measured)
    usual = _usual_sizes(counted)
    ordered = sorted(found, key=lambda curve: (not is_principal(curve), bool(curve.like)))
    last, last_is = _LAST.get(family, ("of the bound", "the share of the bound is"))
    caption = (
        "GB/s from 64 KiB on, times below, each with ± or how many processes measured it; "
        f"{last_is} that of the largest size."
    )
    if not any(point.rate for curve in found for point in curve.measured):
        caption = "Times, each with ±."
    sheet = Sheet.of(
        _title(family),
        ("path", *numbers(*(_column(size, found) for size in usual), last)),
        (_row(entry, curve, usual) for curve in ordered),
        f"{caption} {_FLAGGED} has a quality flag: see Quality of the numbers.",
        more="at other sizes" if len(counted) > len(usual) else "",
    )
    return sheet if any(map(_last_cell, found)) else sheet.without_empty_columns()


def _column(size: int, curves: Sequence[Curve]) -> str:
    """``64 MiB``; ``2 × 64 MiB`` if all curves have so many transfers, ``64 MiB each`` if they have
    different numbers."""
    points = (point for curve in curves for point in curve.measured)
    texts = {size_of(point.text) for point in points if bytes_of_each(point.text) == size}
    return texts.pop() if len(texts) == 1 else f"{format_bytes(size)} each"


def _usual_sizes(counted: Mapping[int, int]) -> list[int]:
    """The `MOST_COLUMNS` sizes that most curves have; of sizes that as many have, if not all
    of them have room, some from the smallest to the largest."""
    usual: list[int] = []
    for many in sorted(set(counted.values()), reverse=True):
        alike = sorted(size for size in counted if counted[size] == many)
        usual += _spread(alike, MOST_COLUMNS - len(usual))
    return sorted(usual)


def _spread(sizes: Sequence[int], most: int) -> list[int]:
    """Returns at most so many of the sizes, the largest first, evenly spread over all."""
    if len(sizes) <= most:
        return list(sizes)
    step = (len(sizes) - 1) / max(most - 1, 1)
    return [sizes[-1 - round(n * step)] for n in range(most)]


def _row(entry: Entry, curve: Curve, usual: Sequence[int]) -> SheetRow:
    at = {bytes_of_each(point.text): point for point in curve.measured}
    cells = [SheetCell(with_units(curve.name))]
    cells += [_cell(at.get(size)) for size in usual]
    others = [
        f"{size_of(point.text)}: {' '.join(figure(point))}"
        for size, point in at.items()
        if size not in usual
    ]
    cells.append(SheetCell(_last_cell(curve)))
    return SheetRow(tuple(cells), entry.links.anchor(curve.text), more="; ".join(others))


def _last_cell(curve: Curve) -> str:
    """The share of the bound at the largest size that has one, or the bus bandwidth."""
    if curve.workload.kind == "collective":
        return curve.measured[-1].bus_rate_text
    shares = [point.of_bound for point in curve.measured if point.of_bound]
    return f"{shares[-1]:.0%}" if shares else ""


def _cell(point: Point | None) -> SheetCell:
    if point is None or point.estimate is None:
        return SheetCell()
    text, note = figure(point)
    flagged = _FLAGGED if point.estimate.quality_flags else ""
    return SheetCell(f"{text}{flagged}", note=note)


def _operations(entry: Entry, found: Sequence[Curve], _: str) -> Sheet:
    """A row for each operation, with its anchor."""
    sheet = operations_sheet(found, dict.fromkeys(REMEDIES, _FLAGGED), entry.links.anchor)
    caption = f"Median time of one call. {_FLAGGED} has a quality flag."
    return msgspec.structs.replace(sheet, caption=caption)
