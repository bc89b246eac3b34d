"""Which method to use for each kind of copy: the decisions of a policy, with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from waywiser.analysis.policy.candidates import is_of_library
from waywiser.analysis.policy.decision_table import CopyKind, DecisionTable, SizeDecision
from waywiser.analysis.policy.texts import costly_text, costs_text
from waywiser.curves.texts import span
from waywiser.render.chapters.curves import styles_of, styles_of_several
from waywiser.render.decision_figures import (
    LEAST_BYTES,
    DecisionFigure,
    by_kind,
    decision_figures,
    measured,
    of_one_and_of_lists,
)
from waywiser.render.entry import Entry
from waywiser.render.figures.curves import Drawn, UsedRange, curves_picture
from waywiser.render.figures.drawn_point import DrawnPoint
from waywiser.render.figures.styles import Style
from waywiser.render.links import slug
from waywiser.render.parts import (
    Block,
    Fold,
    Listing,
    Picture,
    Pictures,
    Section,
    Sheet,
    SheetCell,
    Words,
)
from waywiser.stats import Interval, relative
from waywiser.words import Memory, Place, count, grouped, size_text

TITLE = "Which method when"

COLUMNS = ("copies", "sizes", "method", "time of the plain copy", "takes from others")

CAPTION = (
    "A faster method replaces a simpler one only if it is faster by more than the noise. Times are "
    "from call to completion; ×2: the plain copy takes twice as long."
)

NO_BREAK = "\N{NO-BREAK SPACE}"


def methods(entries: Sequence[Entry]) -> Section:
    """A table of all decisions between several methods, and a folded section for each kind of copy
    with its figures."""
    blocks: list[Block] = []
    below: list[Section] = []
    several = len(entries) > 1
    styles = styles_of_several(entries) if several else styles_of(entries[0])
    for entry in entries:
        whose = f" of {entry.name}" if len(entries) > 1 else ""
        if entry.undecided:
            blocks.append(Words(f"Not determined{whose}: {entry.undecided}.", "note"))
        if not entry.decisions:
            continue
        if rows := list(_rows(entry)):
            blocks.append(Sheet.of(f"Method by size{whose}", COLUMNS, rows, CAPTION))
        if alone := _without_choice(entry):
            blocks.append(
                Words(f"Only one method was measured{whose}: {', '.join(alone)}.", "note")
            )
        below += _kinds(entry, styles, several)
    return Section("methods", TITLE, tuple(blocks), tuple(below))


def _without_choice(entry: Entry) -> list[str]:
    """The kinds of copies with one method alone."""
    return [
        str(kind)
        for kind, tables in by_kind(entry).items()
        if all(len(table.methods) == 1 for table in tables)
    ]


def table_text(table: DecisionTable) -> str:
    """``pinned -> device, lists of 256 pieces and more``."""
    text = str(table.kind)
    return text if table.count == 1 else f"{text}, lists of {table.count} pieces and more"


# The tables.


def _rows(entry: Entry) -> Iterator[tuple[str | SheetCell, ...]]:
    for tables in by_kind(entry).values():
        for table in of_one_and_of_lists(tables):
            yield from _rows_of(entry, table)


def _rows_of(entry: Entry, table: DecisionTable) -> Iterator[tuple[str | SheetCell, ...]]:
    """A row for each range of sizes with one method."""
    ranges = _ranges(table)
    for n, found in enumerate(ranges):
        name = SheetCell(table_text(table), link=_anchor(entry, table.kind))
        last = ranges[n + 1][0].from_bytes if n + 1 < len(ranges) else 0
        yield (
            "" if n else name,
            _sizes(found[0].from_bytes if n else 0, last, table.count > 1),
            costly_text(table.methods[found[0].chosen], found[-1].time.costs),
            _margin(table, found),
            _costs(entry, table, found[-1]),
        )


def _costs(entry: Entry, table: DecisionTable, decision: SizeDecision) -> str:
    """What the method takes from others; it is unknown of what only another tool has."""
    if entry.subject.origin == "imported" or entry.subject.machine.ranks:
        kinds = table.kind.source, table.kind.destination
        places = map(Place.parse, table.paths[0].split(" -> "))
        ends = [Memory(kind, place) for kind, place in zip(kinds, places, strict=True)]
        if not is_of_library(table.methods[decision.chosen], ends, table.count):
            return "not known"
    return costs_text(decision.time.costs)


def _ranges(table: DecisionTable) -> list[list[SizeDecision]]:
    """Decisions that follow one another with the same method."""
    return [list(group) for _, group in groupby(table.decisions, key=lambda each: each.chosen)]


def _sizes(first: int, last: int, pieces: bool) -> str:
    what = "pieces " if pieces else ""
    if not first and not last:
        return "all pieces" if pieces else "all"
    if not first:
        return f"{what}below {about(last)}"
    return f"{what}from {about(first)}" + (f" to {about(last)}" if last else "")


def about(size: int) -> str:
    """``11.3 MiB``, which does not fold."""
    return size_text(size).replace(" ", NO_BREAK)


def _margin(table: DecisionTable, found: Sequence[SizeDecision]) -> str:
    """How many times as long the plain copy takes, over the sizes of a range."""
    if found[0].chosen == table.plain:
        return "is the plain copy"
    if table.plain is None:
        return "not measured"
    known = [margin for each in found if (margin := each.margin(table.plain)) is not None]
    ends = (f"×{1 + margin:.3g}" for margin in (min(known), max(known))) if known else ()
    return span(*ends) if known else "not measured"


# A section for each kind of copy.


def _kinds(entry: Entry, styles: Mapping[str, Style], several: bool) -> Iterator[Section]:
    figures = grouped((each.table.kind, each) for each in decision_figures(entry))
    for kind, tables in by_kind(entry).items():
        if all(len(table.methods) == 1 for table in tables):
            continue
        blocks: list[Block] = []
        if kind in figures:
            drawn = tuple(_picture(each, styles) for each in figures[kind])
            blocks.append(Pictures(drawn))
        lists = [table for table in tables if table.count > 1 and len(table.methods) > 1]
        if len(lists) > 1:
            rows = (row for table in lists for row in _rows_of(entry, table))
            sheet = Sheet.of(f"Lists, {kind!s}", COLUMNS, rows, CAPTION)
            blocks.append(Fold(f"Lists of other counts: {count(len(lists), 'count')}", (sheet,)))
        if notes := tuple(dict.fromkeys(note for table in tables for note in table.notes)):
            blocks.append(Listing(notes))
        title = f"{entry.name}, {kind!s}" if several else str(kind)
        yield Section(_anchor(entry, kind), title, tuple(blocks), folded=True)


def _anchor(entry: Entry, kind: CopyKind) -> str:
    return f"{entry.key}method-{slug(str(kind))}"


def _picture(figure: DecisionFigure, styles: Mapping[str, Style]) -> Picture:
    table = figure.table
    curves = [
        Drawn(
            costly_text(table.methods[method], measured(table, method)[-1][1].costs),
            tuple(
                DrawnPoint(
                    bytes=size,
                    seconds=time.seconds,
                    rate=size * time.pieces / time.seconds / 1e9,
                    rate_interval=Interval(
                        size * time.pieces / time.high / 1e9, size * time.pieces / time.low / 1e9
                    ),
                    relative=relative(time.seconds, time.interval),
                )
                for size, time in measured(table, method)
            ),
            styles[name],
        )
        for method, name in zip(figure.methods, figure.names, strict=True)
    ]
    lists = "-lists" if table.count > 1 else ""
    return curves_picture(
        f"method-{slug(str(table.kind))}{lists}",
        table_text(table),
        curves,
        "bandwidth",
        _note(figure),
        tuple(_used(figure)),
    )


def _note(figure: DecisionFigure) -> str:
    pieces = "Sizes are those of each piece. " if figure.table.count > 1 else ""
    left = len(figure.table.methods) - len(figure.methods)
    more = f" {count(left, 'further method')} not shown." if left else ""
    return f"{pieces}The band along the size axis is the method to use.{more}"


def _used(figure: DecisionFigure) -> Iterator[UsedRange]:
    """The ranges of sizes that are drawn, each with the position of its curve."""
    ranges = [found for found in _ranges(figure.table) if found[-1].bytes >= LEAST_BYTES]
    for n, found in enumerate(ranges):
        last = ranges[n + 1][0].from_bytes - 1 if n + 1 < len(ranges) else found[-1].bytes
        if found[0].chosen in figure.methods:
            yield UsedRange(found[0].from_bytes, last, figure.methods.index(found[0].chosen))
