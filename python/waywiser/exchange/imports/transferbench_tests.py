"""The tests of TransferBench: tables of executors, their transfers, and iterations of these.

Transfers of a test start together: they are one workload. Iterations are shown from the fastest to
the slowest with their numbers; here they are samples in the order in which they ran, and the mean
of the tool is not used. Without them, the mean is one sample with the mark of a summary. A test
lasts as long as its slowest executor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.benchmark_ids import NoCounterpart
from waywiser.exchange.imports.foreign_file import ForeignSeries, clipped
from waywiser.exchange.imports.nearby import NEAR
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.exchange.imports.transferbench_figures import NUMBER, BadFigure, seconds_of
from waywiser.exchange.imports.transferbench_route import Route, ToolRun, parse_route
from waywiser.words import MOST_BYTES, Failure, Samples, Unsupported, Workload

_CELL = r"[\s|,]*"
_FIGURES = rf"(?P<rate>{NUMBER})\s*GB/s{_CELL}(?P<time>{NUMBER})\s*ms{_CELL}"
_BYTES = r"(?P<bytes>\d{1,18})\s*bytes\b"
_TEST = re.compile(r"^\s*Test\s+(\d{1,9})\s*:")
_TRANSFER = re.compile(
    rf"^\s*Transfer\s+(?P<number>\d{{1,6}})\s*(?::(?P<head>[^|]{{0,80}}))?{_CELL}{_FIGURES}{_BYTES}"
    r"[\s|,]*(?P<tail>.*)$"
)
_ITERATION = re.compile(rf"^\s*Iter\s+(?P<number>\d{{1,9}}){_CELL}{_FIGURES}")
_EXECUTOR = re.compile(rf"^\s*Executor:[^|,]{{0,60}}?{_CELL}{_FIGURES}{_BYTES}")
_TOTAL = re.compile(rf"^\s*Aggregate\b[^|,]{{0,40}}?\(CPU[^)]{{0,40}}\){_CELL}{_FIGURES}{_BYTES}")
_SUMMED = r"(?:Average|Aggregate)\s+bandwidth\b"
"""The last lines below the summary of a preset, which are of no test."""
_ROW = re.compile(
    r"^\s*(?:Transfer\s+\d+\b(?!\s*:\s*$)|Executor:|Iter\s+\d+"
    rf"|(?!{_SUMMED})Aggregate\b)"
)
_LAST = re.compile(rf"^\s*(?!{_SUMMED})Aggregate\b")
_ROUTE = re.compile(r"^[\w .\[\]:()*]*?->[\w .\[\]:()*]*?->\s*[A-Z0-9]+")

MOST_TRANSFERS = 4096
"""Transfers of one test: each GPU to each other one of 64 in one."""

OVERLAP = 1.1
"""An executor that takes longer than this many times its slowest transfer did not run all of them
at once."""


class TransferRow(NamedTuple):
    """One transfer of a test, as its line says."""

    number: int
    route: str
    rate: str
    time: str
    bytes: int
    iterations: dict[int, tuple[str, str]]
    """Rate and time, by the number of the iteration."""


class TestTable:
    """What the lines of one test say."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.transfers: list[TransferRow] = []
        self.executors: list[tuple[str, str, int]] = []
        """Rate, time and bytes."""
        self.total: int | None = None
        """Bytes of all transfers; None until its last line."""
        self.damage = ""
        """Why it cannot be used; empty if it can."""
        self.error = ""
        """What the tool says that went wrong."""
        self.notes: list[str] = []

    def damaged(self, reason: str) -> None:
        self.damage = self.damage or reason


def opens_test(line: str) -> bool:
    """Whether a line is of a test's table."""
    return bool(_TEST.match(line) or _ROW.match(line))


def test_name(line: str) -> str:
    """``3`` of ``Test 3:``; empty for any other line."""
    found = _TEST.match(line)
    return found[1] if found else ""


