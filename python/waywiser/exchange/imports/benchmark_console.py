"""What Google Benchmark prints on a console, as Comm|Scope does without ``--benchmark_out``.

Counters are rounded there (``bytes=1.04858M``): a size is the power of two that the name gives, or
the only one that rounds to the counter. Times have fewer digits than the JSON's; a note says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from waywiser.exchange.imports.benchmark_ids import MOST_EXPONENT
from waywiser.exchange.imports.benchmark_name import split_aggregate
from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed, clipped
from waywiser.exchange.imports.google_benchmark import (
    SECONDS,
    UNTIMED,
    BenchmarkRow,
    gather,
    started,
)
from waywiser.words import Unsupported

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

_BEGUN = re.compile(r"^(?:Comm_\w*|[A-Za-z_][\w<>:]*/\S*)(?:\s|$)")
"""A line that begins as a row, damaged or not."""
_FAILED = re.compile(r"^(?P<name>\S+)\s+(?:ERROR OCCURRED|SKIPPED): '(?P<reason>.*)'\s*$")
_COUNTER = re.compile(
    rf"(?P<key>[A-Za-z_][\w()%]*)=(?P<number>-?{_NUMBER})(?P<unit>[a-zA-Zµ]*)(?P<rate>/s)?(?=\s|$)"
)
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6,
           "n": 1e-9, "ki": 2.0**10,
           "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip

_EXPONENT = re.compile(r"log2\(N\):([0-9]{1,3})(?=/|$)")

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
    rows, damaged = list(_rows(lines, where)), list(_damaged(lines, where))
    if not rows:
        what = damaged[0].reason if damaged else "the table has no row"
        raise Malformed(what, where=where, remedy="run the benchmark again")
    date = next((line.strip() for line in reversed(above) if _DATE.match(line.strip())), "")
    program = next((m["executable"] for line in above if (m := _EXECUTABLE.match(line))), "")
    measured, unsupported = gather(rows)
    return ForeignFile(
        format="google-benchmark",
        tool="Google Benchmark",
        date=date,
        started=started(date),
        environment={"executable": clipped(program)} if program else {},
        measured=tuple(each.noted(ROUNDED) for each in measured),
        unsupported_paths=(*unsupported, *damaged),
    )


def _damaged(lines: list[str], where: str) -> Iterator[Unsupported]:
    """Lines that begin as rows and cannot be read, or were cut off."""
    for n, line in enumerate(lines, int(where.rpartition(":")[2]) + 1):
        if not _BEGUN.match(line) or _FAILED.match(line):
            continue
        match = _ROW.match(line)
        if match is None:
            yield Unsupported(f"line {n}", f"its row cannot be read: {clipped(line, 80)}")
        elif not _is_whole(match):
            yield Unsupported(f"line {n}", f"its counter contradicts its name: {clipped(line, 80)}")


def _is_whole(row: re.Match[str]) -> bool:
    """Whether the bytes that a row counts are at least those of its name: a counter that is cut
    off has lost digits or its unit."""
    exponent = _EXPONENT.search(row["name"])
    size = _counters(row["counters"]).get("bytes", 0.0)
    return not exponent or not size or size >= 2.0 ** min(int(exponent[1]), MOST_EXPONENT)


def _rows(lines: list[str], where: str) -> Iterator[BenchmarkRow]:
    for line in lines:
        if match := _FAILED.match(line):
            name, aggregate = split_aggregate(clipped(match["name"]))
            reason = clipped(match["reason"]) or "it does not give the reason"
            yield BenchmarkRow(name, aggregate, math.nan, 0, {}, reason)
        elif (match := _ROW.match(line)) and _is_whole(match):
            name, aggregate = split_aggregate(clipped(match["name"]))
            seconds = float(match["time"]) * SECONDS[match["unit"]]
            if aggregate in UNTIMED:
                spread = seconds if aggregate == "stddev" else math.nan
                yield BenchmarkRow(name, aggregate, spread, 0, {}, "")
            elif seconds > 0 and math.isfinite(seconds):
                count = max(1, int(match["iterations"]))
                counters = _counters(match["counters"])
                rate = _rate(match["counters"], counters.get("bytes", 0.0) / seconds)
                yield BenchmarkRow(name, aggregate, seconds, count, counters, "", rate=rate)
            else:
                yield BenchmarkRow(name, aggregate, math.nan, 0, {}, "its time is 0, or no time")


def _rate(text: str, expected: float) -> float:
    """Bytes per second as a row states them: versions mean by ``G/s`` 10^9 or 2^30 of them, so that
    which is nearer to the ``expected`` ones counts. 0 if it states none."""
    for match in _COUNTER.finditer(text):
        if match["key"] == "bytes_per_second" and match["unit"] in _SCALES:
            scales = {_SCALES[match["unit"]], _SCALES.get(f"{match['unit']}i", 0.0) or 1.0}
            rates = [float(match["number"]) * scale for scale in scales]
            return min(rates, key=lambda rate: abs(rate - expected))
    return 0.0


def _counters(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for match in _COUNTER.finditer(text):
        scale = _SCALES.get(match["unit"])
        if scale is None:
            continue
        number = float(match["number"]) * scale
        if match["key"] == "bytes_per_second":
            continue
        if match["key"] != "bytes":
            found[match["key"]] = number
        elif (size := _size(number, rounded=scale != 1.0)) is not None:
            found["bytes"] = size
    return found


def _size(number: float, rounded: bool) -> float | None:
    """The size that a counter means: the power of two beside a rounded one; None if none is."""
    if not math.isfinite(number):
        return None
    if not rounded:
        return number
    power = 2.0 ** round(math.log2(number)) if number > 0 else 0.0
    return power if abs(number - power) <= CLOSE * power else None
