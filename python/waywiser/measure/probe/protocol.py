"""What a supervisor and its workers say to each other, in lines of
`waywiser.measure.supervise.channel`.

    supervisor -> worker   hello    who you are, the machine, the settings of the process
    worker -> supervisor   ready    (or failed with id 0)
    supervisor -> worker   locate   before any order: how far is memory from GPUs and cores
    worker -> supervisor   located  (or failed)
    supervisor -> worker   observe  before any order: does a GPU need multiprocessors for copies
    worker -> supervisor   observed (or failed)
    supervisor -> worker   make-key to a worker with messages by NCCL: make a name for ranks
    worker -> supervisor   key      (or failed)
    supervisor -> worker   connect  to each such worker: join the other ranks of that name
    worker -> supervisor   connected (or failed)
    supervisor -> worker   prepare  an order: check it, get ready for it
    worker -> supervisor   prepared (or failed)
    supervisor -> worker   start    all members are prepared: measure
    worker -> supervisor   progress any number of times, then result (or failed)
    supervisor -> worker   ping     at any time: what are you doing?
    worker -> supervisor   pong     at once, by another thread than the one that measures
    supervisor -> worker   abort    at any time: end what waits for another rank, and fail
    supervisor -> worker   stop     end; so does the end of the descriptor

A rank that a launcher has started connects to its supervisor, and says so first:

    rank -> supervisor     greeting with the secret of the launch, before MPI starts
    supervisor -> rank     attempt  instead of hello: what to try
    rank -> supervisor     joined   after MPI has started
    rank -> supervisor     outcome  of each operation that was tried

A worker that cannot go on says so at any time: a fatal failed, with the id of the order it has or
with 0. It is the last that it says.
"""

from __future__ import annotations

import msgspec

from waywiser.machine import Machine
from waywiser.measure.supervise import LineProtocol
from waywiser.words import (
    BufferRecord,
    Failure,
    LinkEvidence,
    Memory,
    Observation,
    Order,
    Process,
    Samples,
    Stop,
    TimingMode,
    Transfer,
    Value,
    Visit,
)
from waywiser.words.records import BlockLatencies


class Hello(Value, frozen=True, tag="hello", tag_field="type"):
    """The first line to a worker."""

    machine: Machine
    process: Process
    memory_bytes: int
    watchdog_seconds: float
    rank: int = 0
    size: int = 1
    sides: bool = False
    """Measure how far each page-locked buffer is from every GPU."""
    gpus: tuple[int, ...] = ()
    """Make a context on each of these before saying ready."""


class Locate(Value, frozen=True, tag="locate", tag_field="type"):
    """Time copies and loads from blocks of a memory; ``cpus`` are those that read."""

    id: int
    memory: Memory
    cpus: tuple[int, ...]


class Observe(Value, frozen=True, tag="observe", tag_field="type"):
    """Try these transfers while a kernel occupies all multiprocessors of the GPUs at their ends."""

    id: int
    gpu: int
    transfers: tuple[Transfer, ...]


class MakeKey(Value, frozen=True, tag="make-key", tag_field="type"):
    """Ask for a key by which ranks find each other."""

    id: int


class Connect(Value, frozen=True, tag="connect", tag_field="type"):
    """Leave the ranks of before, and join those with this key; each rank gets this, and joins when
    all do. The orders that follow are between these ranks."""

    id: int
    key: str
    """As `MadeKey` has it."""
    rank: int
    size: int
    seconds: float
    """The longest that a message, or the joining, may take; then it fails."""


class LeaveRanks(Value, frozen=True, tag="leave", tag_field="type"):
    """Leave the ranks of the last connection. All its ranks get this at once: NCCL waits for those
    of the same host."""

    id: int


class Prepare(Value, frozen=True, tag="prepare", tag_field="type"):
    id: int
    order: Order
    host_timed: tuple[Transfer, ...] = ()
    """Found to block behind a closed gate by workers; to be timed by the host."""


class Start(Value, frozen=True, tag="start", tag_field="type"):
    id: int


class Ping(Value, frozen=True, tag="ping", tag_field="type"):
    """Asks what the worker does. Ids are those of pings alone."""

    id: int


class Abort(Value, frozen=True, tag="abort", tag_field="type"):
    """Ends what the worker does with other ranks, which fails. It is not answered."""


class End(Value, frozen=True, tag="stop", tag_field="type"):
    """Ends the worker."""


class Attempt(Value, frozen=True, tag="attempt", tag_field="type"):
    """What a rank tries, from and to this memory (`waywiser.measure.ranks.attempt`)."""

    bridge: str
    operations: tuple[str, ...]
    """``send``, ``alltoallv``."""
    memory: Memory
    machine: Machine


OTHER_MEMBER = "other-member"
"""The kind of a `Failed` that only follows from that of another member."""


class Ready(Value, frozen=True, tag="ready", tag_field="type"):
    pid: int
    backend: str
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    """UUIDs in the order of their CUDA indices; empty if the worker was given no GPU."""
    rank: int = 0
    ranks: int = 1
    """The number of the worker and how many there are, as they know each other."""


