"""The text of the OSU micro-benchmarks: tables below a title, whatever else a shell put around.

Two-sided point-to-point tests have a counterpart: transfers by the executor ``mpi`` between the
host memory or the GPU of rank 0 and of rank 1, written ``numa:0`` and ``numa:1``, ``gpu:0`` and
``gpu:1``; the text says neither which GPUs nor which nodes these are. ``test`` says which one it
was, since a stream of messages (``bw``) and one message at a time (``latency``) are not one curve.
Blocking collectives have one too, if the text has the command that says how many ranks there are:
see `waywiser.exchange.imports.osu_collectives`. One-sided tests (``MPI_Put``) and all others are
other operations and have no counterpart.

Whatever else names the operation is a parameter of the transfer: the datatype if it is not
``MPI_CHAR`` (``-T``), the window of a command line that the file shows (``-W``), and any line
``# Key: value`` below the title. A table of derived datatypes (``-D``) has none. Rates are in MB/s
of 10^6 bytes. Every figure is a mean over iterations that the text does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from msgspec.structs import replace

from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries
from waywiser.exchange.imports.osu_collectives import (
    COLLECTIVES,
    MEAN,
    OsuCollective,
    collective_workload,
    launched_by,
    longest_column,
    ranks_of,
    why_not,
)
from waywiser.exchange.imports.reading import clipped, parse_good
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.exchange.imports.text_runs import TextRun, text_runs, truncated
from waywiser.words import Memory, Path, Place, Transfer, Value, Workload
from waywiser.words.records import Unsupported

_TITLE = re.compile(
    r"^\s*#\s*OSU\s+(?P<library>\S+)\s+(?P<what>.+?)\s+Test(?:\s+v(?P<version>[\w.]+))?\s*$",
    re.IGNORECASE,
)
TITLE = re.compile(r"^[ \t]{0,20}#[ \t]*OSU[ \t]+\S", re.MULTILINE | re.IGNORECASE)
"""How a file shows that it is of this format."""
_TWO_SIDED = re.compile(r"MPI(?:-(?:CUDA|ROCM|OPENACC|SYCL|HABANA))?", re.IGNORECASE)
"""The word before a two-sided test. ``MPI_Put`` names a one-sided one."""
_BUFFERS = re.compile(
    r"^\s*#\s*Send Buffer on \w+ \((?P<send>[DHM])\) and Receive Buffer on \w+ \((?P<to>[DHM])\)"
)
_HEADER = re.compile(r"^\s*#\s*Size\s+(?P<columns>\S.*)$")
_ROW = re.compile(
    r"^\s*(?P<size>[0-9]{1,18})\s+(?P<value>[0-9]{1,15}(?:\.[0-9]{1,9})?)(?:\s+(?P<rest>.*))?$"
)
_FIGURE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_MANAGED = re.compile(r"\s-d[ =]?managed\b")
_COMMAND = re.compile(r"\bosu_\w+\b(?P<rest>.*)$")
_WINDOW = re.compile(r"\s(?:-W|--window-size)[ =]?(?P<window>[0-9]{1,9})\b")
_DATATYPE = re.compile(r"^\s*#\s*Datatype:\s*(?P<datatype>\w{1,60})\.?\s*$")
_VARIANT = re.compile(r"^\s*#\s*(?P<key>[A-Za-z][\w -]{0,40}?)\s*:\s*(?P<value>\S.{0,80}?)\.?\s*$")
_COMMAND_BUFFERS = re.compile(r"(?:^|\s)(?P<send>[DHM])\s+(?P<to>[DHM])\s*$")

TESTS = {"latency": "latency", "bandwidth": "bw", "bi-directional bandwidth": "bibw"}
"""Titles of two-sided point-to-point tests, and their names here."""

DEFAULT_DATATYPE = "MPI_CHAR"
DEFAULT_WINDOW = "64"
UNITS = {"latency": "us", "bw": "MB/s", "bibw": "MB/s", "collective": "us"}

MOST_COLUMNS = 400
"""Columns of a line that are read: titles, rows and commands are shorter."""

KINDS = {"H": "pageable", "D": "device", "M": "managed"}


class OsuTable(Value, frozen=True):
    """One test's output, as its lines say."""

    title: str
    test: str
    """Its name here; empty: no counterpart."""
    reason: str
    """Why it has no counterpart."""
    parameters: dict[str, str]
    """What names the operation besides the test."""
    version: str
    send: str
    """``H``, ``D`` or ``M``."""
    to: str
    assumed: str
    """What was assumed about the buffers; empty if it is stated."""
    rows: tuple[tuple[int, float], ...]
    """(bytes, value)"""
    failed: tuple[int, ...]
    """Sizes whose bytes did not arrive right, as the tool's own validation says."""
    collective: OsuCollective | None = None
    """What it is, if the test is ``collective``."""
    ranks: int = 0
    """The number of ranks of a collective."""
    damaged: tuple[Unsupported, ...] = ()
    """Lines that begin as rows and are none."""


