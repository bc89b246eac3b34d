"""Which copies a survey observes to see whether copy engines or multiprocessors make them.

One transfer for each kind of path and layout of the executors that may use either unit
(`waywiser.machine.traits.ExecutorTraits.either_unit`), and one for each of their settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from waywiser.machine import Catalogue, ExecutorKind, Gpu, Machine
from waywiser.measure.plan.curves import combinations
from waywiser.measure.plan.points import PlannedPoint
from waywiser.measure.plan.preset import Depth
from waywiser.words import Layout, Memory, Path, Place, Transfer

OBSERVED_BYTES = 2**20
"""Bytes of an observed transfer: a copy of a link takes some ten microseconds."""

FEW_BYTES = 4096
"""Bytes of a second one, of contiguous bytes: runtimes may have another way for few."""

LAYOUTS = (
    Layout("list", {"piece": str(2**15)}),
    Layout("box", {"width": "2048", "height": "64"}),
)
"""One layout of each kind."""

LONGEST_SECONDS = 0.05
"""The most that an occupation of a GPU lasts, as the native library bounds it."""


def observed_gpus(machine: Machine, points: Iterable[PlannedPoint]) -> list[Gpu]:
    """The GPUs at an end of a planned transfer by an executor that may use either unit."""
    either = {each.name for each in machine.traits.executors if each.either_unit}
    used = {
        place.index
        for point in points
        for transfer in point.workload.transfers
        if transfer.path.executor in either
        for place in transfer.path.places
        if place.kind == "gpu"
    }
    return [gpu for gpu in machine.gpus if gpu.index in used]


def observed_transfers(machine: Machine, gpu: Gpu) -> tuple[Transfer, ...]:
    """The transfers of one GPU: to and from the host, within it, and to its peers."""
    catalogue = Catalogue(machine)
    found: list[Transfer] = []
    for executor in catalogue.executors.values():
        if executor.traits.either_unit:
            for path in _paths(executor, machine, gpu):
                found += _of_path(path, executor, catalogue)
    return tuple(found)


def _paths(executor: ExecutorKind, machine: Machine, gpu: Gpu) -> Iterator[Path]:
    traits = machine.traits
    own = Memory(traits.reference_memory("gpu", "gpu"), Place("gpu", gpu.index))
    nodes = [node.index for node in machine.numa]
    node = gpu.numa if gpu.numa in nodes else nodes[0]
    for paths in ("gpu", "host"):
        host = Memory(traits.reference_memory(paths, "numa"), Place("numa", node))
        yield Path(host, own, executor.name)
        yield Path(own, host, executor.name)
    yield Path(own, own, executor.name)
    known = {each.index for each in machine.gpus}
    for peer in sorted(known.intersection(gpu.peers)):
        yield Path(own, Memory(own.kind, Place("gpu", peer)), executor.name)


def _of_path(path: Path, executor: ExecutorKind, catalogue: Catalogue) -> Iterator[Transfer]:
    """Those that a process with peer access can make."""
    for layout in (None, *LAYOUTS):
        kind = layout.kind if layout is not None else "contiguous"
        bare = Transfer(path, layout=layout)
        if kind not in executor.layouts or catalogue.unsupported_reason(bare) is not None:
            continue
        choices = [each for each in catalogue.parameters(bare) if each.kind == "choice"]
        for settings in combinations(choices, Depth.SINGLE):
            for size in (OBSERVED_BYTES,) if layout is not None else (FEW_BYTES, OBSERVED_BYTES):
                transfer = Transfer(path, size, settings, layout)
                if catalogue.peer_access(transfer) is not False:
                    yield transfer
