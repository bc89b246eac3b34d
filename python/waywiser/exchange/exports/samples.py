"""The samples of a profile, written as they are read, or a row per series.

CSV (RFC 4180): one row per sample, in the order taken, the columns of
`waywiser.profile.sample_rows.COLUMNS`; nothing for a value that was not taken, 1 and 0 for true and
false, numbers of a list separated by spaces. A visit without samples has no row. Parquet: the same
with types.

JSON: ``{"schema", "machine", "environment", "sides", "locality", "series": [...]}``. ``locality``
has what each worker found about where memory is, ``sides`` what follows. A series has its
``workload`` (the text), ``identity``, ``path`` and ``parameters`` (of several transfers: joined by
``; ``, a list), ``source``, ``destination``, ``executor``, ``bytes``, ``cache``, ``unit``, ``stop``
(the worst of its visits), its ``visits`` and its ``samples``, each with its ``block`` and its
``gb_per_s``. Times are seconds.

With ``--summary``: one row per series with the columns of
`waywiser.curves.series_rows.SERIES_TYPES`, in JSON ``{"schema", "profile", "created", "hostname",
"series": [...]}``.

Google Benchmark's JSON: see `waywiser.exchange.exports.google_benchmark`. Settings of other
programs: see `waywiser.exchange.settings`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TextIO

from waywiser.curves import SERIES_TYPES
from waywiser.curves.overview import overview
from waywiser.curves.series_rows import series_rows
from waywiser.exchange.exports.google_benchmark import write_benchmark
from waywiser.exchange.exports.json_lines import write_lines
from waywiser.profile import Profile, SeriesFrame, decide_sides, rows_of, worst_stop
from waywiser.profile.sample_rows import COLUMNS, ends, gb_per_s, records
from waywiser.words import Series, Visit, Workload, json_text

SCHEMA = 2
"""The schema of the JSON form. A new field does not change it."""

SUMMARY_SCHEMA = 1
"""The schema of the JSON form of the summary. A new field does not change it."""


def summary_rows(profile: Profile) -> Iterator[tuple[Any, ...]]:
    """One row per series, with the columns of `SERIES_TYPES`."""
    frame = SeriesFrame.read(profile)
    return series_rows(overview(profile, frame=frame).series, frame, profile.machine)


def write_summary_json(profile: Profile, stream: TextIO) -> None:
    """One object per series, on a line of its own."""
    head = {
        "schema": SUMMARY_SCHEMA,
        "profile": str(profile.path),
        "created": profile.created,
        "hostname": profile.machine.hostname,
    }
    rows = (dict(zip(SERIES_TYPES, row, strict=True)) for row in summary_rows(profile))
    stream.write(json_text(head).removesuffix("}") + ',"series": [')
    write_lines(stream, map(json_text, rows))
    stream.write("\n]}\n")


def write_csv(profile: Profile, stream: TextIO) -> None:
    """One series in memory at a time."""
    _write_csv(COLUMNS, rows_of(profile), stream)


def _write_csv(columns: Iterable[str], rows: Iterable[tuple[Any, ...]], stream: TextIO) -> None:
    """Python writes floats so that they read back equal."""
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return " ".join(map(repr, value)) if isinstance(value, tuple) else value


def write_json(profile: Profile, stream: TextIO) -> None:
    """One series in memory at a time; a series' samples on a line of their own each."""
    stream.write(f'{{"schema": {SCHEMA},\n"machine": {json_text(profile.machine)},\n')
    stream.write(f'"environment": {json_text(profile.environment)},\n')
    localities = profile.localities()
    stream.write(f'"sides": {json_text(decide_sides(localities))},\n')
    stream.write(f'"locality": {json_text(localities)},\n"series": [')
    for position, series in enumerate(profile.iter_series()):
        stream.write(",\n" if position else "\n")
        stream.write(json_text(_head(series)).removesuffix("}") + ',"samples":[')
        write_lines(stream, map(json_text, _samples(series)))
        stream.write("]}")
    stream.write("\n]}\n")


def _head(series: Series) -> dict[str, Any]:
    workload, visits = series.workload, series.visits
    source, destination, executor = ends(workload)
    return {
        "workload": str(workload),
        "identity": workload.identity,
        "path": "; ".join(str(t.path) for t in workload.transfers) or str(workload.operation),
        "source": source,
        "destination": destination,
        "executor": executor,
        "bytes": workload.bytes,
        "parameters": _parameters(workload),
        "cache": workload.cache,
        "unit": workload.quantity.unit,
        "stop": worst_stop(visits),
        "visits": [_visit(visit) for visit in visits],
    }


def _samples(series: Series) -> Iterator[dict[str, Any]]:
    for visit in series.visits:
        for sample in records(visit.samples):
            bandwidth = gb_per_s(series.workload.rated_bytes, sample["span"])
            yield {"block": visit.block, **sample, "gb_per_s": bandwidth}


def _parameters(workload: Workload) -> object:
    if workload.operation is not None:
        return workload.operation.parameters
    known = [transfer.parameters for transfer in workload.transfers]
    return known[0] if len(known) == 1 else known


def _visit(visit: Visit) -> dict[str, Any]:
    excluded = ("workload", "samples")
    return {name: getattr(visit, name) for name in visit.__struct_fields__ if name not in excluded}


WRITERS: Mapping[str, Callable[[Profile, TextIO], None]] = {
    "csv": write_csv,
    "json": write_json,
    "google-benchmark": write_benchmark,
}
"""What writes the samples as text, by format."""

SUMMARY_WRITERS: Mapping[str, Callable[[Profile, TextIO], None]] = {
    "csv": lambda profile, stream: _write_csv(SERIES_TYPES, summary_rows(profile), stream),
    "json": write_summary_json,
}
"""What writes a row per series as text, by format."""
