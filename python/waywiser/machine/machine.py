"""What a machine is: the frozen value that topology makes and everybody else reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set
from typing import Literal

from waywiser.machine.traits import Traits
from waywiser.words import Value, WaywiserError, count

EMULATED = "QEMU TCG"
"""The hypervisor of a machine whose processor is a program."""

Unreal = Literal["simulated", "emulated"]
"""Kinds of machines whose times mean nothing about a real one."""

UNKNOWN_CPU = "unknown processor"
"""The model of a CPU that no file names."""


class Cache(Value, frozen=True):
    """One cache: level (1, 2, 3), bytes, and the logical CPUs that share it."""

    level: int
    bytes: int
    cpus: tuple[int, ...]


class StatedAccess(Value, frozen=True):
    """What the firmware states (HMAT) of CPUs that access a node's memory. The kernel shows it for
    the nearest CPUs alone."""

    by: int
    """The NUMA node of the CPUs."""
    bytes_per_second: float = 0.0
    """0 if it is not stated, as below."""
    seconds: float = 0.0
    """Latency."""


class NumaNode(Value, frozen=True):
    """A NUMA node that is a host place: it has CPUs and memory that is not a GPU's, or a survey
    names it."""

    index: int
    """The operating system's number, as in ``numa:0``."""
    cpus: tuple[int, ...]
    """Logical CPUs of the node that this process may use: the first of each core before the second
    of any, so that the first n are on n cores if there are so many. Empty for a node of memory
    alone."""
    memory_bytes: int
    package: int
    memory_free_bytes: int | None = None
    """Bytes that buffers could take when the machine was looked at; None if unknown."""
    stated: tuple[StatedAccess, ...] = ()
    """By node of the nearest CPUs; empty if the firmware states nothing."""
    distances: tuple[tuple[int, int], ...] = ()
    """To each other node with CPUs, as (node, distance): 10 is that within a node. Empty if none
    are shown."""

    def distance(self, node: int) -> int | None:
        """To another node; None if it is not shown."""
        return dict(self.distances).get(node)


class Package(Value, frozen=True):
    """A CPU package (socket)."""

    index: int
    model: str
    cores: int
    """Physical cores shown by the system."""
    cpus: int
    """Logical CPUs shown by the system."""


LinkName = Literal["NVLink", "NVLink-C2C"]
"""The second is that between a GPU and the CPU of the same module."""


class PcieLink(Value, frozen=True):
    """PCI Express: generations and widths; 0 if unknown. ``now`` may be an idle state."""

    generation_now: int = 0
    width_now: int = 0
    generation_max: int = 0
    width_max: int = 0
    gb_per_s_now: float = 0.0
    """What a bare topology file says of the link when it was written, perhaps idle; 0 if the
    generation and width are known."""

    def below_best(self, generation: int, width: int) -> str:
        """``PCIe 5 x8 of 5 x16`` if that is less than the link could be; else empty."""
        if 0 < generation < self.generation_max or 0 < width < self.width_max:
            return f"PCIe {generation} x{width} of {self.generation_max} x{self.width_max}"
        return ""


class NvLink(Value, frozen=True):
    """NVLink lanes from one GPU to one neighbour (a GPU's UUID, a switch, or the CPU)."""

    to: str
    """``gpu:N``, ``switch`` or ``cpu``."""
    lanes: int
    """0 if unknown: then their rate together may be known."""
    gb_per_s_per_lane: float
    """One direction, 10^9 bytes per second; 0 if unknown."""
    kind: LinkName = "NVLink"
    gb_per_s_together: float = 0.0
    """One direction of lanes whose number is unknown; 0 if it is known, or their rate is not."""

    @property
    def gb_per_s(self) -> float:
        """One direction of all lanes; 0 if unknown."""
        return self.gb_per_s_together or self.lanes * self.gb_per_s_per_lane


HostAttachment = Literal["", "coherent", "integrated"]
"""How a GPU reaches the host's memory: over PCIe (empty), over a coherent link to the CPU of its
module (NVLink-C2C, NVLink of POWER9), or as its own memory, on a system on a chip."""

_WITH_CPU = re.compile(r"\bG[BH]\d00\b")
"""Models with a CPU on their module: GH200, GB200, GB300."""

_ON_CHIP = re.compile(r"\b(GB10|Orin|Thor|Xavier|Tegra)\b", re.IGNORECASE)


