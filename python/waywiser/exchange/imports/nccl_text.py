"""What nccl-tests and rccl-tests print: a head, the devices of all ranks, and a table of sizes.

Newer versions name the collective ("Collective test starting"), a command above may, and the
columns show it: see `waywiser.exchange.imports.nccl_collective`. What stays ambiguous is not
imported. A run ends at its average. Lines of NCCL's log may stand anywhere, also within the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from waywiser.exchange.imports import nccl
from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignGpu,
    ForeignSeries,
    Malformed,
    clipped,
    only_host,
    parse_each,
    parse_good,
)
from waywiser.exchange.imports.nccl_collective import (
    AMBIGUOUS,
    StatedCollective,
    collective_of,
)
from waywiser.exchange.imports.result_titles import NCCL
from waywiser.exchange.imports.text_runs import TextRun, mixed, of_format, text_runs, truncated
from waywiser.words import Unsupported, Value

TITLE = NCCL
"""How each run begins."""

_HEAD = re.compile(r"(?P<key>[A-Za-z][A-Za-z ]*?):?\s+(?P<value>[0-9]+)\b")
_DEVICE = re.compile(
    r"^#\s+Rank\s+(?P<rank>[0-9]{1,6})\s+(?:Group\s+(?P<group>[0-9]+)\s+)?Pid\s+(?P<pid>[0-9]+)\s+on\s+(?P<host>\S+)\s+"
    r"device\s+[0-9]+\s+\[(?P<pci>[^\]]*)\]\s*(?P<name>.*?)\s*$"
)
CUT = "..."
"""What the tool writes where it cuts a list."""
_COLUMNS = re.compile(r"^#\s+size\s+count\s+type\b(?P<rest>.*)$")
_ROW = re.compile(r"^\s*[0-9]{1,18}\s+[0-9]{1,18}\s+[a-z][a-z0-9_]*\s")
_BEGUN = re.compile(r"^(?:\s*[0-9.]{1,20}(?:\s+[^\sA-Za-z]|\s*$)|\s{2,}[0-9]{1,18}\b)")
"""A line that begins as a row of the table, damaged or not."""
_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*([0-9]{1,15})\b")
_ERROR = re.compile(r"\bTest (?:NCCL|CUDA|HIP) failure\b")
_NAMED = re.compile(
    r"^#\s*Collective test (?P<what>starting|concluded):\s*(?P<name>[a-z]+(?:_[a-z]+)*)_perf\b"
)
_AVERAGE = re.compile(r"^#\s*Avg bus bandwidth\b")
"""The last line of a run."""
_BLOCKING = re.compile(r"^#\s*Blocking Enabled")
_VERSION = re.compile(r"\bNCCL version\s+(\d[\w.+-]*)")

_TIME = {"time": "time", "cputime": "cpu_time"}
"""Columns that begin the figures of one placement -> keys of the JSON."""

WIDTHS = {
    "int8": 1, "char": 1, "uint8": 1, "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
    "half": 2, "float16": 2, "bfloat16": 2, "int32": 4, "int": 4, "uint32": 4, "float": 4,
    "float32": 4, "int64": 8, "uint64": 8, "double": 8, "float64": 8,
}  # fmt: skip
"""Bytes of an element of a type."""

_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\S*")
_MPI = "build nccl-tests with MPI=1, so that all processes are of one job"


class NcclRun(Value, frozen=True):
    """One run, as its lines say."""

    where: str
    collective: str
    config: dict[str, Any]
    gpus: tuple[ForeignGpu, ...]
    ranks: int
    groups: int
    """Communicators that its ranks form."""
    rows: tuple[dict[str, Any], ...]
    """In the keys of the JSON."""
    damaged: tuple[Unsupported, ...] = ()
    """Rows that cannot be read."""
    notes: tuple[str, ...] = ()
    settings: tuple[str, ...] | None = None


def read(text: str, where: str) -> list[ForeignFile]:
    """Each run of the text; damaged runs and rows are listed with the reason. Raises `Malformed` if
    no run has a good row."""
    lines = text.splitlines()
    runs = text_runs(text, TITLE, where, "# nThread", of_format("nccl"))
    files, errors = _parse_good(lines, runs, where)
    damaged = [Unsupported(f"run {runs.index(run) + 1} of nccl-tests (line {run.start + 1})",
                           error.what) for run, error in errors]  # fmt: skip
    known = files[0].unsupported_paths
    return [replace(files[0], unsupported_paths=(*known, *damaged)), *files[1:]]


def _parse_good(
    lines: Sequence[str], runs: Sequence[TextRun], where: str
) -> tuple[list[ForeignFile], list[tuple[TextRun, Malformed]]]:
    """As `parse_good`. If no run is good, one that has rows says why better than one that has
    none."""
    try:
        return parse_good(runs, lambda run: _file(_run(lines, run, where)))
    except Malformed:
        filled = [run for run in runs if any(map(_ROW.match, _own(lines, run)))]
        return parse_good(filled or runs, lambda run: _file(_run(lines, run, where)))


def _file(run: NcclRun) -> ForeignFile:
    measured: list[ForeignSeries] = []
    unsupported = list(run.damaged)
    collective = run.collective
    reason = nccl.why_not(collective, run.ranks, run.groups) if collective else AMBIGUOUS
    if reason:
        unsupported.append(Unsupported(collective or "a collective", reason))
    else:
        notes = (*nccl.notes_of(run.ranks, run.gpus), *run.notes)
        good, damaged = parse_each(
            run.rows,
            lambda row, place: list(
                nccl.measured_of(row, collective, run.ranks, run.config, place, notes)
            ),
            f"{run.where}: row",
        )
        measured += (replace(each, settings=run.settings).noted(*run.notes)
                     for each in chain.from_iterable(good))  # fmt: skip
        unsupported += damaged
    return ForeignFile(
        format="nccl",
        tool="nccl-tests",
        version=str(run.config.get("version", "")),
        hostname=only_host(run.gpus),
        gpus=run.gpus,
        environment={key: value for key, value in run.config.items() if key != "version"},
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported),
    )


def _own(lines: Sequence[str], run: TextRun) -> Sequence[str]:
    """The lines of a run up to its average. Lines of two jobs that are mixed have several."""
    last = max((n for n in range(run.start, run.end) if _AVERAGE.match(lines[n])), default=run.end)
    return lines[run.start : last + 1]


def _config(lines: Sequence[str], own: Sequence[str], run: TextRun) -> dict[str, Any]:
    """What the head of a run and its command say, by the names of the JSON form."""
    head = {match["key"].strip(): int(match["value"]) for match in _HEAD.finditer(lines[run.start])}
    config: dict[str, Any] = {_KEYS[key]: value for key, value in head.items() if key in _KEYS}
    waits = run.command.value_of("-z", "--blocking") if run.command else ""
    if any(map(_BLOCKING.match, own)) or waits not in ("", "0"):
        config["blocking_collectives"] = "true"
    average = run.command.value_of("-a", "--average") if run.command else ""
    if (statistic := nccl.STATISTICS.get(average, nccl.USUAL)) != nccl.USUAL:
        config["statistic"] = statistic
    return config


def _run(lines: Sequence[str], run: TextRun, where: str) -> NcclRun:
    if run.is_mixed:
        raise mixed(where, run, "two heads stand one below the other")
    own = _own(lines, run)
    config = _config(lines, own, run)
    before, command = lines[run.above : run.start], run.command
    place = f"{where}:{run.start + 1}"
    version = next(
        (found[1] for line in (*own, *before[::-1]) if (found := _VERSION.search(line))), ""
    )
    devices = list(_devices(own))
    gpus = tuple(_gpus(devices, place))
    rows, damaged = _rows(own, run.start, where)
    if not rows:
        raise truncated(where, run)
    ranks = nccl.ranks_of(config, gpus)
    _require_command(command, config, ranks, len(gpus), place)
    wrong_notes, failed = nccl.ended_badly(
        _wrong(own), [clipped(e) for e in own if _ERROR.search(e)]
    )
    named = collective_of(
        list(_stated(before, lines[run.start : run.end], command)), rows, ranks, place, where
    )
    is_unseen = command is None and _of_several(devices, config)
    return NcclRun(
        where=where,
        collective=named.name,
        config=config | ({"version": f"NCCL {version}"} if version else {}),
        gpus=gpus,
        ranks=ranks,
        groups=len({match["group"] for match in devices}),
        rows=tuple(rows),
        damaged=(*damaged, *failed),
        notes=(
            *wrong_notes,
            *((nccl.UNSEEN,) if is_unseen else ()),
            *((named.note,) if named.note else ()),
        ),
        settings=run.settings,
    )


def _stated(
    before: Sequence[str], own: Sequence[str], command: CommandLine | None
) -> Iterator[StatedCollective]:
    """What names the collective of a run: its command, and lines of the tool before and in it."""
    if command is not None:
        program = command.program.removesuffix("_mpi").removesuffix("_perf")
        yield StatedCollective(program, "its command")
    for lines, what in ((before, "starting"), (own, "concluded")):
        for line in lines:
            if (found := _NAMED.match(line)) and found["what"] == what:
                yield StatedCollective(found["name"], "the tool's line")


def _require_command(
    command: CommandLine | None, config: Mapping[str, Any], ranks: int, listed: int, where: str
) -> None:
    """Raises `Malformed` if the command is of another number of ranks than the table."""
    if command is None:
        return
    for names, key in _OF_HEAD.items():
        given = command.value_of(*names.split())
        if re.fullmatch(r"[0-9]{1,6}", given) and int(given) != config.get(key, int(given)):
            raise Malformed(
                f"its command has {names.split()[0]} {given}, and the table {config[key]}: one of "
                "them is not of this table",
                where=where,
            )
    if not command.launcher or not command.ranks or not listed:
        return
    expected = command.ranks * int(config.get("ngpus", 1)) * int(config.get("nthreads", 1))
    is_cut = listed < ranks or listed >= MOST_LISTED
    if expected != ranks and not (is_cut and expected > ranks):
        raise Malformed(
            f"its command starts {expected} ranks, and the table lists {ranks}", where=where,
            remedy=_MPI if expected > ranks else "keep the command of each table right above it",
        )  # fmt: skip


_OF_HEAD = {
    "-g --ngpus": "ngpus",
    "-t --nthreads": "nthreads",
    "-m --agg_iters": "aggregated_iterations",
    "-G --cudagraph": "graph",
}
"""Options whose value the first line of a table repeats -> its key."""


MOST_LISTED = 12
"""Devices of a list that the tool may have cut."""


_KEYS = {
    "nThread": "nthreads",
    "nThreads": "nthreads",
    "nGpus": "ngpus",
    "minBytes": "minimum_bytes",
    "maxBytes": "maximum_bytes",
    "iters": "iterations",
    "warmup iters": "warmup_iters",
    "warmupIters": "warmup_iters",
    "agg iters": "aggregated_iterations",
    "unalign": "unalign",
    "validation": "validation",
    "graph": "graph",
}
"""Words of the first line -> keys of the JSON's ``config``."""


