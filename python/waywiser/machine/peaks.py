"""The theoretical peaks of a machine's simple paths: to, from, between and within its GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.machine.bounds import bound, why_unbounded
from waywiser.machine.machine import Machine
from waywiser.words import Memory, Path, Place, Transfer, Value, Workload


class Peak(Value, frozen=True):
    """The bound of one copy, or the reason why there is none."""

    source: str
    destination: str
    bytes_per_second: float | None
    made_of: str
    narrowest: str = ""


def peaks(machine: Machine) -> Iterator[Peak]:
    """The peaks between the host (its first NUMA node) and each GPU both ways, of all ordered pairs
    of GPUs, and within each GPU."""
    kind = machine.traits.reference_memory("gpu", "gpu")
    gpus = [Memory(kind, Place("gpu", gpu.index)) for gpu in machine.gpus]
    if machine.numa:
        node = Place("numa", machine.numa[0].index)
        host = Memory(machine.traits.reference_memory("gpu", "numa"), node)
        for gpu in gpus:
            yield _peak(machine, host, gpu)
            yield _peak(machine, gpu, host)
    for source in gpus:
        for destination in gpus:
            yield _peak(machine, source, destination)


def _peak(machine: Machine, source: Memory, destination: Memory) -> Peak:
    executor = machine.traits.reference_executor("gpu")
    workload = Workload((Transfer(Path(source, destination, executor)),))
    found = bound(machine, workload)
    ends = str(source.place), str(destination.place)
    if found is None:
        return Peak(*ends, None, why_unbounded(machine, workload))
    return Peak(*ends, found.bytes_per_second, found.made_of, found.narrowest)
