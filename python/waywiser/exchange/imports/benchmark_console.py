"""What Google Benchmark prints on a console, as Comm|Scope does without ``--benchmark_out``.

Counters are rounded there (``bytes=1.04858M``): a size is the power of two that the name gives, or
the only one that rounds to the counter. Times have fewer digits than the JSON's; a note says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msgspec.structs import replace

from waywiser.exchange.imports.benchmark_name import split_aggregate
from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile
from waywiser.exchange.imports.google_benchmark import (
    SECONDS,
    UNTIMED,
    BenchmarkRow,
    gather,
    started,
)
from waywiser.exchange.imports.reading import clipped

TITLE = re.compile(r"^Benchmark {2,}Time {2,}CPU\b", re.MULTILINE)
"""The head of the table, which each run has."""

ROUNDED = "the console rounds times: write the JSON with --benchmark_out=FILE for all digits"

_DATE = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:]{8}\S*$")
_EXECUTABLE = re.compile(r"^Running (?P<executable>\S.*)$")
_NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
_ROW = re.compile(
    rf"^(?P<name>\S+)\s+(?P<time>{_NUMBER}|nan|inf)\s*(?P<unit>ns|us|ms|s)\s+"
    rf"(?P<cpu>-?{_NUMBER}|nan|inf)\s*(?:ns|us|ms|s)\s+(?P<iterations>[0-9]{{1,18}})(?P<counters>.*)$"
)

_FAILED = re.compile(r"^(?P<name>\S+)\s+(?:ERROR OCCURRED|SKIPPED): '(?P<reason>.*)'\s*$")
_COUNTER = re.compile(
    rf"(?P<key>[A-Za-z_][\w()%]*)=(?P<number>-?{_NUMBER})(?P<unit>[a-zA-Zµ]*)(?P<rate>/s)?(?=\s|$)"
)
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6,
           "n": 1e-9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip

CLOSE = 1e-4
"""How near a rounded counter is to the size that it means."""


def read(text: str, where: str) -> list[ForeignFile]:
    """Each run of the text: one for each head of a table. Raises `Malformed` for a run without
    rows."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if TITLE.match(line)]
    if not heads:
        raise Malformed("no head of a table: Benchmark  Time  CPU", where=where)
    starts = [0, *heads[1:]]
    return [
        _file(lines[max(0, above) : head], lines[head + 1 : end], f"{where}:{head + 1}")
        for above, head, end in zip(starts, heads, [*heads[1:], len(lines)], strict=True)
    ]


def _file(above: list[str], lines: list[str], where: str) -> ForeignFile:
    rows = list(_rows(lines, where))
    if not rows:
        raise Malformed("the table has no row", where=where, remedy="run the benchmark again")
    date = next((line.strip() for line in reversed(above) if _DATE.match(line.strip())), "")
    program = next((m["executable"] for line in above if (m := _EXECUTABLE.match(line))), "")
    measured, unsupported = gather(rows)
    return ForeignFile(
        format="google-benchmark",
        tool="Google Benchmark",
        date=date,
        started=started(date),
        environment={"executable": clipped(program)} if program else {},
        measured=tuple(replace(each, notes=(*each.notes, ROUNDED)) for each in measured),
        unsupported_paths=tuple(unsupported),
    )


def _rows(lines: list[str], where: str) -> Iterator[BenchmarkRow]:
    for line in lines:
        if match := _FAILED.match(line):
            name, aggregate = split_aggregate(clipped(match["name"]))
            reason = clipped(match["reason"]) or "it does not give the reason"
            yield BenchmarkRow(name, aggregate, math.nan, 0, {}, reason)
        elif match := _ROW.match(line):
            name, aggregate = split_aggregate(clipped(match["name"]))
            seconds = float(match["time"]) * SECONDS[match["unit"]]
            if aggregate in UNTIMED:
                spread = seconds if aggregate == "stddev" else math.nan
                yield BenchmarkRow(name, aggregate, spread, 0, {}, "")
            elif seconds > 0 and math.isfinite(seconds):
                count = max(1, int(match["iterations"]))
                yield BenchmarkRow(
                    name, aggregate, seconds, count, _counters(match["counters"]), ""
                )
            else:
                yield BenchmarkRow(name, aggregate, math.nan, 0, {}, "its time is 0, or no time")


def _counters(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for match in _COUNTER.finditer(text):
        scale = _SCALES.get(match["unit"])
        if scale is None:
            continue
        number = float(match["number"]) * scale
        if match["key"] != "bytes":
            found[match["key"]] = number
        elif (size := _size(number, rounded=scale != 1.0)) is not None:
            found["bytes"] = size
    return found


def _size(number: float, rounded: bool) -> float | None:
    """The size that a counter means: the power of two beside a rounded one; None if none is."""
    if not rounded:
        return number
    power = 2.0 ** round(math.log2(number)) if number > 0 else 0.0
    return power if abs(number - power) <= CLOSE * power else None