def add_row(table: TestTable, line: str) -> None:
    """Adds what a line of its table says."""
    text = line.replace("\\", "").replace("│", "|")
    if not _ROW.match(text):
        return
    if found := _TRANSFER.match(text):
        route = _ROUTE.match((found["tail"] or "").strip(" |,")) or _ROUTE.match(
            (found["head"] or "").strip(" |,")
        )
        row = (found["rate"], found["time"], int(found["bytes"]))
        named = " ".join(route[0].split()) if route else ""
        table.transfers.append(TransferRow(int(found["number"]), named, *row, {}))
    elif (found := _ITERATION.match(text)) and table.transfers:
        known = table.transfers[-1].iterations
        if int(found["number"]) in known:
            table.damaged(f"iteration {found['number']} is there twice")
        known[int(found["number"])] = (found["rate"], found["time"])
    elif found := _EXECUTOR.match(text):
        table.executors.append((found["rate"], found["time"], int(found["bytes"])))
    elif found := _TOTAL.match(text):
        table.total = int(found["bytes"])
    elif re.match(r"^\s*Iter\b", text):
        table.notes.append(f"a damaged iteration was skipped: {clipped(text, 60)}")
    else:
        table.damaged(f"a line of it is damaged: {clipped(text, 60)}")


def is_last(line: str) -> bool:
    """Whether a line ends the table of a test."""
    return bool(_LAST.match(line))


def read_table(table: TestTable, run: ToolRun) -> Iterator[ForeignSeries | Unsupported]:
    """The workload of a test, or why it has none."""
    routes = "; ".join(row.route or "?" for row in table.transfers[:50])
    sizes = sorted({row.bytes for row in table.transfers})
    size = f", {sizes[0]} bytes" if len(sizes) == 1 else ""
    name = clipped(f"test {table.name or '?'}: {routes}{size}", 200)
    try:
        _require_whole(table)
        parsed = [parse_route(row.route, run, len(table.transfers) > 1) for row in table.transfers]
        yield _series(table, parsed, run, name)
    except (NoCounterpart, BadFigure) as reason:
        yield Unsupported(name, str(reason))
    except ValueError as error:
        what = f"no path is to be read in {clipped(str(error), 60)!r}" if str(error) else "no path"
        yield Unsupported(name, f"a line of it is damaged: {what}")


def _require_whole(table: TestTable) -> None:
    """Raises `BadFigure` for a table that is damaged or not all there."""
    if table.damage:
        raise BadFigure(table.damage)
    if len(table.transfers) > MOST_TRANSFERS:
        raise BadFigure(f"it has {len(table.transfers):,} transfers, more than {MOST_TRANSFERS:,}")
    if not table.transfers:
        raise BadFigure("it has no transfer")
    numbers = [row.number for row in table.transfers]
    if len(set(numbers)) < len(numbers):
        raise BadFigure("a transfer is there twice")
    if table.total is None:
        raise BadFigure("its table is cut off: the line of all transfers together is missing")
    there = sum(row.bytes for row in table.transfers)
    if there > MOST_BYTES:
        raise BadFigure(f"its transfers have {there:,} bytes, more than any machine")
    if there != table.total:
        raise BadFigure(
            f"its transfers have {there:,} bytes and all together {table.total:,}: lines are "
            "missing or damaged"
        )


def _series(table: TestTable, routes: Sequence[Route], run: ToolRun, name: str) -> ForeignSeries:
    order = sorted(range(len(routes)), key=lambda n: table.transfers[n].number)
    rows = [table.transfers[n] for n in order]
    parsed = [routes[n] for n in order]
    transfers = tuple(route.transfer(row.bytes) for route, row in zip(parsed, rows, strict=True))
    series = ForeignSeries(
        name=name,
        family="a test",
        workload=Workload(transfers),
        mode="host" if any(route.mode == "host" for route in parsed) else "device",
        notes=(*route_notes(parsed, run), *table.notes),
    )
    if table.error:
        kind = "wrong-bytes" if "mismatch" in table.error else "foreign"
        return replace(series, failure=Failure(kind, table.error))
    samples, notes = _samples(table, rows, run)
    return replace(series, samples=samples).noted(*notes)


