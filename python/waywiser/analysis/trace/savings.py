"""What the copies of a traced program could take, by the profile of its machine.

Each line is a copy that `waywiser.analysis.policy.advice` knows: its method, its time and the
interval of that. A line saves the part of its exposed time by which the advised copy is shorter.
Copies that overlap are exposed together: the sum over lines counts the share of it that the exposed
time of the GPU is of that of all lines. What is less than the interval of the measured time, or
than `LEAST_SHARE` of the program, is not advised.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from waywiser.analysis.policy.advice import Advice, CopyRequest, advise
from waywiser.analysis.trace.copy_lines import (
    HOST,
    CopyEnd,
    CopyLine,
    base_of,
    copy_lines,
    exposed_ns,
    place_of,
)
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine
from waywiser.profile.trace_file import MemoryCalls, Trace
from waywiser.words import Value, WaywiserError, format_bytes
from waywiser.words.number_format import count

SMALL = 64 << 10
"""Bytes below which a copy takes the time of its call."""

FEW = 100
"""Fewer small copies are no list."""

LIST = 64
"""Copies that a list is assumed to have."""

LEAST_SHARE = 0.001
"""The share of the program's time below which nothing is advised."""

SLOW_LINK = 0.85
"""The share of the measured bandwidth below which a copy from pinned memory, or between GPUs, is
slow."""

ALONE = 0.5
"""The share of its time that a copy runs alone from which on its bandwidth is that of its link."""

PIN_AGAIN = 3
"""Allocations of pinned memory at one line from which on they are in a loop."""

MOST_LINES = 200
"""Lines that are compared with the profile, those with the most exposed time."""


class Saving(Value, frozen=True):
    """What another way of a line's copies would take."""

    kind: str
    """pin, library, list, asynchronous, node, reuse, peer, link or pin-once."""
    what: str
    """What to do."""
    best: str
    """``55.2, pinned``: GB/s and the method."""
    seconds: float | None = None
    """Saved; None if it is not known."""
    low: float | None = None
    high: float | None = None
    """95 %, by the profile's interval of the time of such a copy."""

    @property
    def is_certain(self) -> bool:
        """Whether something is saved wherever in its interval the time is."""
        return self.low is not None and self.low > 0


class AdvisedLine(Value, frozen=True):
    """Copies of a line and what they could save."""

    line: CopyLine
    savings: tuple[Saving, ...] = ()
    """The largest first."""
    why_not: str = ""
    """Why there is no time to compare with; empty if there is one."""

    @property
    def best(self) -> Saving | None:
        return self.savings[0] if self.savings else None


class TraceAdvice(Value, frozen=True):
    """A traced program: its copies, and what it could save."""

    lines: tuple[AdvisedLine, ...]
    pinning: tuple[PinningLine, ...]
    seconds: float
    """Wall time of the program."""
    copy_seconds: float
    """In which a copy ran, or a call waited for one, over all GPUs."""
    exposed_seconds: float
    """In which a copy ran, or a call waited for one, and no kernel of that GPU, over all GPUs."""
    gpus: int
    processes: int
    saved: float | None = None
    """What all certain savings are together; None without a profile of the machine."""
    saved_low: float = 0.0
    saved_high: float = 0.0
    dropped: int = 0
    """Records that were lost: totals are "at least"."""
    notes: tuple[str, ...] = ()


class PinningLine(Value, frozen=True):
    """Allocations and registrations of pinned memory of one line."""

    place: str
    operation: str
    calls: int
    seconds: float
    bytes: int

    @property
    def saved(self) -> float | None:
        """What one call instead of all would save; None for few calls."""
        return self.seconds * (1 - 1 / self.calls) if self.calls >= PIN_AGAIN else None


def trace_advice(
    trace: Trace, subject: Subject | None, *, whole_chain: bool = False
) -> TraceAdvice:
    """The lines of a trace, with what they could save by the profile ``subject`` of the machine;
    without one only what was seen."""
    lines = copy_lines(trace, whole_chain=whole_chain)
    advised = tuple(_advised(line, subject if n < MOST_LINES else None)
                    for n, line in enumerate(lines))  # fmt: skip
    least = LEAST_SHARE * trace.seconds
    advised = tuple(_worth(each, least) for each in advised)
    gpus = [gpu for process in trace.processes for gpu in process.gpus]
    of_lines = sum(line.exposed_seconds for line in lines)
    exposed = sum(map(exposed_ns, gpus)) / 1e9
    beyond = max(exposed - sum(gpu.exposed_ns for gpu in gpus) / 1e9, 0.0)
    apart = min(exposed / of_lines, 1.0) if of_lines > 0 else 1.0
    certain = [each.best for each in advised if each.best is not None and each.best.is_certain]
    saved = sum(each.seconds or 0.0 for each in certain)
    return TraceAdvice(
        lines=advised,
        pinning=tuple(_pinning(trace)),
        seconds=trace.seconds,
        copy_seconds=sum(gpu.copy_ns for gpu in gpus) / 1e9 + beyond,
        exposed_seconds=exposed,
        gpus=len({gpu.uuid or f"{gpu.gpu}" for gpu in gpus}),
        processes=len(trace.processes),
        saved=None if subject is None else saved * apart,
        saved_low=sum(each.low or 0.0 for each in certain) * apart,
        saved_high=sum(each.high or 0.0 for each in certain) * apart,
        dropped=sum(process.dropped_records for process in trace.processes),
        notes=tuple(_notes(trace)),
    )


