"""What plan, probe and profile hand to one another: frozen values on the ground floor.

    plan    -> probe     Order    measure this workload, in this block, by this rule
    probe   -> profile   Visit    what came of it: samples and why they stopped, or the error
    profile -> stats     Series   the visits of one workload

All times are seconds, all rates bytes per second unless a name says otherwise.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from waywiser.words.transfer import Transfer
from waywiser.words.value import Value
from waywiser.words.workload import Stop, TimingMode, Workload


class Rule(Value, frozen=True):
    """When to stop sampling one series in one block; the same as ``StopRule`` in session.hpp.

    Stop when n >= ``minimum`` (``slow_minimum`` if one execution takes over ``slow_seconds``),
    sampling has lasted ``minimum_seconds``, and the 95 % interval of the median is within
    ``wanted`` of the median, or, after ``soft_seconds`` of sampling, within ``target``; at
    ``hard_seconds`` or ``maximum`` in any case.
    """

    target: float = 0.02
    wanted: float = 0.01
    minimum: int = 10
    slow_minimum: int = 6
    slow_seconds: float = 0.020
    maximum: int = 2000
    minimum_seconds: float = 0.01
    soft_seconds: float = 0.08
    hard_seconds: float = 0.60


class Process(Value, frozen=True):
    """What is a property of a worker process and not of a transfer; the plan groups by it."""

    peer_access: bool = True
    block: int = 0
    """Blocks that need fresh processes get a worker each."""
    loads: str = ""
    """A library that changes what else is measured in its process; empty for none."""


class Order(Value, frozen=True):
    """One visit of a series, to be measured."""

    workload: Workload
    block: int
    process: Process
    rule: Rule
    seed: int
    buffer_bytes: int
    """Size of all buffers of the workload together."""
    expected_seconds: float
    """What the estimate says the visit takes, set-up and verification included."""
    timeout_seconds: float
    """Seconds after which the worker is killed and the visit recorded as failed."""
    evidence: bool = False
    """Whether executions after its samples are watched by the counters of links."""

    @property
    def key(self) -> tuple[str, int]:
        """What makes a visit unique in a profile: (series identity, block)."""
        return (self.workload.identity, self.block)


VOID = 1
"""Sample flag: the watchdog opened the gate; kept, not counted."""

BELOW_RESOLUTION = 2
"""Sample flag: shorter than the timer can be trusted with; counted."""

SUMMARY = 4
"""Sample flag: another tool's mean or median of unknown many; counted, but no interval comes from
it, however many there are."""


class Samples(Value, frozen=True):
    """The raw samples of one visit, in the order taken, as columns of equal length n."""

    span: tuple[float, ...] = ()
    """Seconds of one repetition of the workload: of the longest transfer (device timing), or from
    the common release to the last completion (host timing)."""
    host: tuple[float, ...] = ()
    """Seconds from call to completion of one ungated, unbatched execution, by the host's clock:
    what an application sees."""
    skew: tuple[float, ...] = ()
    repetitions: tuple[int, ...] = ()
    """How many executions were batched into the sample; times are already divided by it."""
    flags: tuple[int, ...] = ()
    """Bit 0: void (the watchdog opened the gate; not counted); bit 1: below the resolution; bit 2:
    another tool's mean or median of samples that it did not keep (counted, gives no interval)."""
    transfers: tuple[tuple[float, ...], ...] = ()
    """Seconds per transfer, one tuple per sample."""
    lanes: tuple[tuple[tuple[float, ...], ...], ...] = ()
    """Seconds of each GPU of each transfer, one tuple per sample: the slowest are the transfer's
    own. Empty unless a transfer was timed on several. Of a sustained workload the GPUs' own events
    timed them, and the host's clock the transfer."""
    alone: tuple[tuple[float, ...], ...] = ()
    """Seconds of each transfer without the others, in turn with the sample, one tuple per sample.
    Empty unless the workload is sustained."""

    def __len__(self) -> int:
        return len(self.span)