class Located(Value, frozen=True, tag="located", tag_field="type"):
    """What was found, as in `waywiser.words.records.Locality`."""

    id: int
    gpus: tuple[int, ...]
    cpus: tuple[int, ...]
    sweeps: tuple[float, ...]
    blocks: tuple[BlockLatencies, ...]
    seconds: float


LOCATED = ("gpus", "cpus", "sweeps", "blocks", "seconds")
"""What this answer and the record of it have in common."""


class Observed(Value, frozen=True, tag="observed", tag_field="type"):
    """What was seen, as in `waywiser.words.records.WhoCopies`; of copies in the order asked."""

    id: int
    kernel: Observation
    fill: Observation
    copies: tuple[Observation, ...]
    seconds: float


class MadeKey(Value, frozen=True, tag="key", tag_field="type"):
    id: int
    key: str
    """Names ranks of one connection, once; hexadecimal."""


class Connected(Value, frozen=True, tag="connected", tag_field="type"):
    """All ranks have joined."""

    id: int
    seconds: float
    """That it took."""


class RanksLeft(Value, frozen=True, tag="left", tag_field="type"):
    """The connection has ended, and its memory is given back."""

    id: int


class Prepared(Value, frozen=True, tag="prepared", tag_field="type"):
    id: int


class Progressed(Value, frozen=True, tag="progress", tag_field="type"):
    """Sampling goes on: n samples so far, median and its 95 % interval in seconds.

    ``low`` and ``high`` are None while there are too few samples for an interval.
    """

    id: int
    n: int
    median: float
    low: float | None = None
    high: float | None = None


class Pong(Value, frozen=True, tag="pong", tag_field="type"):
    """The process runs. ``stage`` is what it does, in words; ``step`` grows with all that it has
    done, so that of members which do the same together the one with the least step is behind."""

    id: int
    stage: str
    step: int = 0
    waits: bool = False
    """It waits for other members, or sends to one that may not receive."""


class MeasuredVisit(Value, frozen=True):
    """What one worker found for its transfers of a workload: a visit without its context."""

    mode: TimingMode
    stop: Stop
    samples: Samples
    buffers: tuple[BufferRecord, ...] = ()
    gate: str = ""
    notes: tuple[str, ...] = ()
    setup_seconds: float = 0.0
    sampling_seconds: float = 0.0
    buffer_bytes: int = 0
    held_bytes: int = 0
    host_timed: tuple[Transfer, ...] = ()
    """Transfers that this visit showed to block behind a closed gate."""
    evidence: LinkEvidence | None = None

    @classmethod
    def of_visit(cls, visit: Visit, samples: Samples, setup_seconds: float) -> MeasuredVisit:
        """The answer of a worker that measures nothing itself: what the visit has, with these
        samples and this time of set-up."""
        found = {name: getattr(visit, name) for name in MEASURED}
        return cls(**{**found, "samples": samples, "setup_seconds": setup_seconds})


MEASURED = tuple(set(MeasuredVisit.__struct_fields__) - {"host_timed"})
"""Fields of a visit that a worker measures."""


class Result(Value, frozen=True, tag="result", tag_field="type"):
    id: int
    measured: MeasuredVisit


class Failed(Value, frozen=True, tag="failed", tag_field="type"):
    """The order came to nothing; ``fatal`` when the worker cannot measure anything any more."""

    id: int
    failure: Failure
    fatal: bool = False


class Greeting(Value, frozen=True, tag="greeting", tag_field="type"):
    """A process that the launcher has started."""

    secret: str
    pid: int
    rank: int = -1
    """Its number as the launcher states it in the environment; -1 if it does not."""
    host: str = ""
    """The node that it runs on, as it knows it."""


class Joined(Value, frozen=True, tag="joined", tag_field="type"):
    """A rank of the world that MPI made."""

    rank: int
    size: int
    library: str
    """What the library that it loaded calls itself."""
    threads: str
    cuda_stated: int
    """Whether the library states that it takes memory of CUDA: 1, 0, or -1 if it does not say."""
    shared: tuple[str, ...] = ()
    """Files in ``/dev/shm`` that the process has mapped."""


class Outcome(Value, frozen=True, tag="outcome", tag_field="type"):
    """What came of an operation that was tried: no problem if all bytes were right."""

    problem: str = ""
    unsupported: bool = False
    """The memory cannot be had on this machine: MPI was not tried."""


ToWorker = (
    Hello
    | Locate
    | Observe
    | MakeKey
    | Connect
    | LeaveRanks
    | Prepare
    | Start
    | Ping
    | Abort
    | End
    | Attempt
)
FromWorker = (
    Ready
    | Located
    | Observed
    | MadeKey
    | Connected
    | RanksLeft
    | Prepared
    | Progressed
    | Pong
    | Result
    | Failed
    | Greeting
    | Joined
    | Outcome
)

_PROTOCOL: LineProtocol[ToWorker, FromWorker] = LineProtocol(1, ToWorker, FromWorker)
encode = _PROTOCOL.encode
decode_to_worker, decode_from_worker = _PROTOCOL.decode_said, _PROTOCOL.decode_heard
