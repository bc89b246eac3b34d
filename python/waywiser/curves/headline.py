"""Headline paths: the most important paths of a machine, by group and by curve.

Checks, comparisons and reports use them, and ``--only`` takes the name of a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from msgspec.structs import replace

from waywiser.curves.cache_states import counted_curves
from waywiser.curves.name import SETS, name_of
from waywiser.machine import DECLARED, Machine, Traits
from waywiser.words import Path, Transfer, Workload, whole_number

Group = Literal[
    "H2D",
    "D2H",
    "bidirectional",
    "P2P",
    "P2P bidirectional",
    "host-to-all",
    "all-to-host",
    "local copy",
    "pageable H2D",
    "pageable D2H",
    "host copy",
]

GROUPS: tuple[Group, ...] = get_args(Group)
"""The groups in the order in which they are shown."""


def headline_label(group: Group | None, name: str) -> str:
    """The name of a path after its group of headline paths, unless it starts with that."""
    return f"{group} {name}" if group and not name.startswith(group) else name


_MEMORY = re.compile(r"[^\s@]+@")
"""The kind of memory before a place."""


def headline_title(group: str, workload: Workload) -> str:
    """``H2D, numa:0 -> gpu:0``, ``H2D, numa:0 -> gpu:0 (dirtied)``, ``host-to-all, numa:0 ->
    gpu:0-3``: the group, the places and the states of a path or of a set."""
    if workload.transfer is None:
        path = name_of(workload).partition(" by ")[0]
        first, _, rest = path.partition(" ")
        places = _MEMORY.sub("", rest if first in SETS else path)
        ends = f", {places}" if " -> " in places or " <-> " in places else ""
        return f"{group}{ends}{workload.states}"
    source, destination = workload.transfer.path.places
    ends = f"within {source}" if source == destination else f"{source} -> {destination}"
    return f"{group}, {ends}{workload.states}"


ALL_CORES, BETWEEN_NODES = "host copy, all cores", "between nodes, all cores"
"""The groups that come first on a machine without GPUs. They are no headline paths of checks."""


def all_cores_group(workload: Workload, machine: Machine) -> str:
    """The group of a copy within the host by all cores of a node of a machine without GPUs; empty
    for anything else."""
    transfer, traits = workload.transfer, machine.traits
    if machine.gpus or transfer is None or workload.states or transfer.layout is not None:
        return ""
    path, settings = transfer.path, dict(transfer.parameters)
    threads = whole_number(settings.pop("threads", "")) or 0
    is_reference = path.executor == traits.reference_executor("host") and path.is_plain
    kinds = {path.source.kind, path.destination.kind}
    if settings or threads < 2 or not is_reference:
        return ""
    if kinds != {traits.reference_memory("host", "numa")}:
        return ""
    cores = {node.index: len(node.cpus) for node in machine.numa}
    fewest = min(cores.get(place.index, 0) for place in path.places)
    # a CPU may be left to the process that waits
    if threads < fewest - 1 or not fewest:
        return ""
    return ALL_CORES if path.source.place == path.destination.place else BETWEEN_NODES


FILE_READ = "file read"
"""The group of file reads, which tables show after the headline paths. No two files are
equivalent, so that comparisons of paths leave them out."""


def group_of(workload: Workload, traits: Traits = DECLARED) -> Group | None:
    """The group of headline paths that a workload belongs to; None if to none.

    Their executors and memories are the ones that paths with a GPU, and paths within a host, are
    compared by.
    """
    transfers = workload.copies
    if not transfers or workload.states or not all(map(_is_default, transfers)):
        return None
    pinned, device = (traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    pageable = traits.reference_memory("host", "numa")
    executors = {transfer.path.executor for transfer in transfers}
    pairs = {(t.path.source.kind, t.path.destination.kind) for t in transfers}
    path = transfers[0].path
    stays = path.source.place == path.destination.place
    if len(transfers) == 1 and pairs == {(pageable, pageable)} and stays:
        return "host copy" if executors == {traits.reference_executor("host")} else None
    if executors != {traits.reference_executor("gpu")}:
        return None
    groups: dict[tuple[str, str], Group] = {
        (pinned, device): "H2D",
        (device, pinned): "D2H",
        (pageable, device): "pageable H2D",
        (device, pageable): "pageable D2H",
        (device, device): "local copy" if stays else "P2P",
    }
    if len(transfers) == 1:
        return groups.get(pairs.pop())
    if len(transfers) == 2 and transfers[1].path.is_back_of(path):
        if pairs == {(pinned, device), (device, pinned)}:
            return "bidirectional"
        return "P2P bidirectional" if pairs == {(device, device)} and not stays else None
    if pairs in ({(pinned, device)}, {(device, pinned)}):
        name = name_of(workload).partition(" ")[0]
        return next((group for group in GROUPS if group in SETS and group == name), None)
    return None


def reads_file(workload: Workload, traits: Traits = DECLARED) -> bool:
    """Whether a workload reads a file as paths of files are compared, into ordinary host memory."""
    transfer = workload.transfer
    if transfer is None or workload.states or not _is_default(transfer):
        return False
    ends = traits.reference_memory("file", "file"), traits.reference_memory("host", "numa")
    path = transfer.path
    kinds = (path.source.kind, path.destination.kind)
    return kinds == ends and path.executor == traits.reference_executor("file")


def _is_default(transfer: Transfer) -> bool:
    return not transfer.parameters and transfer.layout is None and transfer.path.is_plain


def headline(machine: Machine, workloads: Iterable[Workload]) -> dict[str, Group]:
    """Returns the group of each headline path among ``workloads``, by curve.

    Between a host and a GPU, only memory of the GPU's own NUMA node counts where the machine has
    several nodes and says which is the GPU's, and none of a node without CPUs. A path that was
    measured only with its source written or flushed before each copy is one of them too.
    """
    known = list(workloads)
    counted = counted_curves(known)
    found: dict[str, Group] = {}
    for workload in known:
        if workload.curve not in counted:
            continue
        group = group_of(replace(workload, cache="warm"), machine.traits)
        if group is not None and all(_is_local(machine, t.path) for t in workload.transfers):
            found.setdefault(workload.curve, group)
    return found


def _is_local(machine: Machine, path: Path) -> bool:
    """Whether host memory on a path is that of the GPU's own node, if the machine says so."""
    nodes = [place.index for place in path.places if place.kind == "numa"]
    gpus = [machine.gpu(place.index) for place in path.places if place.kind == "gpu"]
    if machine.memory_only.intersection(nodes):
        return False
    if not nodes or not gpus or len(machine.numa) < 2:
        return True
    known = [gpu.numa for gpu in gpus if gpu is not None and gpu.numa >= 0]
    return not known or set(nodes) <= set(known)


def in_order(groups: Iterable[Group]) -> Sequence[Group]:
    """The groups without repetition, as they are shown."""
    present = set(groups)
    return [group for group in GROUPS if group in present]
