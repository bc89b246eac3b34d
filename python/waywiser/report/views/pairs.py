"""The bandwidth and the latency between all pairs of places: a row for each source, a column for
each destination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from waywiser.curves.curve import SMALL_BYTES, Curve
from waywiser.curves.figure_range import range_text
from waywiser.curves.point import Point
from waywiser.machine.machine import Machine
from waywiser.report.parts import Section, Sheet, SheetCell, SheetColumn
from waywiser.report.rates import Between, between_places, places
from waywiser.report.writing import spread
from waywiser.words import Value, format_bytes
from waywiser.words.number_format import format_in_matrix

Pair = tuple[str, str]


class Entered(Value, frozen=True):
    """The figure of one pair."""

    value: float
    text: str
    note: str = ""
    link: str = ""
    is_compared: bool = True
    """Whether its colour compares it with the other cells."""
    bytes: int = 0
    """The size that it is of."""


Figure = Callable[[Between], tuple[Point, float, float] | None]
"""A figure of a pair: the point that shows it, its value, and the same in the unit of the matrix;
None if the pair has none."""


def rate_of(each: Between) -> tuple[Point, float, float] | None:
    """The bandwidth, in GB/s."""
    return None if each.most is None else (each.most, each.rate, each.rate / 1e9)


def time_of(each: Between) -> tuple[Point, float, float] | None:
    """The time of the smallest copy, in µs, if that is small."""
    least = each.least
    return (least, least.seconds, least.seconds * 1e6) if least.bytes <= SMALL_BYTES else None


def entered(
    machine: Machine,
    measured: Mapping[Pair, Between],
    figure: Figure,
    link: Callable[[str], str] = lambda curve: "",
) -> dict[Pair, Entered]:
    """The figure of each pair that has one; ``link`` gives the anchor of a curve."""
    found = {}
    for pair, each in measured.items():
        if (known := figure(each)) is not None:
            point, value, shown = known
            note, anchor = spread(point.measured.relative), link(each.curve.text)
            is_compared = not machine.gpus or "gpu" in "".join(pair)
            text = format_in_matrix(shown)
            found[pair] = Entered(value, text, note, anchor, is_compared, point.bytes)
    return found


def pair_sheet(
    title: str, names: Sequence[str], entered: Mapping[Pair, Entered], note: str = ""
) -> Sheet:
    """The matrix, with those of the places that it has a figure of."""
    sources = [place for place in names if any(place == source for source, _ in entered)]
    destinations = [place for place in names if any(place == end for _, end in entered)]
    least = max((len(each.text) for each in entered.values()), default=0)
    columns = (SheetColumn(place, number=True, least=least) for place in destinations)
    rows = (
        (source, *(_cell(entered.get((source, destination))) for destination in destinations))
        for source in sources
    )
    return Sheet.of(title, ("from, to", *columns), rows, note, is_matrix=True)


def _cell(found: Entered | None) -> SheetCell:
    return SheetCell(found.text, note=found.note, link=found.link) if found else SheetCell("-")


def pair_sections(machine: Machine, curves: Iterable[Curve]) -> Iterator[Section]:
    """The matrices of pairs with a GPU; none unless a copy between two GPUs was measured."""
    measured = {
        pair: each
        for pair, each in between_places(curves, machine.traits).items()
        if "gpu" in {_kind(pair[0]), _kind(pair[1])}
    }
    if not any(a != b and _kind(a) == _kind(b) == "gpu" for a, b in measured):
        return
    known = {name for pair in measured for name in pair}
    names = [name for name in map(str, places(machine)) if name in known]
    for title, unit, figure in (("bandwidth", "GB/s", rate_of), ("latency", "µs", time_of)):
        if cells := entered(machine, measured, figure):
            sizes = sorted({each.bytes for each in cells.values()})
            by = _by(measured[pair] for pair in cells)
            head = (
                f"{title} in {unit} from row to column: {range_text([*map(format_bytes, sizes)])}"
            )
            sheet = pair_sheet(f"{title.capitalize()}, {unit}", names, cells)
            yield Section("", f"{head}{by}", (sheet,))


def _kind(place: str) -> str:
    return place.partition(":")[0]


def _by(measured: Iterable[Between]) -> str:
    """``, by copy-engine``; nothing if executors differ. Copies that multiprocessors make within a
    GPU are named beside it."""
    curves = [each.curve for each in measured]
    executors = {curve.transfer.path.executor for curve in curves if curve.transfer}
    if len(executors) != 1:
        return ""
    shown = {curve.shown_transfer.path.executor for curve in curves if curve.shown_transfer}
    (executor,) = executors
    others = sorted(shown - executors)
    by = [f"by {executor}"] if executors <= shown else []
    within = "within a GPU " if by else "by "
    return "".join(f", {text}" for text in [*by, *(f"{within}{other}" for other in others)])