def _wrong(lines: Sequence[str]) -> float:
    """The wrong values that the last lines of a run count; 0 if none do."""
    return max((float(found[1]) for line in lines if (found := _BOUNDS.match(line))), default=0.0)


def _of_several(devices: Iterable[re.Match[str]], config: Mapping[str, Any]) -> bool:
    """Whether ranks are in several threads or processes."""
    processes = {(match["host"], match["pid"]) for match in devices}
    return len(processes) > 1 or config.get("nthreads", 1) > 1


def _devices(lines: Sequence[str]) -> Iterator[re.Match[str]]:
    """The lines of devices. The tool cuts the list of each process at 2,048 characters, anywhere in
    a line: the list of the next process may go on in it."""
    for line in lines:
        *cut, last = re.split(r"(?=#\s+Rank\s)", line)
        for part in (*(f"{each}{CUT}" for each in cut), last):
            if match := _DEVICE.match(part):
                yield match


def _gpus(devices: Iterable[re.Match[str]], where: str) -> Iterator[ForeignGpu]:
    """The GPU of each rank. Raises `Malformed` for a rank that two jobs have."""
    seen: dict[int, re.Match[str]] = {}
    for match in devices:
        rank, name = int(match["rank"]), clipped(match["name"])
        other = seen.setdefault(rank, match)
        if other is not match:
            _require_same(rank, other, match, where)
            continue
        name = "" if name.endswith((CUT, "#")) else name
        pci = nccl.address_of(match["pci"])
        yield ForeignGpu(rank, name, pci, clipped(match["host"], 80))