def _worth(advised: AdvisedLine, least: float) -> AdvisedLine:
    """Without savings that are too small to do anything about."""
    kept = tuple(each for each in advised.savings if each.seconds is None or each.seconds >= least)
    return msgspec.structs.replace(advised, savings=kept)


def _advised(line: CopyLine, subject: Subject | None) -> AdvisedLine:
    if subject is None or line.operation not in ("copy", "peer-copy") or not line.copies:
        return AdvisedLine(line)
    try:
        found = sorted(_savings(line, subject), key=lambda each: -(each.seconds or 0.0))
    except WaywiserError as error:
        return AdvisedLine(line, why_not=str(error))
    return AdvisedLine(line, tuple(found))


def _savings(line: CopyLine, subject: Subject) -> Iterator[Saving]:
    source, destination = (memory_text(end, line, subject.machine) for end in line.ends)
    if line.size < SMALL and line.copies >= FEW:
        yield _as_list(line, source, destination, subject)
        return
    now = advise([subject], CopyRequest.of(source, destination, max(line.size, 1)))
    if "pageable" in (line.source.kind, line.destination.kind):
        yield from _without_pageable(line, source, destination, now, subject)
        return
    yield from _of_fast_memory(line, now)
    yield from _other_node(line, source, destination, now, subject)


def memory_text(end: CopyEnd, line: CopyLine, machine: Machine) -> str:
    """The memory as a profile of the machine names it. Raises `WaywiserError` for memory that
    profiles have no copies of."""
    if end.kind == "device":
        return f"device@gpu:{_gpu_index(end, machine)}"
    if end.kind not in HOST:
        raise WaywiserError(f"there is no advice for copies of {end.kind} memory")
    node = end.node
    if node is None:
        gpu = next((each for each in line.ends if each.kind == "device"), None)
        node = _node_of(gpu, machine)
    return f"{end.kind}@numa:{node}"


def _gpu_index(end: CopyEnd, machine: Machine) -> int:
    known = {gpu.uuid: gpu.index for gpu in machine.gpus}
    if end.uuid in known:
        return known[end.uuid]
    if end.uuid or end.gpu is None:
        raise WaywiserError(
            f"the profile is of other GPUs: it has no {end.uuid or 'such GPU'}",
            remedy="name a profile of this machine with --profile",
        )
    return end.gpu


def _node_of(gpu: CopyEnd | None, machine: Machine) -> int:
    """The node of a GPU, for host memory whose node is not known."""
    if gpu is not None:
        index = _gpu_index(gpu, machine)
        found = next((each.numa for each in machine.gpus if each.index == index), -1)
        if found >= 0:
            return found
    return machine.numa[0].index


def _without_pageable(
    line: CopyLine, source: str, destination: str, now: Advice, subject: Subject
) -> Iterator[Saving]:
    """Pinned memory, and the transfer library for pageable memory."""
    into = line.direction == "H2D"
    pinned = [end.replace("pageable@", "pinned@") for end in (source, destination)]
    fast = advise([subject], CopyRequest.of(pinned[0], pinned[1], max(line.size, 1)))
    if not into:
        what = "copy into a buffer that is pinned once: transfer.pinned_empty"
        yield _saving("pin", line, what, "pinned", fast)
    elif not line.has_new_pages:  # pinning memory that is copied once takes longer than it saves
        what = "pin the source: pin_memory(), DataLoader(pin_memory=True); .to(non_blocking=True)"
        yield _saving("pin", line, what, "pinned", fast)
    if now.best.method.executor != "copy-engine":
        call = "transfer.torch.patch() around it, or transfer.copy"
        if into and line.has_new_pages:
            call = f"in a DataLoader pin_memory=True; else {call}"
        yield _saving("library", line, f"{call} ({now.best.method.executor})",
                      str(now.best.method.executor), now)  # fmt: skip
    elif line.has_new_pages and not into:
        yield _saving("reuse", line, "use the same destination again: its pages are new each time",
                      "pages in use", now)  # fmt: skip


