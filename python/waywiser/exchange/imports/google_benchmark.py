"""Google Benchmark's results, JSON or CSV: rows of repetitions, grouped into sets.

A repetition is a sample: ``real_time`` per iteration, as many executions batched into it as it had
iterations. Rows that sum up repetitions (``_mean``, ``_median``, ``_cv``, which may be bare NaN)
are left out where the repetitions are there; where they are not, the median, or else the mean, is
one sample that is marked as the summary of another tool, with its standard deviation. What
the benchmarks mean is defined in `waywiser.exchange.imports.commscope`.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from waywiser.exchange.imports.benchmark_ids import NoCounterpart
from waywiser.exchange.imports.benchmark_name import parse_name, split_aggregate
from waywiser.exchange.imports.commscope import counterpart
from waywiser.exchange.imports.commscope_makers import Counterpart
from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignSeries,
    Malformed,
    clipped,
    list_of,
    number_of,
    object_of,
    parse_each,
    plain,
    text_of,
)
from waywiser.exchange.imports.walk_slope import walk_of
from waywiser.words import (
    SUMMARY,
    Failure,
    Operation,
    Samples,
    TimingMode,
    Unsupported,
    WordError,
    Workload,
)

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""Units of time."""

UNTIMED = ("cv", "stddev", "BigO", "RMS")
"""Aggregates that are no time of the benchmark."""

LIMIT_LABEL = 100_000
"""Characters of the longest workload's text."""

LEAST_SECONDS = 1e-15
MOST_SECONDS = 1e9

CONTEXT = ("executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "aslr_enabled", "caches",
           "load_avg", "library_version", "library_build_type", "json_schema_version")  # fmt: skip
"""What is kept of how it was run."""

_OWN_KEYS = frozenset(
    ("family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads",
     "iterations", "real_time", "cpu_time", "bytes_per_second", "items_per_second")
)  # fmt: skip
"""Numbers of a row that are no counters of the benchmark."""


USUAL_UNIT = "ns"
UNIT_ASSUMED = "the file states no time_unit: its times are read as ns, the unit of the library"


class BenchmarkRow(NamedTuple):
    """One line of a result."""

    name: str
    """The name without the aggregate's suffix."""
    aggregate: str
    """``median``; empty for a repetition."""
    seconds: float
    """Seconds of one iteration, or their standard deviation; NaN if the benchmark failed."""
    iterations: int
    counters: dict[str, float]
    error: str
    """What it says that went wrong; empty if nothing did."""
    label: str = ""
    """The workload's text in a file that was exported here."""
    mode: TimingMode = "host"
    """Who timed, in such a file."""
    rate: float = 0.0
    """Bytes per second that the row states; 0 if it states none."""
    states_unit: bool = True
    """Whether it says in which unit its time is."""


def read_json(value: Any, where: str) -> ForeignFile:
    """Raises `Malformed` if a row is not as the format has it."""
    top = object_of(value, where)
    context = object_of(top.get("context", {}), f"{where}: context")
    entries = list_of(top.get("benchmarks"), f"{where}: benchmarks")
    rows, damaged = parse_each(entries, _json_row, f"{where}: benchmarks")
    date = text_of(context.get("date", ""), f"{where}: context.date")
    measured, unsupported_paths = gather(rows, ours="waywiser" in context)
    return ForeignFile(
        format="google-benchmark",
        tool="Google Benchmark",
        version=text_of(context.get("library_version", ""), f"{where}: context.library_version"),
        date=date,
        started=started(date),
        hostname=text_of(context.get("host_name", ""), f"{where}: context.host_name"),
        runtime="hip" if any("hip" in each.family.lower() for each in measured) else "",
        environment=plain(context, CONTEXT),
        measured=tuple(measured),
        unsupported_paths=(*unsupported_paths, *damaged),
    )


CSV_TITLE = re.compile(r"^name,iterations,", re.MULTILINE)
"""How a text shows that it is CSV of Google Benchmark."""