def read(text: str, where: str) -> list[ForeignFile]:
    """All tables as one run. A damaged table is listed among the paths without a counterpart.
    Raises `Malformed` if no table is good."""
    lines = [line[:MOST_COLUMNS] for line in text.splitlines()]
    runs = text_runs(lines, TITLE, where, "# OSU MPI")
    parts = [(run, first, last) for run in runs for first, last in _parts_of(lines, run)]
    tables, errors = parse_good(parts, lambda part: _table(lines, *part, where))
    unsupported = [each for table in tables for each in _unusable(table)]
    unsupported += [
        Unsupported(f"{_name(lines[run.start])} (line {run.start + 1})", error.what)
        for (run, _, _), error in errors
    ]
    return [
        ForeignFile(
            format="osu",
            tool="OSU micro-benchmarks",
            version=next((table.version for table in reversed(tables) if table.version), ""),
            measured=tuple(chain.from_iterable(map(_measured, tables))),
            unsupported_paths=tuple({each.path: each for each in unsupported[::-1]}.values())[::-1],
        )
    ]


def _name(title: str) -> str:
    return clipped(title.strip().lstrip("# "))


def _table(lines: Sequence[str], run: TextRun, first: int, last: int, where: str) -> OsuTable:
    """One of the tables below a title: ``-T all`` prints one for each datatype. Raises `Malformed`
    for a table of a test that is read without a header or a row, or with a line that is no row."""
    title = _TITLE.match(lines[run.start])
    if title is None or (first > run.start + 1 and not _DATATYPE.match(lines[first])):
        raise Malformed("the title of the table is damaged", where=f"{where}:{first}")
    test, reason = _test(title["library"], title["what"])
    collective = COLLECTIVES.get(title["what"].lower())
    ranks = 0
    if collective is not None and _TWO_SIDED.fullmatch(title["library"]):
        ranks = ranks_of(launched_by(lines, run.above, run.start))
        reason = why_not(ranks)
        test = "" if reason else "collective"
    send, to, assumed = _buffers(lines, run.start, run.end, title["library"])
    if test == "collective":
        send, to, assumed = _collective_buffers(lines, run.start, title["library"])
    found = _Rows()
    if test:
        found.read(lines, first, last, where, UNITS[test])
        if not found.rows:
            raise found.error or truncated(where, run)
    parameters = _parameters(lines[run.start + 1 : last], _command(lines, run.start))
    if test == "collective" and not any(map(longest_column, lines[first:last])):
        assumed = "; ".join(filter(None, (assumed, MEAN)))
    return OsuTable(_name(lines[run.start]), test, reason, parameters, title["version"] or "",
                    send, to, assumed, tuple(found.rows), tuple(found.failed), collective, ranks,
                    tuple(found.damaged))  # fmt: skip


def _test(library: str, what: str) -> tuple[str, str]:
    """(name of the test here, why it has none)."""
    if not _TWO_SIDED.fullmatch(library):
        return "", f"{library} is another operation than the two-sided messages that are imported"
    test = TESTS.get(what.lower(), "")
    return test, "" if test else (
        "only two-sided latency and bandwidth and blocking collectives have a counterpart here"
    )


