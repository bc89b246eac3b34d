"""The text of the OSU micro-benchmarks: tables below a title, whatever else a shell put around.

Point-to-point tests have a counterpart: transfers by the executor ``mpi`` between the host memory
or the GPU of rank 0 and of rank 1, written ``numa:0`` and ``numa:1``, ``gpu:0`` and ``gpu:1``; the
text says neither which GPUs nor which nodes these are. ``test`` says which one it was, since a
stream of messages (``bw``) and one message at a time (``latency``) are not one curve. Rates are in
MB/s of 10^6 bytes. Every figure is a mean over iterations that the text does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries
from waywiser.exchange.imports.reading import clipped
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.words import Memory, Path, Place, Transfer, Value, Workload
from waywiser.words.records import Unsupported

_TITLE = re.compile(
    r"^\s*#\s*OSU\s+(?P<mpi>MPI\S*)\s+(?P<what>.+?)\s+Test(?:\s+v(?P<version>[\w.]+))?\s*$"
)
_BUFFERS = re.compile(
    r"^\s*#\s*Send Buffer on \w+ \((?P<send>[DHM])\) and Receive Buffer on \w+ \((?P<to>[DHM])\)"
)
_HEADER = re.compile(r"^\s*#\s*Size\s+(?P<columns>\S.*)$")
_ROW = re.compile(
    r"^\s*(?P<size>[0-9]{1,18})\s+(?P<value>[0-9]{1,15}(?:\.[0-9]{1,9})?)(?:\s+(?P<rest>.*))?$"
)
_COMMAND = re.compile(r"\bosu_\w+\b(?P<rest>.*)$")
_COMMAND_BUFFERS = re.compile(r"(?:^|\s)(?P<send>[DHM])\s+(?P<to>[DHM])\s*$")

TESTS = {
    "Latency": "latency",
    "Multi-threaded Latency": "",
    "Bandwidth": "bw",
    "Bi-Directional Bandwidth": "bibw",
}
"""Titles of point-to-point tests, and their names here; empty: no counterpart."""

MOST_COLUMNS = 400
"""Columns of a line that are read: titles, rows and commands are shorter."""

KINDS = {"H": "pageable", "D": "device", "M": "managed"}


class OsuTable(Value, frozen=True):
    """One test's output, as its lines say."""

    title: str
    what: str
    version: str
    send: str
    """``H``, ``D`` or ``M``."""
    to: str
    assumed: str
    """What was assumed about the buffers; empty if it is stated."""
    unit: str
    """``us`` or ``MB/s``."""
    rows: tuple[tuple[int, float], ...]
    """(bytes, value)"""
    failed: tuple[int, ...]
    """Sizes whose bytes did not arrive right, as the tool's own validation says."""


def read(text: str, where: str) -> ForeignFile:
    """Raises `Malformed` for a table without a header or a row, or with a line that is no row."""
    lines = [line[:MOST_COLUMNS] for line in text.splitlines()]
    starts = [n for n, line in enumerate(lines) if _TITLE.match(line)]
    if not starts:
        raise Malformed("no title that begins with # OSU MPI", where=where)
    measured: list[ForeignSeries] = []
    unsupported_paths: dict[str, Unsupported] = {}
    version = ""
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        table = _table(lines, start, end, where)
        version = table.version or version
        test = TESTS.get(table.what)
        if not test:
            reason = "only point-to-point latency and bandwidth have a counterpart here"
            unsupported_paths.setdefault(table.title, Unsupported(table.title, reason))
            continue
        measured += _measured(table, test)
        for unsupported in _unusable(table):
            unsupported_paths.setdefault(unsupported.path, unsupported)
    return ForeignFile(
        format="osu",
        tool="OSU micro-benchmarks",
        version=version,
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported_paths.values()),
    )


def _table(lines: Sequence[str], start: int, end: int, where: str) -> OsuTable:
    title = _TITLE.match(lines[start])
    assert title is not None
    send, to, assumed = _buffers(lines, start, end, title["mpi"])
    unit, rows, failed = "", [], []
    for n in range(start + 1, end):
        line, place = lines[n], f"{where}:{n + 1}"
        if header := _HEADER.match(line):
            unit = _unit(header["columns"], place)
        elif row := _ROW.match(line):
            if not unit:
                raise Malformed("a row before the line '# Size …'", where=place)
            size, value = int(row["size"]), float(row["value"])
            if size > 2**50:
                raise Malformed(f"a message of {size} bytes", where=place)
            if re.search(r"\bFail", row["rest"] or ""):
                failed.append(size)
            rows.append((size, value))
        elif rows and line.strip() and not line.lstrip().startswith("#"):
            if line.strip()[0].isdigit():
                raise Malformed("no row of a size and a figure", where=place)
            break  # what the shell printed afterwards
    if title["what"] in TESTS and not rows:
        raise Malformed(
            "the table has no row: it is truncated",
            where=f"{where}:{start + 1}",
            remedy="run the benchmark again",
        )
    name = clipped(lines[start].strip().lstrip("# "))
    return OsuTable(name, title["what"], title["version"] or "", send, to, assumed, unit,
                 tuple(rows), tuple(failed))  # fmt: skip


def _unit(columns: str, where: str) -> str:
    if "(MB/s)" in columns:
        return "MB/s"
    if "(us)" in columns:
        return "us"
    raise Malformed("the column is neither in us nor in MB/s", where=where)


def _buffers(lines: Sequence[str], start: int, end: int, mpi: str) -> tuple[str, str, str]:
    """The memories of the buffers: as the table says, else the command line above it, else the
    title."""
    for line in lines[start + 1 : end]:
        if match := _BUFFERS.match(line):
            return match["send"], match["to"], ""
    for line in reversed(lines[max(0, start - 3) : start]):
        if _TITLE.match(line):
            break
        if command := _COMMAND.search(line):
            found = _COMMAND_BUFFERS.search(command["rest"])
            return (found["send"], found["to"], "") if found else ("H", "H", "")
    if "-" in mpi:  # MPI-CUDA, MPI-ROCM: built for GPUs, and asked to use them
        return (
            "D",
            "D",
            ("the place of the buffers is unknown: GPUs are assumed, as the title suggests"),
        )
    return "H", "H", ""


def _measured(table: OsuTable, test: str) -> Iterator[ForeignSeries]:
    ends = [
        Memory(KINDS[kind], Place("numa" if kind == "H" else "gpu", rank))
        for rank, kind in enumerate((table.send, table.to))
    ]
    path = Path(ends[0], ends[1], "mpi")
    both = test == "bibw"
    for size, value in table.rows:
        seconds = value * 1e-6
        if table.unit == "MB/s":
            seconds = size * (2 if both else 1) / (value * 1e6) if value else 0.0
        if size == 0 or size in table.failed or not is_time(seconds):
            continue
        one = Transfer(path, size, {"test": test})
        back = Transfer(path.opposite, size, {"test": test})
        yield ForeignSeries(
            name=f"{table.title}, {size}",
            family=table.title,
            workload=Workload((one, back) if both else (one,)),
            mode="host",
            samples=summary(seconds, () if both else (seconds,)),
            notes=(table.assumed,) if table.assumed else (),
        )


def _unusable(table: OsuTable) -> Iterator[Unsupported]:
    for size, value in table.rows:
        if size in table.failed:
            reason = "the tool's validation found wrong bytes"
            yield Unsupported(f"{table.title}, {size}", reason)
        elif size == 0:
            yield Unsupported(f"{table.title}, 0", "the message has 0 bytes")
        elif value == 0:
            yield Unsupported(f"{table.title}, {size}", "its figure is 0")
