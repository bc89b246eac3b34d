"""What people call a workload: one line, also where it is many transfers.

A workload's text is its transfers and grows with them; the name of a known set of transfers does
not. It is derived from the workload alone, so that it is the same for a plan and for a profile
that is read years later, and it is no part of any identity:

    host-to-all pinned@numa:0-1 -> device@gpu:0-7 by copy-engine
    all-to-host device@gpu:0-7 -> pinned@numa:0 by copy-engine (shared)
    one-to-all device@gpu:0 -> device@gpu:1-7 by sm
    device@gpu:0 <-> device@gpu:1 by copy-engine

What a name leaves out is which member of one side belongs to which of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from waywiser.words import (
    Memory,
    Place,
    Transfer,
    Workload,
    format_bytes,
    format_settings,
    ranges_of,
)

BOTH_WAYS = {
    "host-to-all": "host-and-all",
    "all-to-host": "host-and-all",
    "one-to-all": "one-and-all",
    "all-to-one": "one-and-all",
    "pairs-one-way": "pairs-both-ways",
}
"""A set of transfers -> the set of these and all their opposites."""

SETS = {
    "host-to-all": "from host memory to each of several GPUs",
    "all-to-host": "from each of several GPUs to host memory",
    "host-and-all": "between host memory and each of several GPUs, both ways",
    "one-to-all": "from one GPU to several others",
    "all-to-one": "from several GPUs to one",
    "one-and-all": "between one GPU and several others, both ways",
    "pairs-one-way": "from one GPU to another in pairs that share none",
    "pairs-both-ways": "the same, both ways",
    "ring": "from each GPU to the next, and from the last to the first",
}
"""The names of sets, and the transfers that start together in them."""

_Edge = tuple[Place, Place]


class _Flow(NamedTuple):
    """Transfers of one kind: each from a place of its own or a common one, to the same."""

    name: str
    """Of the set; empty for a single transfer."""
    forward: Sequence[Transfer]
    arrow: str


def name_of(workload: Workload) -> str:
    """The workload's name without sizes; its `waywiser.words.Workload.curve` where it has none."""
    flow = _flow_of(workload.transfers)
    if flow is None:
        return workload.curve
    first = flow.forward[0]
    sources = _together([transfer.path.source for transfer in flow.forward])
    destinations = _together([transfer.path.destination for transfer in flow.forward])
    layout = f" as {first.layout}" if first.layout else ""
    by = f"{first.path.executor}{format_settings(first.parameters)}{layout}"
    name = f"{flow.name} {sources} {flow.arrow} {destinations} by {by}"
    return name.strip() + workload.states


def label_of(workload: Workload) -> str:
    """The name with the size of each transfer; the whole text where it has no name of its own."""
    name = name_of(workload)
    sizes = {transfer.bytes for transfer in workload.transfers}
    if name == workload.curve or len(sizes) != 1:
        return str(workload)
    return f"{name} of {format_bytes(sizes.pop())}"


def _flow_of(transfers: Sequence[Transfer]) -> _Flow | None:
    """The transfers as one set, or None where they are none that has a name."""
    if len(transfers) < 2 or not _alike(transfers):
        return None
    forward = _forward(transfers)
    if forward is None:
        shape = _shape([_edge(transfer) for transfer in transfers])
        return _Flow(shape, transfers, "->") if shape and _alike_sides(transfers) else None
    if not _alike_sides(forward):
        return None
    if len(forward) == 1:
        return _Flow("", forward, "<->")
    shape = _shape([_edge(transfer) for transfer in forward])
    return _Flow(BOTH_WAYS[shape], forward, "<->") if shape in BOTH_WAYS else None


def _alike(transfers: Sequence[Transfer]) -> bool:
    """All are moved the same way."""
    first = transfers[0]
    return all(
        (t.path.executor, t.parameters, t.layout)
        == (first.path.executor, first.parameters, first.layout)
        for t in transfers
    )


def _alike_sides(transfers: Sequence[Transfer]) -> bool:
    """All sources are of one kind at one kind of place, and so are all destinations."""
    ends = [(t.path.source, t.path.destination) for t in transfers]
    return all(_alike_memories(side) for side in zip(*ends, strict=True))


def _alike_memories(memories: Sequence[Memory]) -> bool:
    kinds = {(m.kind, str(sorted(m.variant.items())), m.place.kind) for m in memories}
    return len(kinds) == 1


def _forward(transfers: Sequence[Transfer]) -> list[Transfer] | None:
    """One of each pair of opposites, where there is nothing but such pairs."""
    forward: list[Transfer] = []
    waiting: list[str] = []
    for transfer in transfers:
        if (text := str(transfer.path)) in waiting:
            waiting.remove(text)
        else:
            waiting.append(str(transfer.path.opposite))
            forward.append(transfer)
    return None if waiting else forward


def _edge(transfer: Transfer) -> _Edge:
    return transfer.path.places


def _shape(edges: Sequence[_Edge]) -> str:
    """The name of a set one way, or nothing."""
    sources, destinations = [edge[0] for edge in edges], [edge[1] for edge in edges]
    kinds = {(source.kind, destination.kind) for source, destination in edges}
    if kinds == {("numa", "gpu")}:
        return "host-to-all" if _differ(destinations) else ""
    if kinds == {("gpu", "numa")}:
        return "all-to-host" if _differ(sources) else ""
    return _shape_between(sources, destinations) if kinds == {("gpu", "gpu")} else ""


def _shape_between(sources: Sequence[Place], destinations: Sequence[Place]) -> str:
    if _differ([*sources, *destinations]):
        return "pairs-one-way"
    if _is_ring(sources, destinations):
        return "ring"
    if len(set(sources)) == 1 and _differ([sources[0], *destinations]):
        return "one-to-all"
    if len(set(destinations)) == 1 and _differ([destinations[0], *sources]):
        return "all-to-one"
    return ""


def _differ(places: Sequence[Place]) -> bool:
    return len(set(places)) == len(places)


def _is_ring(sources: Sequence[Place], destinations: Sequence[Place]) -> bool:
    """Whether following the transfers from the first leads through every place and back."""
    after = dict(zip(sources, destinations, strict=True))
    if len(after) < max(3, len(sources)) or set(sources) != set(destinations):
        return False
    here, steps = after[sources[0]], 1
    while here != sources[0] and steps < len(after):
        here, steps = after[here], steps + 1
    return here == sources[0] and steps == len(after)


def _together(memories: Sequence[Memory]) -> str:
    """``device@gpu:0-3,6``: memories of one kind at the places of all."""
    first = memories[0]
    if first.place.kind == "file":
        names = ",".join(sorted({memory.place.file for memory in memories}))
        return f"{first.kind}{format_settings(first.variant)}@file:{names}"
    indices = ",".join(_runs(memory.place.index for memory in memories))
    return f"{first.kind}{format_settings(first.variant)}@{first.place.kind}:{indices}"


def _runs(numbers: Iterable[int]) -> Iterator[str]:
    """In ascending order, three and more in a row as ``0-3``."""
    for first, last in ranges_of(numbers):
        if last - first < 2:
            yield from map(str, range(first, last + 1))
        else:
            yield f"{first}-{last}"
