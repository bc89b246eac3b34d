"""Transfers that start together: sets over all GPUs of a machine, as data of a plan.

What is one transfer between two places becomes a set over all of them, started by the same gate:
host memory and every GPU, one way and both ways, from buffers of their own and from one shared
buffer; one GPU and all its peers; pairs of GPUs; the ring of neighbours. They show what places
share: a socket's memory, a PCIe switch, a GPU's own links. Names are those of
`waywiser.plan.name`, which ``--only host-to-all`` and the title of a table know.

The test cases of nvbandwidth (0.8) are workloads of a plan. Its figures are sums over the rates of
the transfers, each over its own time, and in its bidirectional cases only of the measured
direction; here a set's rate is all its bytes over the time from the common start to the last
finish, and the seconds of every transfer are stored beside it. ``*_sm`` is ``by sm`` for ``*_ce``:

    host_to_device_memcpy, device_to_host_memcpy  pinned@numa:N -> device@gpu:G, and its opposite
    host_to_device_bidirectional_memcpy           pinned@numa:N <-> device@gpu:G
    device_to_device_memcpy_read, _write          device@gpu:A -> device@gpu:B; for sm, side=pull
                                                  is its read and side=push its write
    device_to_device_bidirectional_memcpy         device@gpu:A <-> device@gpu:B
    host_to_all_memcpy                            host-to-all
    all_to_host_memcpy                            all-to-host
    host_to_all_bidirectional_memcpy,
    all_to_host_bidirectional_memcpy              host-and-all
    one_to_all_read, one_to_all_write             one-to-all
    all_to_one_read, all_to_one_write             all-to-one
    device_local_copy                             device@gpu:G -> device@gpu:G
    host_device_latency_sm,
    device_to_device_latency_sm                   the operations of pointer chases
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from waywiser.plan.catalogue import Catalogue
from waywiser.plan.curves import Curve
from waywiser.plan.preset import Preset
from waywiser.topology.machine import Gpu, Machine
from waywiser.words import Memory, Path, Place, Transfer

SHARED_SIZE = 2**20
"""Of each transfer that writes into one shared buffer: eight H200s reach 0.4 GB/s together there,
so a larger one would take seconds an execution to say the same."""

Pair = tuple[int, int]


class Sets:
    """The sets of one machine by one executor, as curves. Only paths in ``valid`` take part.

    Their memories are those that paths with a GPU are judged by, at the host and at the GPU."""

    def __init__(
        self, machine: Machine, catalogue: Catalogue, executor: str, valid: Collection[Path]
    ) -> None:
        self._machine = machine
        self._catalogue = catalogue
        self._executor = executor
        self._valid = {str(path) for path in valid}

    def to_host(self, *, shared: bool = False) -> Iterator[Curve]:
        """All GPUs to the host."""
        yield from self._curve((path.opposite for path in self._host_paths(shared)), shared)

    def from_host(self, *, shared: bool = False) -> Iterator[Curve]:
        """The host to all GPUs."""
        yield from self._curve(self._host_paths(shared), shared)

    def with_host(self) -> Iterator[Curve]:
        """All GPUs both from and to the host."""
        yield from self._both(self._host_paths())

    def from_one(self, one: int) -> Iterator[Curve]:
        """One GPU to all others, to its peers where it has some."""
        yield from self._star(self._between(one, other) for other in self._others(one))

    def to_one(self, one: int) -> Iterator[Curve]:
        """All other GPUs to one, only its peers where it has some."""
        yield from self._star(self._between(other, one) for other in self._others(one))

    def pairs(self) -> Iterator[Curve]:
        """The first GPU to the second, the third to the fourth, and so on."""
        yield from self._curve(self._neighbours())

    def pairs_both_ways(self) -> Iterator[Curve]:
        """The same, both ways."""
        yield from self._both(self._neighbours())

    def ring(self) -> Iterator[Curve]:
        """Each GPU to the next, the last to the first; of three and more."""
        gpus = [gpu.index for gpu in self._machine.gpus]
        if len(gpus) >= 3:
            after = [*gpus[1:], gpus[0]]
            yield from self._curve(self._between(a, b) for a, b in zip(gpus, after, strict=True))

    def _host_paths(self, shared: bool = False) -> Iterator[Path]:
        """To each GPU from its own node; from the first GPU's where there is one buffer for all."""
        for gpu in self._machine.gpus:
            near = self._machine.gpus[0] if shared else gpu
            kind = self._catalogue.reference_memory("gpu", "numa")
            source = Memory(kind, Place("numa", near_node(near, self._machine)))
            yield Path(source, self._device(gpu.index), self._executor)

    def _neighbours(self) -> Iterator[Path]:
        gpus = [gpu.index for gpu in self._machine.gpus]
        for a, b in zip(gpus[::2], gpus[1::2], strict=False):
            yield self._between(a, b)

    def _others(self, one: int) -> Iterator[int]:
        return (gpu.index for gpu in self._machine.gpus if gpu.index != one)

    def _between(self, source: int, destination: int) -> Path:
        return Path(self._device(source), self._device(destination), self._executor)

    def _device(self, index: int) -> Memory:
        return Memory(self._catalogue.reference_memory("gpu", "gpu"), Place("gpu", index))

    def _both(self, paths: Iterable[Path]) -> Iterator[Curve]:
        forward = list(paths)
        if len(forward) > 1:
            yield from self._curve([*forward, *(path.opposite for path in forward)])

    def _star(self, paths: Iterable[Path]) -> Iterator[Curve]:
        """Peers alone where there are some: one process has peer access or has it not."""
        spokes = [path for path in paths if str(path) in self._valid]
        peers = [path for path in spokes if self._catalogue.peer_access(Transfer(path))]
        yield from self._curve(peers or spokes)

    def _curve(self, paths: Iterable[Path], shared: bool = False) -> Iterator[Curve]:
        """The paths as one curve; none for a single one, where one of them is not to be had, or
        where they need different processes."""
        transfers = tuple(map(Transfer, paths))
        if len(transfers) < 2 or any(str(t.path) not in self._valid for t in transfers):
            return
        needs = {self._catalogue.peer_access(transfer) for transfer in transfers} - {None}
        if len(needs) < 2:
            yield Curve(transfers, shared=shared, peer_access=next(iter(needs), None))