def route_notes(routes: Sequence[Route], run: ToolRun) -> list[str]:
    """What was assumed of the paths."""
    notes = []
    ends = [end for route in routes for end in route.path.ends]
    if any(end.place.kind == "numa" and NEAR not in end.variant for end in ends):
        notes.append("numa:N is the tool's CPU N: its N-th NUMA node, counted from 0")
    if any(NEAR in end.variant for end in ends):
        notes.append(
            "its host memory is on the node of the GPU that it names: on the node that a topology "
            "shows, else named numa:0"
        )
    if not run.settings:
        notes.append("the settings of the run are not in the file: the usual ones are assumed")
    if any(route.parameters.get("cus") == "unknown" for route in routes):
        notes.append("how many compute units moved it is not in the file")
    return notes


def _samples(
    table: TestTable, rows: Sequence[TransferRow], run: ToolRun
) -> tuple[Samples, list[str]]:
    """Iterations that all transfers have, else the means; and what to say of them."""
    means = [seconds_of(row.rate, row.time, row.bytes) for row in rows]
    whole = max([*means, *_executors(table)])
    cold = run.settings.get("NUM_WARMUPS") == "0"
    if not all(map(is_time, (whole, *means))):
        raise BadFigure("its figure is no time")
    iterations, skipped = _iterations(rows, run)
    notes = [f"{skipped} iterations were skipped: damaged, or not there"] if skipped else []
    longest = fmean(max(times) for times in iterations) if iterations else 0.0
    together = len(rows) == 1 or whole <= OVERLAP * longest
    if not iterations or not together:
        if iterations:
            notes.append(
                "its transfers did not run all at once, as the time of their executor shows: the "
                "means of the tool are used, and not the iterations"
            )
        if cold:
            notes.append("the mean has the first iteration in it, which no warm-up preceded")
        span = whole if len(rows) > 1 else means[0]
        return summary(span, means), notes
    if cold:
        notes.append("no warm-up preceded the first sample")
    if len(rows) == 1 and not skipped and not _is_mean(longest, means[0], rows[0].time):
        notes.append(
            f"the mean of its iterations is {longest * 1e3:.3f} ms, and {rows[0].time} ms by the "
            "tool"
        )
    count = len(iterations)
    spans = tuple(max(times) for times in iterations)
    return Samples(spans, repetitions=(1,) * count, flags=(0,) * count,
                   transfers=tuple(iterations)), notes  # fmt: skip


def _executors(table: TestTable) -> Iterator[float]:
    for rate, time, size in table.executors:
        try:
            yield seconds_of(rate, time, size)
        except BadFigure:
            continue  # an executor's total is not needed


def _iterations(rows: Sequence[TransferRow], run: ToolRun) -> tuple[list[tuple[float, ...]], int]:
    """Times of each transfer, for each iteration in running order; and how many are not used."""
    known: list[dict[int, float]] = []
    for row in rows:
        times = {}
        for number, (rate, time) in row.iterations.items():
            try:
                seconds = seconds_of(rate, time, row.bytes)
            except BadFigure:
                continue
            if is_time(seconds):
                times[number] = seconds
        known.append(times)
    common = sorted(set.intersection(*(set(times) for times in known)))
    named = {number for row in rows for number in row.iterations}
    requested = run.settings.get("NUM_ITERATIONS", "") if named else ""
    count = max([0, *named, *([int(requested)] if re.fullmatch(r"[0-9]{1,9}", requested) else [])])
    return [tuple(times[n] for times in known) for n in common], count - len(common)


def _is_mean(mean: float, stated: float, text: str) -> bool:
    decimals = len(text.partition(".")[2])
    rounding = 10.0**-decimals * 1e-3
    return math.isclose(mean, stated, rel_tol=0.01, abs_tol=2 * rounding)