class BufferRecord(Value, frozen=True):
    """Where the pages of one buffer were: state is verified, misplaced or unverified."""

    memory: str
    state: str
    fraction_on_place: float = 0.0
    fraction_huge: float = 0.0
    detail: str = ""
    gpu_seconds: tuple[float, ...] = ()
    """Seconds of a copy of 8 bytes from page-locked memory to each of several GPUs, by index. They
    show on which side of the machine the buffer is."""


LIMIT = "limit"
"""The kind of a failure by a limit of the system. The same command succeeds if it is raised."""


KILLED = "out-of-memory-kill"
"""The kind of a failure whose worker the kernel ended for want of memory. It is not tried again,
nor are larger sizes."""


MESSAGES = "messages"
"""The kind of a failure whose worker could not exchange messages with other ranks: either end may
be the cause."""


class Failure(Value, frozen=True):
    """Why a visit has no samples. Kinds: ``not-supported``, ``out-of-memory``, `KILLED`,
    ``sticky``, ``gpu``, ``wrong-bytes``, ``crash``, `MESSAGES`, ``timeout``, ``interrupted``,
    ``skipped``, ``protocol``, `LIMIT` (of the system: no thread or file more), ``foreign`` (another
    tool's, in its words)."""

    kind: str
    reason: str


NOT_MEASURED = ("skipped", "interrupted")
"""Kinds of failure that are no property of the path: no time, or an interruption."""


class GpuState(Value, frozen=True):
    """One reading of a GPU's state while a visit ran."""

    index: int
    clock_sm_mhz: int = 0
    clock_memory_mhz: int = 0
    throttle: tuple[str, ...] = ()
    pcie_generation: int = 0
    pcie_width: int = 0
    temperature_c: int = 0
    power_w: float = 0.0


class LinkBytes(Value, frozen=True):
    """What counters of a GPU's links counted in some time, in bytes; tx is what the GPU sent.

    None: there is no such counter, and `GpuTraffic.reasons` says why.
    """

    nvlink_tx: dict[int, int] | None = None
    """Bytes by the link's number, of those that moved anything."""
    nvlink_rx: dict[int, int] | None = None
    pcie_tx: int | None = None
    pcie_rx: int | None = None


class GpuTraffic(Value, frozen=True):
    """The links of one GPU around watched executions, and in as long a time without them."""

    index: int
    work: LinkBytes = LinkBytes()
    idle: LinkBytes = LinkBytes()
    reasons: tuple[str, ...] = ()
    """Why counters could not be read, one line each."""


class LinkEvidence(Value, frozen=True):
    """Which links moved while a workload was executed for nothing but that to be seen."""

    executions: int
    seconds: float
    """Seconds between the two readings of the counters."""
    idle_seconds: float
    """The same without the work: what moves then is not the workload's."""
    gpus: tuple[GpuTraffic, ...] = ()
    """Those that take part in the workload, by index."""
    reason: str = ""
    """Why no counter of any GPU could be read."""


class BlockLatencies(Value, frozen=True):
    """What it cost to reach one block of host memory. Seconds."""

    state: str
    """The state of its pages, as in `BufferRecord`."""
    copies: tuple[tuple[float, ...], ...] = ()
    """Seconds of one copy of 8 bytes to each GPU: [round][GPU], each round from another piece of
    it."""
    reads: tuple[tuple[float, ...], ...] = ()
    """Seconds of one load out of memory by each CPU: [sweep][CPU]."""


class Locality(Value, frozen=True):
    """Where blocks of one memory were, as one worker found when it started: GPUs and CPUs that are
    near reach a block sooner, whatever the system says about it."""

    worker: int
    """Number of the worker process within the survey, from 1."""
    started: str
    """UTC, ISO 8601."""
    memory: str
    gpus: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    sweeps: tuple[float, ...] = ()
    """Seconds from the start to each sweep of reads."""
    blocks: tuple[BlockLatencies, ...] = ()
    """Held all at once."""
    seconds: float = 0.0
    failure: Failure | None = None
    """Why there are no blocks."""