def _parts_of(lines: Sequence[str], run: TextRun) -> list[tuple[int, int]]:
    """[first line, line after the last) of each table: a new one begins with a line that states the
    datatype after rows of the former. What follows the last rows is none."""
    bounds, rows = [run.start + 1], False
    for n in range(run.start + 1, run.end):
        if _ROW.match(lines[n]):
            rows = True
        elif rows and (_DATATYPE.match(lines[n]) or _HEADER.match(lines[n])):
            bounds.append(n)
            rows = False
    parts = list(pairwise([*bounds, run.end]))
    return parts if rows or len(parts) == 1 else parts[:-1]


class _Rows:
    """The rows of one table, and the lines that begin as rows and are none. Lines of other programs
    may stand within it."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, float]] = []
        self.failed: list[int] = []
        """Sizes whose validation failed."""
        self.damaged: list[Unsupported] = []
        self.error: Malformed | None = None
        """The first of the damaged ones."""

    def read(self, lines: Sequence[str], first: int, last: int, where: str, unit: str) -> None:
        """Raises `Malformed` for a head that is none of the test, and rows without one."""
        header, column = False, 0
        decimals = _decimals(lines[first:last])
        for n in range(first, last):
            line, place = lines[n], f"{where}:{n + 1}"
            if match := _HEADER.match(line):
                _require_columns(match["columns"], unit, place)
                header, column = True, longest_column(match["columns"])
            elif not line.lstrip()[:1].isdigit():
                continue
            elif header:
                self._enter(line, column, decimals, place)
            elif _ROW.match(line):
                raise Malformed("a row before the line '# Size …'", where=place)

    def _enter(self, line: str, column: int, decimals: int, place: str) -> None:
        try:
            row = _ROW.match(line)
            if row is None:
                raise Malformed(f"no row of a size and a figure: {clipped(line, 60)}", where=place)
            size, value = int(row["size"]), _figure(row, column, place)
            if size > 2**50:
                raise Malformed(f"a message of {size} bytes", where=place)
            if len(row["value"].partition(".")[2]) < decimals:
                raise Malformed("its figure has lost decimals: it is cut off", where=place)
            if self.rows and size <= self.rows[-1][0]:
                raise Malformed("its size is not larger than that of the row above", where=place)
        except Malformed as error:
            self.error = self.error or error
            self.damaged.append(Unsupported(f"line {place.rpartition(':')[2]}", error.what))
            return
        if re.search(r"\bFail", row["rest"] or ""):
            self.failed.append(size)
        self.rows.append((size, value))


def _decimals(lines: Sequence[str]) -> int:
    """The decimals that all figures of a table have but at most one; 0 if they differ more."""
    found = sorted(
        len(row["value"].partition(".")[2]) for line in lines if (row := _ROW.match(line))
    )
    return found[1] if len(found) > 2 and found[1] == found[-1] else 0


def _figure(row: re.Match[str], column: int, where: str) -> float:
    """The figure in a column of a row. Raises `Malformed`."""
    figures = [row["value"], *(row["rest"] or "").split()]
    if column < len(figures) and _FIGURE.fullmatch(figures[column]):
        return float(figures[column])
    raise Malformed("a row without the figure of each column", where=where)


def _require_columns(columns: str, unit: str, where: str) -> None:
    """Raises `Malformed` for a first column in another unit, and for derived datatypes."""
    if "Transmit Size" in columns:
        raise Malformed("derived datatypes (-D) have no counterpart", where=where)
    if not re.search(rf"\(?{re.escape(unit)}\)?(?:\s|$)", columns):
        raise Malformed(f"the column {clipped(columns, 60)!r} is not in {unit}", where=where)


def _parameters(lines: Sequence[str], command: str) -> dict[str, str]:
    """What names the operation besides the test: nothing if all is as the program's defaults."""
    found: dict[str, str] = {}
    comments = [line for line in lines if line.lstrip().startswith("#")]
    for line in comments:
        if match := _DATATYPE.match(line):
            found["datatype"] = match["datatype"]  # the last one that stands above the rows
        elif (match := _VARIANT.match(line)) and not _BUFFERS.match(line):
            key = re.sub(r"[^a-z0-9]+", "-", match["key"].lower()).strip("-")
            found[key] = re.sub(r"[^a-zA-Z0-9_.-]+", "-", match["value"]).strip("-") or "given"
    if match := _WINDOW.search(command):
        found["window"] = match["window"]
    if found.get("datatype") == DEFAULT_DATATYPE:
        del found["datatype"]
    if found.get("window") == DEFAULT_WINDOW:
        del found["window"]
    return found


