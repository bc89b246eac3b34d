"""What a large copy takes from other work: small copies and loads that are measured beside it.

A bystander starts together with one large copy between a GPU and host memory, and is timed by
itself; it is measured alone too. Small copies are a row of copies in one stream, so that most of
them start while the large copy is under way. Loads are executors that declare the trait
``bystander``. The large copy lasts longer than either of them. `waywiser.policy.costs` makes the
slowdown of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from waywiser.hardware.machine import Gpu, Machine
from waywiser.hardware.traits import Traits
from waywiser.plan.catalogue import Catalogue
from waywiser.plan.curves import Curve, is_remote
from waywiser.plan.layouts import whole_units
from waywiser.plan.preset import Depth, Preset
from waywiser.plan.sizes import BANDWIDTH_SIZE
from waywiser.words import Layout, Memory, Path, Place, Transfer, Workload

LARGE_BYTES = 256 * 2**20
"""The copy that the bystander is measured beside."""

SMALL_COPIES = Layout("list", {"piece": str(28 * 2**10)})
(SMALL_COPIES_BYTES,) = whole_units(SMALL_COPIES, (BANDWIDTH_SIZE,))
"""585 copies of 28 KiB. This is a representative size of one of the usual layouts
(`waywiser.plan.layouts`), so that surveys measure it alone in any case."""

LOAD_BYTES = 64 * 2**20
"""The bytes of a load."""

SMALL_COPY = 2**16
"""Most bytes of a copy that is small."""

MANY_TIMES = 16
"""The copy beside small ones is so many times as large at least."""


def bystander_of(workload: Workload, traits: Traits) -> int | None:
    """Returns the position of the transfer that is measured beside a large copy, if the workload
    is such a pair: a load, or small copies."""
    if len(workload.transfers) != 2:
        return None
    one, other = workload.transfers
    loads = [traits.executor(each.path.executor).bystander for each in (one, other)]
    if any(loads):
        return loads.index(True) if not all(loads) else None
    small, large = (0, other) if one.bytes < other.bytes else (1, one)
    found = workload.transfers[small]
    piece = found.layout.run if found.layout is not None else found.bytes
    is_large = large.layout is None and MANY_TIMES * found.bytes <= large.bytes
    return small if piece <= SMALL_COPY and is_large else None


def bystander_curves(
    machine: Machine, catalogue: Catalogue, preset: Preset, valid: Collection[Path]
) -> Iterator[Curve]:
    """Each bystander beside a large copy in each direction between each GPU and its nearest NUMA
    node, by each method that the transfer library uses with default settings; and loads alone.

    ``valid`` are the paths that the machine has.
    """
    if preset.depth is Depth.DEFAULTS or not machine.numa:
        return
    host, device = (catalogue.traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    for gpu in machine.gpus:
        there = Memory(device, Place("gpu", gpu.index))
        here = Memory(host, Place("numa", _node(gpu, machine)))
        loads = [*_loads(there, catalogue)]
        yield from (Curve((load,), sizes=(load.bytes,)) for load in loads)
        for path in valid:
            if {here.place, there.place} != set(path.places) or not _is_method(path, catalogue):
                continue
            large = Transfer(path, bytes=LARGE_BYTES)
            ends = (there, here) if path.source.place == there.place else (here, there)
            for beside in (*_small_copies(ends, catalogue), *loads):
                pair = (large, beside)
                yield Curve(
                    pair,
                    sizes=(LARGE_BYTES,),
                    remote=is_remote(path, catalogue),
                    peer_access=catalogue.peer_access(*pair),
                )


def _node(gpu: Gpu, machine: Machine) -> int:
    """The nearest NUMA node that the machine shows."""
    nodes = [node.index for node in machine.numa]
    return gpu.numa if gpu.numa in nodes else nodes[0]


def _loads(memory: Memory, catalogue: Catalogue) -> Iterator[Transfer]:
    for kind in catalogue.executors.values():
        load = Transfer(Path(memory, memory, kind.name), bytes=LOAD_BYTES)
        if kind.traits.bystander and catalogue.unsupported_reason(load) is None:
            yield load


def _small_copies(ends: tuple[Memory, Memory], catalogue: Catalogue) -> Iterator[Transfer]:
    path = Path(*ends, catalogue.traits.reference_executor("gpu"))
    small = Transfer(path, bytes=SMALL_COPIES_BYTES, layout=SMALL_COPIES)
    served = catalogue.executors[path.executor].layouts if path.executor else ()
    if SMALL_COPIES.kind in served and catalogue.unsupported_reason(small) is None:
        yield small


def _is_method(path: Path, catalogue: Catalogue) -> bool:
    """Whether policies have the path's kind of copy, and the library its method."""
    executor = catalogue.executors[path.executor]
    library = executor.traits.library
    kinds = {catalogue.traits.memory(end.kind).reference for end in path.ends}
    return (
        path.is_plain
        and kinds <= {"gpu", "host"}
        and "contiguous" in executor.layouts
        and (library.contiguous or library.lists)
    )
