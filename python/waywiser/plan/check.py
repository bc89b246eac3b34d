"""What a nightly check measures: every link alone, both ways and all at once, at one size.

Each host link to its GPU, from it, and both together; every ordered pair of GPUs; the sets in which
the host and all GPUs, or all pairs of GPUs, move at once. Where there is no GPU: the paths between
the host's NUMA nodes. It asks the registry for no other path, so that planning takes no time of
the half minute that there is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace

from waywiser.plan.catalogue import Catalogue
from waywiser.plan.curves import Curve
from waywiser.plan.paths import NO_GPU
from waywiser.plan.preset import Preset
from waywiser.plan.sets import Sets, near_node, set_executors
from waywiser.records import Refusal
from waywiser.topology.machine import Machine
from waywiser.words import Memory, Path, Place, Transfer


def check_curves(machine: Machine, preset: Preset) -> tuple[list[Curve], list[Refusal]]:
    """The curves of a check, all principal, and what of it this machine cannot do."""
    catalogue = Catalogue(machine)
    if not machine.gpus:
        reason = machine.gpu_reason or NO_GPU
        kept, refused = _possible(_between_nodes(machine, catalogue), catalogue)
        host, gpu = (catalogue.reference_memory("gpu", place) for place in ("numa", "gpu"))
        missing = f"{host} <-> {gpu} by {' and '.join(set_executors(catalogue, preset))}"
        between = [replace(_curve([path], catalogue), principal=True) for path in kept]
        return between, [*refused, Refusal(missing, reason)]
    curves: list[Curve] = []
    refusals: list[Refusal] = []
    for executor in set_executors(catalogue, preset):
        links, unlinked = _possible(_host_links(machine, catalogue, executor), catalogue)
        peers, apart = _possible(_between_gpus(machine, catalogue, executor), catalogue)
        curves += [_curve([path], catalogue) for path in links]
        curves += [_curve([path, path.opposite], catalogue) for path in links if _from_host(path)]
        curves += [_curve([path], catalogue) for path in peers]
        curves += _together(Sets(machine, catalogue, executor, [*links, *peers]))
        refusals += [*unlinked, *apart]
    return [replace(c, principal=True, sizes=preset.set_sizes) for c in curves], refusals


def _host_links(machine: Machine, catalogue: Catalogue, executor: str) -> Iterator[Path]:
    """To and from each GPU, in turns."""
    host_kind, gpu_kind = (catalogue.reference_memory("gpu", place) for place in ("numa", "gpu"))
    for gpu in machine.gpus:
        host = Memory(host_kind, Place("numa", near_node(gpu, machine)))
        path = Path(host, Memory(gpu_kind, Place("gpu", gpu.index)), executor)
        yield from (path, path.opposite)


def _from_host(path: Path) -> bool:
    return path.source.place.kind == "numa"


def _between_gpus(machine: Machine, catalogue: Catalogue, executor: str) -> Iterator[Path]:
    kind = catalogue.reference_memory("gpu", "gpu")
    memories = [Memory(kind, Place("gpu", gpu.index)) for gpu in machine.gpus]
    for source, destination in itertools.permutations(memories, 2):
        yield Path(source, destination, executor)


def _between_nodes(machine: Machine, catalogue: Catalogue) -> Iterator[Path]:
    kind = catalogue.reference_memory("host", "numa")
    executor = catalogue.reference_executor("host")
    memories = [Memory(kind, Place("numa", node.index)) for node in machine.numa]
    for source, destination in itertools.product(memories, repeat=2):
        yield Path(source, destination, executor)


def _together(sets: Sets) -> Iterator[Curve]:
    yield from sets.from_host()
    yield from sets.to_host()
    yield from sets.with_host()
    yield from sets.pairs()
    yield from sets.pairs_both_ways()


def _possible(paths: Iterable[Path], catalogue: Catalogue) -> tuple[list[Path], list[Refusal]]:
    """The paths that the registry takes, and the others with its reasons."""
    kept: list[Path] = []
    refused: list[Refusal] = []
    for path in paths:
        if reason := catalogue.refusal(Transfer(path)):
            refused.append(Refusal(str(path), reason))
        else:
            kept.append(path)
    return kept, refused


def _curve(paths: list[Path], catalogue: Catalogue) -> Curve:
    transfers = tuple(map(Transfer, paths))
    needs = (catalogue.peer_access(transfer) for transfer in transfers)
    known = [need for need in needs if need is not None]
    return Curve(transfers, peer_access=known[0] if known else None)
