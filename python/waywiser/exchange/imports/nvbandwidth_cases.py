"""What the cases of nvbandwidth mean here: matrices of figures as workloads.

What a case does is known from its name and the tool's sources: in a matrix, a *read* goes from the
column's GPU to the row's and a *write* from the row's to the column's, whatever the arrow in the
description says.

Of copies while others run (``bidirectional``, ``all_to_host``, ``host_to_all``) each figure is the
rate of one of them, from its own run, while the others ran. Together they are one
workload here: every transfer with its own time, the whole as long as its slowest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignSeries, HalfSeries
from waywiser.exchange.imports.nearby import ALLOCATED, ANYWHERE, MOST_GPUS, NODE
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.words import (
    Failure,
    Memory,
    Operation,
    Path,
    Place,
    Transfer,
    Unsupported,
    Workload,
    count,
    format_bytes,
)

BYTES = 512 * 2**20
"""The default size of its buffers, for transfers."""

LATENCY_BYTES = 2 * 2**20
"""Size of the buffer of its pointer chases, which no option changes."""

ASSUMED = "the size of its buffers is unknown: 512 MiB, the tool's default, is assumed"
TOGETHER = "each transfer was timed in its own run while the others ran"
NO_FIGURE = "it has no figure"
NO_COUNTERPART = "Waywiser has no counterpart of it"
SEVERAL_HOSTS = "copies between several hosts have no counterpart here"

COUNTED = "whether its figure counts the bytes that it copies, or reads and writes, is not known"
MIRRORED = "the tool measured each pair once and gives it in both cells"

TO_GPU, TO_HOST = "host_to_device", "device_to_host"
TO_ALL, OF_ALL = "host_to_all", "all_to_host"

_ONE_ROW = re.compile(
    r"(host_to_device|device_to_host|host_to_all|all_to_host)(_bidirectional)?_memcpy"
    r"|(all_to_one|one_to_all)_(read|write)|device_local_copy|host_device_latency"
)

_PARTS = re.compile(r"^(?P<what>.+?)_(?P<by>ce|sm)$")

Matrix = list[list[float | None]]


class Case(NamedTuple):
    """One test case that has figures."""

    name: str
    matrix: Matrix
    """[row][column], None for N/A; GB/s of 10^9, or ns."""
    states_unit: bool = True
    note: str = ""
    """What its file contradicts."""


def with_buffers(series: ForeignSeries, size: int) -> ForeignSeries:
    """The series with buffers of ``size`` bytes instead of the assumed ones: its rates stay."""
    if ASSUMED not in series.notes:
        return series
    share = size / BYTES
    samples = series.samples
    transfers = [replace(each, bytes=size) for each in series.workload.transfers]
    seconds = [span * share for column in samples.transfers for span in column]
    note = f"the size of its buffers is that of its command line: {format_bytes(size)}"
    return replace(
        series,
        workload=replace(series.workload, transfers=tuple(transfers)),
        samples=summary(samples.span[0] * share, seconds),
        notes=(note, *(each for each in series.notes if each != ASSUMED)),
    )


def unit_of(name: str) -> str:
    """The unit of the figures of a case."""
    return "ns" if "latency" in name else "GB/s"


def why_nothing(case: Case, what: str) -> str:
    """Why a case has no series here."""
    if case.name.startswith("multinode_"):
        return SEVERAL_HOSTS
    if case.name == "device_local_copy_sm":
        return COUNTED
    if match := re.fullmatch(r"device_local_(read|write)", what):
        return f"{NO_COUNTERPART}: it only {match[1]}s memory of one GPU"
    if what.endswith("_tma") or "_tma_" in what:
        return f"{NO_COUNTERPART}: it copies by the tensor memory accelerator"
    known = rows_of(case.name, 1) or _ONE_ROW.fullmatch(what)
    figures = sum(figure is not None for row in case.matrix for figure in row)
    if not figures:
        return NO_FIGURE
    return (
        f"its matrix has figures of {count(figures, 'GPU')}; the case needs several"
        if known
        else NO_COUNTERPART
    )


def why_no_matrix(name: str, matrix: Matrix) -> str:
    """What is wrong with the shape of a case's matrix; empty if nothing is."""
    columns = len(matrix[0]) if matrix else 0
    expected = rows_of(name, columns)
    if not matrix or not expected or len(matrix) == expected:
        return ""
    return (
        f"the matrix is {len(matrix)} × {columns} (rows × columns), and {name} has "
        f"{expected} × {columns}"
    )


def rows_of(name: str, columns: int) -> int:
    """How many rows the matrix of a case has if it has so many columns; 0 for an unknown case."""
    parts = _PARTS.match(name)
    what = parts["what"] if parts else name
    if re.fullmatch(r"device_to_device_(memcpy_(read|write)|latency)", what):
        return columns
    if re.fullmatch(r"device_to_device_bidirectional_memcpy_(read|write)", what):
        return 3 * columns
    return 1 if _ONE_ROW.fullmatch(what) else 0


