"""The text of the OSU micro-benchmarks: tables below a title, whatever else a shell put around.

Two-sided point-to-point tests have a counterpart: transfers by the executor ``mpi`` between the
host memory or the GPU of rank 0 and of rank 1, written ``numa:0`` and ``numa:1``, ``gpu:0`` and
``gpu:1``; the text says neither which GPUs nor which nodes these are. ``test`` says which one it
was, since a stream of messages (``bw``) and one message at a time (``latency``) are not one curve.
Blocking collectives have one too, if the text has the command that says how many ranks there are:
see `waywiser.exchange.imports.osu_collectives`. What the command above a table says is held
against the table: see `waywiser.exchange.imports.osu_command`. One-sided tests (``MPI_Put``) and
all others are other operations and have no counterpart.

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

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignSeries,
    Malformed,
    NoTable,
    clipped,
    parse_good,
)
from waywiser.exchange.imports.osu_collectives import (
    COLLECTIVES,
    MEAN,
    OsuCollective,
    collective_workload,
    longest_column,
    why_not,
)
from waywiser.exchange.imports.osu_command import (
    Buffers,
    RankGpus,
    buffers_of,
    collective_buffers,
    is_made_by,
    rank_gpus,
    require_possible,
)
from waywiser.exchange.imports.result_titles import OSU
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.exchange.imports.text_runs import TextRun, mixed, text_runs, truncated
from waywiser.words import Memory, Path, Place, Transfer, Unsupported, Value, Workload

_TITLE = re.compile(
    r"^\s*#\s*OSU\s+(?P<library>\S+)\s+(?P<what>.+?)\s+Test(?:\s+v(?P<version>[\w.]+))?\s*$",
    re.IGNORECASE,
)
TITLE = OSU
"""How a file shows that it is of this format."""
_TWO_SIDED = re.compile(r"MPI(?:-(?:CUDA|ROCM|OPENACC|SYCL|HABANA))?", re.IGNORECASE)
"""The word before a two-sided test. ``MPI_Put`` names a one-sided one."""
_BUFFERS = re.compile(r"^\s*#\s*Send Buffer on\b")
_HEADER = re.compile(r"^\s*#\s*Size\s+(?P<columns>\S.*)$")
_ROW = re.compile(
    r"^\s*(?P<size>[0-9]{1,18})\s+(?P<value>[0-9]{1,15}(?:\.[0-9]{1,9})?)(?:\s+(?P<rest>.*))?$"
)
_FIGURE = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_DATATYPE = re.compile(r"^\s*#\s*Datatype:\s*(?P<datatype>\w{1,60})\.?\s*$")
_VARIANT = re.compile(r"^\s*#\s*(?P<key>[A-Za-z][\w -]{0,40}?)\s*:\s*(?P<value>\S.{0,80}?)\.?\s*$")

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
    buffers: Buffers
    gpus: RankGpus
    settings: tuple[str, ...] | None
    """What else its command says; None without one."""
    rows: tuple[tuple[int, float], ...]
    """(bytes, value)"""
    failed: tuple[int, ...]
    """Sizes whose bytes did not arrive right, as the tool's own validation says."""
    collective: OsuCollective | None = None
    """What it is, if the test is ``collective``."""
    ranks: int = 0
    """The number of ranks of a collective."""
    notes: tuple[str, ...] = ()
    """What was assumed, one line each."""
    damaged: tuple[Unsupported, ...] = ()
    """Lines that begin as rows and are none."""


def read(text: str, where: str) -> list[ForeignFile]:
    """All tables as one run. A damaged table is listed among the paths without a counterpart.
    Raises `Malformed` if no table is good."""
    lines = [line[:MOST_COLUMNS] for line in text.splitlines()]
    runs = text_runs(text, TITLE, where, "# OSU MPI", is_made_by)
    if not any(_TITLE.match(line) or _HEADER.match(line) for line in lines):
        raise NoTable(
            "names OSU and has no table of its benchmarks",
            where=where,
            remedy="name the output of a benchmark",
        )
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


def _require_possible(test: str, found: _Rows, buffers: Buffers, mpi: str, place: str) -> None:
    """Raises `Malformed` for a bandwidth that no machine has."""
    if test in ("bw", "bibw"):
        most = max(value for _, value in found.rows) / (2 if test == "bibw" else 1)
        require_possible(buffers, mpi, most * 1e6, place)


def _test_of(mpi: str, what: str, run: TextRun) -> tuple[str, str]:
    """(the test of a title, why it has no counterpart here); one of them is empty."""
    if what.lower() in COLLECTIVES and _TWO_SIDED.fullmatch(mpi):
        reason = why_not(run)
        return ("", reason) if reason else ("collective", "")
    return _test(mpi, what)


