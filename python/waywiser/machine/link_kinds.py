"""Which kinds of links a workload uses, PCIe or NVLink, by the topology and the executor's route.

`waywiser.machine.bounds` says how fast they are; here a link counts whose speed is unknown too.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, NamedTuple

from waywiser.machine.machine import Gpu, Machine
from waywiser.machine.routes import is_through_host, relays_of
from waywiser.words import Transfer, Workload

LinkKind = Literal["pcie", "nvlink"]


class LinkKinds(NamedTuple):
    """What is known of the links of a workload."""

    kinds: frozenset[LinkKind]
    """Kinds that at least one transfer uses."""
    unknown: bool
    """Whether the machine does not describe the links of at least one transfer."""


def link_kinds(machine: Machine, workload: Workload) -> LinkKinds:
    """Returns the links between GPUs, and between GPUs and the host, that the transfers use."""
    found = [_of_transfer(machine, transfer) for transfer in workload.transfers]
    known = [kinds for kinds in found if kinds is not None]
    return LinkKinds(frozenset().union(*known), len(known) < len(found))


def _of_transfer(machine: Machine, transfer: Transfer) -> frozenset[LinkKind] | None:
    """The kinds; None if they are not known."""
    members = (single for place in transfer.path.places for single in place.each)
    places = dict.fromkeys(place for place in members if place.kind == "gpu")
    ends = [gpu for place in places if (gpu := machine.gpu(place.index))]
    if len(ends) < len(places) or machine.traits.is_between_ranks(transfer.path):
        return None
    if transfer.path.is_among_several:
        pairs = combinations(ends, 2)
        return _union(*(_between(one, other, through_host=False) for one, other in pairs))
    if len(ends) == 2:
        return _between(*ends, through_host=is_through_host(transfer, machine))
    if not ends or len(set(transfer.path.places)) == 1:
        return frozenset()
    relays = [gpu for index in relays_of(transfer, machine) if (gpu := machine.gpu(index))]
    return _union(
        *map(_to_host, (*ends, *relays)),
        *(_between(ends[0], relay, through_host=False) for relay in relays),
    )


def _to_host(gpu: Gpu) -> frozenset[LinkKind] | None:
    if any(link.to == "cpu" for link in gpu.nvlinks):
        return frozenset({"nvlink"})
    if gpu.on_module:
        return frozenset({"nvlink"}) if gpu.on_module == "coherent" else frozenset()
    return frozenset({"pcie"}) if gpu.links_known or gpu.pcie.gb_per_s_now else None


def _between(source: Gpu, destination: Gpu, *, through_host: bool) -> frozenset[LinkKind] | None:
    """Direct NVLinks, else those to a switch of both, else the links of both to the host."""
    direct = any(link.to == f"gpu:{destination.index}" for link in source.nvlinks)
    switched = all(
        any(link.to == "switch" for link in gpu.nvlinks) for gpu in (source, destination)
    )
    if not through_host and (direct or switched):
        return frozenset({"nvlink"})
    if not (through_host or source.links_known or destination.index in source.peers):
        return None
    return _union(_to_host(source), _to_host(destination))


def _union(*known: frozenset[LinkKind] | None) -> frozenset[LinkKind] | None:
    found = [kinds for kinds in known if kinds is not None]
    return frozenset().union(*found) if len(found) == len(known) else None
