"""Headline paths: the ones that the owner of a machine asks about first, by group and by curve.

Checks, comparisons and reports judge by them, and ``--only`` takes the name of a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from waywiser.plan.name import name_of
from waywiser.topology.machine import Machine
from waywiser.topology.traits import DECLARED, Traits
from waywiser.words import Path, Transfer, Workload

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
"""In the order in which they are shown."""


def group_of(workload: Workload, traits: Traits = DECLARED) -> Group | None:
    """The group of headline paths that a workload belongs to; None if to none.

    Their executors and memories are the ones that paths with a GPU, and paths within a host, are
    judged by.
    """
    transfers = workload.transfers
    if not transfers or workload.states or not all(map(_is_default, transfers)):
        return None
    if len(transfers) == 1:
        return _single(transfers[0].path, traits)
    if any(t.path.executor != traits.reference_executor("gpu") for t in transfers):
        return None
    kinds = {(t.path.source.kind, t.path.destination.kind) for t in transfers}
    pinned, device = _memories(traits)
    if len(transfers) == 2 and transfers[0].path == transfers[1].path.opposite:
        return _bidirectional(transfers[0].path, pinned, device)
    if kinds == {(pinned, device)} or kinds == {(device, pinned)}:
        name = name_of(workload).partition(" ")[0]
        return next((group for group in _SETS if group == name), None)
    return None


_SETS: tuple[Group, ...] = ("host-to-all", "all-to-host")


def _memories(traits: Traits) -> tuple[str, str]:
    """The kinds of host memory and of GPU memory that paths with a GPU are judged by."""
    return traits.reference_memory("gpu", "numa"), traits.reference_memory("gpu", "gpu")


def _is_default(transfer: Transfer) -> bool:
    return not transfer.parameters and transfer.layout is None and transfer.path.is_plain


def _single(path: Path, traits: Traits) -> Group | None:
    kinds = (path.source.kind, path.destination.kind)
    source, destination = path.places
    pinned, device = _memories(traits)
    pageable = traits.reference_memory("host", "numa")
    if kinds == (pageable, pageable) and path.executor == traits.reference_executor("host"):
        return "host copy" if source == destination else None
    if path.executor != traits.reference_executor("gpu"):
        return None
    if kinds == (device, device):
        return "local copy" if source == destination else "P2P"
    groups: dict[tuple[str, str], Group] = {
        (pinned, device): "H2D",
        (device, pinned): "D2H",
        (pageable, device): "pageable H2D",
        (device, pageable): "pageable D2H",
    }
    return groups.get(kinds)


def _bidirectional(path: Path, pinned: str, device: str) -> Group | None:
    kinds = {path.source.kind, path.destination.kind}
    if kinds == {pinned, device}:
        return "bidirectional"
    source, destination = path.places
    return "P2P bidirectional" if kinds == {device} and source != destination else None


def headline(machine: Machine, workloads: Iterable[Workload]) -> dict[str, Group]:
    """Returns the group of each headline path among ``workloads``, by curve.

    Between a host and a GPU, only memory of the GPU's own NUMA node counts where the machine has
    several nodes and says which is the GPU's.
    """
    found: dict[str, Group] = {}
    for workload in workloads:
        group = group_of(workload, machine.traits)
        if group is not None and all(_is_local(machine, t.path) for t in workload.transfers):
            found.setdefault(workload.curve, group)
    return found


def _is_local(machine: Machine, path: Path) -> bool:
    """Whether host memory on a path is that of the GPU's own node, as far as the machine says."""
    nodes = [place.index for place in path.places if place.kind == "numa"]
    gpus = [machine.gpu(place.index) for place in path.places if place.kind == "gpu"]
    if not nodes or not gpus or len(machine.numa) < 2:
        return True
    known = [gpu.numa for gpu in gpus if gpu is not None and gpu.numa >= 0]
    return not known or set(nodes) <= set(known)


def in_order(groups: Iterable[Group]) -> Sequence[Group]:
    """Without repetition, as they are shown."""
    present = set(groups)
    return [group for group in GROUPS if group in present]