def _require_same(rank: int, one: re.Match[str], other: re.Match[str], where: str) -> None:
    for key, what in (("host", "on"), ("pid", "in the processes"), ("pci", "at")):
        if one[key] != other[key]:
            ends = f"{clipped(one[key], 60)} and {clipped(other[key], 60)}"
            raise Malformed(
                f"rank {rank} is named {what} {ends}: two jobs printed into one text",
                where=where,
                remedy=_MPI,
            )


def _rows(
    lines: Sequence[str], start: int, where: str
) -> tuple[list[dict[str, Any]], list[Unsupported]]:
    """(the rows of the table, those that are damaged). Raises `Malformed` if none is good."""
    columns: list[str] = []
    found: list[tuple[list[str], str, int]] = []
    for n, line in enumerate(lines, start + 1):
        if match := _COLUMNS.match(line):
            columns = ["size", "count", "type", *match["rest"].split()]
            columns = [re.sub(r"^timestamp.*", "timestamp", each) for each in columns]
        elif _ROW.match(line) or (columns and _BEGUN.match(line)):
            found.append((columns, line, n))
    rows, errors = parse_good(found, lambda row: _row(row[0], row[1].split(), f"{where}:{row[2]}"))
    return rows, [Unsupported(f"line {row[2]}", error.what) for row, error in errors]


