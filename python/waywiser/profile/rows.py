"""Visits and workloads as rows of the tables ``series`` and ``visit``, and back.

Back is equal to what went in, to the bit, but for one thing: a column that was NaN in every sample
comes back empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import msgspec

from waywiser.profile.columns import MOST_NUMBERS, BadColumn, Kind, packed, unpacked
from waywiser.profile.errors import ProfileError
from waywiser.words import (
    BufferRecord,
    Failure,
    GpuState,
    LinkEvidence,
    Samples,
    Stop,
    TimingMode,
    Visit,
    Workload,
    canonical_json,
    json_text,
)
from waywiser.words.workload import identity_of

FORMER_KINDS = {"refused": "not-supported"}
"""Kinds of failures in older profiles, with their present names."""

MOST_SAMPLES = 2**20
"""The most samples that one visit holds."""

SAMPLE_COLUMNS: dict[str, Kind] = {
    "span": "d",
    "host": "d",
    "skew": "d",
    "repetitions": "q",
    "flags": "q",
}
"""Those with one number per sample, with the type of their numbers."""


ALIKE = ("block", "mode", "stop", "started", "gate", "buffer_bytes", "held_bytes")
SECONDS = ("setup_seconds", "sampling_seconds", "elapsed_seconds")
"""Columns that are as in `waywiser.words.records.Visit`, and those of them that are floats."""


def _decoder(kind: Any) -> Callable[[str], Any]:
    """Many rows have the same text."""
    return lru_cache(maxsize=4096)(msgspec.json.Decoder(kind).decode)


LISTS = {
    "buffers": _decoder(tuple[BufferRecord, ...]),
    "gpu_states": _decoder(tuple[GpuState, ...]),
    "notes": _decoder(tuple[str, ...]),
}
"""Columns of JSON lists, and what decodes them. Each raises `msgspec.MsgspecError`."""

_EVIDENCE = msgspec.json.Decoder(LinkEvidence)


class SeriesRow(NamedTuple):
    """A row of the table ``series``."""

    identity: str
    text: str
    curve: str
    bytes: int
    unit: str
    cache: str
    workload: str


class VisitRow(NamedTuple):
    """A row of the table ``visit``; the samples are still compressed."""

    visit: int
    series: str
    block: int
    run: int
    process: int
    mode: TimingMode
    stop: Stop
    failure_kind: str | None
    failure_reason: str | None
    started: str
    setup_seconds: float
    sampling_seconds: float
    elapsed_seconds: float
    buffer_bytes: int
    held_bytes: int
    gate: str
    buffers: str
    gpu_states: str
    notes: str
    evidence: str | None
    samples: int
    span: bytes | None
    host: bytes | None
    skew: bytes | None
    repetitions: bytes | None
    flags: bytes | None
    width: int
    transfers: bytes | None

    @property
    def failure(self) -> Failure | None:
        if self.failure_kind is None:
            return None
        kind = FORMER_KINDS.get(self.failure_kind, self.failure_kind)
        return Failure(kind, self.failure_reason or "")


def series_row(workload: Workload) -> SeriesRow:
    canonical, (text, curve) = canonical_json(workload), workload.texts
    return SeriesRow(
        identity_of(canonical),
        text,
        curve,
        workload.bytes,
        workload.quantity.unit,
        workload.cache,
        canonical.decode(),
    )


def visit_row(number: int, visit: Visit, run: int, *, in_memory: bool = False) -> VisitRow:
    """The row of a visit; the columns of one that stays ``in_memory`` are not compressed. Raises
    `ProfileError` for columns of unequal length, for a time that is not a finite number, and for
    more samples than a row holds: what measured them has a defect, and such samples must not reach
    a file."""
    failure, samples = visit.failure, visit.samples
    try:
        columns: dict[str, Any] = {
            name: _packed(samples, name, kind, in_memory) for name, kind in SAMPLE_COLUMNS.items()
        }
        width, transfers = _packed_transfers(samples, in_memory)
    except BadColumn as error:
        raise ProfileError(f"samples cannot be stored: {error}") from error
    columns |= {name: getattr(visit, name) for name in ALIKE}
    columns |= {name: float(getattr(visit, name)) for name in SECONDS}
    columns |= {name: json_text(getattr(visit, name)) for name in LISTS}
    return VisitRow(
        visit=number,
        series=visit.workload.identity,
        run=run,
        process=visit.worker,
        failure_kind=failure.kind if failure else None,
        failure_reason=failure.reason if failure else None,
        evidence=None if visit.evidence is None else json_text(visit.evidence),
        samples=len(samples),
        width=width,
        transfers=transfers,
        **columns,
    )


def _packed(samples: Samples, name: str, kind: Kind, in_memory: bool) -> bytes | None:
    """None for a column that was not taken."""
    column: Sequence[float] = getattr(samples, name)
    if len(column) not in (0, len(samples)):
        raise BadColumn(f"{len(column)} values of {name!r} for {len(samples)} samples")
    if len(column) > MOST_SAMPLES:
        raise BadColumn(f"{len(column)} are more than {MOST_SAMPLES}")
    if name == "span" and not all(map(math.isfinite, column)):
        raise BadColumn("a time is not a finite number")
    if not column or (kind == "d" and all(map(math.isnan, column))):
        return None
    return packed(column, kind, in_memory=in_memory)


def _packed_transfers(samples: Samples, in_memory: bool) -> tuple[int, bytes | None]:
    """The number of times per sample, and the column."""
    transfers = samples.transfers
    widths = {len(times) for times in transfers}
    if not any(widths):
        return 0, None
    if len(widths) > 1 or len(transfers) != len(samples):
        raise BadColumn(f"transfers of {sorted(widths)} times for {len(samples)} samples")
    width = widths.pop()
    if width == 1 and transfers == tuple(zip(samples.span, strict=True)):
        return 1, None
    return width, packed(tuple(chain.from_iterable(transfers)), "d", in_memory=in_memory)


class LanesRow(NamedTuple):
    """A row of the table ``lanes``; the times are still compressed."""

    visit: int
    counts: str
    seconds: bytes


_COUNTS = _decoder(tuple[int, ...])


def lanes_row(number: int, samples: Samples) -> LanesRow | None:
    """None where no transfer was timed on several GPUs. Raises `ProfileError` for samples of
    different numbers of them."""
    if not samples.lanes:
        return None
    counts = {tuple(map(len, lanes)) for lanes in samples.lanes}
    if len(counts) > 1 or len(samples.lanes) != len(samples):
        raise ProfileError("samples cannot be stored: times of different numbers of GPUs")
    times = tuple(chain.from_iterable(chain.from_iterable(samples.lanes)))
    try:
        return LanesRow(number, json_text(counts.pop()), packed(times, "d"))
    except BadColumn as error:
        raise ProfileError(f"samples cannot be stored: {error}") from error


def lanes_from(row: LanesRow, samples: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """The times of ``samples`` samples. Raises `BadColumn`."""
    try:
        counts = _COUNTS(row.counts)
    except msgspec.MsgspecError as error:
        raise BadColumn(str(error)) from error
    width = sum(counts)
    if not counts or min(counts) < 1 or width > MOST_NUMBERS:
        raise BadColumn(f"times of {row.counts[:40]} GPUs")
    times = _tuples(unpacked(row.seconds, samples * width, "d"), width)
    ends = tuple(accumulate(counts, initial=0))
    return tuple(tuple(each[a:b] for a, b in pairwise(ends)) for each in times)


class AloneRow(NamedTuple):
    """A row of the table ``alone``; the times are still compressed."""

    visit: int
    seconds: bytes


def alone_row(number: int, samples: Samples) -> AloneRow | None:
    """Returns a row of times alone; None if no transfer was timed without others. Raises
    `ProfileError` if the times alone are not as many as the samples."""
    if not samples.alone:
        return None
    if list(map(len, samples.alone)) != list(map(len, samples.transfers)):
        raise ProfileError("samples cannot be stored: not every transfer was timed alone")
    try:
        return AloneRow(number, packed(tuple(chain.from_iterable(samples.alone)), "d"))
    except BadColumn as error:
        raise ProfileError(f"samples cannot be stored: {error}") from error


def alone_from(row: AloneRow, of: VisitRow) -> tuple[tuple[float, ...], ...]:
    """The times of a visit. Raises `BadColumn`."""
    require_counts(of)
    if of.width < 2:
        raise BadColumn("times without others of one transfer")
    return _tuples(unpacked(row.seconds, of.samples * of.width, "d"), of.width)


def samples_from(row: VisitRow) -> Samples:
    """The samples of a visit, without those in ``lanes`` and ``alone``. Raises `BadColumn`."""
    count, width = row.samples, row.width
    if not count:
        return Samples()
    require_counts(row)
    columns: dict[str, Any] = {
        name: () if (blob := getattr(row, name)) is None else unpacked(blob, count, kind)
        for name, kind in SAMPLE_COLUMNS.items()
    }
    if width == 1 and row.transfers is None:
        columns["transfers"] = _tuples(columns["span"], 1)
    elif width:
        columns["transfers"] = _tuples(unpacked(row.transfers, count * width, "d"), width)
    return Samples(**columns)


def _tuples(values: Sequence[float], width: int) -> tuple[tuple[float, ...], ...]:
    return tuple(zip(*[iter(values)] * width, strict=True))


def require_counts(row: VisitRow) -> None:
    """Raises `BadColumn` for a visit that has samples and cannot have so many, or so wide ones."""
    if not 0 < row.samples <= MOST_SAMPLES or row.span is None:
        raise BadColumn(f"{row.samples} samples")
    if not 0 <= row.width <= MOST_NUMBERS:
        raise BadColumn(f"{row.width} times per sample")


def visit_from(row: VisitRow, workload: Workload, samples: Samples) -> Visit:
    """Raises `msgspec.MsgspecError` for JSON that does not decode."""
    columns: dict[str, Any] = {name: getattr(row, name) for name in (*ALIKE, *SECONDS)}
    columns |= {name: decode(getattr(row, name)) for name, decode in LISTS.items()}
    return Visit(
        workload=workload,
        samples=samples,
        failure=row.failure,
        worker=row.process,
        evidence=None if row.evidence is None else _EVIDENCE.decode(row.evidence),
        **columns,
    )
