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

from msgspec.structs import replace

from waywiser.machine import Traits
from waywiser.words import (
    Memory,
    Place,
    Transfer,
    Workload,
    format_bytes,
    format_settings,
    ranges_of,
)

BIDIRECTIONAL = {
    "host-to-all": "host-and-all",
    "all-to-host": "host-and-all",
    "one-to-all": "one-and-all",
    "all-to-one": "one-and-all",
    "pairs-unidirectional": "pairs-bidirectional",
}
"""A set of transfers -> the set of these and all their opposites."""

SETS = {
    "host-to-all": "from host memory to each of several GPUs",
    "all-to-host": "from each of several GPUs to host memory",
    "host-and-all": "between host memory and each of several GPUs, bidirectional",
    "one-to-all": "from one GPU to several others",
    "all-to-one": "from several GPUs to one",
    "one-and-all": "between one GPU and several others, bidirectional",
    "pairs-unidirectional": "from one GPU to another, in pairs without a common GPU",
    "pairs-bidirectional": "between the two GPUs of each such pair, bidirectional",
    "all-to-all": "from each of several GPUs to each other one",
    "ring": "from each GPU to the next, and from the last to the first",
}
"""The names of sets, and the transfers that start together in them."""


def name_of(workload: Workload) -> str:
    """The workload's name without sizes; its `waywiser.words.Workload.curve` where it has none."""
    transfers = workload.transfers
    forward = _forward(transfers)
    both = len(forward) < len(transfers)
    if len(transfers) < 2 or not _alike(transfers, forward):
        return workload.curve
    shape = ""
    if _is_all_to_all(transfers):
        forward, both, shape = transfers, False, "all-to-all"
    elif len(forward) > 1:
        shape = _shape([transfer.path.places for transfer in forward])
        shape = BIDIRECTIONAL.get(shape, "") if both else shape
        if not shape:
            return workload.curve
    first = forward[0]
    arrow = "<->" if both else "->"
    sources = _together([transfer.path.source for transfer in forward])
    destinations = _together([transfer.path.destination for transfer in forward])
    layout = f" as {first.layout}" if first.layout else ""
    by = f"{first.path.executor}{format_settings(first.parameters)}{layout}"
    name = f"{shape} {sources} {arrow} {destinations} by {by}"
    return name.strip() + workload.states


def shown_workload(workload: Workload, traits: Traits) -> Workload:
    """The workload as tables show it: with the call in place of the executor if multiprocessors
    were observed to make its copies. Its texts are for readers, and no identities."""
    if not traits.who_copies:
        return workload
    return replace(workload, transfers=tuple(_shown(each, traits) for each in workload.transfers))


def _shown(transfer: Transfer, traits: Traits) -> Transfer:
    call = traits.by_multiprocessors(transfer)
    if not call:
        return transfer
    return replace(transfer, path=replace(transfer.path, executor=call), parameters={})


def label_of(workload: Workload, name: str = "") -> str:
    """The name with the size of each transfer; the whole text where it has no name of its own.
    ``name`` is what `name_of` returns, if it is known."""
    name = name or name_of(workload)
    sizes = {transfer.bytes for transfer in workload.transfers}
    text, curve = workload.texts
    if name == curve or len(sizes) != 1:
        return text
    return f"{name} of {format_bytes(sizes.pop())}"


def _forward(transfers: Sequence[Transfer]) -> Sequence[Transfer]:
    """One of each pair of opposites, if there is nothing but such pairs; else all."""
    forward: list[Transfer] = []
    waiting: list[str] = []
    for transfer in transfers:
        if transfer.path == transfer.path.opposite:
            return transfers  # within one memory nothing goes back
        if (text := str(transfer.path)) in waiting:
            waiting.remove(text)
        else:
            waiting.append(str(transfer.path.opposite))
            forward.append(transfer)
    return transfers if waiting else forward


def _alike(transfers: Sequence[Transfer], forward: Sequence[Transfer]) -> bool:
    """All are moved the same way. Of those one way all sources are of one kind at one kind of
    place, and so are all destinations."""
    methods = {(t.path.executor, format_settings(t.parameters), str(t.layout)) for t in transfers}
    sides = {tuple(map(_kind_of_end, transfer.path.ends)) for transfer in forward}
    return len(methods) == len(sides) == 1


def _kind_of_end(memory: Memory) -> tuple[str, str, str]:
    return memory.kind, format_settings(memory.variant), memory.place.kind


def _shape(edges: Sequence[tuple[Place, Place]]) -> str:
    """The name of a set one way, or nothing."""
    sources, destinations = zip(*edges, strict=True)
    match (sources[0].kind, destinations[0].kind):
        case ("numa", "gpu"):
            return "host-to-all" if _differ(destinations) else ""
        case ("gpu", "numa"):
            return "all-to-host" if _differ(sources) else ""
        case ("gpu", "gpu"):
            if _differ([*sources, *destinations]):
                return "pairs-unidirectional"
            if _is_ring(sources, destinations):
                return "ring"
            if len(set(sources)) == 1 and _differ([sources[0], *destinations]):
                return "one-to-all"
            if len(set(destinations)) == 1 and _differ([destinations[0], *sources]):
                return "all-to-one"
    return ""


def _differ(places: Sequence[Place]) -> bool:
    return len(set(places)) == len(places)


def _is_all_to_all(transfers: Sequence[Transfer]) -> bool:
    """Whether each of three and more GPUs is the source of one transfer to each other one."""
    edges = {transfer.path.places for transfer in transfers}
    gpus = {place for edge in edges for place in edge if place.kind == "gpu"}
    every = {(one, other) for one in gpus for other in gpus if one != other}
    return len(gpus) > 2 and len(edges) == len(transfers) and edges == every


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
    """Runs of numbers in ascending order, three and more in a row as ``0-3``."""
    for first, last in ranges_of(numbers):
        if last - first < 2:
            yield from map(str, range(first, last + 1))
        else:
            yield f"{first}-{last}"