WhileOccupied = Literal["ended", "waited", "undecided"]
"""Whether work ended while a kernel occupied all multiprocessors of the GPUs at its ends: it needed
none of them then. What waited until the kernel ended is done by multiprocessors."""


class Observation(Value, frozen=True, omit_defaults=True):
    """Whether some work needs multiprocessors. Seconds."""

    found: WhileOccupied = "undecided"
    reason: str = ""
    """Why it is undecided."""
    alone_seconds: float = 0.0
    """From the call to completion, without the kernel."""
    held_seconds: float = 0.0
    """From the call until it ended, or until the kernel did."""
    after_seconds: float = 0.0
    """From the end of the kernel to completion, of work that waited."""


class ObservedCopy(Value, frozen=True):
    """What one transfer showed."""

    transfer: Transfer
    seen: Observation


class WhoCopies(Value, frozen=True, omit_defaults=True):
    """Whether copies of one GPU need multiprocessors, as its survey observed."""

    gpu: int
    started: str
    """UTC, ISO 8601."""
    kernel: Observation = Observation()
    """A kernel, which must wait: else nothing is decided."""
    fill: Observation = Observation()
    """A memset of 1 MiB."""
    copies: tuple[ObservedCopy, ...] = ()
    seconds: float = 0.0
    failure: Failure | None = None
    """Why nothing was observed."""


STANDING_COUNTERS = ("row remapping pending", "row remapping failed")
"""Error counters of a GPU that are 1 for yes, and are a problem whether they rose or not."""


class GpuHealth(Value, frozen=True):
    """The counters of one GPU at one moment."""

    index: int
    uuid: str
    counters: dict[str, int] = msgspec.field(default_factory=dict)
    """Counters by name; those of a link begin with ``NVLink 3``."""
    unavailable: dict[str, str] = msgspec.field(default_factory=dict)
    """Counter -> why it cannot be read."""
    xids: tuple[int, ...] = ()
    """Numbers of the driver's XID messages since the run began, in order."""


class Health(Value, frozen=True):
    """The counters of all measured GPUs at one moment."""

    taken: str
    """UTC, ISO 8601."""
    gpus: tuple[GpuHealth, ...] = ()
    reason: str = ""
    """Why nothing at all could be read; empty if something was."""


class Visit(Value, frozen=True):
    """One block of one series, finished: what the profile commits at once."""

    workload: Workload
    block: int
    stop: Stop
    started: str
    """UTC, ISO 8601."""
    mode: TimingMode = "host"
    samples: Samples = Samples()
    failure: Failure | None = None
    buffers: tuple[BufferRecord, ...] = ()
    gate: str = ""
    notes: tuple[str, ...] = ()
    worker: int = 0
    """Number of the worker process within the survey, from 1."""
    setup_seconds: float = 0.0
    sampling_seconds: float = 0.0
    elapsed_seconds: float = 0.0
    """Seconds from order to answer, as the supervisor saw it."""
    buffer_bytes: int = 0
    """Size of the workload's own buffers."""
    held_bytes: int = 0
    """Held at most by the worker so far, buffers kept for later series included."""
    gpu_states: tuple[GpuState, ...] = ()
    evidence: LinkEvidence | None = None
    """Which links it used; None if it was not read."""


class Series(Value, frozen=True):
    """All visits of one workload, in block order: raw, as measured."""

    workload: Workload
    visits: tuple[Visit, ...] = ()

    @property
    def failure(self) -> Failure | None:
        """The first failure, when no visit has samples."""
        if any(len(visit.samples) for visit in self.visits):
            return None
        return next((visit.failure for visit in self.visits if visit.failure), None)


class Unsupported(Value, frozen=True):
    """A path that cannot be measured here, with the reason: listed, never silent."""

    path: str
    reason: str
