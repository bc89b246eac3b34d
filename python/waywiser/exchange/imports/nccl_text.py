"""What nccl-tests and rccl-tests print: a head, the devices of all ranks, and a table of sizes.

The text names its collective only where newer versions say "Collective test starting", or where the
command stands above it; else the name of the file may, and else the columns: the ratio of bus and
algorithm bandwidth differs between most collectives. What stays ambiguous is not imported. Lines of
NCCL's log may stand anywhere, also within the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from waywiser.exchange.imports import nccl
from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, ForeignSeries, only_host
from waywiser.exchange.imports.reading import clipped, parse_each, parse_good
from waywiser.exchange.imports.text_runs import TextRun, text_runs, truncated
from waywiser.words import Value
from waywiser.words.collective import bus_factor
from waywiser.words.records import Unsupported

TITLE = re.compile(r"^#[ \t]*nThreads?:?[ \t]+[0-9]+[ \t]+nGpus:?[ \t]+[0-9]+", re.MULTILINE)
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
_COLLECTIVE = re.compile(r"\b([a-z]+(?:_[a-z]+)*)_perf\b")
_STARTING = re.compile(r"^#\s*Collective test starting")
_BLOCKING = re.compile(r"^#\s*Blocking Enabled")
_VERSION = re.compile(r"\bNCCL version\s+(\d[\w.+-]*)")

LOOK_BACK = 40
"""Lines above a run in which its command may stand."""

_TIME = {"time": "time", "cputime": "cpu_time"}
"""Columns that begin the figures of one placement -> keys of the JSON."""

SUMS = ("all_reduce", "reduce_scatter", "reduce")
"""Collectives that name how they reduce."""

CLOSE = 0.02
"""Ratios of printed bandwidths of three digits agree this well."""


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


def read(text: str, where: str) -> list[ForeignFile]:
    """Each run of the text; damaged runs and rows are listed with the reason. Raises `Malformed` if
    no run has a good row."""
    lines = text.splitlines()
    runs = text_runs(lines, TITLE, where, "# nThread")
    files, errors = parse_good(runs, lambda run: _file(_run(lines, run, where)))
    damaged = [Unsupported(f"run {runs.index(run) + 1} of nccl-tests (line {run.start + 1})",
                           error.what) for run, error in errors]  # fmt: skip
    known = files[0].unsupported_paths
    return [replace(files[0], unsupported_paths=(*known, *damaged)), *files[1:]]


def _file(run: NcclRun) -> ForeignFile:
    measured: list[ForeignSeries] = []
    unsupported = list(run.damaged)
    collective = run.collective or _collective_by_columns(run.rows, run.ranks)
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
        measured += chain.from_iterable(good)
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


AMBIGUOUS = (
    "the text does not name its collective and several would print such columns: name the file "
    "after it (all_gather.txt), or write nccl-tests -J FILE"
)


def _run(lines: Sequence[str], run: TextRun, where: str) -> NcclRun:
    head = {match["key"].strip(): int(match["value"]) for match in _HEAD.finditer(lines[run.start])}
    config: dict[str, Any] = {_KEYS[key]: value for key, value in head.items() if key in _KEYS}
    own = lines[run.start : run.end]
    if any(map(_BLOCKING.match, own)):
        config["blocking_collectives"] = "true"
    before = lines[max(run.above, run.start - LOOK_BACK) : run.start]
    command = _command(before)
    if (statistic := nccl.statistic_of(command)) != nccl.USUAL:
        config["statistic"] = statistic
    version = next(
        (found[1] for line in (*own, *before[::-1]) if (found := _VERSION.search(line))), ""
    )
    devices = list(_devices(own))
    gpus = tuple(_gpus(devices))
    rows, damaged = _rows(own, run.start, where)
    if not rows:
        raise truncated(where, run)
    wrong_notes, failed = nccl.ended_badly(
        _wrong(own), [clipped(e) for e in own if _ERROR.search(e)]
    )
    return NcclRun(
        where=where,
        collective=_named(before[::-1]) or _named(own) or _by_file(where),
        config=config | ({"version": f"NCCL {version}"} if version else {}),
        gpus=gpus,
        ranks=nccl.ranks_of(config, gpus),
        groups=len({match["group"] for match in devices}),
        rows=tuple(rows),
        damaged=(*damaged, *failed),
        notes=(
            *wrong_notes,
            *(() if command or not _of_several(devices, config) else (nccl.UNSEEN,)),
        ),
    )


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


def _command(lines: Sequence[str]) -> str:
    """The last command of nccl-tests, with the lines that continue it; empty if there is none."""
    found = ""
    for n, line in enumerate(lines):
        if _COLLECTIVE.search(line) and not _STARTING.match(line):
            end = n
            while lines[end].rstrip().endswith("\\") and end + 1 < len(lines):
                end += 1
            found = " ".join(each.rstrip().rstrip("\\") for each in lines[n : end + 1])
    return found


def _of_several(devices: Iterable[re.Match[str]], config: Mapping[str, Any]) -> bool:
    """Whether ranks are in several threads or processes."""
    processes = {(match["host"], match["pid"]) for match in devices}
    return len(processes) > 1 or config.get("nthreads", 1) > 1


def _named(lines: Sequence[str]) -> str:
    for line in lines:
        if match := _COLLECTIVE.search(line):
            return match[1]
    return ""


def _by_file(where: str) -> str:
    """The collective whose name is in the file's name."""
    name = Path(where.partition(":")[0]).name.lower().replace("-", "_")
    flat = name.replace("_", "")
    known = (*nccl.COLLECTIVES, nccl.RING)
    found = [each for each in known if each.replace("_", "") in flat]
    return max(found, key=len, default="")


