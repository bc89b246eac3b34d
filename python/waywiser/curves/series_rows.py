"""The series of a profile as rows with the columns that CSV, Parquet, JSON and Python tables
share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from waywiser.curves.curve import Point
from waywiser.machine import Machine
from waywiser.profile import SeriesFrame, worst_stop
from waywiser.profile.sample_rows import ends, joined
from waywiser.stats import Interval
from waywiser.words import format_settings

MEASURED_TYPES: dict[str, type] = {
    "gb_per_s": float,
    "gb_per_s_low": float,
    "gb_per_s_high": float,
    "seconds": float,
    "seconds_low": float,
    "seconds_high": float,
    "samples": int,
    "processes": int,
    "percent_of_bound": float,
}
"""The type of each column of figures."""

SERIES_TYPES: dict[str, type] = {
    "path": str,
    "source": str,
    "destination": str,
    "executor": str,
    "settings": str,
    "layout": str,
    "bytes": int,
    **MEASURED_TYPES,
    "cache": str,
    "stop": str,
    "not_measured": str,
    "curve": str,
    "workload": str,
    "identity": str,
    "simulated": bool,
}
"""The type of each column. New ones are added at the end. ``settings`` and ``layout`` are empty for
the default settings and for contiguous bytes. ``not_measured`` is the reason why a series has no
time. ``curve``, ``workload`` and ``identity`` are those of the samples. ``simulated`` says that the
machine of the profile is simulated, so that nothing was measured."""


def series_rows(
    points: Iterable[Point], frame: SeriesFrame, machine: Machine
) -> Iterator[tuple[Any, ...]]:
    """One per point, with the columns of `SERIES_TYPES`; None for what is not known. ``frame`` and
    ``machine`` are those of the profile."""
    known = {each.row.identity: each for each in frame.series}
    for point in points:
        workload, _, of = known[point.identity]
        visits = frame.visits[of]
        reason = next((row.failure.reason for row in visits if row.failure is not None), None)
        yield (
            point.name,
            *ends(workload),
            joined(format_settings(each.parameters) for each in workload.transfers),
            joined(str(each.layout or "") for each in workload.transfers),
            point.bytes,
            *measured_cells(point),
            point.cache,
            worst_stop(visits),
            None if point.estimate else reason,
            point.curve,
            point.text,
            point.identity,
            bool(machine.simulated),
        )


def measured_cells(point: Point) -> tuple[Any, ...]:
    """The columns of `MEASURED_TYPES`."""
    found = point.estimate
    if found is None:
        return (*(None,) * 6, 0, 0, None)
    return (
        *rate_cells(point),
        found.median,
        *interval_cells(found.interval),
        found.count,
        len(found.blocks),
        percent_of_bound(point),
    )


def rate_cells(point: Point) -> tuple[float | None, ...]:
    """Bandwidth in GB/s with its interval."""
    rate = point.estimate.rate if point.estimate else None
    if rate is None:
        return (None, None, None)
    return (rate.value / 1e9, *interval_cells(rate.interval, 1e9))


def interval_cells(
    interval: Interval | None, scale: float = 1.0
) -> tuple[float | None, float | None]:
    """The low and the high end."""
    return (None, None) if interval is None else (interval.low / scale, interval.high / scale)


def percent_of_bound(point: Point) -> float | None:
    return None if point.of_bound is None else 100 * point.of_bound
