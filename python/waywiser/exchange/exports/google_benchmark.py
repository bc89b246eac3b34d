"""A profile as Google Benchmark's JSON, for plots and scripts that others wrote for Comm|Scope.

Every sample that counts is a repetition: ``real_time`` in nanoseconds, ``iterations`` executions
batched into it, ``bytes_per_second`` over all transfers, ``bytes`` of one. A row with ``run_type``
``aggregate`` and the suffix ``_median`` has what `show` shows; of results that were imported as
another tool's summary there is only that. Names are Comm|Scope's where it has the benchmark, and
``label`` has the workload's text, ``block`` its block: with these ``import`` finds the same series
again. There is no ``cpu_time``, which was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from waywiser.exchange.exports.json_lines import write_lines
from waywiser.exchange.imports.commscope_names import counters_of, name_of
from waywiser.profile import Estimate, Profile
from waywiser.profile.block import counted
from waywiser.profile.estimate import estimate
from waywiser.version import __version__
from waywiser.words import SUMMARY, Series, Visit, Workload, json_text

NANO = 1e9


def write_benchmark(profile: Profile, stream: TextIO) -> None:
    """One series in memory at a time, a row on a line of its own each."""
    rows = (
        json_text({**row, "family_index": family})
        for family, series in enumerate(profile.iter_series())
        for row in _rows(series)
    )
    stream.write(f'{{"context": {json_text(_context(profile))},\n"benchmarks": [')
    write_lines(stream, rows)
    stream.write("\n]}\n")


def _context(profile: Profile) -> dict[str, Any]:
    machine = profile.machine
    cpus = sum(package.cpus for package in machine.packages)
    return {
        "date": profile.created,
        "host_name": machine.hostname,
        "executable": "waywiser",
        "num_cpus": cpus,
        "waywiser": __version__,
    }


def _rows(series: Series) -> Iterator[dict[str, Any]]:
    found = estimate(series)
    total = found.count if found is not None else 0
    index = 0
    for visit in series.visits:
        head = _head(series.workload, visit)
        if not len(visit.samples):
            if visit.failure is not None and visit.stop != "skipped":
                error = {"error_occurred": True, "error_message": visit.failure.reason}
                yield {**head, "run_type": "iteration", "repetitions": total, **error}
            continue
        for n in counted(visit.samples):
            if visit.samples.flags and visit.samples.flags[n] & SUMMARY:
                continue
            batch = visit.samples.repetitions[n] if visit.samples.repetitions else 1
            yield {
                **head,
                "run_type": "iteration",
                "repetitions": total,
                "repetition_index": index,
                "threads": 1,
                "iterations": batch,
                **_time(series.workload, visit.samples.span[n]),
            }
            index += 1
    if found is not None:
        yield from _medians(series, found)


def _medians(series: Series, found: Estimate) -> Iterator[dict[str, Any]]:
    """A row for the median of the series; of summaries one for each block, which is all there
    is."""
    visits = {visit.block: visit for visit in series.visits}
    blocks = [(block.block, block.median) for block in found.blocks if block.summary]
    for number, middle in blocks or [(found.blocks[0].block, found.median)]:
        head = _head(series.workload, visits[number])
        yield {
            **head,
            "name": f"{head['run_name']}_median",
            "run_type": "aggregate",
            "aggregate_name": "median",
            "aggregate_unit": "time",
            "repetitions": found.count,
            "threads": 1,
            "iterations": found.count,
            **_time(series.workload, middle),
        }


def _head(workload: Workload, visit: Visit) -> dict[str, Any]:
    name = name_of(workload)
    return {
        "name": name,
        "run_name": name,
        **counters_of(workload),
        "block": visit.block,
        "mode": visit.mode,
        "label": str(workload),
    }


def _time(workload: Workload, seconds: float) -> dict[str, Any]:
    known: dict[str, Any] = {"real_time": seconds * NANO, "time_unit": "ns"}
    if workload.bytes and seconds > 0:
        known["bytes_per_second"] = workload.bytes / seconds
    return known
