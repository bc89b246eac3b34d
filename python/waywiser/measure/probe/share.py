"""Which of a workload's transfers each member of a group measures, and what they found together.

Transfer number i belongs to rank i modulo the size of the group; an operation belongs to rank 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TypeVar

import msgspec

from waywiser.measure.probe.protocol import MeasuredVisit
from waywiser.words import Samples, Stop, Workload

_Share = tuple[int, MeasuredVisit]
_T = TypeVar("_T")


def share_of(workload: Workload, rank: int, size: int) -> Workload:
    """The part of the workload that a rank measures; without transfers where it has none."""
    operation = workload.operation if rank == 0 else None
    transfers = workload.transfers[rank::size]
    return msgspec.structs.replace(workload, transfers=transfers, operation=operation)


def ranks_of(workload: Workload, size: int) -> range:
    """The ranks that have something to measure."""
    return range(min(size, max(1, len(workload.transfers))))


def together(parts: Mapping[int, MeasuredVisit]) -> MeasuredVisit:
    """What the ranks found, by rank, as one: alone it is what the one rank found.

    Ranks share no clock, so the span of a sample is that of the slowest rank, and the skew the
    largest seen within one. Sample i of all ranks ran at the same time only if the ranks kept
    step; if one took fewer samples, the surplus of the others is dropped with a note.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    shares = sorted(parts.items())
    return MeasuredVisit(
        mode="device" if all(part.mode == "device" for _, part in shares) else "host",
        stop=_stop(shares),
        samples=_samples([part.samples for _, part in shares]),
        buffers=tuple(buffer for _, part in shares for buffer in part.buffers),
        gate=", ".join(dict.fromkeys(part.gate for _, part in shares if part.gate)),
        notes=_notes(shares),
        setup_seconds=max(part.setup_seconds for _, part in shares),
        sampling_seconds=max(part.sampling_seconds for _, part in shares),
        buffer_bytes=sum(part.buffer_bytes for _, part in shares),
        held_bytes=sum(part.held_bytes for _, part in shares),
        host_timed=tuple(transfer for _, part in shares for transfer in part.host_timed),
        evidence=next((part.evidence for _, part in shares if part.evidence), None),
    )


def _stop(shares: Sequence[_Share]) -> Stop:
    """The least favourable: together they converged only if each of them did."""
    stops = {part.stop for _, part in shares}
    order: tuple[Stop, ...] = ("failed", "skipped", "budget", "limit", "converged")
    return next(stop for stop in order if stop in stops)


def _notes(shares: Sequence[_Share]) -> tuple[str, ...]:
    notes = [f"rank {rank}: {note}" for rank, part in shares for note in part.notes]
    counts = [len(part.samples) for _, part in shares]
    if min(counts) != max(counts):
        taken = ", ".join(f"rank {rank} {len(part.samples)}" for rank, part in shares)
        notes.append(f"samples taken: {taken}; the first {min(counts)} of each are used")
    return tuple(notes)


def _samples(columns: Sequence[Samples]) -> Samples:
    """Columns of the ranks, zipped up to the shortest; transfers back in the workload's order."""
    return Samples(
        span=_largest([c.span for c in columns]),
        host=_largest([c.host for c in columns]),
        skew=_largest([c.skew for c in columns]),
        repetitions=tuple(map(min, zip(*(c.repetitions for c in columns), strict=False))),
        flags=tuple(reduce(or_, row) for row in zip(*(c.flags for c in columns), strict=False)),
        transfers=tuple(map(_interleave, zip(*(c.transfers for c in columns), strict=False))),
        lanes=_lanes(columns),
        alone=tuple(map(_interleave, zip(*(c.alone for c in columns), strict=False))),
    )


def _lanes(columns: Sequence[Samples]) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """A transfer that was timed once has one lane, if another has several."""
    if not any(c.lanes for c in columns):
        return ()
    rows = (c.lanes or tuple(tuple((t,) for t in row) for row in c.transfers) for c in columns)
    return tuple(map(_interleave, zip(*rows, strict=False)))


def _largest(columns: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(map(max, zip(*columns, strict=False)))


def _interleave(dealt: Sequence[Sequence[_T]]) -> tuple[_T, ...]:
    """The inverse of dealing: ((a, c), (b, d)) is (a, b, c, d)."""
    total = sum(map(len, dealt))
    return tuple(dealt[index % len(dealt)][index // len(dealt)] for index in range(total))
