"""Where the ranks of a survey are: their CPUs, their NUMA node and their GPU."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from waywiser.machine import Machine, PlacedRank
from waywiser.words import Place, WaywiserError, WordError


class PlacementError(WaywiserError):
    """So many ranks cannot be placed."""


NEAR = "near"
FAR = "far"


def place_ranks(
    machine: Machine, ranks: int, per_gpu: int = 0, cpus: str = NEAR
) -> tuple[PlacedRank, ...]:
    """Places ``ranks`` ranks, ``per_gpu`` on each GPU in turn, or equally many on each if that is
    0; with several placements, as many of each.

    ``cpus`` says at which node they are: ``near``, that of their GPU, and spread over the nodes if
    they have none; ``far``, the one with the greatest distance from that of their GPU; ``numa:1``,
    that one; or several of these, with commas. The ranks of a node divide its CPUs, and share them
    if there are more ranks.
    Raises `PlacementError`.
    """
    places = list(dict.fromkeys(each.strip() for each in cpus.split(",")))
    return tuple(
        replace(rank, index=n * ranks + rank.index, placement="" if places == [NEAR] else place)
        for n, place in enumerate(places)
        for rank in _placed(machine, ranks, per_gpu, place)
    )


def _placed(machine: Machine, ranks: int, per_gpu: int, cpus: str) -> tuple[PlacedRank, ...]:
    """The ranks of one placement."""
    machine = replace(machine, numa=tuple(node for node in machine.numa if node.cpus))
    if not machine.numa:
        raise PlacementError("the machine shows no NUMA node with CPUs: no rank can be placed")
    gpus = [gpu.index for gpu in machine.gpus]
    if per_gpu and not gpus:
        raise PlacementError(
            "--ranks-per-gpu: there is no GPU to measure",
            remedy=machine.gpu_reason or "leave it out",
        )
    each = per_gpu or -(-ranks // max(len(gpus), 1))
    of_ranks = [gpus[n // each] if n // each < len(gpus) else -1 for n in range(ranks)]
    spread = [machine.numa[n * len(machine.numa) // ranks].index for n in range(ranks)]
    nodes = [_node(machine, cpus, *each) for each in zip(of_ranks, spread, strict=True)]
    places = []
    for n, (gpu, node) in enumerate(zip(of_ranks, nodes, strict=True)):
        beside = [other for other, its in enumerate(nodes) if its == node]
        there = next(each.cpus for each in machine.numa if each.index == node)
        places.append(PlacedRank(n, _share(there, beside.index(n), len(beside)), node, gpu))
    return tuple(places)


def _node(machine: Machine, cpus: str, gpu: int, spread: int) -> int:
    """The node of a rank; ``spread`` is that which it has if it has no GPU."""
    nodes = [node.index for node in machine.numa]
    if cpus not in (NEAR, FAR):
        return _named_node(cpus, nodes)
    own = machine.gpu(gpu)
    near = own.numa if own is not None and own.numa in nodes else None
    if cpus == NEAR:
        return spread if near is None else near
    if len(nodes) < 2:
        raise PlacementError(
            "--rank-cpus far: this machine shows one NUMA node, so that no CPUs are far from a GPU"
        )
    if near is None:
        raise PlacementError(
            "--rank-cpus far: no GPU of a rank has a known node", remedy="write --rank-cpus numa:1"
        )
    there = next(node for node in machine.numa if node.index == near)
    opposite = nodes[(nodes.index(near) + len(nodes) // 2) % len(nodes)]
    return max([opposite, *nodes], key=lambda node: there.distance(node) or 0)


def _named_node(cpus: str, nodes: Sequence[int]) -> int:
    try:
        place = Place.parse(cpus)
    except WordError:
        place = None
    if place is None or place.kind != "numa":
        raise PlacementError(
            f"--rank-cpus {cpus!r} is no placement",
            remedy="write near, far or numa:1, or several: near,far",
        )
    if place.index not in nodes:
        known = ", ".join(f"numa:{node}" for node in nodes)
        raise PlacementError(f"--rank-cpus {cpus}: there is no such node", remedy=f"it has {known}")
    return place.index


def _share(cpus: Sequence[int], number: int, of: int) -> tuple[int, ...]:
    """Every so-maniest CPU: the threads of a core follow its first ones (`NumaNode.cpus`)."""
    return tuple(cpus[number::of]) or (cpus[number % len(cpus)],)