class Gpu(Value, frozen=True):
    """A GPU as NVML, CUDA or the kernel describe it; values that none reports are 0 or empty."""

    index: int
    """CUDA's, with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``, among the visible devices."""
    uuid: str
    name: str
    pci: str
    """Domain, bus, device, function: ``0000:1b:00.0``."""
    numa: int = -1
    """Nearest NUMA node; -1 if the system does not say."""
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    compute: str = ""
    """Compute capability: ``9.0``."""
    pcie: PcieLink = PcieLink()
    nvlinks: tuple[NvLink, ...] = ()
    peers: tuple[int, ...] = ()
    """GPUs whose memory this one can access directly."""
    clock_sm_mhz: int = 0
    clock_sm_max_mhz: int = 0
    clock_memory_mhz: int = 0
    clock_memory_max_mhz: int = 0
    memory_bus_bits: int = 0
    throttle: tuple[str, ...] = ()
    """Active clock-limiting reasons when captured, without idle ones."""
    ecc: str = ""
    """``on``, ``off`` or empty if unknown."""
    mig: str = ""
    processes: tuple[str, ...] = ()
    """Other processes on the GPU: ``pid name MiB``, the last if it is known."""
    persistence: str = ""
    """Persistence mode, ``on``, ``off`` or empty if unknown."""
    temperature_c: int = 0
    power_w: float = 0.0
    pageable_access: bool = False
    """The GPU can read pageable host memory itself (HMM, Grace-Hopper, POWER9)."""
    host: HostAttachment = ""
    """How it reaches the host's memory, as NVML and the model show it."""

    @property
    def links_known(self) -> bool:
        """Whether NVML or the kernel described the GPU, so that no NVLink and no peer means that
        there is none. A bare topology file and other tools' results do not report all links."""
        return bool(self.compute or self.pcie.generation_max)

    @property
    def on_module(self) -> HostAttachment:
        """``host``, which profiles made by older versions do not state: there, by the model."""
        if self.host:
            return self.host
        if _WITH_CPU.search(self.name):
            return "coherent"
        return "integrated" if _ON_CHIP.search(self.name) else ""


UnusableState = Literal["lost", "no driver", "other driver", "not given", "unknown"]
"""Why a GPU that was found cannot be used: it is given to this process and does not answer; no
driver holds it; another one does; it is not given to this process; or that was not recorded."""


class UnusableGpu(Value, frozen=True):
    """A GPU on the PCI bus, or of those that the driver counts, that is none of the machine's."""

    pci: str
    """Its address; empty if it is not known."""
    state: UnusableState
    reason: str = ""
    """What was answered, or the name of the driver that holds it."""

    def __str__(self) -> str:
        return (self.pci or "address unknown") + (f" ({self.reason})" if self.reason else "")


class FilePlace(Value, frozen=True):
    """What the name of a file place stands for on this machine."""

    name: str
    """As in ``file:NAME``; ``scratch`` and ``tmpfs`` are the survey's own."""
    path: str
    """The file, or the folder in which scratch files are made and removed."""
    scratch: bool = False
    """Files are made there; else the file exists and is only read."""
    bytes: int = 0
    """Bytes that may be used: of the file, or of all scratch files together."""
    filesystem: str = ""
    """Its type, as the system names it (``ext4``, ``tmpfs``); empty if unknown."""
    direct: bool = True
    """Files there can be opened with ``O_DIRECT``, around the page cache."""


class PlacedRank(Value, frozen=True):
    """A process of a launch of ranks. Memory at ``rank:N`` is at its NUMA node or on its GPU."""

    index: int
    cpus: tuple[int, ...]
    """Logical CPUs that it uses."""
    numa: int
    """The node of these CPUs."""
    gpu: int = -1
    """-1 if it has none."""
    unsent: tuple[str, ...] = ()
    """Kinds of memory whose addresses its library of messages does not take."""
    messages: str = "mpi"
    """Its library of messages: ``mpi`` or ``nccl``."""
    unexchanged: tuple[str, ...] = ()
    """Kinds whose addresses only its collective calls do not take."""
    placement: str = ""
    """The placement of its CPUs: at the node of its GPU (``near``), at another one (``far``), or
    ``numa:1``; empty if all ranks are local. Messages are between ranks of one placement."""


class AssumedPeak(Value, frozen=True):
    """The theoretical peak of a link that a simulated machine is assumed to have."""

    resource: str
    """As bounds name it, ``PCIe to gpu:3``; of all GPUs ``PCIe to gpu:*``."""
    bytes_per_second: float
    made_of: str


