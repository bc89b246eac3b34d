"""What nccl-tests and rccl-tests print: a head, the devices of all ranks, and a table of sizes.

The text names its collective only where newer versions say "Collective test starting", or where the
command stands above it; else the name of the file may, and else the columns: the ratio of bus and
algorithm bandwidth differs between most collectives. What stays ambiguous is not imported. Lines of
NCCL's log may stand anywhere, also within the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from waywiser.exchange.imports import nccl
from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, ForeignSeries, only_host
from waywiser.exchange.imports.reading import clipped
from waywiser.words import Value
from waywiser.words.records import Unsupported

TITLE = re.compile(r"^#[ \t]*nThreads?[ \t]+[0-9]+[ \t]+nGpus[ \t]+[0-9]+", re.MULTILINE)
"""How each run begins."""

_HEAD = re.compile(r"(?P<key>[A-Za-z][A-Za-z ]*?):?\s+(?P<value>[0-9]+)\b")
_DEVICE = re.compile(
    r"^#\s+Rank\s+(?P<rank>[0-9]{1,6})\s+(?:Group\s+[0-9]+\s+)?Pid\s+[0-9]+\s+on\s+(?P<host>\S+)\s+"
    r"device\s+[0-9]+\s+\[(?P<pci>[^\]]*)\]\s*(?P<name>.*?)\s*$"
)
_COLUMNS = re.compile(r"^#\s+size\s+count\s+type\b(?P<rest>.*)$")
_ROW = re.compile(r"^\s*[0-9]{1,18}\s+[0-9]{1,18}\s+[a-z][a-z0-9_]*\s")
_COLLECTIVE = re.compile(r"\b([a-z]+(?:_[a-z]+)*)_perf\b")
_VERSION = re.compile(r"\bNCCL version\s+(\d[\w.+-]*)")

LOOK_BACK = 40
"""Lines above a run in which its command may stand."""

_TIME = ("time", "cputime")

CLOSE = 0.02
"""Ratios of printed bandwidths of three digits agree this well."""


class NcclRun(Value, frozen=True):
    """One run, as its lines say."""

    where: str
    collective: str
    config: dict[str, Any]
    gpus: tuple[ForeignGpu, ...]
    rows: tuple[dict[str, Any], ...]
    """In the keys of the JSON."""


def read(text: str, where: str) -> list[ForeignFile]:
    """Each run of the text. Raises `Malformed` for a row with more or fewer columns than its head,
    and for a run without rows."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if TITLE.match(line)]
    if not starts:
        raise Malformed("no line that begins with # nThread", where=where)
    bounds = zip([0, *starts], starts, [*starts[1:], len(lines)], strict=False)
    return [_file(_run(lines, above, n, end, where)) for above, n, end in bounds]


def _file(run: NcclRun) -> ForeignFile:
    # the text lists every rank, where the JSON lists one for each process
    ranks = len(run.gpus) or nccl.ranks_of(run.config, (), 1)
    measured: list[ForeignSeries] = []
    unsupported: list[Unsupported] = []
    collective = run.collective or _collective_by_columns(run.rows, ranks)
    reason = nccl.why_not(collective, ranks) if collective else AMBIGUOUS
    if reason:
        unsupported.append(Unsupported(collective or "a collective", reason))
    else:
        notes = nccl.unnamed(ranks, run.gpus)
        for n, row in enumerate(run.rows):
            place = f"{run.where}: row {n + 1}"
            measured += nccl.measured_of(row, collective, ranks, run.config, place, notes)
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


