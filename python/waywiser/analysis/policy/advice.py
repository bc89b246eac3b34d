"""The method to use for one copy, with its alternatives, the reason, and the code that does it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from waywiser.analysis.policy.build import decision_tables
from waywiser.analysis.policy.candidates import is_of_library, kind_of
from waywiser.analysis.policy.code_lines import CodeLine, code_lines
from waywiser.analysis.policy.decision_table import (
    HOST_CONTIGUOUS,
    CopyKind,
    DecisionTable,
    Method,
    MethodTime,
)
from waywiser.analysis.policy.errors import NotMeasured, PolicyError
from waywiser.analysis.policy.table import collectives_of
from waywiser.analysis.policy.texts import SLOWED
from waywiser.curves import Classes, Subject, imported_from, size_span, survey_again
from waywiser.machine import DECLARED, Machine, crowd_note, require_real
from waywiser.machine.catalogue import collective_executor
from waywiser.machine.ranks import kind_alone
from waywiser.machine.traits import declared_memories
from waywiser.stats import THRESHOLD, Timed
from waywiser.stats.method_choice import good
from waywiser.words import (
    COLLECTIVE,
    UNEVEN_EXCHANGE,
    Memory,
    Path,
    Place,
    Transfer,
    Value,
    Workload,
    format_bytes,
    parse_bytes,
)
from waywiser.words.collective import FACTORS

_BESIDE = "256MiB"
"""Bytes of a collective beside a copy, in the command that measures both."""


class CopyRequest(Value, frozen=True):
    """The copy that advice is asked for."""

    source: Memory
    destination: Memory
    bytes: int
    """Bytes of the copy, or of each piece."""
    count: int = 1
    host_contiguous: bool = False
    """The pieces lie one after another in host memory, and are scattered on a GPU."""
    peers_idle: bool = False
    """Methods that use the links of other GPUs may be advised."""
    max_threads: int | None = None
    polite: bool = False
    """The method that takes least from others, whatever its time."""
    beside: str = ""
    """The collective that runs beside it, as ``allreduce``: the method that slows it least."""

    @classmethod
    def of(
        cls,
        source: str,
        destination: str,
        bytes: int | str,
        *,
        count: int = 1,
        host_contiguous: bool = False,
        peers_idle: bool = False,
        max_threads: int | None = None,
        polite: bool = False,
        beside: str = "",
    ) -> CopyRequest:
        """Makes a request from texts. Raises `WordError` for a text that is no memory or size,
        `PolicyError` for a number that is too small, and for one piece or memory of which no list
        can be contiguous in host memory and scattered on a GPU."""
        size = parse_bytes(bytes) if isinstance(bytes, str) else bytes
        for value, least, what in (
            (size, 1, "bytes"),
            (count, 1, "pieces"),
            (max_threads, 0, "threads"),
        ):
            if value is not None and value < least:
                raise PolicyError(
                    f"{value} is no number of {what}", remedy=f"write {least} or more"
                )
        if beside and beside not in (known := (*FACTORS, UNEVEN_EXCHANGE)):
            raise PolicyError(
                f"{beside} is no collective that a copy can run beside",
                remedy=f"name one of {', '.join(known)}",
            )
        ends = Memory.parse(source), Memory.parse(destination)
        if host_contiguous:
            _require_host_side(ends, count)
        return cls(*ends, size, count, host_contiguous, peers_idle, max_threads, polite, beside)

    @property
    def places(self) -> str:
        return f"{self.source.place} -> {self.destination.place}"


class AdvisedMethod(Value, frozen=True):
    """A method with its time for the copy."""

    method: Method
    time: MethodTime
    bytes_per_second: float
    low: float
    high: float
    """The 95 % interval of the bandwidth."""
    margin: float
    """How much longer it takes than the advised one, as a share."""
    excluded: str = ""
    """Why the request excludes it; empty if it does not."""


class Advice(Value, frozen=True):
    """What to use for a copy."""

    request: CopyRequest
    kind: CopyKind
    best: AdvisedMethod
    alternatives: tuple[AdvisedMethod, ...]
    """The other methods, the fastest first, those that the request excludes last."""
    why: str
    code: tuple[CodeLine, ...]
    measured: str
    """The pair of places that was measured."""
    notes: tuple[str, ...]
    table: DecisionTable


FASTEST_HERE = "it was the fastest in these measurements, which do not decide it"


def advise(subjects: Sequence[Subject], request: CopyRequest) -> Advice:
    """Raises `NotMeasured` for a copy of which there is no time, `PolicyError` for memory of which
    policies have no class, `SimulatedMachineError` for a simulated machine."""
    for subject in subjects:
        require_real(subject.machine, subject.overview.profile or subject.name)
    table, notes = find_table(subjects, request)
    times = table.times_at(request.bytes)
    if times is None:
        raise _not_in_range(table, request, subjects)
    found = _MethodsOfCopy(request, table, times, _measure(request, subjects)).advice(notes)
    undecided = tuple(_not_decided(found, subjects))
    slower = [each.margin >= 0 for each in found.alternatives if not each.excluded]
    why = FASTEST_HERE if undecided and slower and all(slower) else found.why
    return msgspec.structs.replace(found, why=why, notes=(*undecided, *found.notes))


def _not_decided(found: Advice, subjects: Sequence[Subject]) -> Iterator[str]:
    """Why the profiles do not decide which method is the fastest: no other one was measured, or it
    has an interval that is wider than what the two differ by, or one was measured with the defaults
    of another version."""
    if found.request.polite or found.request.beside:
        return
    files = " and ".join(each.overview.profile or each.name for each in subjects)
    rivals = [each for each in found.alternatives if not each.excluded]
    table = found.table
    if not found.alternatives and (table.not_measured or len(table.methods) > 1):
        of = f", and not {' or '.join(table.not_measured)}" if table.not_measured else ""
        size = format_bytes(found.request.bytes)
        only = f"only {found.best.method} was measured at {size}{of}"
        yield f"{files} does not decide which method is the fastest: {only}"
        return
    for each in (found.best, *rivals):
        name, settings = each.method.executor, each.method.settings
        taken = DECLARED.executor(name).library.settings
        known = (subject.machine.traits.executor(name).library for subject in subjects)
        if taken and not settings and not any(library.settings for library in known):
            yield (
                f"{files} does not decide which method is the fastest: {name} was measured with "
                "the defaults of another version"
            )
            return
    for rival in rivals[:1]:
        widest = max((found.best, rival), key=lambda each: each.time.relative_width)
        if widest.time.relative_width > abs(rival.margin):
            yield (
                f"{files} does not decide which of {found.best.method} and {rival.method} is "
                f"faster: they differ by {abs(rival.margin):.0%}, and the interval of "
                f"{widest.method} is ±{widest.time.relative_width:.0%}"
            )


def find_table(
    subjects: Sequence[Subject], request: CopyRequest
) -> tuple[DecisionTable, list[str]]:
    """The methods for all sizes of such copies, and notes on them. The bytes of the request are
    one of the sizes if they are more than was measured. Raises as `advise` does."""
    machine = subjects[0].machine
    _require_places(request, subjects)
    _require_one_copy(request, subjects)
    kind = kind_of(kind_alone(request.source), kind_alone(request.destination), machine)
    if kind is not None:
        kind = msgspec.structs.replace(kind, host_contiguous=request.host_contiguous)
    if kind is None:
        kinds = sorted(_policy_memories())
        raise PolicyError(
            f"there is no advice for {request.source} -> {request.destination}",
            remedy=f"name plain memory of these kinds: {', '.join(kinds)}",
        )
    _require_variants(request, subjects)
    if request.count > 1 and not _is_reached_by_gpus(request):
        raise PolicyError(
            "there is no advice for lists of pageable memory or files",
            remedy="use waywiser.transfer.copy_batch or copy_blocks without a policy",
        )
    tables = decision_tables(
        subjects, request.places, request.bytes, request.count, kind=kind, of_tools=True
    )
    table, notes = _table(tables, kind, request, subjects)
    ends = request.source, request.destination
    if not all(is_of_library(each, ends, request.count) for each in table.methods):
        tools = " and ".join(dict.fromkeys(chain.from_iterable(map(_tools, subjects))))
        notes.append(
            f"the transfer library does not copy in every way that {tools} measured: no policy can "
            "install what it does not have" if tools else
            "the transfer library sends no messages: no policy can install them"
        )  # fmt: skip
    return table, notes


def _require_host_side(ends: Sequence[Memory], count: int) -> None:
    if count < 2:
        raise PolicyError(
            "one copy is contiguous on both sides", remedy="give the number of pieces (count)"
        )
    if sorted(memory.place.kind for memory in ends) != ["gpu", "numa"]:
        raise PolicyError(
            f"{ends[0]} -> {ends[1]} is not between a GPU and host memory",
            remedy="name memory of a GPU and memory of the host",
        )


def _tools(subject: Subject) -> tuple[str, ...]:
    return imported_from(subject.environment)


def _is_reached_by_gpus(request: CopyRequest) -> bool:
    ends = request.source, request.destination
    return all(DECLARED.memory(each.kind).is_reached_by_gpus for each in ends)


def _policy_memories() -> list[str]:
    gpu, host = Place("gpu", 0), Place("numa", 0)
    machine = Machine("", "", "", (), (), (), ())
    return [
        name
        for name in declared_memories()
        if kind_of(Memory(name, gpu), Memory(name, host), machine) is not None
    ]


def _require_places(request: CopyRequest, subjects: Sequence[Subject]) -> None:
    machine = subjects[0].machine
    known = [f"gpu:{gpu.index}" for gpu in machine.gpus]
    known += [f"numa:{node.index}" for node in machine.numa]
    measured = [end for path in _paths(subjects) for end in path.ends]
    known += dict.fromkeys(str(end.place) for end in measured if end.place.kind == "rank")
    for memory in (request.source, request.destination):
        if memory.place.kind != "file" and str(memory.place) not in known:
            remedy = f"name one of {', '.join(known)}"
            if _is_of_launch(memory.place, machine):
                raise NotMeasured(f"nothing was measured at {memory.place} alone", remedy=remedy)
            raise PolicyError(f"the machine has no {memory.place}", remedy=remedy)


def _require_one_copy(request: CopyRequest, subjects: Sequence[Subject]) -> None:
    """Raises `NotMeasured` for what several memories do together, which is no copy."""
    ends = request.source, request.destination
    if not any(memory.place.is_several for memory in ends):
        return
    measured = dict.fromkeys(
        transfer.collective
        for subject in subjects
        for curve in subject.curves
        for transfer in curve.workload.transfers
        if transfer.path.ends == ends
    )
    if not measured:
        return
    profile = subjects[0].overview.profile or "FILE"
    raise NotMeasured(
        f"{request.places} is no copy: measured was {' and '.join(measured)}, which has no advice",
        remedy=f"compare its methods: waywiser predict {profile} --crossovers, or waywiser report "
        f"{profile}",
    )


def _is_of_launch(place: Place, machine: Machine) -> bool:
    """Whether a place is a rank, or several, that the survey started."""
    started = {rank.index for rank in machine.ranks}
    return place.kind == "rank" and all(each.index in started for each in place.each)


def _require_variants(request: CopyRequest, subjects: Sequence[Subject]) -> None:
    """Checks that memory was measured where the request says that it is (``node=1``)."""
    measured = [end for path in _paths(subjects) for end in path.ends]
    for memory in (request.source, request.destination):
        there = [end for end in measured if (end.kind, end.place) == (memory.kind, memory.place)]
        if there and not any(memory.variant.items() <= end.variant.items() for end in there):
            known = list(dict.fromkeys(map(str, there)))
            raise PolicyError(f"no {memory} was measured", remedy=f"name {' or '.join(known)}")


def _paths(subjects: Sequence[Subject]) -> Iterator[Path]:
    for subject in subjects:
        for curve in subject.curves:
            yield from (transfer.path for transfer in curve.workload.transfers)


def _table(
    tables: Sequence[DecisionTable],
    kind: CopyKind,
    request: CopyRequest,
    subjects: Sequence[Subject],
) -> tuple[DecisionTable, list[str]]:
    """The table of the copy, of the most threads."""
    is_list = request.count > 1
    same = [each for each in tables if _is_of(each, kind) and (each.count > 1) == is_list]
    threads = max((each.threads for each in same), default=0)
    same = [each for each in same if each.threads == threads]
    idle = request.peers_idle and any(each.kind.peers_idle for each in same)
    found = next((each for each in same if each.kind.peers_idle == idle), None)
    crowd = crowd_note(subjects[0].machine.ranks)
    if crowd and (found is None or not _is_measured_itself(found, request)):
        raise NotMeasured(
            f"there is no advice for {request.source} -> {request.destination}: {crowd}",
            remedy="survey no more ranks than there are free CPUs",
        )
    if found is None:
        what = "lists " if is_list else ""
        side = f", {HOST_CONTIGUOUS}" if kind.host_contiguous else ""
        raise NotMeasured(
            f"no method was measured for {what}{request.source} -> {request.destination}{side}",
            remedy=_measure(request, subjects),
        )
    notes = [*filter(None, [found.undecided]), *found.notes]
    if request.peers_idle and not idle:
        notes.insert(0, "no method that uses the links of other GPUs was measured for this copy")
    if not _is_measured_itself(found, request):
        if not _is_equivalent(found, request, subjects[0].machine):
            raise NotMeasured(
                f"{request.places} was not measured, and is not equivalent to {found.paths[0]}",
                remedy=_measure(request, subjects),
            )
        notes.append(f"measured at {found.paths[0]}, which is equivalent to {request.places}")
    return msgspec.structs.replace(found, fewer_cpus=()), notes


def _is_of(table: DecisionTable, kind: CopyKind) -> bool:
    """Whether it is of a kind, with or without the links of other GPUs."""
    return msgspec.structs.replace(table.kind, peers_idle=False) == kind


def _is_measured_itself(table: DecisionTable, request: CopyRequest) -> bool:
    """Whether the places of the copy were measured. All files are one place."""
    ends = request.source.place.kind, request.destination.place.kind
    return table.paths[0] == request.places or "file" in ends


def _is_equivalent(table: DecisionTable, request: CopyRequest, machine: Machine) -> bool:
    if request.places in table.paths:
        return True
    classes = Classes(machine)
    ends = (Place.parse(each) for each in table.paths[0].split(" -> "))
    own = _key(classes, request, request.source.place, request.destination.place)
    return own == _key(classes, request, *ends)


def _key(classes: Classes, request: CopyRequest, source: Place, destination: Place) -> object:
    memories = (
        msgspec.structs.replace(request.source, place=source),
        msgspec.structs.replace(request.destination, place=destination),
    )
    return classes.key(Workload((Transfer(Path(*memories, "")),)))


def _measure(request: CopyRequest, subjects: Sequence[Subject], more: str = "") -> str:
    path = f"{request.source} -> {request.destination}*"
    tools = dict.fromkeys(chain.from_iterable(map(_tools, subjects)))
    if tools:
        return f"measure it with {' or '.join(tools)} and import that; waywiser show lists the rest"
    if together := _together(request, subjects[0].machine):
        return f"measure both together: waywiser survey --workload '{together}'"
    launch = subjects[0].launch if request.source.place.kind == "rank" else []
    return f"measure it: {survey_again(path, launch=launch, preset='standard')}{more}"


def _together(request: CopyRequest, machine: Machine) -> str:
    """The workload of the collective of a request and its copy by the reference executor of GPUs;
    empty if it names no collective that the GPUs of the machine make."""
    gpus = [gpu.index for gpu in machine.gpus]
    executor = collective_executor(request.beside) if request.beside else ""
    if not executor or len(gpus) < 2 or gpus != list(range(gpus[0], gpus[-1] + 1)):
        return ""
    kind = DECLARED.reference_memory("gpu", "gpu")
    memory = Memory(kind, Place("gpu", gpus[0], last=gpus[-1]))
    among = Path(memory, memory, executor)
    copy = Path(request.source, request.destination, DECLARED.reference_executor("gpu"))
    collective = f"{among}[{COLLECTIVE}={request.beside}] of {_BESIDE}"
    return f"{collective}; {copy} of {request.bytes}"


def _not_in_range(
    table: DecisionTable, request: CopyRequest, subjects: Sequence[Subject]
) -> NotMeasured:
    sizes = [each.bytes for each in table.decisions]
    if request.count > 1:
        return NotMeasured(
            f"{request.count} pieces of {format_bytes(request.bytes)} are too far from the lists "
            f"that were measured; pieces of {size_span(sizes[0], sizes[-1])} have advice for this "
            "count",
            remedy="give fewer pieces, or a size of these",
        )
    size = f" --sizes {request.bytes}"
    nearest = table.decisions[0 if request.bytes < sizes[0] else -1]
    return NotMeasured(
        f"{format_bytes(request.bytes)} is not within the measured sizes "
        f"({size_span(sizes[0], sizes[-1])}); at "
        f"{format_bytes(nearest.bytes)} the method is {table.methods[nearest.chosen]}",
        remedy=_measure(request, subjects, size),
    )


class _MethodsOfCopy:
    """The methods with a time for one copy, by their position in the table."""

    def __init__(
        self,
        request: CopyRequest,
        table: DecisionTable,
        times: Sequence[MethodTime | None],
        remedy: str,
    ) -> None:
        """``remedy`` measures the copy as requested. Raises `PolicyError` if the request excludes
        all methods."""
        self._remedy = remedy
        self._request = request
        self._table = table
        self._times = {n: time for n, time in enumerate(times) if time is not None}
        most = math.inf if request.max_threads is None else request.max_threads
        self._allowed = {n: time for n, time in self._times.items() if time.costs.threads <= most}
        if not self._allowed:
            least = min(time.costs.threads for time in self._times.values())
            raise PolicyError(
                f"every method needs more than {request.max_threads} threads",
                remedy=f"allow {least} threads or more",
            )
        if request.beside:
            self._allowed = self._measured_beside()
        self._chosen = self._choose()

    def _measured_beside(self) -> dict[int, MethodTime]:
        """The allowed methods that were measured beside the collective. Of these only those that
        slow it least remain, by `SLOWED`: with ``polite`` the one. Raises `NotMeasured`."""
        request = self._request
        taken = {n: collectives_of(time.costs) for n, time in self._allowed.items()}
        known = {n: own[request.beside] for n, own in taken.items() if request.beside in own}
        if not known:
            others = {name for time in self._times.values() for name in collectives_of(time.costs)}
            measured = f"; measured were: {', '.join(sorted(others))}" if others else ""
            raise NotMeasured(
                f"no method was measured beside {request.beside}{measured}",
                remedy=self._remedy,
            )
        most = min(known.values()) * (1.0 if request.polite else SLOWED)
        return {n: self._allowed[n] for n, factor in known.items() if factor <= most}

    def _choose(self) -> int:
        """The method to use, among those that are allowed."""
        simplest = min(self._allowed)
        if self._request.polite:
            return simplest
        decision = self._table.at(self._request.bytes)
        usual = decision.chosen if decision is not None else simplest
        if usual in self._allowed:
            return usual
        times = [self._allowed.get(n) for n in range(len(self._table.methods))]
        return good([Timed(each.seconds, each.interval) if each else None for each in times])[0]

    def advice(self, notes: Sequence[str]) -> Advice:
        request, table, chosen = self._request, self._table, self._chosen
        best = self._advised(chosen)
        others = [n for n in self._times if n != chosen]
        others.sort(key=lambda n: (n not in self._allowed, self._times[n].seconds))
        return Advice(
            request=request,
            kind=table.kind,
            best=best,
            alternatives=tuple(map(self._advised, others)),
            why=self._why(),
            code=code_lines(request.source, request.destination, request.count, best.method,
                            best.time.costs, polite=request.polite,
                            plain=chosen == table.plain, max_threads=request.max_threads),
            measured=table.paths[0],
            notes=tuple(notes),
            table=table,
        )  # fmt: skip

    def _is_of_library(self, n: int) -> bool:
        ends = self._request.source, self._request.destination
        return is_of_library(self._table.methods[n], ends, self._request.count)

    def _advised(self, n: int) -> AdvisedMethod:
        time = self._times[n]
        moved = self._request.bytes * (time.pieces if self._request.count > 1 else 1)
        return AdvisedMethod(
            method=self._table.methods[n],
            time=time,
            bytes_per_second=moved / time.seconds,
            low=moved / time.high,
            high=moved / time.low,
            margin=time.seconds / self._times[self._chosen].seconds - 1,
            excluded=self._why_excluded(n, time),
        )

    def _why_excluded(self, n: int, time: MethodTime) -> str:
        most, beside = self._request.max_threads, self._request.beside
        if n in self._allowed:
            return ""
        if not beside or (most is not None and time.costs.threads > most):
            return f"takes {time.costs.threads} threads"
        factor = collectives_of(time.costs).get(beside)
        if factor is None:
            return f"not measured beside {beside}"
        return f"{beside} takes {factor:.3g} × the time"

    def _why(self) -> str:
        most, beside = self._request.max_threads, self._request.beside
        if beside:
            factor = collectives_of(self._allowed[self._chosen].costs)[beside]
            takes = f"{beside} takes {factor:.3g} × the time beside it"
            if sum(beside in collectives_of(time.costs) for time in self._times.values()) == 1:
                return f"{takes}; no other method was measured beside {beside}"
            if len(self._allowed) == 1:
                return f"{takes}, less than beside all others"
            return f"{takes}, and it is the fastest of those that slow it least"
        if len(self._allowed) == 1 and most is not None:
            return f"it is the only measured method with at most {most} threads"
        if len(self._allowed) == 1:
            of = " of the transfer library" if self._is_of_library(self._chosen) else ""
            return f"it is the only method{of} that was measured here"
        of = f"of {len(self._allowed)} measured methods"
        if self._request.polite:
            return f"{of} it takes least from other work"
        fastest = min(self._allowed, key=lambda n: self._allowed[n].seconds)
        if self._chosen == fastest == min(self._allowed):
            takes = ", and takes least from other work"
            more = takes if self._is_of_library(self._chosen) else ""
            return f"{of} it is the fastest{more}"
        if self._chosen == fastest:
            return f"{of} it is the fastest, by more than the noise and {THRESHOLD:.0%}"
        gain = 1 - self._allowed[fastest].seconds / self._allowed[self._chosen].seconds
        return (
            f"{self._table.methods[fastest]} takes {gain:.1%} less time, which is not more "
            f"than the noise or {THRESHOLD:.0%}, and takes more from other work"
        )
