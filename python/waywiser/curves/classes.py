"""Which curves of a machine should be equal: those that its symmetry maps onto one another.

Two curves are of one class where the same is done (executor, settings, layout, kinds of memory,
cache state) between equivalent places: GPUs of the same model with the same links, NUMA nodes
with as many CPUs, and the same relations between them in the topology, distances included. A
class is checked by measurement, because the topology does not show everything (a hidden socket, a
worse slot). Where no topology shows the relation between two places, and it may differ, no other
two places are known to have the same one: a GPU that may be near any of several NUMA nodes, and two
nodes of several. Two GPUs are taken to have the links of two others, whether or not that is shown:
if many pairs differ, none is called slow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import combinations

from waywiser.machine import Gpu, Machine
from waywiser.words import MOST_INDEX, Place, Workload, format_settings, whole_number

Key = tuple[Hashable, ...]

MOST_ALIKE = 2
"""NUMA nodes between which there is one relation: of more, some may share a package."""


class Classes:
    """The classes of one machine's curves."""

    def __init__(self, machine: Machine) -> None:
        self._is_described = machine.is_described
        self._gpus = {gpu.index: gpu for gpu in machine.gpus}
        self._nodes = {node.index: node for node in machine.numa}

    def key(self, workload: Workload) -> Key:
        """Equal for workloads that should be equal at equal sizes; without the sizes."""
        places = list(dict.fromkeys(workload.places))
        letters = {place: f"{place.kind}:{n}" for n, place in enumerate(places)}
        return (
            tuple(self._doing(workload, letters)),
            tuple(map(self._alone, places)),
            tuple(self._between(a, b) for a, b in combinations(places, 2)),
        )

    def _doing(self, workload: Workload, letters: dict[Place, str]) -> Iterator[Hashable]:
        """What is done, with letters for places."""
        yield workload.cache, workload.shared
        for transfer in workload.transfers:
            ends = transfer.path.ends
            for m in ends:
                at = tuple(letters[single] for single in m.place.each)
                yield m.kind, format_settings(m.variant), at
            settings = dict(transfer.parameters)
            submit = settings.pop("submit", "")
            node = whole_number(submit, MOST_INDEX)
            yield transfer.path.executor, format_settings(settings), str(transfer.layout or "")
            # Paths are equivalent only if the submitting node has the same relation to both ends.
            local = node is not None and Place("numa", node)
            yield tuple(self._between(local, end.place) for end in ends) if local else submit
        if operation := workload.operation:
            at = tuple(letters[single] for single in operation.place.each)
            yield operation.name, format_settings(operation.parameters), at

    def _alone(self, place: Place) -> Hashable:
        if gpu := self._gpus.get(place.index) if place.kind == "gpu" else None:
            return _kind_of_gpu(gpu)
        if node := self._nodes.get(place.index) if place.kind == "numa" else None:
            return len(node.cpus)
        return str(place)

    def _between(self, a: Place, b: Place) -> Hashable:
        if a.kind == b.kind == "gpu":
            return self._between_gpus(self._gpus.get(a.index), self._gpus.get(b.index))
        if a.kind == b.kind == "numa":
            return self._same_package(a.index, b.index), self._distances(a.index, b.index)
        if {a.kind, b.kind} == {"gpu", "numa"}:
            gpu, node = (a, b) if a.kind == "gpu" else (b, a)
            return self._nearness(self._gpus.get(gpu.index), node.index)
        return ""

    def _between_gpus(self, a: Gpu | None, b: Gpu | None) -> Hashable:
        if a is None or b is None:
            return ""
        direct = tuple(
            (link.lanes, link.gb_per_s)
            for one, other in ((a, b), (b, a))
            for link in one.nvlinks
            if link.to == f"gpu:{other.index}"
        )
        same_node = a.numa == b.numa if min(a.numa, b.numa) >= 0 else None
        return (b.index in a.peers, a.index in b.peers, direct, same_node)

    def _nearness(self, gpu: Gpu | None, node: int) -> Hashable:
        """Whether a GPU is near a node; if that is not known of several, which ones they are."""
        if gpu is None or gpu.numa < 0:
            several = gpu is not None and len(self._nodes) > 1 and not self._is_described
            return f"gpu:{gpu.index}, numa:{node}" if gpu and several else "unknown"
        if gpu.numa == node:
            return "local"
        relation = "same package" if self._same_package(gpu.numa, node) else "remote"
        return relation, self._distances(gpu.numa, node)

    def _distances(self, a: int, b: int) -> Hashable:
        """There and back; they may differ."""
        one, other = self._nodes.get(a), self._nodes.get(b)
        return (one.distance(b), other.distance(a)) if one and other else None

    def _same_package(self, a: int, b: int) -> Hashable:
        if not self._is_described and len(self._nodes) > MOST_ALIKE:
            return frozenset((a, b))
        one, other = self._nodes.get(a), self._nodes.get(b)
        return one.package == other.package if one and other else None


def _kind_of_gpu(gpu: Gpu) -> Hashable:
    """All that makes a GPU of a kind: its neighbours by number are relations, not properties."""
    lanes = sorted((link.to.partition(":")[0], link.lanes, link.gb_per_s) for link in gpu.nvlinks)
    link = (gpu.pcie.generation_max, gpu.pcie.width_max, gpu.pcie.gb_per_s_now)
    return (gpu.name, gpu.compute, gpu.mig, gpu.pageable_access, link, tuple(lanes))


def representatives(workloads: Iterable[Workload], machine: Machine) -> dict[str, str]:
    """The first curve of the class of each curve's text, itself if it is the first."""
    classes = Classes(machine)
    first: dict[Key, str] = {}
    curves = {workload.curve: workload for workload in workloads}
    return {text: first.setdefault(classes.key(each), text) for text, each in curves.items()}
