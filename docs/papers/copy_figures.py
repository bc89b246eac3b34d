"""Figures of papers about copies, measured again: a table, a picture and the paper's statements.

The profiles are those of docs/results. A statement compares two curves at one size; it agrees, or
does not, by what the profile has.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from waywiser.curves.curve import Curve, Point
from waywiser.curves.subject import Subject
from waywiser.machine.machine import machine_line
from waywiser.profile import Profile
from waywiser.render.figures.curves import Drawn, Quantity, curves_picture
from waywiser.render.figures.render import svg_file
from waywiser.words import format_bytes
from waywiser.words.number_format import format_time
from waywiser.words.sizes_in_text import bytes_of_each

RESULTS = Path(__file__).parents[1] / "results"
FOUR = "2026-11-20-h200-catalogue/four-gpus/standard"
ONE = "2026-11-25-sets/h200-model-1"

KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = (64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB)
DIFFER = 1.1
"""From this ratio of two bandwidths on, one counts as faster."""
LEAST_LINES = 3
"""Sizes from which on a curve is drawn."""

Relation = Literal["faster", "equal", "slower"]


class Statement(NamedTuple):
    """What the paper says of two curves."""

    says: str
    one: str
    relation: Relation
    other: str
    bytes: int = 0
    """The size of each transfer; 0 for the largest that both have."""


class CopyFigure(NamedTuple):
    """A figure or table of a paper."""

    title: str
    says: str
    """What the paper shows."""
    command: str = ""
    """What makes it on the reader's machine; empty if nothing does."""
    curves: dict[str, str] = {}  # noqa: RUF012
    """The text of each curve by its name."""
    statements: tuple[Statement, ...] = ()
    missing: str = ""
    """What is missing, and why."""
    profile: str = FOUR
    picture: str = ""
    """The name of its picture; empty for none."""
    more: str = ""
    """Where else ours is."""


@cache
def kept(name: str) -> Subject:
    """A profile below docs/results."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "profile.wwp"
        file.write_bytes(lzma.decompress((RESULTS / f"{name}.wwp.xz").read_bytes()))
        with Profile.open(file) as profile:
            return Subject.of(profile)


def section(figure: CopyFigure) -> Iterator[str]:
    """The lines of one figure."""
    yield from (f"## {figure.title}", "", figure.says, "")
    if figure.command:
        yield from (f"On your machine: `{figure.command}`", "")
    if figure.curves:
        subject = kept(figure.profile)
        yield f"Ours: {machine_line(subject.machine, host=False)} (`{figure.profile}.wwp.xz`)."
        yield ""
        yield from _table(subject, figure.curves)
        yield ""
    if figure.picture:
        yield from (f"![{figure.title}]({figure.picture})", "")
    if figure.statements:
        yield from ("| the paper | ours | agrees |", "|---|---|---|")
        yield from (_row(kept(figure.profile), each) for each in figure.statements)
        yield ""
    if figure.more:
        yield from (figure.more, "")
    if figure.missing:
        yield from (f"**Missing:** {figure.missing}", "")


def pictures(figures: Sequence[CopyFigure]) -> Iterator[tuple[str, str]]:
    """The name of each picture, and its SVG."""
    for each in figures:
        if each.picture:
            yield each.picture, drawing(each.title, each.profile, each.curves)


def drawing(
    title: str, profile: str, curves: Mapping[str, str], what: Quantity = "bandwidth"
) -> str:
    """The SVG of those curves that have enough sizes for a line."""
    found = ((name, _curve(profile, text)) for name, text in curves.items())
    several = [(name, curve) for name, curve in found if len(curve.measured) >= LEAST_LINES]
    drawn = [Drawn.of(name, curve.measured, n) for n, (name, curve) in enumerate(several)]
    return svg_file(curves_picture(title, title, drawn, what))


def _curve(profile: str, text: str) -> Curve:
    found = kept(profile).curve(text)
    assert found is not None, text
    return found


def _at(curve: Curve) -> dict[int, Point]:
    return {bytes_of_each(point.text): point for point in curve.measured}


def _table(subject: Subject, curves: dict[str, str]) -> Iterator[str]:
    """The bandwidth of each curve by size; of operations their time."""
    found = {name: subject.curve(text) for name, text in curves.items()}
    known = {name: _at(curve) for name, curve in found.items() if curve is not None}
    assert len(known) == len(curves), set(curves) - set(known)
    sizes = [size for size in SIZES if any(size in points for points in known.values())]
    if not sizes:
        yield from ("| operation | time | ± |", "|---|---|---|")
        for name, points in known.items():
            (point,) = points.values()
            yield f"| {name} | {_seconds(point)} | {_relative(point)} |"
        return
    yield f"| GB/s at | {' | '.join(map(format_bytes, sizes))} |"
    yield f"|---{'|---' * len(sizes)}|"
    for name, points in known.items():
        cells = [points[size].rate_text if size in points else "—" for size in sizes]
        yield f"| {name} | {' | '.join(cells)} |"


def _seconds(point: Point) -> str:
    return format_time(point.seconds, point.measured.relative)


def _relative(point: Point) -> str:
    return "" if point.measured.relative is None else f"{point.measured.relative:.1%}"


def _row(subject: Subject, statement: Statement) -> str:
    """Whether the profile agrees, with the numbers that show it."""
    one, other = (subject.curve(text) for text in (statement.one, statement.other))
    assert one is not None and other is not None, statement
    ours, theirs = _at(one), _at(other)
    size = statement.bytes or max(set(ours) & set(theirs))
    first, second = ours[size], theirs[size]
    faster = first.rate / second.rate if size else second.seconds / first.seconds
    found = "faster" if faster >= DIFFER else "slower" if faster <= 1 / DIFFER else "equal"
    if size:
        numbers = f"{first.rate_text} against {second.rate_text} GB/s at {format_bytes(size)}"
    else:
        numbers = f"{_seconds(first)} against {_seconds(second)}"
    agrees = "yes" if found == statement.relation else "**no**"
    return f"| {statement.says} | {numbers}, ×{faster:.2f} | {agrees} |"