def _table(lines: Sequence[str], run: TextRun, first: int, last: int, where: str) -> OsuTable:
    """One of the tables below a title: ``-T all`` prints one for each datatype. Raises `Malformed`
    for a table of a test that is read without a header or a row, or with a line that is no row."""
    title = _TITLE.match(lines[run.start])
    if title is None or (first > run.start + 1 and not _DATATYPE.match(lines[first])):
        raise NoTable("the title of the table is damaged", where=f"{where}:{first}")
    if run.is_mixed:
        raise mixed(where, run, "two titles stand one below the other")
    place, mpi = f"{where}:{run.start + 1}", title["library"]
    collective = COLLECTIVES.get(title["what"].lower())
    test, reason = _test_of(mpi, title["what"], run)
    buffers = Buffers("H", "H")
    if test == "collective":
        buffers = collective_buffers(mpi, run.command)
    elif test:
        own, above = lines[run.start + 1 : run.end], lines[run.above : run.start]
        buffers = buffers_of(own, above, mpi, run, place)
    found = _rows_of(lines, run, first, last, where, test)
    _require_possible(test, found, buffers, mpi, place)
    parameters = _parameters(lines[run.start + 1 : last], run.command, place)
    if test == "collective" and not any(map(longest_column, lines[first:last])):
        buffers = replace(buffers, note=MEAN)
    gpus = rank_gpus(run.command)
    return OsuTable(
        title=_name(lines[run.start]),
        test=test,
        reason=reason,
        parameters=parameters,
        version=title["version"] or "",
        buffers=buffers,
        gpus=gpus,
        settings=_settings(run, gpus, test),
        rows=tuple(found.rows),
        failed=tuple(found.failed),
        collective=collective,
        ranks=run.command.ranks if run.command else 0,
        notes=(*((buffers.note,) if buffers.note else ()), *run.notes),
        damaged=tuple(found.damaged),
    )


def _rows_of(
    lines: Sequence[str], run: TextRun, first: int, last: int, where: str, test: str
) -> _Rows:
    """The rows of a test that is read. Raises `Malformed` if it has none or is mixed."""
    found = _Rows()
    if test:
        found.read(lines, first, last, where, UNITS[test])
        if found.twice > 1:
            raise mixed(where, run, f"{found.twice} sizes stand twice in the table")
        if not found.rows:
            raise found.error or truncated(where, run)
    return found


def _settings(run: TextRun, gpus: RankGpus, test: str) -> tuple[str, ...] | None:
    """Those of its command that the series does not name: of GPUs, places do."""
    if run.settings is None:
        return None
    named = f"{gpus.variable}=" if gpus.variable and test != "collective" else ""
    return tuple(each for each in run.settings if not (named and each.startswith(named)))


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
        self.twice = 0
        """Sizes that stand twice."""
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
            self.twice += any(size == other for other, _ in self.rows[-1:])
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


def _parameters(lines: Sequence[str], command: CommandLine | None, where: str) -> dict[str, str]:
    """What names the operation besides the test: nothing if all is as the program's defaults.
    Raises `Malformed` if the table and its command name different datatypes."""
    found: dict[str, str] = {}
    comments = [line for line in lines if line.lstrip().startswith("#")]
    for line in comments:
        if match := _DATATYPE.match(line):
            found["datatype"] = match["datatype"]  # the last one that stands above the rows
        elif (match := _VARIANT.match(line)) and not _BUFFERS.match(line):
            key = re.sub(r"[^a-z0-9]+", "-", match["key"].lower()).strip("-")
            found[key] = re.sub(r"[^a-zA-Z0-9_.-]+", "-", match["value"]).strip("-") or "given"
    window = command.value_of("-W", "--window-size") if command else ""
    if re.fullmatch(r"[0-9]{1,9}", window):
        found["window"] = window
    datatype = command.value_of("-T", "--type").upper() if command else ""
    if not re.fullmatch(r"MPI_\w{1,40}", datatype):
        datatype = ""
    if datatype and found.setdefault("datatype", datatype) != datatype:
        raise Malformed(
            f"the table is of {found['datatype']}, and its command of {datatype}: one of them is "
            "not of this table",
            where=where,
        )
    if found.get("datatype") == DEFAULT_DATATYPE:
        del found["datatype"]
    if found.get("window") == DEFAULT_WINDOW:
        del found["window"]
    return found


RANKS = "numa:N and gpu:N are the host memory and the GPU of rank N; the file names no host"
OF_RANKS = "gpu:{} and gpu:{} are the GPUs of ranks 0 and 1, as {} says; numa:N is of rank N"


def _measured(table: OsuTable) -> Iterator[ForeignSeries]:
    if not table.test:
        return
    ends = [
        Memory(KINDS[kind], Place("numa", rank) if kind == "H" else Place("gpu", gpu))
        for rank, (kind, gpu) in enumerate(
            zip((table.buffers.send, table.buffers.to), table.gpus.gpus, strict=True)
        )
    ]
    places = OF_RANKS.format(*table.gpus.gpus, table.gpus.variable)
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
            notes=(
                places if table.gpus.variable else RANKS,
                *table.notes,
            ),
            settings=table.settings,
        )


def _seconds(table: OsuTable, size: int, value: float) -> float:
    if UNITS[table.test] == "us":
        return value * 1e-6
    return size * (2 if table.test == "bibw" else 1) / (value * 1e6) if value else 0.0


def _collective(
    table: OsuTable, what: OsuCollective, size: int, seconds: float, variant: str
) -> ForeignSeries:
    kind = KINDS[table.buffers.send]
    return ForeignSeries(
        name=f"{table.title}{variant}, {size}",
        family=table.title,
        workload=collective_workload(what, kind, table.ranks, size, table.parameters),
        mode="host",
        samples=summary(seconds, (seconds,)),
        notes=table.notes,
        settings=table.settings,
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
