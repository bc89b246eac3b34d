"""``waywiser export``: the samples of a profile as CSV or JSON, written as they are read.

CSV (RFC 4180): one row per sample, in the order taken, the columns of `COLUMNS`; nothing for a
value that was not taken. A visit without samples has no row.

JSON: ``{"schema", "machine", "environment", "sides", "locality", "series": [...]}``. ``locality``
has what each worker found about where memory is, ``sides`` what follows. A series has its
``workload`` (the text), ``identity``, ``path`` and ``parameters`` (of several transfers: joined by
``; ``, a list), ``bytes``, ``cache``, ``unit``, ``stop`` (the worst of its visits), its ``visits``
and its ``samples``, each with its ``block``. Times are seconds.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import msgspec

from waywiser.profile import Profile
from waywiser.profile.beside import beside
from waywiser.records import Samples, Visit
from waywiser.stats.block import BELOW_RESOLUTION, SUMMARY, VOID
from waywiser.stats.estimate import worst_stop
from waywiser.stats.locality import judge_sides
from waywiser.stats.nearness import nearness
from waywiser.words import WaywiserError, Workload

SCHEMA = 1
"""Of the JSON form."""

FORMATS = ("csv", "json")

COLUMNS = (
    "identity",
    "workload",
    "curve",
    "bytes",
    "cache",
    "mode",
    "block",
    "stop",
    "started",
    "n",
    "span_seconds",
    "host_seconds",
    "skew_seconds",
    "repetitions",
    "void",
    "below_resolution",
    "transfer_seconds",
    "side",
    "summary",
)
"""Of the CSV form. New ones are added at the end. ``transfer_seconds`` holds one number per
transfer, separated by spaces; ``void`` and ``below_resolution`` are 0 or 1; ``side`` says, where a
machine has two sides, whether the visit's host memory was ``near`` its GPU, ``far``, or ``mixed``;
``summary`` is 1 where the sample is another tool's mean or median.
"""


class ExportError(WaywiserError):
    """A profile that cannot be exported as asked."""


def run_export(file: str, format: str, output: str) -> int:
    """Writes the profile's samples to the file ``output``, or for ``-`` to standard output.

    Returns 0. Raises `ExportError` for an unknown format, `ExistingFile`, `NotWritable`, and the
    `ProfileError` of a bad profile.
    """
    if format not in FORMATS:
        raise ExportError(f"{format!r} is no format", remedy="write --format csv or json")
    with Profile.open(file) as profile, _opened(output) as stream:
        write = write_csv if format == "csv" else write_json
        write(profile, stream)
    return 0


@contextmanager
def _opened(output: str) -> Iterator[TextIO]:
    """The bytes are the same on every platform: UTF-8, lines ended as the format says."""
    if output == "-":
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:  # someone captures text
            yield sys.stdout
            return
        sys.stdout.flush()
        stream = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        try:
            yield stream
            stream.flush()
        finally:
            stream.detach()
        return
    path = Path(output)
    if path.is_char_device() or path.is_fifo():  # /dev/stdout, a named pipe: nothing to overwrite
        with path.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        return
    with beside(path) as part, part.open("w", encoding="utf-8", newline="") as stream:
        yield stream


def write_csv(profile: Profile, stream: TextIO) -> None:
    """One visit in memory at a time."""
    sides = judge_sides(profile.localities())
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for workload in profile.workloads():
        head = (workload.identity, str(workload), workload.curve, workload.bytes, workload.cache)
        for visit in profile.visits_of(workload):
            known = (*head, visit.mode, visit.block, visit.stop, visit.started)
            side = nearness(visit, sides)
            rows = enumerate(_csv_rows(visit.samples))
            writer.writerows((*known, n, *row, side, summary) for n, (*row, summary) in rows)


def _csv_rows(samples: Samples) -> Iterator[tuple[Any, ...]]:
    """The columns from ``span_seconds`` on, but for ``side``.

    Python writes floats so that they read back equal.
    """
    for sample in _rows(samples):
        flags = sample["flags"]
        yield (
            sample["span"],
            sample["host"],
            sample["skew"],
            sample["repetitions"],
            _flag(flags, VOID),
            _flag(flags, BELOW_RESOLUTION),
            " ".join(map(repr, sample["transfers"] or ())),
            _flag(flags, SUMMARY),
        )


def _flag(flags: int | None, bit: int) -> int | None:
    return None if flags is None else int(bool(flags & bit))


def _rows(samples: Samples) -> Iterator[dict[str, Any]]:
    """One record per sample; None in a column that was not taken."""
    columns = {name: getattr(samples, name) for name in Samples.__struct_fields__}
    for n in range(len(samples)):
        yield {name: column[n] if column else None for name, column in columns.items()}


def write_json(profile: Profile, stream: TextIO) -> None:
    """One visit in memory at a time; a series' samples on a line of their own each."""
    stream.write(f'{{"schema": {SCHEMA},\n"machine": {_json(profile.machine)},\n')
    stream.write(f'"environment": {_json(profile.environment)},\n')
    localities = profile.localities()
    stream.write(f'"sides": {_json(judge_sides(localities))},\n')
    stream.write(f'"locality": {_json(localities)},\n"series": [')
    for position, workload in enumerate(profile.workloads()):
        stream.write(",\n" if position else "\n")
        _write_series(profile, workload, stream)
    stream.write("\n]}\n")


def _write_series(profile: Profile, workload: Workload, stream: TextIO) -> None:
    visits = [_without_samples(visit) for visit in profile.visits_of(workload)]
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
    for visit in profile.visits_of(workload):
        for sample in _rows(visit.samples):
            stream.write("\n" if first else ",\n")
            stream.write(_json({"block": visit.block, **sample}))
            first = False
    stream.write("]}")


def _parameters(workload: Workload) -> object:
    if workload.operation is not None:
        return workload.operation.parameters
    known = [transfer.parameters for transfer in workload.transfers]
    return known[0] if len(known) == 1 else known


def _without_samples(visit: Visit) -> Visit:
    return msgspec.structs.replace(visit, samples=Samples())


def _visit(visit: Visit) -> dict[str, Any]:
    left_out = ("workload", "samples")
    return {name: getattr(visit, name) for name in visit.__struct_fields__ if name not in left_out}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