class Machine(Value, frozen=True):
    """A machine as a capture shows it; the places of every path come from here."""

    hostname: str
    architecture: str
    cpu_model: str
    packages: tuple[Package, ...]
    numa: tuple[NumaNode, ...]
    caches: tuple[Cache, ...]
    gpus: tuple[Gpu, ...]
    gpu_reason: str = ""
    """Why there are no GPUs, in one line with the remedy; empty when there are."""
    unusable_gpus: tuple[UnusableGpu, ...] = ()
    """GPUs that were found and cannot be used. They have no number: CUDA counts the others."""
    driver: str = ""
    cuda_driver: str = ""
    """The newest CUDA version that the driver supports: ``13.0``."""
    virtual: str = ""
    """Hypervisor, empty on bare metal."""
    files: tuple[FilePlace, ...] = ()
    """File places: not captured, but named by who asks for a survey."""
    ranks: tuple[PlacedRank, ...] = ()
    """The processes between which messages were measured, if they were."""
    messages: str = ""
    """Name and version of their library of messages."""
    nccl: str = ""
    """Version of the NCCL by which collectives of GPUs were measured, if they were."""
    notes: tuple[str, ...] = ()
    """What the capture did not show or had to assume, one line each."""
    traits: Traits = Traits()
    """The traits of the executors and kinds of memory of the program that measures: not captured,
    but added by a survey."""
    simulated: str = ""
    """Empty for a real machine. Of a simulated one: of which profile, with which changes."""
    assumed_peaks: tuple[AssumedPeak, ...] = ()
    """The peaks of the links that a simulation changed; empty for a real machine."""

    def gpu(self, index: int) -> Gpu | None:
        """The GPU of that number, which need not be its position in ``gpus``."""
        return next((gpu for gpu in self.gpus if gpu.index == index), None)

    def rank(self, index: int) -> PlacedRank | None:
        """The rank of that number."""
        return next((rank for rank in self.ranks if rank.index == index), None)

    @property
    def unreal(self) -> Unreal | Literal[""]:
        """What a machine is whose times mean nothing about a real one; empty for a real one."""
        if self.simulated:
            return "simulated"
        return "emulated" if self.virtual == EMULATED else ""

    @property
    def untimed(self) -> str:
        """`unreal` in words: of which profile it is simulated, or what emulates it."""
        if self.unreal == "simulated":
            return f"simulated {self.simulated}"
        return f"emulated by {EMULATED}: its times mean nothing" if self.unreal else ""

    @property
    def lost_gpus(self) -> tuple[UnusableGpu, ...]:
        """GPUs that are given to this process and do not answer."""
        return tuple(gpu for gpu in self.unusable_gpus if gpu.state == "lost")

    @property
    def is_described(self) -> bool:
        """Whether a topology describes it; False if only results name its places."""
        return bool(self.architecture)

    @property
    def nodes_known(self) -> bool:
        """Whether a topology describes the NUMA nodes; False if only results name them."""
        return any(node.cpus or node.memory_bytes for node in self.numa)

    @property
    def memory_only(self) -> frozenset[int]:
        """NUMA nodes without CPUs; none if the CPUs of no node are known."""
        without = frozenset(node.index for node in self.numa if not node.cpus)
        return without if len(without) < len(self.numa) else frozenset()

    @property
    def last_caches(self) -> int:
        """Bytes that all caches of the last level hold together; 0 if none is known."""
        last = max((cache.level for cache in self.caches), default=0)
        return sum(cache.bytes for cache in self.caches if cache.level == last)


class SimulatedMachineError(WaywiserError):
    """A simulated machine where only a real one makes sense."""


def may_be_same(ours: Set[str], theirs: Set[str]) -> bool:
    """Whether two profiles of one host name may be of one machine, by the UUIDs of their GPUs: any
    is the same, or one of them knows none."""
    return bool(ours & theirs) or not (ours and theirs)


def require_real(machine: Machine, where: str, *, allowed: Unreal | None = None) -> None:
    """Raises `SimulatedMachineError` for a machine whose times mean nothing but for what is
    ``allowed``: a survey may run on an emulated machine, and a check be tried out with a simulated
    one. ``where`` is its profile."""
    if machine.unreal not in ("", allowed):
        raise SimulatedMachineError(
            f"its machine is {machine.untimed}",
            where=where,
            remedy="name the profile of a real machine",
        )


SIMULATED_NAME = " (simulated)"
"""What the name of a simulated machine ends with, unless it was given another name."""


def is_nameless(machine: Machine) -> bool:
    """Whether a machine is simulated and was given no name: each of its profiles may stand for a
    machine of its own."""
    return bool(machine.simulated) and machine.hostname.endswith(SIMULATED_NAME)


def machine_line(machine: Machine, *, host: bool = True, reason: bool = True) -> str:
    """``host: 2 × Intel …, 2 NUMA nodes; 8 × NVIDIA H200; driver 580.159``.

    A simulated or emulated machine says so. ``host`` says whether the name of the host is in it,
    ``reason`` whether a machine without GPUs states why it has none. What is unknown is not in it.
    """
    packages = [package.model for package in machine.packages] or [machine.cpu_model]
    processors = _counted(name for name in packages if not name.startswith("unknown"))
    nodes = count(len(machine.numa), "NUMA node") if machine.numa and machine.nodes_known else ""
    gpus = _counted(gpu.name for gpu in machine.gpus)
    if not gpus:
        gpus = "no GPU" if machine.is_described else "no GPU named"
        gpus += f" ({machine.gpu_reason})" if reason and machine.gpu_reason else ""
    parts = (
        ", ".join(filter(None, (processors or machine.architecture, nodes))),
        gpus,
        f"driver {machine.driver}" if machine.driver else "",
        f"NCCL {machine.nccl}" if machine.nccl else "",
        f"{count(len(machine.ranks), 'rank')} of {machine.messages}" if machine.ranks else "",
        machine.untimed,
    )
    line = "; ".join(filter(None, parts))
    return f"{machine.hostname}: {line}" if host and machine.hostname else line


def _counted(names: Iterable[str]) -> str:
    many = Counter(filter(None, names))
    return ", ".join(f"{n} × {name}" if n > 1 else name for name, n in many.items())
