"""The bandwidth and the latency between all pairs of places: a row for each source, a column for
each destination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from waywiser.curves import SMALL_BYTES, Curve, Point
from waywiser.curves.figure_range import range_text
from waywiser.machine import Machine
from waywiser.render.parts import Section, Sheet, SheetCell, SheetColumn
from waywiser.render.rates import Between, between_places, places
from waywiser.render.writing import spread
from waywiser.words import Value, format_bytes, format_in_matrix, grouped

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
    other: str = ""
    """Its method, if that is not the one of the class; its text ends with a mark then."""


MARKS = "¹²³⁴⁵⁶⁷⁸⁹"
"""Marks of the methods of cells; many share the last one."""

CLASSES: dict[tuple[str, ...], str] = {
    ("gpu", "numa", "between"): "host and GPU:",
    ("gpu", "gpu", "between"): "two GPUs:",
    ("gpu", "gpu", "within"): "within a GPU:",
}
"""Classes of pairs, as people call them."""

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
    """The figure of each pair that has one, with a mark if it is by another method than others of
    its class; ``link`` gives the anchor of a curve. Only pairs of places of the machine."""
    found = {}
    known_places = set(map(str, places(machine)))
    shown = {pair: each for pair, each in measured.items() if known_places.issuperset(pair)}
    others = dict.fromkeys(each.method for each in shown.values() if each.is_other)
    marks = {method: MARKS[min(n, len(MARKS) - 1)] for n, method in enumerate(others)}
    for pair, each in shown.items():
        if (known := figure(each)) is not None:
            point, value, in_unit = known
            note, anchor = spread(point.measured.relative), link(each.curve.text)
            other = each.method if each.is_other else ""
            is_compared = not other and (not machine.gpus or "gpu" in "".join(pair))
            text = f"{format_in_matrix(in_unit)}{marks.get(other, '')}"
            found[pair] = Entered(value, text, note, anchor, is_compared, point.bytes, other)
    return found


def methods_note(entered: Mapping[Pair, Entered]) -> str:
    """``¹ managed by page-fault``: what the marks of cells mean; empty without any."""
    marked = grouped((each.text[-1], each.other) for each in entered.values() if each.other)
    return "; ".join(
        f"{mark} {' or '.join(dict.fromkeys(others))}" for mark, others in sorted(marked.items())
    )


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
            note = methods_note(cells)
            sheet = pair_sheet(f"{title.capitalize()}, {unit}", names, cells, note)
            yield Section("", f"{head}{by}", (sheet,))


def _kind(place: str) -> str:
    return place.partition(":")[0]


def _by(measured: Iterable[Between]) -> str:
    """``, by copy-engine``; by class if executors differ: ``, host and GPU by cpu, GPUs by sm``.
    Copies that multiprocessors make within a GPU are named beside it, marked cells below."""
    usual = [each for each in measured if not each.is_other]
    curves = [each.curve for each in usual]
    executors = {curve.transfer.path.executor for curve in curves if curve.transfer}
    if len(executors) != 1:
        classes = grouped((CLASSES.get(each.pair_class, ""), each.method) for each in usual)
        parts = [f"{name} {found[0]}" for name, found in classes.items() if name]
        return f", {', '.join(parts)}" if parts else ""
    shown = {curve.shown_transfer.path.executor for curve in curves if curve.shown_transfer}
    (executor,) = executors
    others = sorted(shown - executors)
    by = [f"by {executor}"] if executors <= shown else []
    within = "within a GPU " if by else "by "
    return "".join(f", {text}" for text in [*by, *(f"{within}{other}" for other in others)])
