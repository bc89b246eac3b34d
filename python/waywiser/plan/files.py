"""What can be asked of files, and what of it is asked for the sake of something else."""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.plan.catalogue import Catalogue
from waywiser.words import Memory, Path, Transfer

SMALLEST = 4096
"""Bytes of the least that is read or written: no disk has larger blocks, and anything less would go
through the page cache."""


def has_file(path: Path) -> bool:
    """Whether an end is at the place of a file."""
    return "file" in (path.source.place.kind, path.destination.place.kind)


def is_read(memory: Memory, catalogue: Catalogue) -> bool:
    """Whether its bytes are read from or written to a file, and not at an address."""
    return memory.place.kind == "file" and not catalogue.memories[memory.kind].cpu_accessible


def on_disk(transfer: Transfer, catalogue: Catalogue) -> bool:
    """Whether `is_read` holds for a side of the transfer."""
    ends = (transfer.path.source, transfer.path.destination)
    return any(is_read(end, catalogue) for end in ends)


def possible_sizes(
    transfers: Iterable[Transfer], sizes: tuple[int, ...], catalogue: Catalogue
) -> tuple[int, ...]:
    """Those of the sizes that make sense for the transfers of a workload."""
    if any(on_disk(transfer, catalogue) for transfer in transfers):
        return tuple(size for size in sizes if size >= SMALLEST)
    return sizes