def measured_of(
    cases: Mapping[str, Case], unsupported_paths: dict[str, Unsupported]
) -> Iterator[ForeignSeries]:
    """Every series of the cases; what has none is added to ``unsupported_paths``, by name."""
    for case in cases.values():
        parts = _PARTS.match(case.name)
        what, by = (parts["what"], parts["by"]) if parts else (case.name, "ce")
        executor = "copy-engine" if by == "ce" else "sm"
        made = list(_made(case, what, executor, cases))
        other = _other_way(case.name)
        if not made and other not in cases:
            reason = why_nothing(case, what)
            if other:
                reason = f"it has one direction of two, and {other} is missing"
            unsupported_paths.setdefault(case.name, Unsupported(case.name, reason))
        yield from made


def _other_way(name: str) -> str:
    """The case of the other direction, whose figures belong to the same workload; empty if a
    case has none."""
    if "bidirectional" in name:
        for one, other in (
            (TO_GPU, TO_HOST),
            (TO_HOST, TO_GPU),
            (TO_ALL, OF_ALL),
            (OF_ALL, TO_ALL),
        ):
            if name.startswith(one):
                return name.replace(one, other)
    return ""


def _made(
    case: Case, what: str, executor: str, cases: Mapping[str, Case]
) -> Iterator[ForeignSeries]:
    if what in ("host_to_device_memcpy", "device_to_host_memcpy"):
        to_gpu = what.startswith("host")
        for gpu, rate in _columns(case):
            yield _copied(case.name, [(_host(gpu, to_gpu, executor), rate)], (ASSUMED, NODE))
    elif what == "host_to_device_bidirectional_memcpy":
        yield from _duplex(case, cases, executor)
    elif what in ("host_to_all_memcpy", "all_to_host_memcpy"):
        to_gpu = what.startswith("host")
        parts = [(_host(gpu, to_gpu, executor), rate) for gpu, rate in _columns(case)]
        if len(parts) > 1:
            yield _copied(case.name, parts, (ASSUMED, NODE, TOGETHER))
    elif what == "host_to_all_bidirectional_memcpy":
        yield from _all_duplex(case, cases, executor)
    elif match := re.fullmatch(r"device_to_device_memcpy_(read|write)", what):
        for row, column, rate in _pairs(case.matrix):
            yield _copied(case.name, [(_peer(row, column, match[1], executor), rate)], (ASSUMED,))
    elif match := re.fullmatch(r"device_to_device_bidirectional_memcpy_(read|write)", what):
        yield from _peer_duplex(case, match[1], executor)
    elif match := re.fullmatch(r"(all_to_one|one_to_all)_(read|write)", what):
        yield from _fan(case, match[1], match[2], executor)
    elif case.name == "device_local_copy":
        for gpu, rate in _columns(case):
            memory = Memory("device", Place("gpu", gpu))
            yield _copied(
                case.name, [(Transfer(Path(memory, memory, executor), BYTES), rate)], (ASSUMED,)
            )
    elif what == "host_device_latency":
        for gpu, nanoseconds in _columns(case):
            yield _chased(case.name, gpu, ALLOCATED.format(ANYWHERE.index), nanoseconds, (NODE,))
    elif what == "device_to_device_latency":
        for row, column, nanoseconds in _pairs(case.matrix):
            yield _chased(case.name, row, str(Place("gpu", column)), nanoseconds, ())


def halves_of(cases: Mapping[str, Case]) -> Iterator[HalfSeries]:
    """Each series of which one direction is here and the case of the other is not."""
    for case in cases.values():
        other = _other_way(case.name)
        if not other or other in cases:
            continue
        parts = _PARTS.match(case.name)
        what, by = (parts["what"], parts["by"]) if parts else (case.name, "ce")
        executor = "copy-engine" if by == "ce" else "sm"
        to_gpu = what.startswith(("host_to_device", "host_to_all"))
        named_after = case.name if to_gpu else other
        rates = _columns(case)
        together = [rates] if "all" in what else [[each] for each in rates]
        for each in together:
            seconds = [BYTES / (rate * 1e9) if way == to_gpu else 0.0
                       for _, rate in each for way in (True, False)]  # fmt: skip
            transfers = [_host(gpu, way, executor) for gpu, _ in each for way in (True, False)]
            if len(together) == 1 and "all" in what and len(each) < 2:
                continue
            series = ForeignSeries(
                name=named_after,
                family=named_after,
                workload=Workload(tuple(transfers)),
                mode="device",
                samples=summary(max(seconds), seconds),
                notes=(ASSUMED, NODE, TOGETHER),
            )
            yield HalfSeries(case.name, other, named_after, series, tuple(seconds))


def _columns(case: Case) -> list[tuple[int, float]]:
    """(GPU, figure) of a matrix of one row."""
    row = case.matrix[0] if case.matrix else []
    return [(gpu, figure) for gpu, figure in enumerate(row[:MOST_GPUS]) if figure is not None]


def _pairs(matrix: Matrix) -> Iterator[tuple[int, int, float]]:
    for row, figures in enumerate(matrix[:MOST_GPUS]):
        for column, figure in enumerate(figures[:MOST_GPUS]):
            if figure is not None and row != column:
                yield row, column, figure


