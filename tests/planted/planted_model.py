"""What a synthetic machine is in truth: how long each of its ways takes, before any noise.

A way over a link takes ``latency + bytes / rate``, bounded by what topology says that link can do
at best. A truth that is planted makes something of it worse by a known part: a link in one
direction or both, one size of one curve, a port that GPUs share, the far side of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from waywiser.machine.machine import Gpu, Machine, NumaNode, NvLink, Package, PcieLink
from waywiser.words import Path, Transfer, Workload

Wiring = Literal["switch", "mesh"]
Sockets = Literal["shown", "hidden", "one"]

HOST_LATENCY, HOST_RATE = 5.5e-6, 55.4e9
PEER_LATENCY = 9.0e-6
PEER_RATE: Mapping[Wiring, float] = {"switch": 394e9, "mesh": 46e9}
LOCAL_LATENCY, LOCAL_RATE = 4.5e-6, 2080e9
"""Seconds, and bytes per second, in the shape of an H200's (docs/results) and of a mesh of two
lanes to each other GPU."""

LARGE = 64 * 2**20
"""Bytes: the size at which effects are as large as said."""

LANES: Mapping[Wiring, int] = {"switch": 18, "mesh": 2}
LANE_GB_PER_S: Mapping[Wiring, float] = {"switch": 26.562, "mesh": 25.0}

TruthKind = Literal[
    "anisotropic GPU",
    "anisotropic pair",
    "slow host link",
    "slow peer link",
    "far sockets",
    "hidden sockets",
    "dip",
    "shared port",
]


@dataclass(frozen=True)
class Truth:
    """One thing that was planted."""

    kind: TruthKind
    effect: float
    """0.05: takes 5 % longer, of a link a copy of `LARGE` bytes."""
    gpus: tuple[int, ...] = ()
    """The GPU; a pair, from the first to the second; those of the second hidden socket."""
    down: bool = False
    """For an anisotropic GPU: whether the direction to the host is the slow one."""
    curve: str = ""
    """The effect of a dip."""
    size: int = 0
    """The size of a dip in bytes."""


@dataclass(frozen=True)
class Model:
    """A machine of ``count`` GPUs and its truths."""

    count: int = 8
    wiring: Wiring = "switch"
    sockets: Sockets = "hidden"
    truths: tuple[Truth, ...] = ()
    slower: Mapping[str, float] = field(init=False, compare=False)
    """Link, in one direction -> what a copy of `LARGE` bytes takes longer, as a factor."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slower", _slower(self.truths))

    def of(self, kind: TruthKind) -> tuple[Truth, ...]:
        return tuple(truth for truth in self.truths if truth.kind == kind)

    @property
    def nodes(self) -> int:
        return 2 if self.sockets == "shown" else 1

    def node_of(self, gpu: int) -> int:
        """The NUMA node that the system shows as near."""
        return int(gpu >= self.count // 2) if self.sockets == "shown" else 0

    def seconds(self, workload: Workload) -> tuple[float, ...]:
        """Seconds of each transfer of the workload, all started together."""
        paths = [transfer.path for transfer in workload.transfers]
        dip = self._dip(workload)
        return tuple(
            dip * self._alone(transfer, self._factor(transfer.path, paths))
            for transfer in workload.transfers
        )

    def _alone(self, transfer: Transfer, factor: float) -> float:
        """``factor`` is what a copy of `LARGE` bytes takes longer; it is the bytes that do."""
        latency, rate = self._postal(transfer.path)
        each = (factor - 1) * (1 + latency * rate / LARGE) + 1
        return latency + transfer.bytes / rate * each

    def _postal(self, path: Path) -> tuple[float, float]:
        link = link_of(path).split()[0]
        if link == "host":
            return HOST_LATENCY, HOST_RATE
        return (LOCAL_LATENCY, LOCAL_RATE) if link == "local" else (
            PEER_LATENCY, PEER_RATE[self.wiring])  # fmt: skip

    def _factor(self, path: Path, together: list[Path]) -> float:
        link = link_of(path)
        factor = self.slower.get(link, 1.0)
        kind, *rest = link.split()
        if kind != "host":
            return factor
        if self._is_far(path):
            factor *= 1 + sum(truth.effect for truth in self.of("far sockets"))
        links = {link_of(other) for other in together}
        for port in self.of("shared port"):
            behind = {f"host {rest[0]} {gpu}" for gpu in port.gpus}
            if link in behind and behind <= links:
                factor *= 1 + port.effect
        return factor

    def _is_far(self, path: Path) -> bool:
        ends = {end.place.kind: end.place.index for end in (path.source, path.destination)}
        return self.node_of(ends["gpu"]) != ends["numa"]

    def _dip(self, workload: Workload) -> float:
        return 1 + sum(
            dip.effect
            for dip in self.of("dip")
            if dip.size == workload.bytes and dip.curve == workload.curve
        )

    @property
    def machine(self) -> Machine:
        """The machine as its topology shows it: hidden sockets as one, and no GPU near to any
        node."""
        cpus = 32 // self.nodes
        return Machine(
            hostname="planted",
            architecture="x86_64",
            cpu_model="A CPU",
            packages=tuple(Package(n, "A CPU", cpus, cpus) for n in range(self.nodes)),
            numa=tuple(
                NumaNode(n, tuple(range(n * cpus, (n + 1) * cpus)), 2**38, n)
                for n in range(self.nodes)
            ),
            caches=(),
            gpus=tuple(self._gpu(index) for index in range(self.count)),
            driver="580.159",
            virtual="" if self.sockets == "shown" else "a hypervisor",
        )

    def _gpu(self, index: int) -> Gpu:
        others = tuple(other for other in range(self.count) if other != index)
        lanes, rate = LANES[self.wiring], LANE_GB_PER_S[self.wiring]
        ends = ("switch",) if self.wiring == "switch" else tuple(f"gpu:{n}" for n in others)
        return Gpu(
            index=index,
            uuid=f"GPU-{index:08x}",
            name="A GPU",
            pci=f"0000:{index + 1:02x}:00.0",
            numa=self.node_of(index) if self.sockets == "shown" else -1,
            memory_bytes=2**37,
            pcie=PcieLink(5, 16, 5, 16),
            nvlinks=tuple(NvLink(end, lanes, rate) for end in ends),
            peers=others,
            clock_memory_max_mhz=3201,
            memory_bus_bits=6016,
        )


def link_of(path: Path) -> str:
    """``host up 3`` to GPU 3, ``host down 3`` from it, ``peer 0 1``, ``local 0``."""
    source, destination = path.source.place, path.destination.place
    if source.kind == "numa":
        return f"host up {destination.index}"
    if destination.kind == "numa":
        return f"host down {source.index}"
    if source == destination:
        return f"local {source.index}"
    return f"peer {source.index} {destination.index}"


def _slower(truths: tuple[Truth, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for truth in truths:
        if truth.kind == "anisotropic GPU":
            links = [f"host {'down' if truth.down else 'up'} {truth.gpus[0]}"]
        elif truth.kind == "anisotropic pair":
            links = [f"peer {truth.gpus[0]} {truth.gpus[1]}"]
        elif truth.kind == "slow host link":
            links = [f"host {way} {truth.gpus[0]}" for way in ("up", "down")]
        elif truth.kind == "slow peer link":
            a, b = truth.gpus
            links = [f"peer {a} {b}", f"peer {b} {a}"]
        else:
            continue
        for link in links:
            found[link] = found.get(link, 1.0) * (1 + truth.effect)
    return found


def up(gpu: int, node: int = 0) -> str:
    """The curve from pinned memory to a GPU."""
    return f"pinned@numa:{node} -> device@gpu:{gpu} by copy-engine"


def down(gpu: int, node: int = 0) -> str:
    return f"device@gpu:{gpu} -> pinned@numa:{node} by copy-engine"


def between(a: int, b: int) -> str:
    """The curve from one GPU's memory to another's, or within one."""
    return f"device@gpu:{a} -> device@gpu:{b} by copy-engine"


def workload(paths: tuple[str, ...], size: int) -> Workload:
    """Copies of ``size`` bytes each that start together."""
    return Workload(tuple(Transfer(Path.parse(path), size) for path in paths))
