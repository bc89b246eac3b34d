"""Builds a machine from a capture: what was read becomes the places and links that all code
uses."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec.structs import replace

from waywiser.machine.capture import Capture
from waywiser.machine.facts import SystemFacts
from waywiser.machine.gpus import gpu_objects, gpus_of_nvml, gpus_of_tree
from waywiser.machine.hwloc import HwlocObject, HwlocTree, read_xml
from waywiser.machine.machine import (
    Cache,
    Gpu,
    Machine,
    NumaNode,
    Package,
    StatedAccess,
    UnusableGpu,
)
from waywiser.machine.system_files import format_list
from waywiser.machine.unusable_gpus import find_unusable, unusable_notes

NO_CPU_TOPOLOGY = (
    "the system does not show which CPUs share cores, caches and packages "
    "(/sys/devices/system/cpu/cpu*/topology is missing, as in some containers): what is shown is "
    "what the processor says itself"
)


def machine_from(capture: Capture, named: Container[int] = ()) -> Machine:
    """The machine that the capture shows. NUMA nodes without CPUs are host places only if they are
    ``named``. Raises `TopologyError` for XML that is no topology."""
    tree = read_xml(capture.hwloc, where="the capture's hwloc XML")
    system = capture.system
    notes: list[str] = []
    packages, package_objects = _packages(tree, system)
    gpu_nodes = {gpu.memory_node for gpu in capture.nvml.gpus} if capture.nvml else set()
    nodes = _numa_nodes(tree, system, package_objects, gpu_nodes - {-1}, named, notes)
    if system.cpu_topology is False:
        notes.append(NO_CPU_TOPOLOGY)
    hosts = frozenset(node.index for node in nodes if node.cpus)
    unusable: tuple[UnusableGpu, ...] = ()
    if capture.nvml is None:
        gpus, reason = gpus_of_tree(tree, hosts, notes)
    else:
        gpus, reason = gpus_of_nvml(capture.nvml, system, tree, hosts, notes)
        unusable = find_unusable(capture.nvml, system, gpu_objects(tree))
        notes += unusable_notes(unusable)
    notes += _locality_notes(system, gpus, len(hosts))
    return Machine(
        hostname=system.hostname or tree.infos.get("HostName", "unknown"),
        architecture=system.architecture or tree.infos.get("Architecture", ""),
        cpu_model=packages[0].model,
        packages=packages,
        numa=nodes,
        caches=_caches(tree, system),
        gpus=gpus,
        gpu_reason=reason,
        unusable_gpus=unusable,
        driver=capture.nvml.driver if capture.nvml else "",
        cuda_driver=capture.nvml.cuda_driver if capture.nvml else "",
        virtual=system.virtual,
        notes=tuple(notes),
    )


def _packages(
    tree: HwlocTree, system: SystemFacts
) -> tuple[tuple[Package, ...], list[HwlocObject]]:
    objects = tree.machine.below("Package") or [tree.machine]  # some virtual machines show none
    machine_model = system.cpu_model or tree.infos.get("CPUModel", "")
    found = []
    for position, package in enumerate(objects):
        cpus = len(package.below("PU"))
        found.append(
            Package(
                index=position if package.os_index < 0 else package.os_index,
                model=package.infos.get("CPUModel") or machine_model or "unknown processor",
                cores=len(package.below("Core")) or cpus,
                cpus=cpus,
            )
        )
    return tuple(found), objects


def _numa_nodes(
    tree: HwlocTree,
    system: SystemFacts,
    packages: list[HwlocObject],
    gpu_nodes: set[int],
    named: Container[int],
    notes: list[str],
) -> tuple[NumaNode, ...]:
    found: list[NumaNode] = []
    seen: set[frozenset[int]] = set()
    turn = _turn_in_core(tree)
    objects = tree.machine.below("NUMANode") or [tree.machine]  # hwloc 1 on a machine without NUMA
    memory = _memory_of(objects, system)
    for node in sorted(objects, key=lambda o: o.os_index):
        index = max(node.os_index, 0)
        only_memory = _only_memory(node, index, system, gpu_nodes, seen)
        cpus = node.cpus & frozenset(system.affinity or node.cpus)
        unnamed = only_memory if index not in named else ""
        if reason := _no_host_place(node, system, memory, bool(only_memory or cpus), unnamed):
            notes.append(f"numa:{index} is skipped: {reason}")
            continue
        if only_memory:
            notes.append(f"numa:{index} is measured because it is named: {only_memory}")
            cpus = frozenset()
        else:
            seen.add(node.cpus)
        found.append(
            NumaNode(
                index=index,
                cpus=tuple(sorted(cpus, key=lambda cpu: (turn.get(cpu, 0), cpu))),
                memory_bytes=memory.get(index, 0),
                package=_package_of(node, packages),
                stated=_stated(tree, node, objects),
            )
        )
    found.sort(key=lambda node: not node.cpus)  # the first is one with CPUs
    found = [replace(node, distances=_distances(tree, node.index, found)) for node in found]
    if objects[0].type == "NUMANode":
        notes += _unused_cpus(system, found)
    return tuple(found)


def _unused_cpus(system: SystemFacts, nodes: Sequence[NumaNode]) -> list[str]:
    """A note on the CPUs that this process may use and no node has, if there are any."""
    left = set(system.affinity).difference(*(node.cpus for node in nodes))
    which = f"CPUs {format_list(tuple(sorted(left)))}"
    why = "they have no NUMA node whose memory may be used"
    return [f"{which} are not used: {why}"] if left else []


def _distances(
    tree: HwlocTree, index: int, nodes: Sequence[NumaNode]
) -> tuple[tuple[int, int], ...]:
    """From a node to each other one of the host."""
    keys = {f"NUMANode:{node.index}": node.index for node in nodes if node.index != index}
    for matrix in tree.distances:
        if matrix.name == "NUMALatency" and f"NUMANode:{index}" in matrix.keys:
            row = matrix.values[matrix.keys.index(f"NUMANode:{index}")]
            known = zip(matrix.keys, row, strict=True)
            return tuple((keys[key], value) for key, value in known if key in keys)
    return ()


def _stated(
    tree: HwlocTree, node: HwlocObject, nodes: list[HwlocObject]
) -> tuple[StatedAccess, ...]:
    """What is stated of a node, by each node whose CPUs it is stated for. Of two nodes with the
    same CPUs, one has none of its own: hwloc shows the CPUs near it."""
    by_cpus: dict[frozenset[int], dict[str, int]] = {}
    for name, number, cpus, value in tree.stated:
        if number == node.number("gp_index"):
            by_cpus.setdefault(cpus, {})[name] = value
    index_of = {each.cpus: max(each.os_index, 0) for each in reversed(nodes)}
    return tuple(
        StatedAccess(
            by=index_of[cpus],
            bytes_per_second=float(values.get("Bandwidth", 0) << 20),
            seconds=values.get("Latency", 0) / 1e9,
        )
        for cpus, values in by_cpus.items()
        if cpus in index_of and {"Bandwidth", "Latency"} & values.keys()
    )


def _memory_of(nodes: list[HwlocObject], system: SystemFacts) -> dict[int, int]:
    """Bytes by node; empty if no node states any, which means that none is known: hwloc writes
    nothing both for a node without memory and for one whose memory it cannot find out.

    A machine's only node has all its memory, even if it reports less: what a hypervisor adds to a
    running guest may be counted by the system alone, and some containers hide the nodes.
    """
    found = {max(node.os_index, 0): node.number("local_memory") for node in nodes}
    if len(found) == 1:
        found = {index: max(size, system.memory_bytes) for index, size in found.items()}
    return found if any(found.values()) else {}


def _turn_in_core(tree: HwlocTree) -> dict[int, int]:
    """Per logical CPU: 0 for the first of its core, 1 for the second, and so on."""
    cores = tree.machine.below("Core")
    return {cpu: turn for core in cores for turn, cpu in enumerate(sorted(core.cpus))}


def _no_host_place(
    node: HwlocObject, system: SystemFacts, memory: dict[int, int], has_cpus: bool, unnamed: str
) -> str:
    """Why a NUMA node is no place of the host; empty if it is one. ``has_cpus``: this process may
    use CPUs of the node, or the node has none; ``unnamed``: what a node without CPUs is that is not
    named."""
    index = max(node.os_index, 0)
    if memory and not memory.get(index):
        return "it has no memory"
    if system.memory_nodes and index not in system.memory_nodes:
        return "this process may not allocate from it"
    if not has_cpus:
        return f"this process may use none of its CPUs {format_list(tuple(node.cpus))}".strip()
    return unnamed and f"{unnamed} (it is measured if --only names it)"


def _only_memory(
    node: HwlocObject,
    index: int,
    system: SystemFacts,
    gpu_nodes: set[int],
    seen: set[frozenset[int]],
) -> str:
    """What a NUMA node is that has no CPUs; empty for one with CPUs.

    hwloc gives a node without CPUs the CPUs near it, so its own CPUs come from the kernel or,
    in a bare file, by an earlier node that has the very same ones.
    """
    if index in gpu_nodes or node.attributes.get("subtype") == "GPUMemory":
        return "it is a GPU's memory"
    if not node.cpus and index in (system.cpu_nodes or ()):
        return ""  # they are others'
    if not node.cpus or (system.cpu_nodes and index not in system.cpu_nodes) or node.cpus in seen:
        return "it has no CPUs of its own"
    return ""


def _package_of(node: HwlocObject, packages: list[HwlocObject]) -> int:
    for position, package in enumerate(packages):
        if package.cpus & node.cpus:
            return position if package.os_index < 0 else package.os_index
    return 0


def _caches(tree: HwlocTree, system: SystemFacts) -> tuple[Cache, ...]:
    """Data and unified caches, the largest level first, with the CPUs that may be used."""
    found = []
    for item in tree.machine.walk():
        if item.type.startswith("L") and item.type.endswith("Cache") and "i" not in item.type:
            cpus = item.cpus & frozenset(system.affinity) if system.affinity else item.cpus
            if cpus:
                found.append(
                    Cache(item.number("depth"), item.number("cache_size"), tuple(sorted(cpus)))
                )
    return tuple(sorted(found, key=lambda cache: (-cache.level, cache.cpus)))


def _locality_notes(system: SystemFacts, gpus: tuple[Gpu, ...], nodes: int) -> list[str]:
    """``nodes`` are places; the system may show others with CPUs."""
    if not system.virtual:
        return []
    shown = {facts.address: facts.numa for facts in system.pci}
    if gpus and all(shown.get(gpu.pci, gpu.numa) < 0 for gpu in gpus):
        return [
            "numa_node is -1 for every GPU, and the hypervisor may hide sockets: "
            "which node is local to which GPU must be measured"
        ]
    if nodes == 1 and len(system.cpu_nodes or ()) < 2:
        return ["the hypervisor may hide sockets behind the one NUMA node that it shows"]
    return []