def _collective_by_columns(rows: Sequence[dict[str, Any]], ranks: int) -> str:
    """The only collective that prints such columns; empty if several do."""
    last = rows[-1]
    result = last.get("out_of_place") or last.get("in_place") or {}
    ratio = result["bus_bw"] / result["alg_bw"] if result.get("alg_bw") else 0.0
    sums = last.get("redop", "none") not in ("none", "")
    rooted = int(last["root"]) >= 0 if "root" in last else None
    known = {name: bus_factor(word, ranks) for name, word in nccl.COLLECTIVES.items()}
    found = [
        name
        for name, factor in (known | {nccl.RING: 1.0}).items()
        if abs(ratio - factor) < CLOSE
        and sums == (name in SUMS)
        and rooted in (None, name in nccl.ROOTED)
    ]
    if rooted is None and found == ["broadcast", nccl.RING]:
        return nccl.RING  # versions without the column had no root to choose
    return found[0] if len(found) == 1 else ""


def _devices(lines: Sequence[str]) -> Iterator[re.Match[str]]:
    """The lines of devices. The tool cuts the list of each process at 2,048 characters, anywhere in
    a line: the list of the next process may go on in it."""
    for line in lines:
        *cut, last = re.split(r"(?=#\s+Rank\s)", line)
        for part in (*(f"{each}{CUT}" for each in cut), last):
            if match := _DEVICE.match(part):
                yield match


def _gpus(devices: Iterable[re.Match[str]]) -> Iterator[ForeignGpu]:
    seen: set[int] = set()
    for match in devices:
        rank, name = int(match["rank"]), clipped(match["name"])
        if rank not in seen:
            seen.add(rank)
            name = "" if name.endswith((CUT, "#")) else name
            pci = nccl.address_of(match["pci"])
            yield ForeignGpu(rank, name, pci, clipped(match["host"], 80))


def _rows(
    lines: Sequence[str], start: int, where: str
) -> tuple[list[dict[str, Any]], list[Unsupported]]:
    """(the rows of the table, those that are damaged). Raises `Malformed` if none is good."""
    columns: list[str] = []
    found: list[tuple[list[str], str, int]] = []
    for n, line in enumerate(lines, start + 1):
        if match := _COLUMNS.match(line):
            columns = ["size", "count", "type", *match["rest"].split()]
        elif _ROW.match(line) or (columns and _BEGUN.match(line)):
            found.append((columns, line, n))
    rows, errors = parse_good(found, lambda row: _row(row[0], row[1].split(), f"{where}:{row[2]}"))
    return rows, [Unsupported(f"line {row[2]}", error.what) for row, error in errors]


def _row(columns: Sequence[str], cells: Sequence[str], where: str) -> dict[str, Any]:
    """A row in the keys of the JSON: columns repeat, out of place first. Raises `Malformed`."""
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
    groups = [n for n, name in enumerate(columns) if name in _TIME]
    for key, begin, end in zip(
        ("out_of_place", "in_place"), groups, [*groups[1:], len(columns)], strict=False
    ):
        row[key] = _result(dict(zip(columns[begin:end], cells[begin:end], strict=True)), where)
    return row


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
