"""CPUs for the processes of each GPU: whole cores of the NUMA node that is better for the GPU, by
measurement, or else by the topology."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from waywiser.analysis.questions.placement import GpuPlacement, Placement
from waywiser.analysis.questions.placement_answer import placement
from waywiser.analysis.questions.rank_affinity import by_kind, local_ranks_text
from waywiser.curves import Subject
from waywiser.machine import Machine
from waywiser.machine.cores import Core, cores_of
from waywiser.profile import Profile
from waywiser.words import Value, WaywiserError, count


class RankBindingError(WaywiserError):
    """No placement of processes follows from a profile."""


class BoundRank(Value, frozen=True):
    """One process."""

    rank: int
    gpu: int
    node: int
    cores: tuple[int, ...]
    """Logical numbers, ascending."""
    cpus: tuple[int, ...]
    """All CPUs of these cores: the operating system's numbers, ascending."""


class RankBinding(Value, frozen=True):
    """The processes of one machine."""

    hostname: str
    ranks: tuple[BoundRank, ...]
    """Those of the first GPU first."""
    reasons: tuple[str, ...]
    """Why each GPU has its node."""


def bound_ranks(profile: Profile, per_gpu: int = 1) -> RankBinding:
    """`bind_ranks` by the placement of a profile, with what its messages show."""
    subject = Subject.of(profile).decidable
    messages = local_ranks_text(by_kind(subject))
    return bind_ranks(placement(subject), profile.machine, per_gpu, messages=messages)


def bind_ranks(
    found: Placement, machine: Machine, per_gpu: int = 1, *, messages: str = ""
) -> RankBinding:
    """Binds ``per_gpu`` processes of each GPU; those of one GPU get adjacent cores. The processes
    of one node share its cores equally. ``messages`` is a sentence on what messages of surveyed
    ranks show. Raises `RankBindingError`."""
    _require_nodes(found, machine)
    nodes = {gpu.gpu: _node(gpu) for gpu in found.gpus}
    of_node: defaultdict[int, list[Core]] = defaultdict(list)
    for core in cores_of(machine):
        of_node[core.node].append(core)
    users = [node for node in nodes.values() for _ in range(per_gpu)]
    taken: defaultdict[int, int] = defaultdict(int)
    ranks: list[BoundRank] = []
    for gpu, node in nodes.items():
        for _ in range(per_gpu):
            own = _share(of_node[node], taken[node], users.count(node), node)
            taken[node] += 1
            cpus = tuple(sorted(cpu for core in own for cpu in core.cpus))
            cores = tuple(core.number for core in own)
            ranks.append(BoundRank(len(ranks), gpu, node, cores, cpus))
    reasons = filter(None, (*_reasons(found.gpus), messages))
    return RankBinding(machine.hostname, tuple(ranks), tuple(reasons))


def _require_nodes(found: Placement, machine: Machine) -> None:
    """Raises `RankBindingError` if no CPUs are nearer to a GPU than others."""
    if not found.gpus:
        raise RankBindingError(
            "the machine has no GPU that processes could be placed by",
            remedy="let the launcher bind to cores",
        )
    if len(machine.numa) > 1:
        return
    nodes = count(len(machine.numa), "NUMA node")
    if found.source == "latency":
        reason = "latencies show two sides, but not which CPUs are on which"
    elif found.virtual:
        reason = "the hypervisor may hide others, and may move virtual CPUs between them"
    else:
        reason = "no CPUs are nearer to a GPU than others"
    raise RankBindingError(
        f"the machine shows {nodes}: {reason}", remedy="let the launcher bind to cores"
    )


def _node(gpu: GpuPlacement) -> int:
    if gpu.node is None:
        raise RankBindingError(
            f"the NUMA node of gpu:{gpu.gpu} is not known, and no measurement shows it",
            remedy="run waywiser survey --preset standard",
        )
    return gpu.node


def _share(cores: Sequence[Core], number: int, of: int, node: int) -> Sequence[Core]:
    each = len(cores) // of
    if not cores:
        raise RankBindingError(f"no CPUs of numa:{node} are known")
    if not each:
        has = count(len(cores), "core")
        raise RankBindingError(
            f"numa:{node} has {has} for {count(of, 'process')}", remedy="use fewer --ranks-per-gpu"
        )
    return cores[number * each : (number + 1) * each]


def _reasons(gpus: Iterable[GpuPlacement]) -> Iterable[str]:
    texts = {
        "measured": "was measured to be better",
        "no difference": "is named by the system, and measured to make no difference",
        "system": "is named by the system, and no measurement decides",
    }
    for gpu in gpus:
        yield f"gpu:{gpu.gpu}: numa:{gpu.node} {texts.get(gpu.basis, gpu.basis)}"