def read_csv(text: str, where: str) -> list[ForeignFile]:
    """As `read_json`; lines around the table, which some shells mix in, are passed over, and each
    table is a run."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if CSV_TITLE.match(line)]
    if not heads:
        raise Malformed("no header that begins with name,iterations", where=where)
    return [
        _csv_table(lines, head, end, where)
        for head, end in zip(heads, [*heads[1:], len(lines)], strict=True)
    ]


def _csv_table(lines: Sequence[str], first: int, end: int, where: str) -> ForeignFile:
    last = max(n for n in range(first, end) if "," in lines[n])
    reader = csv.reader(io.StringIO("\n".join(lines[first : last + 1])), strict=True)
    rows: list[BenchmarkRow] = []
    try:
        header = next(reader)
        for values in reader:
            if values:
                place = f"{where}:{first + reader.line_num}"
                rows.append(_csv_row(header, values, place))
    except csv.Error as error:
        place = f"{where}:{first + reader.line_num}"
        raise Malformed(f"is not CSV: {error}", where=place) from error
    measured, unsupported_paths = gather(rows)
    return ForeignFile(
        format="google-benchmark-csv",
        tool="Google Benchmark",
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported_paths),
    )


def started(date: str) -> str:
    """A date as Google Benchmark writes it, as ISO 8601: in UTC where it has a time zone. Empty
    for any other text."""
    try:
        moment = datetime.fromisoformat(date)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return ""
    return moment.isoformat(timespec="seconds")


def _json_row(value: Any, where: str) -> BenchmarkRow:
    entry = object_of(value, where)
    name = text_of(entry.get("name"), f"{where}.name")
    plain_name, aggregate = split_aggregate(name)
    if entry.get("run_type") == "iteration":
        plain_name, aggregate = name, ""
    if entry.get("run_type") == "aggregate":
        plain_name = text_of(entry.get("run_name", plain_name), f"{where}.run_name")
        aggregate = text_of(entry.get("aggregate_name", aggregate), f"{where}.aggregate_name")
    error = _error(entry, where)
    counters = {
        key: float(number)
        for key, number in entry.items()
        if key not in _OWN_KEYS and _is_number(number)
    }
    label = clipped(entry["label"], LIMIT_LABEL) if isinstance(entry.get("label"), str) else ""
    mode: TimingMode = "device" if entry.get("mode") == "device" else "host"
    if error or aggregate in UNTIMED:
        spread = _spread(aggregate, entry.get("real_time"), entry.get("time_unit", USUAL_UNIT))
        return BenchmarkRow(plain_name, aggregate, spread, 0, counters, error, label, mode)
    unit = text_of(entry.get("time_unit", USUAL_UNIT), f"{where}.time_unit")
    if unit not in SECONDS:
        raise Malformed(f"{unit!r} is not a unit of time", where=f"{where}.time_unit")
    return BenchmarkRow(
        plain_name,
        aggregate,
        _seconds(number_of(entry.get("real_time"), f"{where}.real_time"), unit, where),
        _iterations(number_of(entry.get("iterations", 1), f"{where}.iterations"), where),
        counters,
        "",
        label,
        mode,
        _rate(entry.get("bytes_per_second")),
        "time_unit" in entry,
    )


def _spread(aggregate: str, value: Any, unit: Any) -> float:
    """Seconds that a row of a standard deviation gives; NaN if it gives none."""
    if aggregate != "stddev" or not _is_number(value) or not isinstance(unit, str):
        return math.nan
    return abs(float(value)) * SECONDS.get(unit, math.nan)


def _rate(value: Any) -> float:
    return float(value) if _is_number(value) and value > 0 else 0.0


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**63  # False for NaN, and no overflow for the rest


def _error(entry: dict[str, Any], where: str) -> str:
    for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
        if entry.get(flag) is True:
            return text_of(entry.get(message, ""), f"{where}.{message}") or (
                "it does not give the reason"
            )
    return ""


def _csv_row(header: Sequence[str], values: Sequence[str], where: str) -> BenchmarkRow:
    if len(values) != len(header):
        raise Malformed(f"{len(values)} columns, and the header has {len(header)}", where=where)
    cells = dict(zip(header, values, strict=True))
    name, aggregate = split_aggregate(clipped(cells["name"]))
    if cells.get("error_occurred", "") == "true":
        return BenchmarkRow(
            name, aggregate, math.nan, 0, {}, clipped(cells.get("error_message", "")) or "?"
        )
    if aggregate in UNTIMED:
        spread = _spread(
            aggregate, _float(cells.get("real_time", "")), cells.get("time_unit", USUAL_UNIT)
        )
        return BenchmarkRow(name, aggregate, spread, 0, {}, "")
    unit = cells.get("time_unit", USUAL_UNIT)
    if unit not in SECONDS:
        raise Malformed(f"{clipped(unit, 40)!r} is not a unit of time", where=where)
    counters = {
        key: number
        for key, cell in cells.items()
        if key not in _OWN_KEYS and (number := _float(cell)) is not None
    }
    time, count = _float(cells.get("real_time", "")), _float(cells.get("iterations", "1"))
    if time is None or count is None:
        raise Malformed("real_time and iterations are not both numbers", where=where)
    return BenchmarkRow(
        name,
        aggregate,
        _seconds(time, unit, where),
        _iterations(count, where),
        counters,
        "",
        rate=_rate(_float(cells.get("bytes_per_second", ""))),
        states_unit="time_unit" in cells,
    )


def _float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds(time: float, unit: str, where: str) -> float:
    seconds = time * SECONDS[unit]
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise Malformed(f"a time of {time:g} {unit}", where=f"{where}.real_time")
    return seconds


def _iterations(count: float, where: str) -> int:
    if not 1 <= count < 2**53 or count != int(count):
        raise Malformed(f"{count:g} iterations", where=f"{where}.iterations")
    return int(count)


def gather(
    rows: Iterable[BenchmarkRow], ours: bool = False
) -> tuple[list[ForeignSeries], list[Unsupported]]:
    """Rows of one name, however far apart, are one set of repetitions; in a file that was exported
    here, those of one block."""
    sets: dict[tuple[str, float], list[BenchmarkRow]] = {}
    for row in rows:
        block = row.counters.get("block", 0.0) if ours else 0.0
        sets.setdefault((row.name, block), []).append(row)
    measured: list[ForeignSeries] = []
    unsupported_paths: dict[str, Unsupported] = {}
    walks: dict[str, list[tuple[ForeignSeries, int]]] = {}
    for (name, _), group in sets.items():
        parsed = parse_name(name)
        try:
            counters = next((row.counters for row in group if row.counters), {})
            found = labelled(group[0]) if ours else counterpart(parsed, counters)
        except NoCounterpart as reason:
            unsupported_paths.setdefault(parsed.family, Unsupported(parsed.family, str(reason)))
            continue
        one = _measured(name, parsed.family, found, group)
        if found.steps and one.failure is None:
            walks.setdefault(str(found.workload), []).append((one, found.steps))
        else:
            measured.append(one)
    for group_of_walks in walks.values():
        walked = walk_of(group_of_walks)
        if isinstance(walked, Unsupported):
            unsupported_paths.setdefault(walked.path, walked)
        else:
            measured.append(walked)
    return measured, list(unsupported_paths.values())


def labelled(row: BenchmarkRow) -> Counterpart:
    """The counterpart that the label of a row names that was exported here. Raises
    `NoCounterpart`."""
    try:
        if "->" in row.label:
            return Counterpart(Workload.parse(row.label), row.mode)
        return Counterpart(Workload(operation=Operation.parse(row.label)), row.mode)
    except WordError as error:
        raise NoCounterpart(f"its label is not a workload: {error}") from None


def _measured(
    name: str, family: str, found: Counterpart, rows: Sequence[BenchmarkRow]
) -> ForeignSeries:
    known = ForeignSeries(name, family, found.workload, found.mode, notes=found.notes)
    good = [row for row in rows if not row.aggregate and not row.error]
    flag, deviation = 0, 0.0
    if not good:
        good, flag = list(_summary(rows)), SUMMARY
        deviation = _deviation(rows)
    error = next((row.error for row in rows if row.error), "")
    if not good:
        reason = error or "it has neither repetitions nor their mean or median"
        return replace(known, failure=Failure("foreign", reason))
    if error:
        failed = sum(bool(row.error) for row in rows)
        known = known.noted(f"{failed} of {len(rows)} repetitions failed: {error}")
    assumed = () if all(row.states_unit for row in good) else (UNIT_ASSUMED,)
    known = known.noted(*_other_rates(known.workload, good), *assumed)
    one = len(known.workload.transfers) == 1
    samples = Samples(
        span=tuple(row.seconds for row in good),
        repetitions=tuple(row.iterations for row in good),
        flags=(flag,) * len(good),
        transfers=tuple((row.seconds,) for row in good) if one else (),
    )
    return replace(known, samples=samples, deviation=deviation)


CLOSE_RATE = 0.02
"""How far a stated rate may be from bytes over time: rounding of both."""


def _other_rates(workload: Workload, rows: Sequence[BenchmarkRow]) -> Iterator[str]:
    """A note if rows state a bandwidth that is not their bytes over their time. Google Benchmark
    divides by the time of the CPU unless a program asks for the wall clock, and programs count
    bytes as they like; the time is what was measured."""
    total = sum(transfer.bytes for transfer in workload.transfers)
    for row in rows:
        rate = total / row.seconds
        if total and row.rate and abs(row.rate / rate - 1) > CLOSE_RATE:
            yield (
                f"bytes_per_second says {row.rate / 1e9:.4g} GB/s, and bytes over real_time are "
                f"{rate / 1e9:.4g} GB/s: real_time is kept, since it is what was measured"
            )
            return


def _deviation(rows: Sequence[BenchmarkRow]) -> float:
    """The deviation of the repetitions, relative to their mean; 0 if they are summed up without
    it."""
    mean = next((r.seconds for r in rows if r.aggregate in ("mean", "median") and not r.error), 0.0)
    deviation = next((r.seconds for r in rows if r.aggregate == "stddev" and not r.error), 0.0)
    return deviation / mean if mean > 0 and deviation > 0 else 0.0


def _summary(rows: Sequence[BenchmarkRow]) -> Iterator[BenchmarkRow]:
    for aggregate in ("median", "mean"):
        for row in rows:
            if row.aggregate == aggregate and not row.error:
                yield row._replace(iterations=1)
                return
