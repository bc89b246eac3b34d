"""What a tracer recorded of a program: the file of each process, and one file of all of them.

`native/src/trace` writes a file for each process and replaces it each second. ``waywiser trace``
puts them together. Both are JSON with a format and a version. Times are nanoseconds of the system's
monotonic clock. What a tracer does not know is absent or null, never 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from waywiser.profile.errors import DamagedProfile, MissingProfile, NotReadable, NotWritable
from waywiser.profile.output_file import (
    STANDARD_OUTPUT,
    OutputKind,
    require_output,
    write_output,
)
from waywiser.words import Value, WaywiserError

SUFFIX = ".wwt"
PROCESS_FORMAT = "waywiser-trace-process"
FORMAT = "waywiser-trace"
VERSION = 1

TRACE_FILE = OutputKind("trace", f'"format":"{FORMAT}"')

MOST_BYTES = 1 << 30
"""A larger file is not read: a tracer keeps groups, not records."""


class TraceError(WaywiserError):
    """A trace that cannot be read or made."""


class _Recorded(msgspec.Struct, frozen=True):
    """Base of what a tracer writes. A field of a later version is ignored."""


class Frame(_Recorded, frozen=True):
    """A caller: a line of Python, or a function of a module."""

    language: str
    file: str | None = None
    line: int | None = None
    function: str | None = None
    module: str | None = None
    offset: int | None = None


class Site(_Recorded, frozen=True):
    """Where a call came from, the innermost caller first; nothing if it is not known."""

    frames: tuple[Frame, ...] = ()


class MemorySide(_Recorded, frozen=True):
    """One end of a copy."""

    kind: str
    """pageable, pinned, device, managed, array or unknown."""
    gpu: int | None = None


class CopyGroup(_Recorded, frozen=True, rename={"source": "from", "destination": "to"}):
    """Copies of one call site with the same ends and the same size class."""

    site: int
    operation: str
    direction: str | None
    """None for a set of memory."""
    source: MemorySide
    destination: MemorySide
    bytes_log2: int
    copies: int
    bytes: int
    device_ns: int
    calls: int = 0
    least_bytes: int = 0
    most_bytes: int = 0
    call_ns: int | None = None
    """None, as other values of calls, if the tracer saw none of the calls."""
    exposed_ns: int = 0
    """The time of the union of its copies in which no kernel of that GPU ran."""
    alone_ns: int = 0
    """The part of it in which no copy of another group ran either."""
    lost_ns: int | None = None
    """The same as ``exposed_ns``, and the time without a kernel or another group's copy in which
    the program waited for one of its copies: in the call, or in a wait directly after it. A call
    for pageable memory waits, also if it is asynchronous by its name."""
    asynchronous: int = 0
    waited: int | None = None
    """Calls that a wait of the same thread follows directly."""
    wait_ns: int | None = None
    slept_after: int | None = None
    """Calls in periods of their thread that ended with a sleep of it outside of CUDA: it waited for
    something else."""
    sleeps: int = 0
    """Such periods."""
    addressed: int = 0
    """Calls whose host address is known."""
    repeated: int = 0
    """Those whose line has copied from or to that address shortly before."""
    nodes: Mapping[str, int] = {}
    """Pages by NUMA node, of those that were looked at."""
    new_pages: int | None = None
    sampled_pages: int = 0
    during_collective_ns: int = 0
    graph: bool = False


class MemoryCalls(_Recorded, frozen=True):
    """Allocations and registrations of one call site."""

    site: int
    operation: str
    calls: int
    ns: int
    bytes: int = 0


class Migrations(_Recorded, frozen=True):
    """Migrations and page faults of managed memory."""

    direction: str | None
    count: int
    gpu: int | None = None
    bytes: int = 0
    ns: int = 0


class Waits(_Recorded, frozen=True):
    """Calls of one site that wait for a GPU."""

    site: int
    calls: int
    ns: int


class TracedGpu(_Recorded, frozen=True):
    """A GPU with what ran on it."""

    gpu: int
    uuid: str | None = None
    name: str | None = None
    pci: str | None = None
    kernels: int = 0
    kernel_ns: int = 0
    copy_ns: int = 0
    exposed_ns: int = 0
    lost_ns: int | None = None
    collective_ns: int = 0


class Timeline(_Recorded, frozen=True):
    """The second with the most exposed time: (kind, gpu, stream, start, end, bytes, index of a
    group or a name); kinds are copy, kernel, set and collective."""

    start_ns: int = 0
    end_ns: int = 0
    complete: bool = True
    names: tuple[str, ...] = ()
    events: tuple[tuple[int, int, int, int, int, int, int], ...] = ()


class Note(_Recorded, frozen=True):
    """What a tracer could not do."""

    code: str
    text: str


class ProcessFacts(_Recorded, frozen=True):
    """The process itself."""

    pid: int
    start_ns: int
    last_ns: int
    parent: int = 0
    command: tuple[str, ...] = ()
    started: str | None = None
    ended: bool = False
    rank: int | None = None


class TracedProcess(_Recorded, frozen=True):
    """What was recorded of one process."""

    format: str
    version: int
    process: ProcessFacts
    cupti: Mapping[str, Any] | None = None
    driver: int | None = None
    notes: tuple[Note, ...] = ()
    dropped_records: int = 0
    kernels_recorded: bool = False
    sites: tuple[Site, ...] = ()
    groups: tuple[CopyGroup, ...] = ()
    memory: tuple[MemoryCalls, ...] = ()
    managed: tuple[Migrations, ...] = ()
    waits: tuple[Waits, ...] = ()
    gpus: tuple[TracedGpu, ...] = ()
    timeline: Timeline | None = None

    @property
    def seconds(self) -> float:
        """From the start of the tracer to its last record."""
        return max(self.process.last_ns - self.process.start_ns, 0) / 1e9


class Trace(Value, frozen=True, kw_only=True):
    """What was recorded of a command and all its processes."""

    format: str = FORMAT
    version: int = VERSION
    command: tuple[str, ...]
    started: str
    seconds: float
    """Wall time of the whole command."""
    exit_code: int
    host: str
    waywiser: str
    processes: tuple[TracedProcess, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Files of processes that cannot be read, with why."""
    patched: bool = False
    """Whether copies of PyTorch were made by `waywiser.transfer.torch.patch`."""
    profile: str = ""
    """The profile of the machine that its copies were compared with."""