def _command(lines: Sequence[str], start: int) -> str:
    """What follows the program's name in the command line above a title; empty if none is there."""
    for line in reversed(lines[max(0, start - 3) : start]):
        if _TITLE.match(line):
            break
        if command := _COMMAND.search(line):
            return command["rest"] or " "
    return ""


def _buffers(lines: Sequence[str], start: int, end: int, mpi: str) -> tuple[str, str, str]:
    """The memories of the buffers: as the table says, else the command line above it, else the
    title."""
    for line in lines[start + 1 : end]:
        if match := _BUFFERS.match(line):
            return match["send"], match["to"], ""
    if command := _command(lines, start):
        found = _COMMAND_BUFFERS.search(command)
        return (found["send"], found["to"], "") if found else ("H", "H", "")
    if "-" in mpi:  # MPI-CUDA, MPI-ROCM: built for GPUs, and asked to use them
        return (
            "D",
            "D",
            ("the place of the buffers is unknown: GPUs are assumed, as the title suggests"),
        )
    return "H", "H", ""


def _collective_buffers(lines: Sequence[str], start: int, mpi: str) -> tuple[str, str, str]:
    """The memory of a collective, which is the same at each rank: as the command says, else the
    title."""
    if _MANAGED.search(_command(lines, start)):
        return "M", "M", ""
    return ("D", "D", "") if "-" in mpi else ("H", "H", "")


RANKS = "numa:N and gpu:N are the host memory and the GPU of rank N; the file names no host"


def _measured(table: OsuTable) -> Iterator[ForeignSeries]:
    if not table.test:
        return
    ends = [
        Memory(KINDS[kind], Place("numa" if kind == "H" else "gpu", rank))
        for rank, kind in enumerate((table.send, table.to))
    ]
    path = Path(ends[0], ends[1], "mpi")
    both = table.test == "bibw"
    parameters = {"test": table.test} | table.parameters
    variant = "".join(f" {key} {value}" for key, value in table.parameters.items())
    for size, value in table.rows:
        seconds = _seconds(table, size, value)
        if size == 0 or size in table.failed or not is_time(seconds):
            continue
        if table.collective is not None:
            yield _collective(table, table.collective, size, seconds, variant)
            continue
        one = Transfer(path, size, parameters)
        back = Transfer(path.opposite, size, parameters)
        yield ForeignSeries(
            name=f"{table.title}{variant}, {size}",
            family=table.title,
            workload=Workload((one, back) if both else (one,)),
            mode="host",
            samples=summary(seconds, () if both else (seconds,)),
            notes=(RANKS, *([table.assumed] if table.assumed else [])),
        )


def _seconds(table: OsuTable, size: int, value: float) -> float:
    if UNITS[table.test] == "us":
        return value * 1e-6
    return size * (2 if table.test == "bibw" else 1) / (value * 1e6) if value else 0.0


def _collective(
    table: OsuTable, what: OsuCollective, size: int, seconds: float, variant: str
) -> ForeignSeries:
    kind = KINDS[table.send]
    return ForeignSeries(
        name=f"{table.title}{variant}, {size}",
        family=table.title,
        workload=collective_workload(what, kind, table.ranks, size, table.parameters),
        mode="host",
        samples=summary(seconds, (seconds,)),
        notes=(table.assumed,) if table.assumed else (),
    )


def _unusable(table: OsuTable) -> Iterator[Unsupported]:
    if not table.test:
        yield Unsupported(table.title, table.reason)
    for each in table.damaged:
        yield replace(each, path=f"{table.title}, {each.path}")
    for size, value in table.rows:
        if size in table.failed:
            reason = "the tool's validation found wrong bytes"
            yield Unsupported(f"{table.title}, {size}", reason)
        elif size == 0:
            yield Unsupported(f"{table.title}, 0", "the message has 0 bytes")
        elif value == 0:
            yield Unsupported(f"{table.title}, {size}", "its figure is 0")
        elif not is_time(_seconds(table, size, value)):
            yield Unsupported(f"{table.title}, {size}", "its figure is no time that can be")
