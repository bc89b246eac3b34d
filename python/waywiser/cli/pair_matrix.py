"""The bandwidth and the latency between all pairs of GPUs, and between the host and each of them:
a row for each source, a column for each destination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.console import Console

from waywiser.cli.lines import say
from waywiser.cli.text_table import GAP, TextColumn, print_table
from waywiser.curves.curve import SMALL_BYTES, Curve
from waywiser.curves.figure_range import range_text
from waywiser.machine.machine import Machine
from waywiser.report.rates import Between, between_places_of
from waywiser.words import Place, format_bytes
from waywiser.words.number_format import format_in_matrix

NOT_MEASURED = "-"

Pair = tuple[str, str]


def print_matrices(console: Console, machine: Machine, curves: Iterable[Curve]) -> None:
    """Prints nothing unless a copy between two GPUs was measured."""
    measured = {
        pair: each
        for pair, each in between_places_of(curves, machine.traits).items()
        if "gpu" in {_kind(pair[0]), _kind(pair[1])}
    }
    if not any(source != destination and _are_gpus(source, destination) for source, destination
               in measured):  # fmt: skip
        return
    names = list(_names(machine, measured))
    large = {pair: each.most for pair, each in measured.items() if each.most is not None}
    if large:
        sizes = _span(line.bytes for line in large.values())
        title = f"bandwidth in GB/s from row to column: {sizes}"
        rated = {pair: measured[pair] for pair in large}
        _print(console, f"{title}{_by(rated.values())}", names, rated, _rate)
    small = {pair: each for pair, each in measured.items() if each.least.bytes <= SMALL_BYTES}
    if small:
        sizes = _span(each.least.bytes for each in small.values())
        title = f"latency in µs from row to column: {sizes}{_by(small.values())}"
        _print(console, title, names, small, _time)


def _print(
    console: Console,
    title: str,
    names: Sequence[str],
    measured: Mapping[Pair, Between],
    figure: Callable[[Between], str],
) -> None:
    """One matrix; if the terminal is too narrow, the columns in several parts."""
    say(console, title, "bold")
    cells = {pair: figure(each) for pair, each in measured.items()}
    sources, destinations = (
        [name for name in names if any(name == pair[side] for pair in cells)] for side in (0, 1)
    )
    head = max(map(len, sources))
    width = max(map(len, cells.values()))
    columns = [TextColumn(name, least=width) for name in destinations]
    for part in _parts(columns, console.width - head):
        rows = [
            [name, *(cells.get((name, column.name), NOT_MEASURED) for column in part)]
            for name in sources
        ]
        print_table(console, [TextColumn("", left=True, least=head), *part], rows)
    console.print()


def _parts(columns: Sequence[TextColumn], room: int) -> Iterator[list[TextColumn]]:
    """The columns in parts that fit into ``room``, one at least in each."""
    part: list[TextColumn] = []
    taken = 0
    for column in columns:
        width = max(column.least, len(column.name)) + GAP
        if part and taken + width > room:
            yield part
            part, taken = [], 0
        part.append(column)
        taken += width
    yield part


def _names(machine: Machine, measured: Mapping[Pair, Between]) -> Iterator[str]:
    """NUMA nodes, then GPUs, those that anything was measured of."""
    nodes = [Place("numa", node.index) for node in machine.numa]
    gpus = [Place("gpu", gpu.index) for gpu in machine.gpus]
    known = {name for pair in measured for name in pair}
    return (name for name in map(str, (*nodes, *gpus)) if name in known)


def _kind(place: str) -> str:
    return place.partition(":")[0]


def _are_gpus(*places: str) -> bool:
    return all(_kind(place) == "gpu" for place in places)


def _by(measured: Iterable[Between]) -> str:
    """``, by copy-engine``; nothing if executors differ."""
    transfers = [each.curve.transfer for each in measured]
    executors = {transfer.path.executor for transfer in transfers if transfer}
    return f", by {executors.pop()}" if len(executors) == 1 else ""


def _span(sizes: Iterable[int]) -> str:
    """``8 B``, ``8–64 B``."""
    return range_text([format_bytes(size) for size in sorted(set(sizes))])


def _rate(found: Between) -> str:
    return format_in_matrix(found.rate / 1e9)


def _time(found: Between) -> str:
    estimate = found.least.estimate
    return NOT_MEASURED if estimate is None else format_in_matrix(estimate.median * 1e6)
