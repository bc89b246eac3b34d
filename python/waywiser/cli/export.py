"""``waywiser export``: the samples of a profile, written as they are read, or a row per series.

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

Google Benchmark's JSON: see `waywiser.cli.export_benchmark`. Settings of other programs: see
`waywiser.exchange.settings`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, TextIO

import msgspec

from waywiser.cli.export_benchmark import write_benchmark
from waywiser.cli.one_screen import OneScreen
from waywiser.curves.overview import overview
from waywiser.curves.series_rows import SERIES_TYPES, series_rows
from waywiser.profile import Profile
from waywiser.profile.estimate import worst_stop
from waywiser.profile.locality import decide_sides
from waywiser.profile.name import SUFFIX
from waywiser.profile.output_file import STANDARD_OUTPUT, open_output, open_text_output
from waywiser.profile.path_ends import ends
from waywiser.profile.sample_rows import COLUMNS, TYPES, gb_per_s, records, rows_of
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import WaywiserError, Workload, parse_bytes
from waywiser.words.records import Series, Visit

SCHEMA = 2
"""The schema of the JSON form. A new field does not change it."""

SUMMARY_SCHEMA = 1
"""The schema of the JSON form of the summary. A new field does not change it."""

FORMATS = ("csv", "json", "parquet", "google-benchmark")

USUAL_FORMAT = "json"
"""The format if neither an option nor the name of the output says another."""


class ExportError(WaywiserError):
    """A profile that cannot be exported as asked."""


def run_export(
    file: str,
    format: str = "",
    output: str = "",
    summary: bool = False,
    consumer: str = "",
    piece: str = "",
) -> int:
    """Writes the profile's samples, or with ``summary`` its series, to the file ``output``; with
    ``consumer``, the settings of another program (`waywiser.exchange.settings`), for pieces of
    ``piece`` bytes.

    Without ``format``, the name of the file says it. ``-`` is standard output; nothing is standard
    output too, which in a terminal takes no more than a screen of text. Returns 0. Raises
    `ExportError` for an unknown format and for too much text, `NoPyarrow`, `ExistingFile`,
    `NotWritable`, `SettingsError` if nothing of what the other program reads was measured, and the
    `ProfileError` of a bad profile.
    """
    if PurePath(output).suffix == SUFFIX:
        raise ExportError(f"{output}: an export is no profile", remedy="name it .csv or .json")
    if consumer:
        if format or summary:
            raise ExportError(
                f"--for {consumer} has one form", remedy="remove --format and --summary"
            )
        piece_bytes = parse_bytes(piece) if piece else 0
        if piece and not piece_bytes:
            raise ExportError(f"--piece {piece} is no number of bytes", remedy="write 1 or more")
        _export_settings(file, output, consumer, piece_bytes)
        return 0
    if piece:
        raise ExportError("--piece is for settings", remedy="add --for sglang or --for flexkv")
    format = format or _format_of(output)
    if format not in FORMATS:
        raise ExportError(f"{format!r} is no format", remedy=f"write one of {', '.join(FORMATS)}")
    if summary and format not in _SUMMARY_WRITERS and format != "parquet":
        raise ExportError(
            f"--summary has no form of {format}", remedy="write --format csv, json or parquet"
        )
    with Profile.open(file) as profile:
        if format == "parquet":
            _export_parquet(profile, output, summary)
            return 0
        writers = _SUMMARY_WRITERS if summary else _WRITERS
        with _text_stream(output) as stream:
            writers[format](profile, stream)
    return 0


def _export_settings(file: str, output: str, consumer: str, piece: int) -> None:
    from waywiser.exchange.settings.consumers import settings_text

    with Profile.open(file) as profile:
        text = settings_text(profile, consumer, piece)
    with _text_stream(output) as stream:
        stream.write(text)


def _format_of(output: str) -> str:
    """Raises `ExportError` for an extension that is no format."""
    suffix = PurePath(output).suffix.removeprefix(".").casefold()
    if suffix and suffix not in FORMATS:
        raise ExportError(
            f"{output}: no format has the extension .{suffix}",
            remedy="name it .csv, .json or .parquet, or add --format",
        )
    return suffix or USUAL_FORMAT


@contextmanager
def _text_stream(output: str) -> Iterator[TextIO]:
    """The stream of an output; the terminal takes no more than a screen unless it is named."""
    if output or not sys.stdout.isatty():
        with open_text_output(output or STANDARD_OUTPUT) as stream:
            yield stream
        return
    screen = OneScreen()
    yield screen
    sys.stdout.write(screen.text)


def _export_parquet(profile: Profile, output: str, summary: bool) -> None:
    from waywiser.cli.export_parquet import pyarrow, write_parquet

    pyarrow()  # before a file is made
    if output in ("", STANDARD_OUTPUT) and sys.stdout.isatty():
        raise ExportError("Parquet is no text", remedy="name a file with -o, or pipe it on")
    rows = _summary_rows(profile) if summary else rows_of(profile)
    with open_output(output or STANDARD_OUTPUT) as stream:
        write_parquet(rows, SERIES_TYPES if summary else TYPES, stream)


def _summary_rows(profile: Profile) -> Iterator[tuple[Any, ...]]:
    frame = SeriesFrame.read(profile)
    return series_rows(overview(profile, frame=frame).series, frame, profile.machine)


def write_summary_csv(profile: Profile, stream: TextIO) -> None:
    """One row per series."""
    _write_csv(SERIES_TYPES, _summary_rows(profile), stream)


def write_summary_json(profile: Profile, stream: TextIO) -> None:
    """One object per series, on a line of its own."""
    head = {
        "schema": SUMMARY_SCHEMA,
        "profile": str(profile.path),
        "created": profile.created,
        "hostname": profile.machine.hostname,
    }
    stream.write(_json(head).removesuffix("}") + ',"series": [')
    for position, row in enumerate(_summary_rows(profile)):
        stream.write(",\n" if position else "\n")
        stream.write(_json(dict(zip(SERIES_TYPES, row, strict=True))))
    stream.write("\n]}\n")


def write_csv(profile: Profile, stream: TextIO) -> None:
    """One series in memory at a time."""
    _write_csv(COLUMNS, rows_of(profile), stream)


def _write_csv(columns: Iterable[str], rows: Iterable[tuple[Any, ...]], stream: TextIO) -> None:
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows(map(_cells, rows))


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
    source, destination, executor = ends(workload)
    head = {
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
    stream.write(_json(head).removesuffix("}") + ',"samples":[')
    first = True
    for visit in visits:
        for sample in records(visit.samples):
            stream.write("\n" if first else ",\n")
            bandwidth = gb_per_s(workload.rated_bytes, sample["span"])
            stream.write(_json({"block": visit.block, **sample, "gb_per_s": bandwidth}))
            first = False
    stream.write("]}")


def _parameters(workload: Workload) -> object:
    if workload.operation is not None:
        return workload.operation.parameters
    known = [transfer.parameters for transfer in workload.transfers]
    return known[0] if len(known) == 1 else known


def _visit(visit: Visit) -> dict[str, Any]:
    excluded = ("workload", "samples")
    return {name: getattr(visit, name) for name in visit.__struct_fields__ if name not in excluded}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_WRITERS: dict[str, Callable[[Profile, TextIO], None]] = {
    "csv": write_csv,
    "json": write_json,
    "google-benchmark": write_benchmark,
}

_SUMMARY_WRITERS: dict[str, Callable[[Profile, TextIO], None]] = {
    "csv": write_summary_csv,
    "json": write_summary_json,
}