def read_processes(folder: Path) -> tuple[list[TracedProcess], list[str]]:
    """The processes whose files are in a folder, in the order of their starts, and why others
    cannot be read."""
    found: list[TracedProcess] = []
    unreadable: list[str] = []
    for file in sorted(folder.glob("trace-*.json")):
        try:
            process = _decoded(file.read_bytes(), TracedProcess, PROCESS_FORMAT, str(file))
            _require_sites(process, str(file))
            found.append(process)
        except (OSError, WaywiserError) as error:
            unreadable.append(f"{file.name}: {error}")
    return sorted(found, key=lambda each: each.process.start_ns), unreadable


def is_trace(file: str | Path) -> bool:
    """Whether a file is a trace, by its first bytes."""
    head = msgspec.json.encode({"format": FORMAT})[:-1]
    try:
        with open(file, "rb") as stream:
            return stream.read(len(head)) == head
    except OSError:
        return False


def read_trace(file: str | Path) -> Trace:
    """Raises `MissingProfile`, `NotReadable`, `DamagedProfile`, and `TraceError` for a trace of
    another version."""
    try:
        if os.path.getsize(file) > MOST_BYTES:
            raise DamagedProfile(f"more than {MOST_BYTES >> 20} MiB are no trace", where=str(file))
        data = Path(file).read_bytes()
    except FileNotFoundError:
        raise MissingProfile("there is no such file", where=str(file)) from None
    except OSError as error:
        raise NotReadable(f"it cannot be read: {error.strerror}", where=str(file)) from error
    trace: Trace = _decoded(data, Trace, FORMAT, str(file))
    for process in trace.processes:
        _require_sites(process, str(file))
    return trace


def write_trace(trace: Trace, file: str | Path) -> None:
    """Writes a trace, which replaces a former one. Raises `ExistingFile` for another file,
    `NotWritable`."""
    write_output(str(file), msgspec.json.encode(trace), TRACE_FILE)


def require_trace_output(file: str) -> None:
    """Asks, before the program runs, whether `write_trace` could begin, and raises as it does; also
    for ``-``, since standard output is the program's."""
    if file == STANDARD_OUTPUT:
        raise NotWritable("standard output is the program's", remedy="name a file: -o train.wwt")
    require_output(file, TRACE_FILE)


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


def _decoded(data: bytes, type: Any, format: str, where: str) -> Any:
    try:
        head = msgspec.json.decode(data, type=_Head)
        if head.format == format and head.version != VERSION:
            raise TraceError(
                f"it has version {head.version} of the format, this program reads {VERSION}",
                where=where,
                remedy="read it with the version of Waywiser that made it",
            )
        if head.format != format:
            raise DamagedProfile("it is no trace", where=where, remedy="name a file of trace -o")
        return msgspec.json.decode(data, type=type)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DamagedProfile(
            f"the trace is damaged ({error})", where=where, remedy="trace the program again"
        ) from error


def _require_sites(process: TracedProcess, where: str) -> None:
    """Raises `DamagedProfile` if something names a call site that is not there, or a number is
    impossible."""
    if any(not 0 <= site < len(process.sites) for site in _sites_of(process)):
        raise DamagedProfile("the trace is damaged (a call site is missing)", where=where)
    numbers = (
        number
        for group in process.groups
        for number in (
            group.copies,
            group.bytes,
            group.device_ns,
            group.call_ns or 0,
            group.exposed_ns,
        )
    )
    if any(number < 0 for number in numbers):
        raise DamagedProfile("the trace is damaged (a number is below 0)", where=where)
    empty = (group.bytes for group in process.groups if group.copies == 0)
    if any(empty):
        raise DamagedProfile("the trace is damaged (bytes without a copy)", where=where)
    known = {gpu.gpu for gpu in process.gpus}
    ends = (end.gpu for group in process.groups for end in (group.source, group.destination))
    if any(gpu is not None and gpu not in known for gpu in ends) and not known:
        raise DamagedProfile("the trace is damaged (a GPU is missing)", where=where)


def _sites_of(process: TracedProcess) -> Iterator[int]:
    for recorded in (process.groups, process.memory, process.waits):
        yield from (each.site for each in recorded)
