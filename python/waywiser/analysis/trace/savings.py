"""What the copies of a traced program could take, by the profile of its machine.

Each line is a copy that `waywiser.analysis.policy.advice` knows: its method, its time and the
interval of that. A line saves the part of its exposed time by which the advised copy is shorter:
what is certain is of the time in which no copy of another line ran, since that stays otherwise. So
nothing counts twice. What depends on something else (how much of a copy that does not wait is
hidden, why a link is slow, whether a thread that sleeps afterwards would sleep for longer) is an
upper limit, and in no sum. Less than `LEAST_SHARE` of the program is not advised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from waywiser.analysis.policy.advice import Advice, CopyRequest, advise
from waywiser.analysis.policy.costs import is_plain
from waywiser.analysis.trace.copy_lines import (
    CopyEnd,
    CopyLine,
    base_of,
    copy_lines,
    exposed_seconds,
    place_of,
)
from waywiser.curves import Subject
from waywiser.machine import DECLARED, Machine
from waywiser.profile import Trace
from waywiser.words import Value, WaywiserError, count, format_bytes

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

PIN_AGAIN = 2
"""Allocations of pinned memory after it was given back from which on they are in a loop."""

UNPINNED = ("pin-free", "unregister")

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
    """What is saved in any case; None if it is only known how much it is at most."""
    low: float = 0.0
    high: float = 0.0
    """By the profile's 95 % interval of the time of such a copy; ``high`` is also of time in which
    other copies ran."""

    @property
    def weight(self) -> float:
        """What savings are ranked by."""
        return self.high if self.seconds is None else self.seconds


class AdvisedLine(Value, frozen=True):
    """Copies of a line and what they could save."""

    line: CopyLine
    savings: tuple[Saving, ...] = ()
    """The largest first."""
    why_not: str = ""
    """Why nothing is advised; empty if something is."""
    is_compared: bool = False
    """Whether the profile has such a copy."""

    @property
    def best(self) -> Saving | None:
        return self.savings[0] if self.savings else None


class TraceAdvice(Value, frozen=True):
    """A traced program: its copies, and what it could save. The sums are those of the process with
    the most exposed time: processes run side by side."""

    lines: tuple[AdvisedLine, ...]
    """Over all processes."""
    pinning: tuple[PinningLine, ...]
    seconds: float
    """Wall time of the program."""
    copies: int
    copy_seconds: float
    """In which a copy ran, or a call waited for one, over the GPUs of the process."""
    exposed_seconds: float
    """In which a copy ran, or a call waited for one, and no kernel of that GPU."""
    gpus: int
    processes: int
    saved: float | None = None
    """What is saved in any case; None if no line could be compared with a profile."""
    saved_low: float = 0.0
    saved_high: float = 0.0
    """With the upper limits, at most the exposed time."""
    are_kernels_known: bool = True
    """Whether kernels were recorded. Without them exposed times are upper limits."""
    dropped: int = 0
    """Records that were lost: totals are "at least"."""
    notes: tuple[str, ...] = ()

    @property
    def is_worth_doing(self) -> bool:
        """Whether what is saved in any case is a share of the program that matters."""
        return self.saved is not None and self.saved >= LEAST_SHARE * self.seconds

    @property
    def has_advice(self) -> bool:
        """Whether a profile was there to compare with."""
        return any(each.is_compared or each.why_not for each in self.lines)


class PinningLine(Value, frozen=True):
    """Allocations and registrations of pinned memory of one line."""

    place: str
    operation: str
    calls: int
    seconds: float
    bytes: int
    again: int = 0
    """Calls after memory had been given back: one call could have kept it."""

    @property
    def saved(self) -> float | None:
        """What keeping the memory would save; None if little was given back meanwhile."""
        return self.seconds * self.again / self.calls if self.again >= PIN_AGAIN else None


def trace_advice(
    trace: Trace, subject: Subject | None, *, whole_chain: bool = False
) -> TraceAdvice:
    """The lines of a trace, with what they could save by the profile ``subject`` of the machine;
    without one only what was seen."""
    are_known = all(process.kernels_recorded for process in trace.processes)
    least = LEAST_SHARE * trace.seconds
    advised = _advised_lines(trace, subject, least, are_known, whole_chain=whole_chain)
    worst = max(trace.processes, key=exposed_seconds, default=None)
    own = advised
    if worst is not None and len(trace.processes) > 1:
        alone = msgspec.structs.replace(trace, processes=(worst,))
        own = _advised_lines(alone, subject, least, are_known)
    gpus = worst.gpus if worst is not None else ()
    exposed = exposed_seconds(worst) if worst is not None else 0.0
    beyond = max(exposed - sum(gpu.exposed_ns for gpu in gpus) / 1e9, 0.0)
    compared = [each for each in own if each.is_compared]
    certain = [each.best for each in own if each.best is not None and each.best.seconds]
    return TraceAdvice(
        lines=advised,
        pinning=tuple(_pinning(trace)),
        seconds=trace.seconds,
        copies=sum(each.line.copies for each in own),
        copy_seconds=sum(gpu.copy_ns for gpu in gpus) / 1e9 + beyond,
        exposed_seconds=exposed,
        gpus=len({gpu.uuid or f"{gpu.gpu}" for each in trace.processes for gpu in each.gpus}),
        processes=len(trace.processes),
        saved=sum(each.seconds or 0.0 for each in certain) if compared and are_known else None,
        saved_low=sum(each.low for each in certain),
        saved_high=min(sum(each.best.high for each in own if each.best is not None), exposed),
        are_kernels_known=are_known,
        dropped=sum(process.dropped_records for process in trace.processes),
        notes=(*_notes(trace), *_sleep_notes(advised)),
    )


def _advised_lines(
    trace: Trace,
    subject: Subject | None,
    least: float,
    are_kernels_known: bool,
    *,
    whole_chain: bool = False,
) -> tuple[AdvisedLine, ...]:
    lines = copy_lines(trace, whole_chain=whole_chain)
    if subject is None:
        return tuple(map(AdvisedLine, lines))
    found = [_advised(line, subject) for line in lines[:MOST_LINES]]
    found += [AdvisedLine(line, why_not=f"not compared: {MOST_LINES} lines have more time")
              for line in lines[MOST_LINES:]]  # fmt: skip
    if not are_kernels_known:
        found = [msgspec.structs.replace(each, savings=tuple(map(_at_most, each.savings)))
                 for each in found]  # fmt: skip
    return tuple(_worth(each, least) for each in found)


def _at_most(saving: Saving) -> Saving:
    """The same as an upper limit."""
    return msgspec.structs.replace(saving, seconds=None, low=0.0)


def _worth(advised: AdvisedLine, least: float) -> AdvisedLine:
    """Without savings that are too small to do anything about."""
    kept = tuple(each for each in advised.savings if each.weight >= least)
    if kept or not advised.savings:
        return msgspec.structs.replace(advised, savings=kept)
    why = f"saves less than {LEAST_SHARE:.1%} of the program"
    return msgspec.structs.replace(advised, savings=(), why_not=why)


def _advised(line: CopyLine, subject: Subject) -> AdvisedLine:
    if why := _why_not_compared(line):
        return AdvisedLine(line, why_not=why)
    try:
        source, destination = (memory_text(end, line, subject.machine) for end in line.ends)
        if line.size < SMALL and line.copies >= FEW:
            saving = _as_list(line, source, destination, subject)
            if line.copies > 2 * line.calls:
                return AdvisedLine(line, why_not="batched already", is_compared=True)
            return AdvisedLine(line, (saving,), is_compared=True)
        now = advise([subject], CopyRequest.of(source, destination, max(line.size, 1)))
        found = list(_savings(line, source, destination, now, subject))
    except WaywiserError as error:
        return AdvisedLine(line, why_not=str(error))
    found = sorted((each for each in found if each.weight > 0), key=lambda each: -each.weight)
    return AdvisedLine(line, tuple(found), "" if found else _why_nothing(line, now), True)


def _why_not_compared(line: CopyLine) -> str:
    if line.operation == "set":
        return "not compared: it is no copy"
    if line.operation == "library-copy":
        return "made by waywiser.transfer"
    if line.in_graph:
        return "not compared: a CUDA graph makes it"
    if not line.copies or line.rate is None:
        return "not compared: its time on the GPU is not known"
    return ""


def _why_nothing(line: CopyLine, now: Advice) -> str:
    """What is said of a copy that nothing makes faster."""
    if line.exposed_seconds <= 0:
        return "nothing: kernels hide it"
    if line.rate is not None and line.rate < SLOW_LINK * now.best.low:
        usual = f"{now.best.bytes_per_second / 1e9:.3g} GB/s"
        return f"slower than measured here ({usual}); no other method is known to be faster"
    return "nothing: it is as fast as measured"


def _savings(
    line: CopyLine, source: str, destination: str, now: Advice, subject: Subject
) -> Iterator[Saving]:
    if any(end.is_host and end.traits.is_moved_by_cpus for end in line.ends):
        yield from _without_pageable(line, source, destination, now, subject)
        return
    yield from _of_fast_memory(line, now)
    yield from _other_node(line, source, destination, now, subject)


def memory_text(end: CopyEnd, line: CopyLine, machine: Machine) -> str:
    """The memory as a profile of the machine names it. Raises `WaywiserError` for memory that
    profiles have no copies of."""
    if end.is_on_gpu:
        return f"{end.kind}@gpu:{_gpu_index(end, machine)}"
    if not end.is_host:
        raise WaywiserError(f"there is no advice for copies of {end.kind} memory")
    node = end.node
    if node is None:
        gpu = next((each for each in line.ends if each.is_on_gpu), None)
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
    usual = DECLARED.reference_memory("gpu", "numa")
    pinned = [f"{usual}@{place}" if place.startswith("numa:") else end
              for end in (source, destination) for place in (end.partition("@")[2],)]  # fmt: skip
    fast = advise([subject], CopyRequest.of(pinned[0], pinned[1], max(line.size, 1)))
    if not into:
        what = "copy into a buffer that is pinned once: transfer.pinned_empty"
        yield _saving("pin", line, what, usual, fast)
    elif not line.is_once:
        what = "pin the source: pin_memory(), DataLoader(pin_memory=True); .to(non_blocking=True)"
        yield _saving("pin", line, what, usual, fast)
    if not is_plain(now.best.method, "numa", "gpu"):
        call = "transfer.torch.patch() around it, or transfer.copy"
        if into and line.is_once:
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
        is_peer = line.source.is_on_gpu and line.destination.is_on_gpu
        if is_peer and line.source.gpu != line.destination.gpu:
            what = "it may go through the host: see peer access (waywiser topology, waywiser check)"
            yield _at_most(_saving("peer", line, what, str(now.best.method), now))
        elif line.alone_seconds > ALONE * line.seconds:
            what = "the link gives less than it was measured to: waywiser check"
            yield _at_most(_saving("link", line, what, str(now.best.method), now))
    if (
        any(end.traits.page_locked for end in line.ends)
        and line.is_waited_for
        and line.exposed_seconds > 0
    ):
        what = "call it without waiting: .to(non_blocking=True), or transfer.copy_async"
        yield Saving("asynchronous", what, "asynchronous", high=line.exposed_seconds)


def _other_node(
    line: CopyLine, source: str, destination: str, now: Advice, subject: Subject
) -> Iterator[Saving]:
    """Pinned memory of another NUMA node, if that is known to be faster."""
    own = next((end for end in line.ends if end.is_host), None)
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
    """One copy of `LIST` pieces instead of so many copies. Results that are read one by one may be
    needed one by one: what these save is an upper limit."""
    whole = advise([subject], CopyRequest.of(source, destination, max(line.size, 1) * LIST))
    if line.direction == "D2H" and line.is_waited_for:
        what = "keep results on the GPU, and read them together"
        return _at_most(_saved("list", line, what, "one list", whole, line.copies / LIST))
    what = f"one copy of {count(LIST, 'piece')} or more: torch.cat first, or transfer.copy_batch"
    return _saved("list", line, what, "one list", whole, line.copies / LIST)


def _saving(kind: str, line: CopyLine, what: str, name: str, found: Advice) -> Saving:
    """What a line saves whose copies take the advised time."""
    best = f"{found.best.bytes_per_second / 1e9:.3g}, {name}"
    return _saved(kind, line, what, best, found, line.copies)


def _saved(kind: str, line: CopyLine, what: str, best: str, found: Advice, copies: float) -> Saving:
    """What a line saves if it makes so many copies of the advised time."""
    time = found.best.time
    awake = 0.0 if line.sleeps_after else 1.0 - line.slept_share
    sure = awake * line.saved_by(time.seconds * copies, is_alone=True)
    return Saving(
        kind, what, best, sure or None,
        low=awake * line.saved_by(time.high * copies, is_alone=True),
        high=line.saved_by(time.low * copies),
    )  # fmt: skip


def _pinning(trace: Trace) -> Iterator[PinningLine]:
    """Lines that allocate or register pinned memory, the longest first; of several processes the
    one with the most calls."""
    base = base_of(trace)
    found: dict[tuple[str, str], PinningLine] = {}
    for process in trace.processes:
        freed = sum(each.calls for each in process.memory if each.operation in UNPINNED)
        for each in process.memory:
            if not each.operation.startswith("pin-") or each.operation in UNPINNED:
                continue
            place, _ = place_of(process.sites[each.site], base)
            line = PinningLine(
                place, each.operation, each.calls, each.ns / 1e9, each.bytes,
                again=min(freed, each.calls - 1),
            )  # fmt: skip
            key = place, each.operation
            found[key] = max((line, found.get(key, line)), key=lambda each: each.calls)
    yield from sorted(found.values(), key=lambda line: -line.seconds)


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
    if not all(process.kernels_recorded for process in trace.processes):
        yield "kernels were not recorded: how much of a copy they hide is not known"
    killed = [each for each in trace.processes if not each.process.ended]
    if killed:
        yield (
            f"{count(len(killed), 'process')} did not end normally: the table has what was "
            "recorded until the last second"
        )
    migrated = sum(each.bytes for process in trace.processes for each in process.managed)
    if migrated:
        yield f"managed memory migrated {format_bytes(migrated)}, which is not in the table"


def _sleep_notes(lines: Iterable[AdvisedLine]) -> Iterator[str]:
    """What limits the program at lines whose thread sleeps after its copies."""
    sleeping = (each.line.place for each in lines if each.savings and each.line.sleeps_after)
    places = list(dict.fromkeys(sleeping))[:3]
    if places:
        yield (
            f"≤ at {', '.join(places)}: after these copies the thread sleeps outside of CUDA (it "
            "waits for workers, a file or a lock): with faster copies it may wait there "
            "for longer"
        )
