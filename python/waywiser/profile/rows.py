"""Visits as rows of the tables ``series``, ``visit`` and ``sample``, and back.

Back is equal to what went in, to the bit, but for one thing: a column that was NaN or missing in
every sample comes back empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from waywiser.profile.errors import ProfileError
from waywiser.records import BufferRecord, Evidence, Failure, GpuState, Samples, Summary, Visit
from waywiser.words import Workload, canonical_json

VISIT_COLUMNS = (
    "series", "block", "run", "worker", "mode", "stop", "failure_kind", "failure_reason",
    "started", "setup_seconds", "sampling_seconds", "elapsed_seconds", "buffer_bytes", "held_bytes",
    "gate", "buffers", "gpu_states", "notes", "evidence",
)  # fmt: skip
SERIES_COLUMN = VISIT_COLUMNS.index("series")
SUMMARY_COLUMNS = ("counted", "median", "low", "high", "told")
SAMPLE_COLUMNS = ("span", "host", "skew", "repetitions", "flags", "transfers")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def series_row(workload: Workload) -> tuple[Any, ...]:
    """In the order of the columns of ``series``."""
    return (
        workload.identity,
        str(workload),
        workload.curve,
        workload.bytes,
        workload.quantity.unit,
        workload.cache,
        canonical_json(workload).decode(),
    )


def visit_row(visit: Visit, run: int) -> tuple[Any, ...]:
    """In the order of `VISIT_COLUMNS`."""
    failure = visit.failure
    return (
        visit.workload.identity,
        visit.block,
        run,
        visit.worker,
        visit.mode,
        visit.stop,
        failure.kind if failure else None,
        failure.reason if failure else None,
        visit.started,
        visit.setup_seconds,
        visit.sampling_seconds,
        visit.elapsed_seconds,
        visit.buffer_bytes,
        visit.held_bytes,
        visit.gate,
        _json(visit.buffers),
        _json(visit.gpu_states),
        _json(visit.notes),
        None if visit.evidence is None else _json(visit.evidence),
    )


def summary_row(summary: Summary | None) -> tuple[Any, ...]:
    """In the order of `SUMMARY_COLUMNS`."""
    if summary is None:
        return (None,) * len(SUMMARY_COLUMNS)
    return tuple(getattr(summary, name) for name in SUMMARY_COLUMNS)


def sample_rows(visit_number: int, samples: Samples) -> Iterator[tuple[Any, ...]]:
    """(visit, n, *SAMPLE_COLUMNS) of each sample.

    Raises `ProfileError` for columns of unequal length and for a time that is no number: such
    samples are a defect of what measured them, and must not reach a file.
    """
    count = len(samples)
    columns = {name: getattr(samples, name) for name in SAMPLE_COLUMNS}
    for name, column in columns.items():
        if len(column) not in (0, count):
            raise ProfileError(f"{len(column)} values of {name!r} for {count} samples")
    if not all(math.isfinite(span) for span in samples.span):
        raise ProfileError("a sample's time is not a finite number")
    empty = (None,) * count
    filled = [columns[name] or empty for name in SAMPLE_COLUMNS[:-1]]
    transfers = samples.transfers or ((),) * count
    for n, (values, parts) in enumerate(zip(zip(*filled, strict=True), transfers, strict=True)):
        same = len(parts) == 1 and parts[0] == values[0]
        yield (visit_number, n, *values, None if same else _json(parts))


def _column(values: Sequence[Any]) -> tuple[Any, ...]:
    """Without the gaps: SQLite keeps NaN as NULL."""
    gaps = values.count(None)
    if gaps == 0:
        return tuple(values)
    if gaps == len(values):
        return ()
    return tuple(math.nan if value is None else value for value in values)


_TIMES = msgspec.json.Decoder(tuple[float, ...])
_BUFFERS = msgspec.json.Decoder(tuple[BufferRecord, ...])
_GPU_STATES = msgspec.json.Decoder(tuple[GpuState, ...])
_NOTES = msgspec.json.Decoder(tuple[str, ...])
_EVIDENCE = msgspec.json.Decoder(Evidence)


def samples_from(rows: Iterable[tuple[Any, ...]]) -> Samples:
    """From rows of `SAMPLE_COLUMNS`, in order."""
    columns = list(zip(*rows, strict=True))
    if not columns:
        return Samples()
    *plain, texts = columns
    transfers = tuple(
        (span,) if text is None else _TIMES.decode(text)
        for span, text in zip(plain[0], texts, strict=True)
    )
    fields = dict(zip(SAMPLE_COLUMNS, map(_column, plain), strict=False))
    builtin = {**fields, "transfers": transfers if any(transfers) else ()}
    return msgspec.convert(builtin, Samples)


def visit_from(row: Sequence[Any], workload: Workload, samples: Samples) -> Visit:
    """From a row of `VISIT_COLUMNS`; raises `msgspec.ValidationError` for what makes no sense."""
    fields = dict(zip(VISIT_COLUMNS, row, strict=True))
    kind, reason = fields.pop("failure_kind"), fields.pop("failure_reason")
    del fields["series"], fields["run"]
    fields["buffers"] = _BUFFERS.decode(fields["buffers"])
    fields["gpu_states"] = _GPU_STATES.decode(fields["gpu_states"])
    fields["notes"] = _NOTES.decode(fields["notes"])
    evidence = fields["evidence"]
    fields["evidence"] = None if evidence is None else _EVIDENCE.decode(evidence)
    failure = None if kind is None else Failure(kind, reason or "")
    known = {**fields, "workload": workload, "samples": samples, "failure": failure}
    return msgspec.convert(known, Visit)
