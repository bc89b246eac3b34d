"""The machine that result files are about: places that they name, and notes.

Foreign files do not describe a machine. They name GPUs, sometimes with model and address, and NUMA
nodes by number; links, clocks and which GPU is near which node they leave out. What is unknown
stays empty and is said in the machine's notes, so that no bound and no symmetry is made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, ImportFailed
from waywiser.exchange.imports.topology_check import (
    CONTRADICTS,
    between_files,
    contradictions,
    unchecked,
)
from waywiser.machine import (
    DECLARED,
    UNKNOWN_CPU,
    Gpu,
    Machine,
    NumaNode,
    Package,
    Traits,
    load_capture,
    machine_from,
)
from waywiser.machine.traits import traits_of_hip
from waywiser.words import Place, Workload

UNNAMED = "unknown"
"""A machine of whose files none says what it is called."""

LONGEST_NAME = 253
"""Characters: as many as a DNS name has at most."""

LITTLE = (
    "made of result files that do not describe the machine: links, clocks, memory sizes and the "
    "NUMA node of each GPU are not known, peer access is known only for what used it, and each "
    "NUMA node counts as a package of its own (name a capture or hwloc XML with --topology)"
)
RANKS = (
    "of transfers by mpi and nccl, gpu:N and numa:N are the GPU and the host memory of rank N, "
    "which may be in another node"
)


def require_name(name: str) -> None:
    """Raises `ImportFailed` for a name of a machine that is empty, overlong or not printable."""
    if not name.strip():
        raise ImportFailed("the name is empty", where="--machine", remedy="write a name")
    if len(name) > LONGEST_NAME:
        raise ImportFailed(
            f"the name has {len(name):,} characters, and at most {LONGEST_NAME} are allowed",
            where="--machine",
            remedy="write a shorter name",
        )
    for position, character in enumerate(name, 1):
        if not character.isprintable():
            raise ImportFailed(
                f"character {position} of the name is U+{ord(character):04X}, which is not "
                "printable",
                where="--machine",
                remedy="write letters, digits, spaces, '.', '-' and '_'",
            )


def hostname_of(found: Sequence[ForeignFile], name: str | None) -> str:
    """``name``, or the one host that all files are of. Raises `ImportFailed` for several."""
    if name is not None:
        return name
    hosts = sorted({each.hostname for each in found if each.hostname})
    if len(hosts) > 1:
        listed = ", ".join(hosts[:4]) + (" …" if len(hosts) > 4 else "")
        raise ImportFailed(
            f"the files are of {len(hosts)} machines: {listed}",
            remedy="import each machine's into a profile of its own, or say that they are one with "
            "--machine NAME",
        )
    return hosts[0] if hosts else UNNAMED


def machine_of(
    found: Sequence[ForeignFile], name: str | None, topology: Path | None, anyway: bool = False
) -> Machine:
    """The machine of all files together. Raises `ImportFailed` if the files are of several, name a
    place that ``topology`` has not, or contradict it without ``anyway``, and `CaptureError` for a
    bad ``topology``."""
    workloads = [measured.workload for each in found for measured in each.measured]
    hostname = hostname_of(found, name)
    if difference := between_files(found):
        raise ImportFailed(
            f"the files are of different GPUs: {difference}",
            remedy="import those of each machine, and of each CUDA_VISIBLE_DEVICES, into a profile "
            "of its own",
        )
    notes = (RANKS,) if any(map(_of_ranks, workloads)) else ()
    if topology is not None:
        machine = machine_from(load_capture(topology))
        _require_known(workloads, machine, topology)
        notes = (*notes, *_require_same_machine(found, machine, topology, anyway))
        hostname = machine.hostname if hostname == UNNAMED else hostname
        traits = _traits(found, machine.gpus) or machine.traits
        return replace(machine, hostname=hostname, notes=(*machine.notes, *notes), traits=traits)
    places = {place for workload in workloads for place in workload.named_places}
    nodes = sorted(place.index for place in places if place.kind == "numa")
    cpus = max((_cpus(each) for each in found), default=0)
    gpus = tuple(_gpus(found, (place.index for place in places if place.kind == "gpu")))
    return Machine(
        hostname=hostname,
        architecture="",
        cpu_model=UNKNOWN_CPU,
        packages=_packages(nodes, cpus),
        numa=tuple(NumaNode(index, (), 0, index) for index in nodes),
        caches=(),
        gpus=gpus,
        gpu_reason="" if gpus else _no_gpu(workloads),
        driver=next((each.driver for each in found if each.driver), ""),
        cuda_driver=next((each.cuda_driver for each in found if each.cuda_driver), ""),
        notes=(LITTLE, *notes),
        traits=_traits(found, gpus) or Traits(),
    )


def _traits(found: Sequence[ForeignFile], gpus: Iterable[Gpu]) -> Traits | None:
    """Those of HIP if a file's tool called it, and no GPU is known to be NVIDIA's."""
    nvidia = any("nvidia" in gpu.name.lower() for gpu in gpus)
    called = any(each.runtime == "hip" for each in found)
    return traits_of_hip() if called and not nvidia else None


def _packages(nodes: Sequence[int], cpus: int) -> tuple[Package, ...]:
    """One for each node; how CPUs are shared among several is unknown."""
    if len(nodes) < 2:
        return (Package(nodes[0] if nodes else 0, UNKNOWN_CPU, 0, cpus),)
    return tuple(Package(index, UNKNOWN_CPU, 0, 0) for index in nodes)


def _no_gpu(workloads: Iterable[Workload]) -> str:
    """Why no GPU is known."""
    ends = (end for each in workloads for t in each.transfers for end in t.path.ends)
    if any(map(DECLARED.is_of_gpu, ends)):
        return "the files name GPUs by the ranks that use them, and not by machine"
    return "the files name no GPU"


def _of_ranks(workload: Workload) -> bool:
    if workload.is_of_ranks:
        return False
    return any(DECLARED.is_between_ranks(each.path) for each in workload.transfers)


def _cpus(found: ForeignFile) -> int:
    count = found.environment.get("num_cpus", 0)
    return count if isinstance(count, int) and 0 < count < 2**20 else 0


def _gpus(found: Sequence[ForeignFile], named: Iterable[int]) -> Iterator[Gpu]:
    known: dict[int, ForeignGpu] = {gpu.index: gpu for each in found for gpu in each.gpus}
    peers = set(_peers(found))
    for index in sorted({*known, *named}):
        gpu = known.get(index, ForeignGpu(index))
        yield Gpu(
            index=index,
            uuid="",
            name=gpu.name or "unknown GPU",
            pci=gpu.pci,
            peers=tuple(sorted(other for one, other in peers if one == index)),
        )


def _peers(found: Sequence[ForeignFile]) -> Iterator[tuple[int, int]]:
    """Pairs of GPUs, in both orders, between which something was measured that needs direct
    access: a copy that is not said to go without, or a kernel that reached into the other's."""
    for measured in (each for one in found for each in one.measured if len(each.samples)):
        for transfer in measured.workload.copies:
            ends = (transfer.path.source, transfer.path.destination)
            both = all(end.kind == "device" for end in ends)
            direct = transfer.path.executor == "sm" or (
                transfer.path.executor == "copy-engine" and transfer.parameters.get("peer") != "off"
            )
            one, other = (end.place.index for end in ends)
            if both and direct and one != other:
                yield from ((one, other), (other, one))


