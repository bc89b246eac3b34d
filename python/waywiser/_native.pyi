"""The native library as Python sees it: thin, typed, no files, no JSON.

``waywiser._native`` is the real one (CUDA, or none); the tests build ``waywiser_fake._native``
with the same contents over a fake GPU. `waywiser.machine.native.load` picks.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

backend: str
"""``cuda``, ``none`` or ``fake``."""
runtime_version: str
"""The version of the CUDA runtime that this was built with (``13.0``), or empty."""
architectures: str
"""The GPUs that this was built for: machine code (``75-real``), PTX (``90-virtual``); or empty."""
hwloc_version: str

def driver_version() -> str:
    """The version of CUDA that the installed driver supports (``13.0``), or empty."""

def free_on_node(node: int) -> int | None:
    """Bytes of a NUMA node that buffers may take now; None if the system does not state it."""

class GpuError(RuntimeError):
    """``args == (message, kind, call, code, name, where)``; kind is one of ``other``,
    ``out_of_memory``, ``sticky``, ``unavailable``."""

class NodeFull(MemoryError):
    """A buffer does not fit into the free memory of its NUMA node; nothing was allocated."""

class NotSupported(RuntimeError): ...
class WrongBytes(RuntimeError): ...
class BlocksBehindGate(RuntimeError): ...
class NcclError(RuntimeError): ...
class OtherRankFailed(RuntimeError): ...
class MessengerError(RuntimeError): ...

class Memory:
    def __init__(self, kind: str, place: str, variant: dict[str, str]) -> None: ...

class Transfer:
    def __init__(
        self,
        source: Memory,
        destination: Memory,
        executor: str,
        bytes: int,
        parameters: dict[str, str],
        layout: str = "contiguous",
        layout_settings: dict[str, str] = ...,
    ) -> None: ...

class Operation:
    def __init__(self, name: str, place: str, parameters: dict[str, str]) -> None: ...

class NumaNode:
    def __init__(self, index: int, cpus: Sequence[int]) -> None: ...

class GpuPlace:
    def __init__(
        self, index: int, uuid: str, numa: int, peers: Sequence[int], pageable_access: bool
    ) -> None: ...

class FilePlace:
    def __init__(
        self,
        name: str,
        path: str,
        scratch: bool,
        bytes: int,
        filesystem: str,
        direct: bool = True,
    ) -> None: ...

class RankPlace:
    def __init__(
        self,
        index: int,
        cpus: Sequence[int],
        numa: int,
        gpu: int = -1,
        unsent: Sequence[str] = (),
        messages: str = "mpi",
        unexchanged: Sequence[str] = (),
    ) -> None: ...

class Machine:
    def __init__(
        self,
        numa: Sequence[NumaNode],
        gpus: Sequence[GpuPlace],
        files: Sequence[FilePlace] = ...,
        ranks: Sequence[RankPlace] = ...,
    ) -> None: ...

def use_nccl(path: str) -> None: ...
def nccl_version() -> str: ...
def memories() -> list[dict[str, Any]]:
    """Per kind: name, description, source, places (``numa``/``gpu``/``file``), needs_gpu,
    cpu_accessible, traits (see `waywiser.machine.traits.MemoryTraits`), parameters (the variants):
    list of {name, description, kind, choices}."""

def executors() -> list[dict[str, Any]]:
    """Per executor: name, description, source, layouts (of ``contiguous``, ``box``, ``list``),
    least_bytes, survey_only, settings_on_request, comparison, in_sets (see ``Traits`` in
    traits.hpp), traits (see `waywiser.machine.traits.ExecutorTraits`), parameters: {name,
    description, kind, choices}."""

def operations() -> list[dict[str, Any]]:
    """Per operation: name, description, source, places (``numa``/``gpu``), timing (``device``/
    ``host``), parameters: {name, description, kind, choices}."""

def operation_unsupported_reason(operation: Operation, machine: Machine) -> str | None:
    """The reason why it cannot be performed, or None. Needs no GPU and no driver."""

def operation_parameters(operation: Operation, machine: Machine) -> list[dict[str, Any]]:
    """Those that mean something at the operation's place; the first choice is the default."""

