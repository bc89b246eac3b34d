"""What transfers share: the resources that each of them uses.

The topology shows links and their bounds (`waywiser.machine.bounds.uses`). Other limits only show
when transfers run together: both directions of a link, reads and writes of host memory, a port that
GPUs share, the CPUs that copy, the link between sockets. Each is a resource that may have a
capacity; `waywiser.model.capacity` finds which of them have one.

Equal devices have equal resources, so that one measured GPU stands for all: the *kind* of a
resource is its name without the numbers of equal devices, as ``PCIe to gpu:*``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from waywiser.machine import Gpu, Machine, bounds, format_list
from waywiser.words import Transfer, format_settings, grouped

BOTH = ", both directions"


class ResourceUse(NamedTuple):
    """A resource that a transfer uses."""

    name: str
    """As in ``PCIe to gpu:0``, ``reads of numa:0``, ``PCIe of gpu:0, both directions``."""
    kind: str
    """The name without the numbers of equal GPUs: ``PCIe to gpu:*``."""
    passes: int = 1
    """How often one byte of the transfer goes through it."""
    bound: float | None = None
    """Bytes per second that the topology shows; None if it shows nothing."""
    breadth: int = 0
    """How much of the machine shares it: of two resources that explain the same, the narrower one
    is taken."""


Groups = tuple[tuple[int, ...], ...]


class MachineResources:
    """The resources of a machine, by transfer."""

    def __init__(self, machine: Machine, groups: Groups = ()) -> None:
        """``groups`` are GPUs that may share a port to the host: those of a hidden side, or those
        that slow one another."""
        self.machine = machine
        self.groups = tuple(dict.fromkeys((*_groups_of_nodes(machine), *groups)))

    @cached_property
    def _are_equal(self) -> bool:
        """Whether all GPUs are of one kind: then they have the same resources."""
        return len({_links_of(gpu) for gpu in self.machine.gpus}) <= 1

    def uses(self, transfer: Transfer) -> tuple[ResourceUse, ...]:
        """All resources that a transfer uses, whether or not they are known to limit it."""
        found = self._links(transfer)
        source, destination = transfer.path.places
        if self._is_moved_by_cpus(transfer):
            node = next((p for p in (source, destination) if p.kind == "numa"), None)
            found.append(ResourceUse(f"CPUs of {node}" if node else "CPUs", "CPUs", breadth=6))
        for place, what in ((source, "reads"), (destination, "writes")):
            if place.kind == "numa":
                found.append(ResourceUse(f"{what} of {place}", f"{what} of {place}", breadth=5))
                both = f"reads and writes of {place}"
                found.append(ResourceUse(both, both, breadth=7))
        found += self._sockets(transfer)
        return _merged(found)

    def _links(self, transfer: Transfer) -> list[ResourceUse]:
        shown = bounds.uses(self.machine, transfer)
        found: list[ResourceUse] = []
        for resource, passes in () if isinstance(shown, str) else shown:
            rate = resource.bytes_per_second
            found.append(self._named(resource.name, passes, rate))
            if resource.link:
                found.append(self._named(f"{resource.link}{BOTH}", passes, 2 * rate, breadth=1))
        return found + self._ports(transfer)

    def _named(
        self, name: str, passes: int = 1, bound: float | None = None, breadth: int = 0
    ) -> ResourceUse:
        kind = bounds.of_any_gpu(name) if self._are_equal else name
        return ResourceUse(name, kind, passes, bound, breadth)

    def _ports(self, transfer: Transfer) -> list[ResourceUse]:
        """The ports to the host that groups of GPUs may share."""
        source, destination = transfer.path.places
        if {source.kind, destination.kind} != {"numa", "gpu"}:
            return []
        to_gpu = destination.kind == "gpu"
        gpu = (destination if to_gpu else source).index
        found: list[ResourceUse] = []
        for group in self.groups:
            if gpu in group:
                name = f"gpu:{format_list(group)}"
                one = f"port {'to' if to_gpu else 'from'} {name}"
                both = f"port of {name}{BOTH}"
                found += [ResourceUse(one, one, breadth=2), ResourceUse(both, both, breadth=3)]
        return found

    def _sockets(self, transfer: Transfer) -> list[ResourceUse]:
        """The link between two sockets, if the ends are on two."""
        nodes: list[int] = []
        for place in transfer.path.places:
            gpu = self.machine.gpu(place.index) if place.kind == "gpu" else None
            if place.kind == "numa":
                nodes.append(place.index)
            elif gpu is not None and gpu.numa >= 0:
                nodes.append(gpu.numa)
        packages = {node.index: node.package for node in self.machine.numa}
        if len(nodes) != 2 or not set(nodes) <= packages.keys():
            return []
        first, second = (packages[node] for node in nodes)
        if first == second or self._stays_on_nvlink(transfer):
            return []
        one = f"link from socket {first} to socket {second}"
        low, high = sorted((first, second))
        both = f"link of sockets {low} and {high}{BOTH}"
        return [ResourceUse(one, one, breadth=4), ResourceUse(both, both, breadth=5)]

    def _stays_on_nvlink(self, transfer: Transfer) -> bool:
        return all(
            use.name.startswith("NVLink") for use in self._links(transfer) if use.breadth == 0
        )

    def _is_moved_by_cpus(self, transfer: Transfer) -> bool:
        traits = self.machine.traits
        return traits.executor(transfer.path.executor).uses_cpus or any(
            traits.memory(memory.kind).is_moved_by_cpus for memory in transfer.path.ends
        )


def method_of(transfer: Transfer, machine: Machine) -> str:
    """The kinds of both memories, the executor and its settings, the same for both directions:
    ``device and pinned by copy-engine``. Methods have capacities of their own: small reads by
    kernels fill a link less than the packets of an engine."""
    same = machine.traits.same_memory
    kinds = sorted({same(memory.kind) for memory in transfer.path.ends})
    settings = {**transfer.parameters}
    settings.pop("submit", None)
    layout = f" as {transfer.layout}" if transfer.layout else ""
    by = f"{transfer.path.executor}{format_settings(settings)}{layout}"
    return f"{' and '.join(kinds)} by {by}"


def _merged(uses: Sequence[ResourceUse]) -> tuple[ResourceUse, ...]:
    """Each resource once, with all passes."""
    found: dict[str, ResourceUse] = {}
    for use in uses:
        known = found.get(use.name)
        found[use.name] = use._replace(passes=use.passes + known.passes) if known else use
    return tuple(found.values())


def _groups_of_nodes(machine: Machine) -> Groups:
    """The GPUs of each NUMA node, if there are several nodes with GPUs."""
    nodes = grouped((gpu.numa, gpu.index) for gpu in machine.gpus)
    groups = tuple(tuple(group) for node, group in nodes.items() if node >= 0)
    return groups if len(groups) > 1 else ()


def _links_of(gpu: Gpu) -> tuple[object, ...]:
    """What makes a GPU of a kind: its model and its links, without its number."""
    lanes = sorted((each.to.partition(":")[0], each.lanes, each.gb_per_s) for each in gpu.nvlinks)
    link = gpu.pcie
    return gpu.name, link.generation_max, link.width_max, link.gb_per_s_now, tuple(lanes)
