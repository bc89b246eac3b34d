"""The copies of a traced program by call site, path and size class, over all of its processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from waywiser.machine import DECLARED
from waywiser.machine.traits import MemoryTraits
from waywiser.profile import Trace, TracedProcess
from waywiser.profile.trace_file import CopyGroup, Frame, Site, TracedGpu
from waywiser.words import Value

UNKNOWN_PLACE = "unknown"
"""What stands for a call site that is not known."""

SEPARATOR = " < "
"""Between a caller and its own caller."""

MAJORITY = 0.6
"""Share of the pages that were looked at from which on a buffer is on a node, or is new; of the
calls from which on a thread sleeps after them."""

REPEATED = 0.5
"""Share of the calls from which on a line copies the same host memory again and again."""

FEW_SLEEPS = 4
"""Sleeps of a thread after its copies that need not be in a loop."""


def is_host_memory(kind: str) -> bool:
    """Whether memory of this kind is on a NUMA node and stays there."""
    return DECLARED.memory(kind).places == ("numa",)


class CopyEnd(Value, frozen=True):
    """Where the bytes of copies are."""

    kind: str
    """pageable, pinned, device, managed, array or unknown."""
    gpu: int | None = None
    """The number of the GPU in the program."""
    uuid: str = ""
    node: int | None = None
    """The NUMA node of most pages; None if it is not known, or if none has most of them."""

    @property
    def traits(self) -> MemoryTraits:
        return DECLARED.memory(self.kind)

    @property
    def is_host(self) -> bool:
        return is_host_memory(self.kind)

    @property
    def is_on_gpu(self) -> bool:
        return self.traits.places == ("gpu",)

    @property
    def text(self) -> str:
        """``pinned@numa:1``, ``gpu:0``."""
        if self.is_on_gpu:
            return f"gpu:{self.gpu}" if self.gpu is not None else "a GPU"
        return self.kind if self.node is None else f"{self.kind}@numa:{self.node}"


class CopyLine(Value, frozen=True):
    """Copies of one call site with the same ends and the same size class."""

    place: str
    """``train.py:12``, or ``read_batch (libloader.so)``."""
    chain: str
    """Its callers too, the innermost first."""
    operation: str
    """copy, peer-copy, set or library-copy."""
    direction: str
    source: CopyEnd
    destination: CopyEnd
    copies: int
    calls: int
    bytes: int
    seconds: float
    """On the device, of all copies together."""
    call_seconds: float | None
    """In the calls; None if the tracer saw none of them."""
    exposed_seconds: float
    """In which a copy ran, or the program waited for one and nothing else was copied, and no kernel
    of that GPU ran."""
    alone_seconds: float
    """The part of the time on the device in which nothing else ran there at all."""
    shared_seconds: float
    """The exposed part in which copies of other lines ran too."""
    asynchronous: int
    """Calls that need not wait."""
    waited: int
    """Calls that are known to be followed directly by a wait of the same thread."""
    slept_share: float = 0.0
    """The share of the calls after which their thread slept outside of CUDA; 0 if it did so less
    than `FEW_SLEEPS` times."""
    repeated_share: float | None = None
    """The share of the calls whose host address the line has used shortly before; None if no
    address is known."""
    new_pages: float | None = None
    """The share of host pages that the copy touched first; None if none was looked at."""
    processes: int = 1
    in_graph: bool = False
    """Whether a CUDA graph makes them."""

    @property
    def ends(self) -> tuple[CopyEnd, CopyEnd]:
        return self.source, self.destination

    @property
    def path(self) -> str:
        """``H2D, pageable@numa:1 -> gpu:0``."""
        new = ", new pages" if self.has_new_pages else ""
        if self.operation == "set":
            return f"set, {self.destination.text}{new}"
        by = " by waywiser" if self.operation == "library-copy" else ""
        return f"{self.direction}{by}, {self.source.text} -> {self.destination.text}{new}"

    @property
    def is_waited_for(self) -> bool:
        """Whether the program waits for most of its copies: in the call, as for pageable memory, or
        directly after it, as PyTorch does."""
        if any(end.is_host and end.traits.is_moved_by_cpus for end in self.ends):
            return True
        return 2 * (self.asynchronous - self.waited) < self.calls

    @property
    def sleeps_after(self) -> bool:
        """Whether the thread sleeps after most of them, as one does that waits for the workers of a
        loader, a file or a lock."""
        return self.slept_share > MAJORITY

    @property
    def time_seconds(self) -> float:
        """What the copies took: on the device, or with the calls that wait for them if that is
        longer, as it is for small ones."""
        return max(self.seconds, self.exposed_seconds)

    def saved_by(self, seconds: float, *, is_alone: bool = False) -> float:
        """What is saved of the exposed time if all copies together take so long; ``is_alone``: of
        that in which no copy of another line ran, so that nothing else covers it."""
        now = self.time_seconds
        exposed = self.exposed_seconds - (self.shared_seconds if is_alone else 0.0)
        return max(exposed, 0.0) * max(1 - seconds / now, 0.0) if now > 0 else 0.0

    @property
    def has_new_pages(self) -> bool:
        return self.new_pages is not None and self.new_pages > MAJORITY

    @property
    def is_once(self) -> bool:
        """Whether it copies most of its host memory once: to pin that takes longer than it saves,
        unless another thread does it."""
        return self.has_new_pages or (
            self.repeated_share is not None and self.repeated_share < REPEATED
        )

    @property
    def size(self) -> int:
        """The mean bytes of a copy."""
        return self.bytes // max(self.copies, 1)

    @property
    def rate(self) -> float | None:
        """Bytes per second; None if no time is known."""
        return self.bytes / self.seconds if self.seconds > 0 else None

    @property
    def key(self) -> str:
        """What is the same line in another run: its kind of host memory may have changed, and the
        transfer library may make the copies now."""
        gpus = " ".join(f"{end.gpu}" for end in self.ends)
        operation = "copy" if self.operation == "library-copy" else self.operation
        return f"{self.place} {operation} {self.direction} {gpus} {self.size.bit_length()}"


class _Key(NamedTuple):
    place: str
    chain: str
    operation: str
    direction: str
    kinds: tuple[str, str]
    gpus: tuple[int | None, int | None]
    uuids: tuple[str, str]
    bytes_log2: int
    graph: bool


def copy_lines(trace: Trace, *, whole_chain: bool = False) -> list[CopyLine]:
    """The copies of a trace, those with the most exposed time first. With ``whole_chain`` calls of
    one line by several callers are lines of their own."""
    found: dict[_Key, list[tuple[CopyGroup, int]]] = {}
    base = base_of(trace)
    for number, process in enumerate(trace.processes):
        uuids = {gpu.gpu: gpu.uuid or "" for gpu in process.gpus}
        for group in process.groups:
            place, chain = place_of(process.sites[group.site], base)
            ends = (group.source.gpu, group.destination.gpu)
            key = _Key(
                place,
                chain if whole_chain else "",
                group.operation,
                group.direction or "",
                (group.source.kind, group.destination.kind),
                ends,
                (_uuid(uuids, ends[0]), _uuid(uuids, ends[1])),
                group.bytes_log2,
                group.graph,
            )
            found.setdefault(key, []).append((group, number))
    lines = [_line(key, groups, trace.processes, base) for key, groups in found.items()]
    return sorted(lines, key=lambda line: (-line.exposed_seconds, -line.time_seconds, line.place))


def base_of(trace: Trace) -> str:
    """The folder that the files of all innermost callers are in; empty without any."""
    paths = _python_files(trace)
    base = os.path.commonpath(paths) if paths else ""
    return os.path.dirname(base) if base in paths else base


def _uuid(uuids: Mapping[int, str], gpu: int | None) -> str:
    return uuids.get(gpu, "") if gpu is not None else ""


def _python_files(trace: Trace) -> set[str]:
    """The files of the innermost callers."""
    return {
        os.path.abspath(file)
        for process in trace.processes
        for site in process.sites
        if site.frames and (file := site.frames[0].file or "").startswith("/")
    }


def place_of(site: Site, base: str = "") -> tuple[str, str]:
    """The innermost caller and all of them; files are relative to ``base``."""
    frames = [frame_text(frame, base) for frame in site.frames]
    if not frames:
        return UNKNOWN_PLACE, UNKNOWN_PLACE
    return frames[0], SEPARATOR.join(frames)


def frame_text(frame: Frame, base: str = "") -> str:
    """``train.py:12``; of native code ``read_batch (libloader.so)`` or ``libloader.so+0x1a2b``."""
    if frame.language == "python":
        file = frame.file or UNKNOWN_PLACE
        inside = base and file.startswith(f"{base}{os.sep}")
        file = os.path.relpath(file, base) if inside else os.path.basename(file)
        return file if frame.line is None else f"{file}:{frame.line}"
    module = os.path.basename(frame.module or UNKNOWN_PLACE)
    if frame.function:
        return f"{frame.function} ({module})"
    return module if frame.offset is None else f"{module}+{frame.offset:#x}"


def _line(
    key: _Key,
    groups: Sequence[tuple[CopyGroup, int]],
    processes: Sequence[TracedProcess],
    base: str,
) -> CopyLine:
    own = [group for group, _ in groups]
    sampled = sum(group.sampled_pages for group in own)
    addressed = sum(group.addressed for group in own)
    node = _node(own)
    first, number = groups[0]
    _, chain = place_of(processes[number].sites[first.site], base)
    source, destination = (
        CopyEnd(kind, gpu, uuid, node if is_host_memory(kind) else None)
        for kind, gpu, uuid in zip(key.kinds, key.gpus, key.uuids, strict=True)
    )
    return CopyLine(
        place=key.place,
        chain=chain,
        operation=key.operation,
        direction=key.direction,
        source=source,
        destination=destination,
        copies=sum(group.copies for group in own),
        calls=sum(group.calls or group.copies for group in own),
        bytes=sum(group.bytes for group in own),
        seconds=sum(group.device_ns for group in own) / 1e9,
        call_seconds=_known_sum(group.call_ns for group in own),
        exposed_seconds=sum(map(exposed_ns, own)) / 1e9,
        alone_seconds=sum(group.alone_ns for group in own) / 1e9,
        shared_seconds=sum(max(group.exposed_ns - group.alone_ns, 0) for group in own) / 1e9,
        asynchronous=sum(group.asynchronous for group in own),
        waited=sum(group.waited or 0 for group in own),
        slept_share=_slept_share(own),
        repeated_share=sum(group.repeated for group in own) / addressed if addressed else None,
        new_pages=sum(group.new_pages or 0 for group in own) / sampled if sampled else None,
        processes=len({number for _, number in groups}),
        in_graph=key.graph,
    )


def _slept_share(groups: Sequence[CopyGroup]) -> float:
    known = [group for group in groups if group.slept_after is not None]
    if sum(group.sleeps for group in known) < FEW_SLEEPS:
        return 0.0
    calls = sum(group.calls or group.copies for group in known)
    return min(sum(group.slept_after or 0 for group in known) / calls, 1.0) if calls else 0.0


def _known_sum(nanoseconds: Iterable[int | None]) -> float | None:
    """Seconds of all that are known; None if none is."""
    known = [each for each in nanoseconds if each is not None]
    return sum(known) / 1e9 if known else None


def exposed_ns(recorded: CopyGroup | TracedGpu) -> int:
    """The exposed time with waits for copies, if the tracer knows these."""
    return recorded.exposed_ns if recorded.lost_ns is None else recorded.lost_ns


def exposed_seconds(process: TracedProcess) -> float:
    """The exposed time of a process, over its GPUs."""
    return sum(map(exposed_ns, process.gpus)) / 1e9


def _node(groups: Sequence[CopyGroup]) -> int | None:
    """The node that has most of the pages; None if none has, or a name is no number."""
    pages = Counter[str]()
    for group in groups:
        pages.update(group.nodes)
    total = sum(pages.values())
    name, most = max(pages.items(), key=lambda item: item[1], default=("", 0))
    return int(name) if name.isascii() and name.isdigit() and most > MAJORITY * total else None
