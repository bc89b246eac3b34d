"""Which links of GPUs a transfer uses, for those who read profiles without the native library.

Where that library is loaded, the registry answers (`waywiser.plan.catalogue.Catalogue`); a test
holds the two against each other. Most executors take the shortest path between the two sides. Those
that do not are named here, because a profile is read by programs that know no registry.
"""

from __future__ import annotations

from collections.abc import Mapping

from waywiser.topology.machine import Gpu, Machine
from waywiser.words import Transfer

THROUGH_HOST = frozenset({"staged"})
"""Executors that copy between two GPUs through the host, also where they are peers."""

OVER_RELAYS = frozenset({"relay"})
"""Executors that copy between the host and one GPU over the links of other GPUs too."""

RELAYS = "relays"
"""Their parameter: the GPUs that help, as in ``1+3``; all that can where it is not set."""


def relays_of(transfer: Transfer, machine: Machine) -> tuple[int, ...]:
    """The GPUs whose links help between the host and the transfer's own GPU, by index.

    Empty for a transfer without relays, and if its own GPU is not on the machine.
    """
    gpus = [place.index for place in transfer.path.places if place.kind == "gpu"]
    own = machine.gpu(gpus[0]) if len(gpus) == 1 else None
    if transfer.path.executor not in OVER_RELAYS or own is None:
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
    return tuple(sorted(int(index) for index in text.split("+") if index.isdecimal()))


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
    return not takes_shortest_path(transfer) or other.index not in one.peers


def takes_shortest_path(transfer: Transfer) -> bool:
    """Whether a transfer between two GPUs goes directly if they can access each other's memory."""
    return transfer.path.executor not in THROUGH_HOST and transfer.parameters.get("peer") != "off"


def are_peers(one: Gpu, other: Gpu) -> bool:
    """Whether each of two different GPUs can access the memory of the other."""
    return one.index != other.index and other.index in one.peers and one.index in other.peers