def unsupported_reason(transfer: Transfer, machine: Machine) -> str | None:
    """The reason why the transfer cannot be run, or None. Needs no GPU and no driver."""

def parameters(transfer: Transfer, machine: Machine) -> list[dict[str, Any]]:
    """The parameters that mean something on the transfer's path, narrowed to this machine; the
    first choice is the default. Needs no GPU and no driver."""

def timing(transfer: Transfer, machine: Machine) -> str:
    """``device`` or ``host``. Needs no GPU and no driver."""

def peer_access(transfer: Transfer, machine: Machine) -> bool | None:
    """Whether the process needs peer access on or off for it; None where it does not matter."""

def requirements(transfer: Transfer, machine: Machine) -> dict[str, Any]:
    """What the transfer takes besides the memory of its two sides: threads, pinned_bytes,
    device_bytes (GPU -> bytes), peers (pairs of GPUs that access each other's memory) and
    host_links (GPUs whose links to the host carry bytes). Needs no GPU and no driver.

    Raises NotSupported for an executor or a value of a parameter that does not exist."""

def in_place(transfer: Transfer, machine: Machine) -> bool:
    """Whether source and destination are one buffer. Needs no GPU and no driver."""

def repeatable(transfer: Transfer, machine: Machine) -> bool:
    """Whether a start without a restore before does the same again. Needs no GPU and no driver."""

def extents(transfer: Transfer) -> tuple[int, int]:
    """Bytes from start to end of the source's and of the destination's buffer, the gaps of their
    layout included. Raises NotSupported for bytes that are not a whole number of its runs."""

def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """(median, low, high) of the 95 % order-statistics interval; low and high are NaN under 6."""

def hwloc_xml(source: str | None = None) -> str:
    """This machine's topology, or that of an XML file read again, as hwloc 2 XML.
    Raises ValueError with one line for a file that hwloc does not read."""

def gpu_unavailable_reason() -> str:
    """Empty when the CUDA runtime works here; loads the driver."""

def gpu_uuids() -> list[str]:
    """The GPUs by their CUDA indices; loads the driver, but makes no context on any of them."""

def gpus() -> list[dict[str, Any]]:
    """index, name, uuid, pci, compute, memory_bytes, free_bytes, multiprocessors, l2_bytes,
    pageable_access, concurrent_managed, memory_pools, vmm, ipc, host_native_atomics; for workers
    only, since asking loads the driver."""

class StopRule:
    target: float
    wanted: float
    minimum: int
    slow_minimum: int
    slow_seconds: float
    maximum: int
    minimum_seconds: float
    soft_seconds: float
    hard_seconds: float
    def __init__(self, **fields: float) -> None: ...

