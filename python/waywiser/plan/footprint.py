"""What a workload takes up, in all and at each place: its buffers, and the staging memory of its
executors. The registry knows both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from waywiser.plan.catalogue import Catalogue
from waywiser.words import Memory, Workload


class Footprint(NamedTuple):
    """Bytes of all buffers and staging together, and what each place must be able to hold."""

    total: int
    at: dict[str, int]
    staging: int = 0
    """Of the total."""
    gpus: frozenset[int] = frozenset()
    """Whose memory or links the workload uses."""


class _Buffer(NamedTuple):
    name: str
    """Equal for what is one buffer."""
    size: int
    places: tuple[Memory, ...]


def footprint(workload: Workload, catalogue: Catalogue) -> Footprint:
    """Each transfer has a source and a destination of its own, gaps of its layout included. What
    moves in place has one buffer, which both places must hold; in a shared workload equal memories
    on the same side are one. Staging is no buffer: each transfer takes its own."""
    sizes: dict[str, int] = {}
    places: dict[str, tuple[Memory, ...]] = {}
    for buffer in _buffers(workload, catalogue):
        sizes[buffer.name] = max(buffer.size, sizes.get(buffer.name, 0))
        places[buffer.name] = buffer.places
    at: dict[str, int] = {}
    for name, memories in places.items():
        for place in {str(memory.place) for memory in memories}:
            at[place] = at.get(place, 0) + sizes[name]
    staging = 0
    gpus: set[int] = set()
    for transfer in workload.transfers:
        needs = catalogue.requirements(transfer)
        staging += needs.staging_bytes
        for index, size in needs.device_bytes.items():
            at[f"gpu:{index}"] = at.get(f"gpu:{index}", 0) + size
        gpus |= needs.gpus
    gpus.update(place.index for place in workload.places if place.kind == "gpu")
    return Footprint(sum(sizes.values()) + staging, at, staging, frozenset(gpus))


def _buffers(workload: Workload, catalogue: Catalogue) -> Iterator[_Buffer]:
    for number, transfer in enumerate(workload.transfers):
        source, destination = transfer.path.source, transfer.path.destination
        extents = catalogue.extents(transfer)
        if catalogue.in_place(transfer):
            yield _Buffer(f"{number}", max(extents), (source, destination))
            continue
        for side, memory, extent in (("from", source, extents[0]), ("to", destination, extents[1])):
            name = f"{side} {memory}" if workload.shared else f"{side} {number}"
            yield _Buffer(name, extent, (memory,))
