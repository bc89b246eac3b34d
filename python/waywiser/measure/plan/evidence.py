"""What is looked at beside the times: where memory is, and which links a path really uses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby

from waywiser.curves.sizes import GROWING
from waywiser.machine import Machine
from waywiser.measure.plan.findings import PROPORTIONAL_BYTES
from waywiser.measure.plan.points import PlannedPoint
from waywiser.words import Memory, Place

LOCATED_NODES = 2
"""A system that shows more nodes than that does not hide any."""

LOCATED_CPUS = 8
"""Cores that read blocks of memory: enough to see some of them move."""


def watched(points: Iterable[PlannedPoint]) -> frozenset[str]:
    """Identities of the series whose links are looked at: of each curve that has a GPU at an end
    the size nearest to `GROWING`, of every preset and large enough that the call does not count.
    Its settings are the usual ones, or the question is the path itself (peer access off), and it
    is no bystander. Of equal paths the others are looked at if they are principal: reading the
    counters of a GPU takes as long as measuring a size, and what opposite pairs use their halves
    show. If GPUs at no end take part, the first path alone is looked at."""
    curves = groupby(filter(_shows_links, points), key=lambda point: point.curve.text)
    return frozenset(min(curve, key=_distance).identity for _, curve in curves)


def _shows_links(point: PlannedPoint) -> bool:
    curve = point.curve
    if point.workload.is_sustained:
        return False
    usual = curve.is_default and not curve.is_sized
    usual = usual or curve.requested or curve.peer_access is False
    ends = {place.index for place in point.workload.places if place.kind == "gpu"}
    if point.gpus == ends:
        first = not point.like or curve.principal
    else:
        first = not point.like and curve.kind == "copy"
    return usual and first and bool(ends) and point.workload.bytes >= PROPORTIONAL_BYTES


def _distance(point: PlannedPoint) -> tuple[bool, float]:
    """Sizes that may be skipped come last."""
    surely = point.always or not (point.growing or point.conditional)
    return not surely, abs(math.log(point.workload.bytes / GROWING))


def located_memories(machine: Machine) -> tuple[Memory, ...]:
    """The memories of which each worker asks where their blocks are: page-locked where a GPU can
    show them too."""
    kind = machine.traits.reference_memory("gpu" if machine.gpus else "host", "numa")
    return tuple(Memory(kind, Place("numa", node.index)) for node in machine.numa[:LOCATED_NODES])


def located_cpus(machine: Machine) -> tuple[int, ...]:
    """The cores that read the blocks, spread over all of them."""
    cpus = [cpu for node in machine.numa for cpu in node.cpus]
    step = max(1, -(-len(cpus) // LOCATED_CPUS))
    return tuple(cpus[::step])