class Session:
    def __init__(
        self,
        machine: Machine,
        *,
        peer_access: bool = True,
        memory_bytes: int = 4 << 30,
        watchdog_seconds: float = 10.0,
        host_timed: Sequence[Transfer] = (),
        sides: bool = False,
        messenger: Messenger | None = None,
    ) -> None: ...
    def measure(
        self,
        transfers: Sequence[Transfer],
        *,
        operation: Operation | None = None,
        cache: str = "warm",
        shared: bool = False,
        rule: StopRule,
        seed: int = 1,
        progress: Callable[[int, float, float, float], None] | None = None,
        evidence: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """One block of one series; the GIL is released. Seconds throughout.

        Returns mode (``device``/``host``), stop (``converged``/``budget``/``limit``), gate,
        notes, setup_seconds, sampling_seconds, buffer_bytes, pool_peak_bytes, buffers (list of
        {memory, state, fraction_on_place, fraction_huge, detail, gpu_seconds}) and samples: a dict
        of equally long lists ``span``, ``host``, ``skew``, ``repetitions``, ``flags``,
        ``transfers`` (list of lists).

        ``gpu_seconds`` is empty unless the session was made with ``sides``. ``evidence`` is called
        with 0 before, and with their number after, executions in which counters can be read.
        """
    def locality(
        self,
        memory: Memory,
        *,
        blocks: int = 6,
        bytes: int = 16 << 20,
        rounds: int = 8,
        cpus: Sequence[int] = (),
        sweeps: int = 4,
        pause: float = 0.04,
    ) -> dict[str, Any]:
        """Latencies of blocks of host memory, held all at once; the GIL is released.

        Returns gpus, cpus, sweeps (seconds from the start to each sweep of reads), seconds, and
        blocks: list of {state, copies, reads}. ``copies[round][gpu]`` are seconds of one small
        copy to the GPU, none where the memory is not page-locked or there is no GPU;
        ``reads[sweep][cpu]`` seconds of one load out of memory.
        """
    def open(self, gpus: Sequence[int]) -> None:
        """Makes contexts on these GPUs; the GIL is released. Raises `GpuError`."""
    def underway(self) -> str:
        """Returns the transfer that has run longest in a sustained workload that another thread
        measures, and for how long; empty for other workloads."""
    def who_copies(self, gpu: int, transfers: Sequence[Transfer]) -> dict[str, Any]:
        """Whether transfers need multiprocessors of the GPUs at their ends, which a kernel occupies
        for less than 50 ms at a time; the GIL is released.

        Returns seconds, and what was observed of a short kernel (``kernel``), which must wait, of a
        memset of 1 MiB (``fill``) and of each transfer (``copies``, a list): {found (``ended``,
        ``waited`` or ``undecided``), reason, alone_seconds, held_seconds, after_seconds}.
        """

class PlacedMemory:
    """A buffer of a kind of memory at its place. Raises NotSupported and GpuError."""

    bytes: int
    def __init__(self, memory: Memory, bytes: int, machine: Machine) -> None: ...
    def read(self) -> builtins.bytes: ...
    def write(self, data: builtins.bytes) -> None: ...

class Messenger:
    """Messages between the ranks of a group; data is bytes, an array or `PlacedMemory`. The GIL is
    released; all raise MessengerError with one line."""

    rank: int
    size: int
    def send(self, data: Any, to: int, tag: int = 0) -> None: ...
    def receive(self, into: Any, source: int, tag: int = 0) -> None: ...
    def barrier(self) -> None: ...
    def alltoallv(
        self,
        source: Any,
        bytes: Sequence[int],
        destination: Any,
        received: Sequence[int],
    ) -> None: ...
    def maximum(self, values: Sequence[float]) -> list[float]:
        """The greatest of all ranks, of each value."""
    def group(self, chosen: Sequence[int]) -> Messenger:
        """Called by the chosen ranks alone, which are numbered in their order."""

class Bridge:
    """The MPI of this machine, through the bridge that its mpicc compiled."""

    library: str
    """What the library calls itself."""
    cuda_stated: int
    """After `join`: 1, 0, or -1 if the library does not say whether it takes memory of CUDA."""
    threads: str
    """After `join`: ``single``, ``funneled``, ``serialized`` or ``multiple``."""
    stage: str
    """The call that the process is in, for another thread; empty outside of calls."""
    def __init__(self, file: str) -> None: ...
    def join(self) -> Messenger:
        """All ranks of this launch; once in a process."""
    def leave(self) -> None: ...

def nccl_unique_id() -> bytes:
    """By which ranks find each other, once. Raises NotSupported, MessengerError."""

class NcclConnection:
    """A communicator of NCCL, which other threads watch and can end. No call waits longer than
    ``seconds`` for other ranks; after a MessengerError all calls fail."""

    stage: str
    """The call that the process is in; empty outside of calls."""
    ended: str
    """After such an error ``timeout``, ``stopped``, ``remote`` (another rank is gone) or
    ``failed``; empty before."""
    def __init__(self, gpu: int, seconds: float) -> None: ...
    def join(self, id: bytes, rank: int, size: int) -> Messenger:
        """Once; returns when all ranks have joined."""
    def leave(self) -> None:
        """Ends the messenger; may wait some seconds for others."""
    def stop(self) -> None:
        """From any thread: ends the call that waits, or else the next one."""
