"""``waywiser export``: the samples of a profile, written as they are read.

CSV (RFC 4180): one row per sample, in the order taken, the columns of
`waywiser.series.sample_rows.COLUMNS`; nothing for a value that was not taken, 1 and 0 for true and
false, numbers of a list separated by spaces. A visit without samples has no row. Parquet: the same
with types.

JSON: ``{"schema", "machine", "environment", "sides", "locality", "series": [...]}``. ``locality``
has what each worker found about where memory is, ``sides`` what follows. A series has its
``workload`` (the text), ``identity``, ``path`` and ``parameters`` (of several transfers: joined by
``; ``, a list), ``bytes``, ``cache``, ``unit``, ``stop`` (the worst of its visits), its ``visits``
and its ``samples``, each with its ``block``. Times are seconds.

Google Benchmark's JSON: see `waywiser.cli.export_benchmark`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from waywiser.cli.export_benchmark import write_benchmark
from waywiser.cli.output import binary_output, text_output
from waywiser.profile import Profile
from waywiser.records import Series, Visit
from waywiser.series.estimate import worst_stop
from waywiser.series.locality import decide_sides
from waywiser.series.sample_rows import COLUMNS, records, rows_of
from waywiser.words import WaywiserError, Workload

SCHEMA = 2
"""The schema of the JSON form."""

FORMATS = ("csv", "json", "parquet", "google-benchmark")


class ExportError(WaywiserError):
    """A profile that cannot be exported as asked."""


def run_export(file: str, format: str, output: str) -> int:
    """Writes the profile's samples to the file ``output``, or for ``-`` to standard output.

    Returns 0. Raises `ExportError` for an unknown format, `NoPyarrow`, `ExistingFile`,
    `NotWritable`, and the `ProfileError` of a bad profile.
    """
    if format not in FORMATS:
        raise ExportError(f"{format!r} is no format", remedy=f"write one of {', '.join(FORMATS)}")
    with Profile.open(file) as profile:
        if format == "parquet":
            _export_parquet(profile, output)
            return 0
        with text_output(output) as stream:
            _WRITERS[format](profile, stream)
    return 0


def _export_parquet(profile: Profile, output: str) -> None:
    from waywiser.cli.export_parquet import pyarrow, write_parquet

    pyarrow()  # before a file is made
    if output == "-" and sys.stdout.isatty():
        raise ExportError("Parquet is no text", remedy="name a file with -o, or pipe it on")
    with binary_output(output) as stream:
        write_parquet(profile, stream)


def write_csv(profile: Profile, stream: TextIO) -> None:
    """One series in memory at a time."""
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    writer.writerows(map(_cells, rows_of(profile)))


def _cells(row: tuple[Any, ...]) -> list[Any]:
    """Python writes floats so that they read back equal."""
    return [_cell(value) for value in row]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return " ".join(map(repr, value)) if isinstance(value, tuple) else value


def write_json(profile: Profile, stream: TextIO) -> None:
    """One series in memory at a time; a series' samples on a line of their own each."""
    stream.write(f'{{"schema": {SCHEMA},\n"machine": {_json(profile.machine)},\n')
    stream.write(f'"environment": {_json(profile.environment)},\n')
    localities = profile.localities()
    stream.write(f'"sides": {_json(decide_sides(localities))},\n')
    stream.write(f'"locality": {_json(localities)},\n"series": [')
    for position, series in enumerate(profile.iter_series()):
        stream.write(",\n" if position else "\n")
        _write_series(series, stream)
    stream.write("\n]}\n")


def _write_series(series: Series, stream: TextIO) -> None:
    workload, visits = series.workload, series.visits
    head = {
        "workload": str(workload),
        "identity": workload.identity,
        "path": "; ".join(str(t.path) for t in workload.transfers) or str(workload.operation),
        "bytes": workload.bytes,
        "parameters": _parameters(workload),
        "cache": workload.cache,
        "unit": workload.quantity.unit,
        "stop": worst_stop(visits),
        "visits": [_visit(visit) for visit in visits],
    }
    stream.write(_json(head).removesuffix("}") + ',"samples":[')
    first = True
    for visit in visits:
        for sample in records(visit.samples):
            stream.write("\n" if first else ",\n")
            stream.write(_json({"block": visit.block, **sample}))
            first = False
    stream.write("]}")


def _parameters(workload: Workload) -> object:
    if workload.operation is not None:
        return workload.operation.parameters
    known = [transfer.parameters for transfer in workload.transfers]
    return known[0] if len(known) == 1 else known


def _visit(visit: Visit) -> dict[str, Any]:
    left_out = ("workload", "samples")
    return {name: getattr(visit, name) for name in visit.__struct_fields__ if name not in left_out}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_WRITERS: dict[str, Callable[[Profile, TextIO], None]] = {
    "csv": write_csv,
    "json": write_json,
    "google-benchmark": write_benchmark,
}
