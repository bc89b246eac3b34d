"""The samples of a profile as rows with the columns that CSV, Parquet and Python tables share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from typing import Any

from waywiser.machine import Machine
from waywiser.profile.estimate import rate
from waywiser.profile.locality import Sides, decide_sides, nearness
from waywiser.profile.profile import Profile
from waywiser.words import BELOW_RESOLUTION, SUMMARY, VOID, Samples, Series, Visit, Workload

TYPES: dict[str, type] = {
    "identity": str,
    "workload": str,
    "curve": str,
    "bytes": int,
    "cache": str,
    "mode": str,
    "block": int,
    "stop": str,
    "started": str,
    "n": int,
    "span_seconds": float,
    "host_seconds": float,
    "skew_seconds": float,
    "repetitions": int,
    "void": bool,
    "below_resolution": bool,
    "transfer_seconds": tuple,
    "side": str,
    "summary": bool,
    "source": str,
    "destination": str,
    "executor": str,
    "gb_per_s": float,
    "simulated": bool,
}
"""The type of each column; of ``transfer_seconds`` a tuple of floats."""

COLUMNS = tuple(TYPES)
"""New ones are added at the end. ``transfer_seconds`` holds one number per transfer; ``void``,
``below_resolution`` and ``summary`` (the sample is another tool's mean or median) are true or
false; ``side`` says, if a machine has two sides, whether the visit's host memory was ``local`` to
its GPU, ``remote``, or ``mixed``; ``source``, ``destination`` and ``executor`` are those of
`waywiser.curves.series_rows.SERIES_TYPES`, and ``simulated`` too; ``gb_per_s`` is the bandwidth of
one execution over all its bytes, in 10^9 bytes per second, if a bandwidth is known of the
workload."""


def rows_of(profile: Profile) -> Iterator[tuple[Any, ...]]:
    """One per sample, in the order taken, with the columns of `COLUMNS`; None for what was not
    taken. A visit without samples has none. One series in memory at a time."""
    sides = decide_sides(profile.localities())
    return rows_of_series(profile.iter_series(), sides, profile.machine)


def rows_of_series(
    series: Iterable[Series], sides: Sides | None, machine: Machine
) -> Iterator[tuple[Any, ...]]:
    """As `rows_of`, of series with their samples on a machine with these sides."""
    is_simulated = bool(machine.simulated)
    for each in series:
        workload = each.workload
        head = (workload.identity, str(workload), workload.curve, workload.bytes, workload.cache)
        path_ends, rated = ends(workload), workload.rated_bytes
        for visit in each.visits:
            side = nearness(visit, sides)
            for n, (*row, summary) in enumerate(_measured(visit)):
                known = (visit.mode, visit.block, visit.stop, visit.started, n)
                bandwidth = gb_per_s(rated, row[0])
                yield (*head, *known, *row, side, summary, *path_ends, bandwidth, is_simulated)


def _measured(visit: Visit) -> Iterator[tuple[Any, ...]]:
    """The columns from ``span_seconds`` to ``summary``, but for ``side``."""
    for sample in records(visit.samples):
        flags = sample["flags"]
        yield (
            sample["span"],
            sample["host"],
            sample["skew"],
            sample["repetitions"],
            _flag(flags, VOID),
            _flag(flags, BELOW_RESOLUTION),
            sample["transfers"] or (),
            _flag(flags, SUMMARY),
        )


def gb_per_s(rated_bytes: int, seconds: float) -> float | None:
    """Bandwidth in GB/s; None for an operation, and where not every byte of a range is touched."""
    found = rate(rated_bytes, seconds)
    return None if found is None else found.value / 1e9


def _flag(flags: int | None, bit: int) -> bool | None:
    return None if flags is None else bool(flags & bit)


def records(samples: Samples) -> Iterator[dict[str, Any]]:
    """One per sample, under the names of `Samples`; None in a column that was not taken, no
    ``lanes`` if no transfer was timed on several GPUs, and no ``alone`` if none was timed without
    others."""
    names = [
        name
        for name in Samples.__struct_fields__
        if name not in ("lanes", "alone") or getattr(samples, name)
    ]
    columns = {name: getattr(samples, name) for name in names}
    for n in range(len(samples)):
        yield {name: _taken(column[n]) if column else None for name, column in columns.items()}


def _taken(value: Any) -> Any:
    """None for a gap, which the others of its column make NaN."""
    return None if isinstance(value, float) and isnan(value) else value


def ends(workload: Workload) -> tuple[str | None, str | None, str | None]:
    """The source, the destination and the executor of a workload; None for an operation."""
    paths = [transfer.path for transfer in workload.transfers]
    return (
        joined(path.source for path in paths),
        joined(path.destination for path in paths),
        joined(path.executor for path in paths),
    )


def joined(parts: Iterable[Any]) -> str | None:
    """The same of several transfers in one text, each once; None for an operation."""
    texts = dict.fromkeys(map(str, parts))
    return "; ".join(texts) if texts else None