def _require_same_machine(
    found: Sequence[ForeignFile], machine: Machine, topology: Path, anyway: bool
) -> tuple[str, ...]:
    """Notes about a topology that cannot be checked or, with ``anyway``, contradicts the files.

    Bounds of other hardware would be worse than none: raises `ImportFailed` for a contradiction.
    """
    facts = contradictions(found, machine)
    if facts and not anyway:
        more = f", and {len(facts) - 1} more contradictions" if len(facts) > 1 else ""
        raise ImportFailed(
            f"{facts[0]}{more}",
            where=str(topology),
            remedy="name the topology of the machine that was measured, or keep both with "
            "--topology-anyway",
        )
    notes = (unchecked(found, machine), *(f"{CONTRADICTS}{fact}" for fact in facts))
    return tuple(note for note in notes if note)


def _require_known(workloads: Sequence[Workload], machine: Machine, topology: Path) -> None:
    """Checks the places on this machine: those of ranks may be in another."""
    known = {Place("numa", node.index) for node in machine.numa}
    known |= {Place("gpu", gpu.index) for gpu in machine.gpus}
    for workload in workloads:
        if _of_ranks(workload):
            continue
        for place in workload.named_places:
            if place.kind != "rank" and place not in known:
                raise ImportFailed(
                    f"the results are about {place}, which this machine does not have",
                    where=str(topology),
                    remedy="name the topology of the machine that was measured",
                )
