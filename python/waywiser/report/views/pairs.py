"""The bandwidth and the latency between all pairs of places: a row for each source, a column for
each destination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from waywiser.curves.curve import SMALL_BYTES, Curve
from waywiser.curves.figure_range import range_text
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


def entered_rates(
    machine: Machine, measured: Mapping[Pair, Between], link: Callable[[str], str]
) -> dict[Pair, Entered]:
    """The bandwidth of each pair that has one; ``link`` gives the anchor of a curve."""
    found = {}
    for pair, each in measured.items():
        if each.most is not None and each.most.estimate is not None:
            text, note = format_in_matrix(each.rate / 1e9), spread(each.most.estimate.relative)
            is_compared = _is_compared(machine, pair)
            found[pair] = Entered(each.rate, text, note, link(each.curve.text), is_compared)
    return found


def entered_times(
    machine: Machine, measured: Mapping[Pair, Between], link: Callable[[str], str]
) -> dict[Pair, Entered]:
    """The time of the smallest copy of each pair, if that is small."""
    found = {}
    for pair, each in measured.items():
        least = each.least.estimate
        if least is not None and each.least.bytes <= SMALL_BYTES:
            text, note = format_in_matrix(least.median * 1e6), spread(least.relative)
            is_compared = _is_compared(machine, pair)
            found[pair] = Entered(least.median, text, note, link(each.curve.text), is_compared)
    return found


def _is_compared(machine: Machine, pair: Pair) -> bool:
    return not machine.gpus or "gpu" in "".join(pair)


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
    rates = entered_rates(machine, measured, lambda curve: "")
    if rates:
        found = [measured[pair] for pair in rates]
        sizes = _span(each.most.bytes for each in found if each.most is not None)
        title = f"bandwidth in GB/s from row to column: {sizes}{_by(found)}"
        yield Section("", title, (pair_sheet("Bandwidth, GB/s", names, rates),))
    times = entered_times(machine, measured, lambda curve: "")
    if times:
        found = [measured[pair] for pair in times]
        sizes = _span(each.least.bytes for each in found)
        title = f"latency in µs from row to column: {sizes}{_by(found)}"
        yield Section("", title, (pair_sheet("Latency, µs", names, times),))


def _kind(place: str) -> str:
    return place.partition(":")[0]


def _by(measured: Iterable[Between]) -> str:
    """``, by copy-engine``; nothing if executors differ."""
    transfers = [each.curve.transfer for each in measured]
    executors = {transfer.path.executor for transfer in transfers if transfer}
    return f", by {executors.pop()}" if len(executors) == 1 else ""


def _span(sizes: Iterable[int]) -> str:
    """``8 B``, ``8–64 B``."""
    return range_text([format_bytes(size) for size in sorted(set(sizes))])
