"""Which links of GPUs a transfer uses, for those who read profiles without the native library.

If that library is loaded, the registry answers (`waywiser.machine.catalogue.Catalogue`); a test
compares the two. Most executors take the shortest route between the two sides. The others declare
theirs (`waywiser.machine.traits`).
"""

from __future__ import annotations

from collections.abc import Mapping

from waywiser.machine.machine import Gpu, Machine
from waywiser.machine.traits import Route
from waywiser.words import MOST_INDEX, Transfer, whole_number

RELAYS = "relays"
"""The parameter of executors that copy over the links of other GPUs too: the GPUs that help, as in
``1+3``; all that can if it is not set."""


def relays_of(transfer: Transfer, machine: Machine) -> tuple[int, ...]:
    """The GPUs whose links help between the host and the transfer's own GPU, by index.

    Empty for a transfer without relays, and if its own GPU is not on the machine.
    """
    gpus = [place.index for place in transfer.path.places if place.kind == "gpu"]
    own = machine.gpu(gpus[0]) if len(gpus) == 1 else None
    if own is None or _route(transfer, machine) != "over relays":
        return ()
    chosen = transfer.parameters.get(RELAYS)
    if chosen is None:
        return tuple(gpu.index for gpu in machine.gpus if are_peers(own, gpu))
    return _indices(chosen)


def renumbered_relays(settings: dict[str, str], numbers: Mapping[int, int]) -> dict[str, str]:
    """Settings of a transfer with its relays under other numbers; GPUs that ``numbers`` leaves out
    keep theirs."""
    chosen = _indices(settings.get(RELAYS, ""))
    if not chosen:
        return settings
    moved = sorted(numbers.get(index, index) for index in chosen)
    return {**settings, RELAYS: "+".join(map(str, moved))}


def _indices(text: str) -> tuple[int, ...]:
    found = (whole_number(index, MOST_INDEX) for index in text.split("+"))
    return tuple(sorted(index for index in found if index is not None))


def is_through_host(transfer: Transfer, machine: Machine) -> bool:
    """Whether bytes between two GPUs go over the links of both to the host.

    False if one of them is not on the machine.
    """
    source, destination = transfer.path.places
    if (source.kind, destination.kind) != ("gpu", "gpu") or source == destination:
        return False
    one, other = machine.gpu(source.index), machine.gpu(destination.index)
    if one is None or other is None:
        return False
    return not takes_shortest_path(transfer, machine) or other.index not in one.peers


def takes_shortest_path(transfer: Transfer, machine: Machine) -> bool:
    """Whether a transfer between two GPUs goes directly if they can access each other's memory."""
    return _route(transfer, machine) != "through host" and transfer.parameters.get("peer") != "off"


def _route(transfer: Transfer, machine: Machine) -> Route:
    return machine.traits.executor(transfer.path.executor).route


def are_peers(one: Gpu, other: Gpu) -> bool:
    """Whether each of two different GPUs can access the memory of the other."""
    return one.index != other.index and other.index in one.peers and one.index in other.peers
