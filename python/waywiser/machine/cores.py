"""The cores of a machine: their logical CPUs, and their logical numbers.

A core is what shares a first-level cache. Its logical number is that of hwloc, by which launchers
count: cores follow one another within the caches, nodes and packages that hold them, each of these
by its lowest CPU.
"""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.machine.machine import Machine, NumaNode
from waywiser.words import Value


class Core(Value, frozen=True):
    """A core with CPUs that this process may use."""

    number: int
    """Its logical number in the machine."""
    node: int
    """Its NUMA node."""
    cpus: tuple[int, ...]
    """The operating system's numbers, ascending."""


def cores_of(machine: Machine) -> tuple[Core, ...]:
    """All cores, by their logical numbers. A CPU whose caches are not known is a core."""
    packages: dict[int, int] = {}
    for node in machine.numa:
        lowest = min(node.cpus, default=0)
        packages[node.package] = min(packages.get(node.package, lowest), lowest)
    found = [
        ((packages[node.package], min(node.cpus), *_holders(machine, cpus), cpus[0]), node, cpus)
        for node in machine.numa
        for cpus in _cores_of_node(machine, node)
    ]
    ordered = sorted(found, key=lambda each: each[0])
    return tuple(Core(n, node.index, cpus) for n, (_, node, cpus) in enumerate(ordered))


def _cores_of_node(machine: Machine, node: NumaNode) -> list[tuple[int, ...]]:
    first = {cpu: cache.cpus for cache in machine.caches if cache.level == 1 for cpu in cache.cpus}
    own = set(node.cpus)
    cores = {tuple(sorted(own & set(first.get(cpu, (cpu,))))) for cpu in node.cpus}
    return sorted(cores)


def _holders(machine: Machine, cpus: Iterable[int]) -> tuple[int, int]:
    """The lowest CPU of the caches of the third and the second level that hold a core."""
    core = set(cpus)
    lowest = []
    for level in (3, 2):
        holders = [
            min(cache.cpus)
            for cache in machine.caches
            if cache.level == level and core <= set(cache.cpus)
        ]
        lowest.append(min(holders, default=0))
    return lowest[0], lowest[1]