def _row(columns: Sequence[str], cells: Sequence[str], where: str) -> dict[str, Any]:
    """A row in the keys of the JSON: columns repeat, out of place first. Raises `Malformed`."""
    cells = _aligned(columns, cells)
    if len(cells) != len(columns):
        raise Malformed(
            f"the row has {len(cells)} columns and the head has {len(columns)}",
            where=where,
            remedy="copy the file again, or run the benchmark again",
        )
    if not _ROW.match(" ".join(cells)):
        raise Malformed("the row does not begin with a size, a count and a type", where=where)
    first = next((n for n, name in enumerate(columns) if name in _TIME), len(columns))
    row: dict[str, Any] = dict(zip(columns[:first], cells[:first], strict=True))
    row["size"] = int(row["size"])
    _require_count(row, where)
    groups = [n for n, name in enumerate(columns) if name in _TIME]
    for key, begin, end in zip(
        ("out_of_place", "in_place"), groups, [*groups[1:], len(columns)], strict=False
    ):
        row[key] = _result(dict(zip(columns[begin:end], cells[begin:end], strict=True)), where)
    return row


def _aligned(columns: Sequence[str], cells: Sequence[str]) -> list[str]:
    """The cells of a row one to a column: a time stamp has two words, and old versions leave the
    operator empty where nothing is reduced."""
    found = list(cells)
    if columns and columns[-1] == "timestamp" and _STAMP.fullmatch(" ".join(found[-2:])):
        found[-2:] = [" ".join(found[-2:])]
    at = columns.index("redop") if "redop" in columns else len(columns)
    if len(found) == len(columns) - 1 and at < len(found) and not found[at][:1].isalpha():
        found.insert(at, "none")
    return found


def _require_count(row: Mapping[str, Any], where: str) -> None:
    """Raises `Malformed` if the size is neither that of the elements, nor that of theirs at all
    ranks."""
    width, count = WIDTHS.get(row.get("type", "")), int(row.get("count", 0))
    if not width or not count or row["size"] % (width * count) == 0:
        return
    raise Malformed(
        f"its size, {row['size']}, is not that of {count} elements of {width} bytes", where=where
    )


def _result(cells: dict[str, str], where: str) -> dict[str, Any]:
    wrong = cells.get("#wrong", cells.get("error", "N/A"))
    try:
        return {key: float(cells[name]) for name, key in _TIME.items() if name in cells} | {
            "alg_bw": float(cells.get("algbw", "0")),
            "bus_bw": float(cells.get("busbw", "0")),
            "nwrong": None if wrong == "N/A" else float(wrong),
        }
    except ValueError:
        raise Malformed("a cell of the row is no number", where=where) from None
