"""Transfers that start together: sets over all GPUs of a machine, the curves of a check, and large
copies with a bystander.

What is one transfer between two places becomes a set over all of them, started by the same gate:
host memory and every GPU, unidirectional and bidirectional, from buffers of their own and from one
shared buffer; one GPU and all its peers; pairs of GPUs; the ring of neighbours. They show what
places share: a socket's memory, a PCIe switch, a GPU's own links. Names are those of
`waywiser.curves.name`, which ``--only host-to-all`` and the title of a table know.

The test cases of nvbandwidth (0.8) are workloads of a plan. Its figures are sums over the rates of
the transfers, each over its own time, and in its bidirectional cases only of the measured
direction; here a set's rate is all its bytes over the time from the common start to the last
finish, and the seconds of every transfer are stored beside it. ``*_sm`` is ``by sm`` for ``*_ce``:

host_to_device_memcpy, device_to_host_memcpy pinned@numa:N -> device@gpu:G, and its opposite
host_to_device_bidirectional_memcpy pinned@numa:N <-> device@gpu:G device_to_device_memcpy_read,
_write device@gpu:A -> device@gpu:B; for sm, side=pull is its read and side=push its write
device_to_device_bidirectional_memcpy device@gpu:A <-> device@gpu:B host_to_all_memcpy
host-to-all all_to_host_memcpy all-to-host host_to_all_bidirectional_memcpy,
all_to_host_bidirectional_memcpy host-and-all one_to_all_read, one_to_all_write one-to-all
all_to_one_read, all_to_one_write all-to-one device_local_copy device@gpu:G -> device@gpu:G
host_device_latency_sm, device_to_device_latency_sm the operations of pointer chases
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from msgspec.structs import replace as replace_bytes

from waywiser.curves import BANDWIDTH_BYTES
from waywiser.machine import Catalogue, Gpu, Machine, footprint
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.curves import PlannedCurve, is_remote
from waywiser.measure.plan.layouts import served_on, whole_units
from waywiser.measure.plan.paths import NO_GPU
from waywiser.measure.plan.preset import Depth
from waywiser.words import Layout, Memory, Path, Place, Transfer, Unsupported, Workload

SHARED_SIZE = 2**20
"""Size of each transfer that writes into one shared buffer: eight H200s reach 0.4 GB/s together
there, so a larger one would take seconds an execution to say the same."""

LARGE_BYTES = 256 * 2**20
"""The copy that the bystander is measured beside."""

PIECES = Layout("list", {"piece": str(28 * 2**10)})
(SMALL_COPIES_BYTES,) = whole_units(PIECES, (BANDWIDTH_BYTES,))
"""585 copies of 28 KiB. This is a representative size of one of the usual layouts
(`waywiser.measure.plan.layouts`), so that surveys measure it alone in any case."""

(LARGE_LIST_BYTES,) = whole_units(PIECES, (LARGE_BYTES,))
"""The list that the bystander is measured beside, for methods by which the library moves lists and
no contiguous copies."""

LOAD_BYTES = 64 * 2**20
"""The bytes of a load."""

COLLECTIVE_BYTES = 256 * 2**20
"""The bytes of the collective in a set with copies or loads; halved until the buffers of the set
fit."""

BESIDE_COLLECTIVE_BYTES = 2**30
"""The bytes of the copy in a set with a collective."""

POLITE = {"slots": "1", "threads": "1"}
"""Settings with which a copy over a ring has one piece in flight and uses one CPU."""


def set_executors(basis: Basis) -> list[str]:
    """Those by which all GPUs are measured at once: the reference of paths with a GPU, and the
    others that declare it unless the preset is for defaults alone."""
    catalogue = basis.catalogue
    reference = catalogue.traits.reference_executor("gpu")
    if basis.preset.depth is Depth.DEFAULTS:
        return [reference] if reference else []
    others = (kind.name for kind in catalogue.executors.values() if kind.in_sets)
    return sorted(others, key=lambda name: name != reference)


def set_curves(basis: Basis, valid: Collection[Path]) -> Iterator[PlannedCurve]:
    """The sets over all GPUs, by each executor that the preset asks for.

    ``valid`` are the paths that the machine has. There are none with fewer than two GPUs.
    """
    catalogue, gpus = basis.catalogue, [gpu.index for gpu in basis.machine.gpus]
    known = set(map(str, valid))
    for executor in set_executors(basis) if len(gpus) > 1 else ():
        host = from_host(basis, executor)
        shared = from_host(basis, executor, shared=True)
        sets = [host, opposite(host), bidirectional(host)]
        yield from _together(sets, known, basis)
        yield from _together([shared], known, basis, shared=True)
        for curve in _together([opposite(shared)], known, basis, shared=True):
            yield replace(curve, sizes=(SHARED_SIZE,))
        sets = []
        for one in gpus if basis.preset.depth is Depth.PAIRS else gpus[:1]:
            spokes = between_gpus(catalogue, executor, ((one, gpu) for gpu in gpus if gpu != one))
            for star in (spokes, opposite(spokes)):
                # Peers alone if there are some: one process has peer access or has it not.
                possible = [path for path in star if str(path) in known]
                peers = [path for path in possible if catalogue.peer_access(Transfer(path))]
                sets.append(peers or possible)
        pairs = between_gpus(catalogue, executor, zip(gpus[::2], gpus[1::2], strict=False))
        ring = zip(gpus, [*gpus[1:], gpus[0]], strict=True) if len(gpus) > 2 else ()
        sets += [pairs, bidirectional(pairs), between_gpus(catalogue, executor, ring)]
        yield from _together(sets, known, basis)


def check_curves(basis: Basis) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """What a nightly check measures, all principal, and what of it this machine cannot do.

    Each host link to its GPU, from it, and both together; every ordered pair of GPUs; the sets in
    which the host and all GPUs, or all pairs of GPUs, move at once. If there is no GPU: the
    paths between the host's NUMA nodes. It asks the registry for no other path, so that planning
    takes no time of the half minute that there is.
    """
    machine, catalogue = basis.machine, basis.catalogue
    unsupported_paths: list[Unsupported] = []

    def possible(paths: Iterable[Path]) -> list[Path]:
        found = [(path, catalogue.unsupported_reason(Transfer(path))) for path in paths]
        unsupported_paths.extend(Unsupported(str(path), reason) for path, reason in found if reason)
        return [path for path, reason in found if not reason]

    executors = set_executors(basis)
    if machine.gpus:
        curves = [curve for name in executors for curve in _check_of_gpus(name, basis, possible)]
    else:
        curves = [_curve([path], basis) for path in possible(_between_nodes(basis))]
        host, gpu = (catalogue.traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
        missing = f"{host} <-> {gpu} by {' and '.join(executors)}"
        unsupported_paths.append(Unsupported(missing, machine.gpu_reason or NO_GPU))
    return [replace(curve, principal=True) for curve in curves], unsupported_paths


def _between_nodes(basis: Basis) -> Iterator[Path]:
    traits = basis.catalogue.traits
    kind, executor = traits.reference_memory("host", "numa"), traits.reference_executor("host")
    memories = [Memory(kind, Place("numa", node.index)) for node in basis.machine.numa]
    return (Path(*ends, executor) for ends in itertools.product(memories, memories))


def _check_of_gpus(
    executor: str, basis: Basis, possible: Callable[[Iterable[Path]], list[Path]]
) -> list[PlannedCurve]:
    """Links and ordered pairs alone, and the sets of all of them."""
    gpus = [gpu.index for gpu in basis.machine.gpus]
    host_paths = from_host(basis, executor)
    links = possible(way for path in host_paths for way in (path, path.opposite))
    peers = possible(between_gpus(basis.catalogue, executor, itertools.permutations(gpus, 2)))
    both = [[path, path.opposite] for path in links if path.source.place.kind == "numa"]
    alone = [*([path] for path in links), *both, *([path] for path in peers)]
    pairs = between_gpus(basis.catalogue, executor, zip(gpus[::2], gpus[1::2], strict=False))
    of_host = (host_paths, opposite(host_paths), bidirectional(host_paths))
    curves = [_curve(paths, basis) for paths in alone]
    known = set(map(str, [*links, *peers]))
    return [*curves, *_together([*of_host, pairs, bidirectional(pairs)], known, basis)]


def from_host(basis: Basis, executor: str, *, shared: bool = False) -> list[Path]:
    """Paths to each GPU from its nearest NUMA node that has memory and CPUs here, else from the
    first one; from the first GPU's if there is one buffer for all. The memories are the references
    of paths with a GPU."""
    traits, gpus = basis.catalogue.traits, basis.machine.gpus
    host, device = (traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    nodes = [Place("numa", _node(gpus[0] if shared else gpu, basis.machine)) for gpu in gpus]
    return [
        Path(Memory(host, node), Memory(device, Place("gpu", gpu.index)), executor)
        for node, gpu in zip(nodes, gpus, strict=True)
    ]


def between_gpus(
    catalogue: Catalogue, executor: str, pairs: Iterable[tuple[int, int]]
) -> list[Path]:
    """Paths from the first GPU of each pair to the second."""
    kind = catalogue.traits.reference_memory("gpu", "gpu")
    return [
        Path(Memory(kind, Place("gpu", a)), Memory(kind, Place("gpu", b)), executor)
        for a, b in pairs
    ]


def opposite(paths: Iterable[Path]) -> list[Path]:
    """The opposite of each path."""
    return [path.opposite for path in paths]


def bidirectional(paths: list[Path]) -> list[Path]:
    """The paths with all their opposites; none for one path: that is an opposite pair and no
    set."""
    return [*paths, *opposite(paths)] if len(paths) > 1 else []


def _together(
    sets: Iterable[list[Path]], known: set[str], basis: Basis, *, shared: bool = False
) -> Iterator[PlannedCurve]:
    """Each set as one curve; none for a single path, where one of them is not to be had, or where
    they need different processes."""
    for paths in sets:
        if len(paths) < 2 or not known.issuperset(map(str, paths)):
            continue
        if is_of_one_process(map(Transfer, paths), basis.catalogue):
            yield _curve(paths, basis, shared=shared)


def _curve(paths: list[Path], basis: Basis, *, shared: bool = False) -> PlannedCurve:
    transfers = list(map(Transfer, paths))
    return PlannedCurve.of(transfers, basis.catalogue, shared=shared, sizes=basis.preset.set_sizes)


def is_of_one_process(transfers: Iterable[Transfer], catalogue: Catalogue) -> bool:
    """Whether no transfer needs peer access that another one must not have."""
    return not {True, False} <= {catalogue.peer_access(transfer) for transfer in transfers}


def bystander_curves(basis: Basis, valid: Collection[Path]) -> Iterator[PlannedCurve]:
    """Each bystander beside a large copy in each direction between each GPU and its nearest NUMA
    node, by each method that the transfer library uses with default settings; and loads alone. The
    copy is a list if the library moves only lists by the method. If these have to be contiguous in
    host memory, only a full survey measures it.

    ``valid`` are the paths that the machine has.
    """
    machine, catalogue = basis.machine, basis.catalogue
    if basis.preset.depth is Depth.DEFAULTS or not machine.numa:
        return
    host, device = (catalogue.traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    for gpu in machine.gpus:
        there = Memory(device, Place("gpu", gpu.index))
        here = Memory(host, Place("numa", _node(gpu, machine)))
        loads = [*_loads(there, catalogue)]
        yield from (PlannedCurve((load,), sizes=(load.bytes,)) for load in loads)
        for path in valid:
            if {here.place, there.place} != set(path.places) or not _is_method(path, catalogue):
                continue
            large = _large_copy(path, catalogue)
            ends = (there, here) if path.source.place == there.place else (here, there)
            for beside in (*_small_copies(ends, catalogue), *loads):
                remote = is_remote(path, catalogue) or large.layout not in (None, PIECES)
                sizes = (large.bytes,)
                yield PlannedCurve.of([large, beside], catalogue, sizes=sizes, remote=remote)


def collective_curves(basis: Basis, valid: Collection[Path]) -> Iterator[PlannedCurve]:
    """Sets of a collective over all GPUs with a copy from the first GPU to its nearest NUMA node,
    by each method of contiguous copies that the transfer library uses, with default settings and
    with `POLITE`; with loads of that GPU; and with the reference of these copies and loads.

    ``valid`` are the paths that the machine has.
    """
    machine, catalogue = basis.machine, basis.catalogue
    if basis.preset.depth is Depth.DEFAULTS or not machine.numa:
        return
    for among in (path for path in valid if path.is_among_several):
        usual = {p.name: p.choices[0] for p in catalogue.parameters(Transfer(among)) if p.written}
        collective = Transfer(among, parameters=usual, bytes=COLLECTIVE_BYTES)
        copies = list(_copies_to_host(valid, basis))
        there = among.source.place.each[0]
        device = catalogue.traits.reference_memory("gpu", "gpu")
        loads = [*_loads(Memory(device, there), catalogue)]
        host = catalogue.traits.reference_memory("gpu", "numa")
        usual_copies = [copy for copy in copies if copy.path.destination.kind == host]
        sets = [[each] for each in (*copies, *loads)]
        sets += [[*usual_copies[:1], load] for load in loads if usual_copies]
        for others in sets:
            found = _fitting([collective, *others], basis)
            if found and is_of_one_process(found, catalogue):
                yield PlannedCurve.of(found, catalogue, sizes=(max(t.bytes for t in found),))


def _copies_to_host(valid: Collection[Path], basis: Basis) -> Iterator[Transfer]:
    machine, catalogue = basis.machine, basis.catalogue
    gpu = machine.gpus[0]
    ends = Place("gpu", gpu.index), Place("numa", _node(gpu, machine))
    for path in valid:
        library = catalogue.executors[path.executor].traits.library
        is_method = path.places == ends and library.contiguous and _is_method(path, catalogue)
        if not is_method or is_remote(path, catalogue):
            continue
        copy = Transfer(path, bytes=BESIDE_COLLECTIVE_BYTES)
        if not catalogue.requirements(copy).gpus <= {gpu.index}:
            continue  # those who run collectives use the other GPUs
        yield copy
        known = {p.name: p.choices for p in catalogue.parameters(copy)}
        settings = {n: v for n, v in POLITE.items() if v in known.get(n, ())}
        settings = {n: v for n, v in settings.items() if v != known[n][0]}
        if settings:
            yield Transfer(path, parameters=settings, bytes=BESIDE_COLLECTIVE_BYTES)


def _fitting(transfers: list[Transfer], basis: Basis) -> list[Transfer]:
    """The transfers, halved until their buffers fit; none if they would be too small to show the
    links."""
    while footprint(Workload(tuple(transfers)), basis.catalogue).total > basis.request.memory_bytes:
        transfers = [replace_bytes(each, bytes=each.bytes // 2) for each in transfers]
        if min(each.bytes for each in transfers) < BANDWIDTH_BYTES // 16:
            return []
    return transfers


def _node(gpu: Gpu, machine: Machine) -> int:
    """The nearest NUMA node that the machine shows, else its first one."""
    nodes = [node.index for node in machine.numa]
    return gpu.numa if gpu.numa in nodes else nodes[0]


def _loads(memory: Memory, catalogue: Catalogue) -> Iterator[Transfer]:
    for kind in catalogue.executors.values():
        load = Transfer(Path(memory, memory, kind.name), bytes=LOAD_BYTES)
        if kind.traits.bystander and catalogue.unsupported_reason(load) is None:
            yield load


def _small_copies(ends: tuple[Memory, Memory], catalogue: Catalogue) -> Iterator[Transfer]:
    path = Path(*ends, catalogue.traits.reference_executor("gpu"))
    small = Transfer(path, bytes=SMALL_COPIES_BYTES, layout=PIECES)
    served = catalogue.executors[path.executor].layouts if path.executor else ()
    if PIECES.kind in served and catalogue.unsupported_reason(small) is None:
        yield small


def _large_copy(path: Path, catalogue: Catalogue) -> Transfer:
    if catalogue.executors[path.executor].traits.library.contiguous:
        return Transfer(path, bytes=LARGE_BYTES)
    return Transfer(path, bytes=LARGE_LIST_BYTES, layout=served_on(path, PIECES, catalogue))


def _is_method(path: Path, catalogue: Catalogue) -> bool:
    """Whether policies have the path's kind of copy, and the library its method."""
    executor = catalogue.executors[path.executor]
    library = executor.traits.library
    kinds = {catalogue.traits.memory(end.kind).reference for end in path.ends}
    # Policies have no lists of other memory.
    reached = all(catalogue.traits.memory(end.kind).is_reached_by_gpus for end in path.ends)
    return (
        path.is_plain
        and kinds <= {"gpu", "host"}
        and (library.contiguous or (library.lists and PIECES.kind in executor.layouts and reached))
    )