def _of_fast_memory(line: CopyLine, now: Advice) -> Iterator[Saving]:
    """What slows copies whose memory is fast: a blocking call, a slow link, a way through the
    host."""
    rate = line.rate
    if rate is not None and line.size >= SMALL and rate < SLOW_LINK * now.best.low:
        is_peer = line.source.kind == line.destination.kind == "device"
        if is_peer and line.source.gpu != line.destination.gpu:
            what = "it may go through the host: see peer access (waywiser topology, waywiser check)"
            yield _saving("peer", line, what, str(now.best.method), now)
        elif line.alone_seconds > ALONE * line.seconds:
            what = "the link gives less than it was measured to: waywiser check"
            yield _saving("link", line, what, str(now.best.method), now)
    pinned = "pinned" in (line.source.kind, line.destination.kind)
    if pinned and line.is_waited_for and line.exposed_seconds > 0:
        what = "call it without waiting: .to(non_blocking=True), or transfer.copy_async"
        yield Saving("asynchronous", what, "asynchronous", None, 0.0, line.exposed_seconds)


def _other_node(
    line: CopyLine, source: str, destination: str, now: Advice, subject: Subject
) -> Iterator[Saving]:
    """Pinned memory of another NUMA node, if that is known to be faster."""
    own = next((end for end in line.ends if end.kind in HOST), None)
    if own is None or own.node is None:
        return
    for node in subject.machine.numa:
        if node.index == own.node:
            continue
        ends = [end.replace(f"@numa:{own.node}", f"@numa:{node.index}")
                for end in (source, destination)]  # fmt: skip
        try:
            other = advise([subject], CopyRequest.of(ends[0], ends[1], max(line.size, 1)))
        except WaywiserError:
            continue
        if other.best.low > now.best.high:
            what = f"put the memory on numa:{node.index}: numactl --membind={node.index}"
            yield _saving("node", line, what, f"numa:{node.index}", other)


def _as_list(line: CopyLine, source: str, destination: str, subject: Subject) -> Saving:
    """One copy of `LIST` pieces instead of so many copies."""
    whole = advise([subject], CopyRequest.of(source, destination, max(line.size, 1) * LIST))
    time = whole.best.time
    lists = line.copies / LIST

    def saved(seconds: float) -> float:
        return line.saved_by(seconds * lists)

    what = f"one copy of {count(LIST, 'piece')} or more: torch.cat first, or transfer.copy_batch"
    return Saving("list", what, "one list", saved(time.seconds), saved(time.high), saved(time.low))


def _saving(kind: str, line: CopyLine, what: str, name: str, found: Advice) -> Saving:
    """What a line saves whose copies take the advised time."""
    time = found.best.time

    def saved(seconds: float) -> float:
        return line.saved_by(seconds * line.copies)

    best = f"{found.best.bytes_per_second / 1e9:.3g}, {name}"
    return Saving(kind, what, best, saved(time.seconds), saved(time.high), saved(time.low))


def _pinning(trace: Trace) -> Iterator[PinningLine]:
    """Lines that allocate or register pinned memory, the longest first."""
    found: dict[tuple[str, str], list[MemoryCalls]] = {}
    base = base_of(trace)
    for process in trace.processes:
        for each in process.memory:
            if each.operation.startswith("pin-") and each.operation != "pin-free":
                place, _ = place_of(process.sites[each.site], base)
                found.setdefault((place, each.operation), []).append(each)
    lines = [
        PinningLine(
            place,
            operation,
            sum(each.calls for each in calls),
            sum(each.ns for each in calls) / 1e9,
            sum(each.bytes for each in calls),
        )
        for (place, operation), calls in found.items()
    ]
    yield from sorted(lines, key=lambda line: -line.seconds)


def _notes(trace: Trace) -> Iterator[str]:
    """What tracers could not do, each once, with the number of processes."""
    said: dict[str, int] = {}
    for process in trace.processes:
        for note in process.notes:
            said[note.text] = said.get(note.text, 0) + 1
    for text, number in said.items():
        yield text if len(trace.processes) == 1 else f"{text} ({count(number, 'process')})"
    for why in trace.unreadable:
        yield f"a process's file cannot be read: {why}"
    killed = [each for each in trace.processes if not each.process.ended]
    if killed:
        yield (
            f"{count(len(killed), 'process')} did not end normally: the table has what was "
            "recorded until the last second"
        )
    migrated = sum(each.bytes for process in trace.processes for each in process.managed)
    if migrated:
        yield f"managed memory migrated {format_bytes(migrated)}, which is not in the table"
