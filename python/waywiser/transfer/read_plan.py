"""Which bytes of a file are read together, and into which tensors they go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

SMALL_BYTES = 512 * 1024
"""The largest tensor that is read together with its neighbours. At 50 GB/s its bytes take 10 µs,
about as long as it takes to submit a transfer."""
SPAN_BYTES = 8 * 2**20
"""The most bytes that are read together."""
GAP_BYTES = 64 * 1024
"""The most bytes between two small tensors that are read and dropped, since they cost less than a
second transfer."""


class FileRange(Protocol):
    """A tensor, or a part of one, in a file."""

    @property
    def name(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


Ranged = TypeVar("Ranged", bound=FileRange)


class TensorRange(NamedTuple):
    """Bytes of a file that hold rows of a tensor, and where these go."""

    name: str
    offset: int
    nbytes: int
    """From the first byte of the first row to the last one of the last row."""
    at: int = 0
    """The first byte in the tensor that is loaded."""
    rows: int = 1
    stride: int = 0
    """Bytes from a row to the next one in the file."""

    @property
    def row_bytes(self) -> int:
        return self.nbytes - (self.rows - 1) * self.stride


class PlannedRead(NamedTuple, Generic[Ranged]):
    """One transfer from a file, and the parts of tensors that it brings, in the order of the
    file."""

    offset: int
    nbytes: int
    entries: tuple[Ranged, ...]

    @property
    def direct(self) -> bool:
        """Whether all its bytes are those of one tensor, so that it needs no staging memory."""
        return sum(entry.nbytes > 0 for entry in self.entries) <= 1

    def pieces(self) -> list[tuple[int, Ranged | None]]:
        """Cuts the bytes that are read into tensors and gaps: the bytes of each, and the tensor or
        None. Empty tensors have no piece."""
        cut: list[tuple[int, Ranged | None]] = []
        reached = self.offset
        for entry in self.entries:
            if entry.nbytes:
                if entry.offset > reached:
                    cut.append((entry.offset - reached, None))
                cut.append((entry.nbytes, entry))
                reached = entry.offset + entry.nbytes
        return cut


def plan_reads(
    entries: Iterable[Ranged],
    *,
    small: int = SMALL_BYTES,
    span: int = SPAN_BYTES,
    gap: int = GAP_BYTES,
) -> Iterator[PlannedRead[Ranged]]:
    """Plans the reads of tensors that are given in the order of the file.

    A tensor of over ``small`` bytes is one read. Neighbouring smaller ones with at most ``gap``
    bytes between them are read together, up to ``span`` bytes. Every tensor is in exactly one read,
    and reads are in the order of the file; a read of empty tensors alone has no bytes. A gap is
    between tensors that have bytes.
    """
    group: list[Ranged] = []
    begin: int | None = None  # where the bytes of the group start
    end = 0
    for entry in entries:
        entry_end = entry.offset + entry.nbytes
        joins = not entry.nbytes or (
            entry.nbytes <= small
            and (begin is None or (entry.offset - end <= gap and entry_end - begin <= span))
        )
        if group and not joins:
            yield _read(group)
            group, begin = [], None
        if entry.nbytes > small:
            yield _read([entry])
            continue
        group.append(entry)
        if entry.nbytes:
            begin = entry.offset if begin is None else begin
            end = entry_end
    if group:
        yield _read(group)


def _read(group: list[Ranged]) -> PlannedRead[Ranged]:
    filled = [entry for entry in group if entry.nbytes]
    if not filled:
        return PlannedRead(group[0].offset, 0, tuple(group))
    begin, last = filled[0].offset, filled[-1]
    return PlannedRead(begin, last.offset + last.nbytes - begin, tuple(group))