def _host(gpu: int, to_gpu: bool, executor: str) -> Transfer:
    path = Path(Memory("pinned", Place("numa", 0)), Memory("device", Place("gpu", gpu)), executor)
    return Transfer(path if to_gpu else path.opposite, BYTES)


def _peer(row: int, column: int, how: str, executor: str) -> Transfer:
    """A read is submitted by the destination's GPU, a write by the source's."""
    source, to = (column, row) if how == "read" else (row, column)
    path = Path(
        Memory("device", Place("gpu", source)), Memory("device", Place("gpu", to)), executor
    )
    if executor == "sm":
        return Transfer(path, BYTES, {} if how == "read" else {"side": "push"})
    return Transfer(
        path, BYTES, {"api": "async"} | ({"by": "destination"} if how == "read" else {})
    )


def _copied(
    name: str, parts: Sequence[tuple[Transfer, float]], notes: tuple[str, ...]
) -> ForeignSeries:
    """Transfers with their rates in GB/s."""
    seconds = [transfer.bytes / (rate * 1e9) for transfer, rate in parts]
    return ForeignSeries(
        name=name,
        family=name,
        workload=Workload(tuple(transfer for transfer, _ in parts)),
        mode="device",
        samples=summary(max(seconds), seconds),
        notes=notes,
    )


def _duplex(case: Case, cases: Mapping[str, Case], executor: str) -> Iterator[ForeignSeries]:
    """The rate into each GPU is here, that out of it in the case of the other direction."""
    back = cases.get(_other_way(case.name))
    rates = dict(_columns(back)) if back else {}
    for gpu, rate in _columns(case):
        if gpu in rates:
            parts = [(_host(gpu, True, executor), rate), (_host(gpu, False, executor), rates[gpu])]
            yield _copied(case.name, parts, (ASSUMED, NODE, TOGETHER))


def _all_duplex(case: Case, cases: Mapping[str, Case], executor: str) -> Iterator[ForeignSeries]:
    back = cases.get(_other_way(case.name))
    rates = dict(_columns(back)) if back else {}
    parts = [
        (_host(gpu, to_gpu, executor), rate if to_gpu else rates[gpu])
        for gpu, rate in _columns(case)
        if gpu in rates
        for to_gpu in (True, False)
    ]
    if len(parts) > 2:
        yield _copied(case.name, parts, (ASSUMED, NODE, TOGETHER))


def _peer_duplex(case: Case, how: str, executor: str) -> Iterator[ForeignSeries]:
    """Three matrices one below the other: this way, the other way, and their sum. Since 0.10 each
    pair is measured once, and both its cells have that: two cells would be blocks that agree."""
    count = len(case.matrix) // 3
    this, other = case.matrix[:count], case.matrix[count : 2 * count]
    pairs = [
        (row, column, rate, back)
        for row, column, rate in _pairs(this)
        if (back := other[row][column]) is not None
    ]
    figures = {(row, column): {rate, back} for row, column, rate, back in pairs}
    mirrored = all(figures.get((column, row)) == each for (row, column), each in figures.items())
    for row, column, rate, back in pairs:
        if mirrored and row > column:
            continue
        # in both cases the first matrix is the column's GPU to the row's
        parts = [
            (_peer(column, row, "write", executor), rate),
            (_peer(row, column, "write", executor), back),
        ]
        parts.sort(key=lambda part: part[0].path.source.place.index)
        yield _copied(case.name, parts, (ASSUMED, MIRRORED) if mirrored else (ASSUMED,))


def _fan(case: Case, shape: str, how: str, executor: str) -> Iterator[ForeignSeries]:
    """Only the total of all transfers is given."""
    figures = _columns(case)
    for one, total in figures:
        others = [gpu for gpu in range(len(case.matrix[0])) if gpu != one]
        # a read's row is the destination, a write's the source: `_peer` says who submits
        pairs = [(other, one) if shape == "all_to_one" else (one, other) for other in others]
        transfers = tuple(
            _peer(to, source, how, executor) if how == "read" else _peer(source, to, how, executor)
            for source, to in pairs
        )
        if not transfers:
            continue
        yield ForeignSeries(
            name=case.name,
            family=case.name,
            workload=Workload(transfers),
            mode="device",
            samples=summary(len(transfers) * BYTES / (total * 1e9)),
            notes=(ASSUMED,),
        )


def _chased(
    name: str, gpu: int, memory: str, nanoseconds: float, notes: tuple[str, ...]
) -> ForeignSeries:
    parameters = {"bytes": str(LATENCY_BYTES), "memory": memory}
    seconds = nanoseconds * 1e-9
    failure = None if is_time(seconds) else Failure("foreign", "its figure is not a time")
    return ForeignSeries(
        name=name,
        family=name,
        workload=Workload(operation=Operation("sm-latency", Place("gpu", gpu), parameters)),
        mode="device",
        samples=summary(seconds),
        failure=failure,
        notes=notes,
    )