def _run(lines: Sequence[str], above: int, start: int, end: int, where: str) -> NcclRun:
    head = {match["key"].strip(): int(match["value"]) for match in _HEAD.finditer(lines[start])}
    config: dict[str, Any] = {_KEYS[key]: value for key, value in head.items() if key in _KEYS}
    own, before = lines[start:end], lines[max(above, start - LOOK_BACK) : start]
    version = next(
        (found[1] for line in (*own, *before[::-1]) if (found := _VERSION.search(line))), ""
    )
    gpus = tuple(_gpus(own))
    rows = tuple(_rows(own, start, where))
    if not rows:
        raise Malformed(
            "the table has no row: it is truncated",
            where=f"{where}:{start + 1}",
            remedy="run the benchmark again",
        )
    collective = _named(before[::-1]) or _named(own) or _by_file(where)
    return NcclRun(where, collective, config | ({"version": f"NCCL {version}"} if version else {}),
                   gpus, rows)  # fmt: skip


_KEYS = {
    "nThread": "nthreads",
    "nThreads": "nthreads",
    "nGpus": "ngpus",
    "minBytes": "minimum_bytes",
    "maxBytes": "maximum_bytes",
    "iters": "iterations",
    "warmup iters": "warmup_iters",
    "agg iters": "aggregated_iterations",
    "unalign": "unalign",
    "validation": "validation",
    "graph": "graph",
}
"""Words of the first line -> keys of the JSON's ``config``."""


def _named(lines: Sequence[str]) -> str:
    for line in lines:
        if match := _COLLECTIVE.search(line):
            return match[1]
    return ""


def _by_file(where: str) -> str:
    """The collective whose name is in the file's name."""
    name = Path(where.partition(":")[0]).name.lower().replace("-", "_")
    flat = name.replace("_", "")
    known = (*nccl.COLLECTIVES, *nccl.REDUCTIONS[:3])
    found = [each for each in known if each.replace("_", "") in flat]
    return max(found, key=len, default="")


def _collective_by_columns(rows: Sequence[dict[str, Any]], ranks: int) -> str:
    """The only collective that prints such columns; empty if several do."""
    last = rows[-1]
    if last.get("redop", "none") not in ("none", ""):
        return "a reduction"
    result = last.get("out_of_place") or last.get("in_place") or {}
    ratio = result["bus_bw"] / result["alg_bw"] if result.get("alg_bw") else 0.0
    shared = abs(ratio - (ranks - 1) / ranks) < CLOSE
    if not shared and abs(ratio - 1) < CLOSE:
        return "broadcast" if int(last.get("root", "-1")) >= 0 else "sendrecv"
    return ""


def _gpus(lines: Sequence[str]) -> Iterator[ForeignGpu]:
    seen: set[int] = set()
    for line in lines:
        if match := _DEVICE.match(line):
            rank = int(match["rank"])
            if rank not in seen:
                seen.add(rank)
                pci = nccl.address_of(match["pci"])
                yield ForeignGpu(rank, clipped(match["name"]), pci, clipped(match["host"], 80))


def _rows(lines: Sequence[str], start: int, where: str) -> Iterator[dict[str, Any]]:
    columns: list[str] = []
    for n, line in enumerate(lines, start + 1):
        if match := _COLUMNS.match(line):
            columns = ["size", "count", "type", *match["rest"].split()]
        elif _ROW.match(line):
            cells = line.split()
            if not columns or len(cells) < len(columns):
                raise Malformed(
                    f"the row has {len(cells)} columns and the head has {len(columns)}",
                    where=f"{where}:{n}",
                    remedy="copy the file again, or run the benchmark again",
                )
            yield _row(columns, cells, f"{where}:{n}")


def _row(columns: Sequence[str], cells: Sequence[str], where: str) -> dict[str, Any]:
    """A row in the keys of the JSON: columns repeat, out of place first."""
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
        return {
            "time": float(cells[next(name for name in _TIME if name in cells)]),
            "alg_bw": float(cells.get("algbw", "0")),
            "bus_bw": float(cells.get("busbw", "0")),
            "nwrong": None if wrong == "N/A" else float(wrong),
        }
    except ValueError:
        raise Malformed("a cell of the row is no number", where=where) from None
