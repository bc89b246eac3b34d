"""The headline paths of a machine, by curve.

One list serves `check`, `compare`, `show`, the report and Python users.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waywiser.plan.headline import GROUPS, Group, group_of
from waywiser.topology.machine import Machine
from waywiser.words import Path, Workload


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