def near_node(gpu: Gpu, machine: Machine) -> int:
    """The GPU's nearest NUMA node that has memory and CPUs here, else the first one."""
    nodes = [node.index for node in machine.numa]
    return gpu.numa if gpu.numa in nodes else nodes[0]


def set_executors(catalogue: Catalogue, preset: Preset) -> list[str]:
    """Those by which all GPUs are measured at once: the reference of paths with a GPU, and the
    others that declare it unless the preset asks for the reference alone."""
    reference = catalogue.reference_executor("gpu")
    if preset.sets_by == "reference":
        return [reference] if reference else []
    others = (kind.name for kind in catalogue.executors if kind.in_sets)
    return sorted(others, key=lambda name: name != reference)


def set_curves(
    machine: Machine, catalogue: Catalogue, preset: Preset, valid: Collection[Path]
) -> Iterator[Curve]:
    """The sets that the preset asks for, by each executor that it asks for.

    ``valid`` are the paths that the machine has. There are none with fewer than two GPUs.
    """
    for executor in set_executors(catalogue, preset):
        if len(machine.gpus) > 1:
            sets = Sets(machine, catalogue, executor, valid)
            ones = machine.gpus if preset.set_every_one else machine.gpus[:1]
            for curve in _every_set(sets, ones):
                yield replace(curve, sizes=curve.sizes or preset.set_sizes)


def _every_set(sets: Sets, ones: Iterable[Gpu]) -> Iterator[Curve]:
    """``ones`` are the GPUs that in turn are the one."""
    yield from sets.from_host()
    yield from sets.to_host()
    yield from sets.with_host()
    yield from sets.from_host(shared=True)
    for curve in sets.to_host(shared=True):
        yield replace(curve, sizes=(SHARED_SIZE,))
    for gpu in ones:
        yield from sets.from_one(gpu.index)
        yield from sets.to_one(gpu.index)
    yield from sets.pairs()
    yield from sets.pairs_both_ways()
    yield from sets.ring()
