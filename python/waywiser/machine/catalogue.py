"""What can be done on a machine, from the native registry: the plan's only source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec

from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.machine.native_words import native_machine, native_operation, native_transfer
from waywiser.machine.traits import ExecutorTraits, MemoryTraits, Traits
from waywiser.words import (
    COLLECTIVE,
    Memory,
    Operation,
    Path,
    Place,
    TimingMode,
    Transfer,
    Value,
    Workload,
)


class Parameter(Value, frozen=True):
    """A setting of an executor, or a variant of a memory kind; the first choice is the default."""

    name: str
    description: str
    kind: Literal["choice", "ordered", "subset"]
    choices: tuple[str, ...]
    written: bool = False
    """Its default is written too."""


class ExecutorKind(Value, frozen=True, forbid_unknown_fields=False):
    """Who can move bytes, with its source in the literature."""

    name: str
    description: str
    source: str
    layouts: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    traits: ExecutorTraits
    """What readers of profiles must know of it; what follows, planning alone."""
    least_bytes: int = 0
    """Fewer contiguous bytes take the time of its own work, and are measured on request only."""
    survey_only: bool = False
    """Programs do it, the transfer library never does: only a full survey measures it unasked."""
    settings_on_request: bool = False
    """Its best settings are found by a search: only a full survey varies them unasked."""
    comparison: bool = False
    """It is read beside another executor of its class, and never asked for itself."""
    among_several: bool = False
    """It moves bytes among a memory at several GPUs, too."""
    among_ranks: bool = False
    """It moves bytes among the memories of several ranks."""
    loads: str = ""
    """A library that it loads into its process, which changes other transfers there."""
    in_sets: bool = False
    """Transfers of all GPUs at once are measured by it too, and not by the reference alone."""


class Requirements(Value, frozen=True):
    """What a transfer takes besides the memory of its two sides."""

    threads: int = 0
    """CPUs that move bytes."""
    pinned_bytes: int = 0
    """Staging on the host."""
    device_bytes: dict[int, int] = msgspec.field(default_factory=dict)
    """Staging by GPU."""
    peers: tuple[tuple[int, int], ...] = ()
    """GPUs that access each other's memory."""
    host_links: tuple[int, ...] = ()
    """GPUs whose links to the host carry bytes."""

    @property
    def staging_bytes(self) -> int:
        """Staging memory on the host and on all GPUs together."""
        return self.pinned_bytes + sum(self.device_bytes.values())

    @property
    def gpus(self) -> frozenset[int]:
        """Those whose links carry bytes or whose memory stages them."""
        linked = {*self.host_links, *self.device_bytes}
        return frozenset(linked.union(*self.peers))


class MemoryKind(Value, frozen=True):
    """A kind of memory, with its source in the literature."""

    name: str
    description: str
    source: str
    places: tuple[Literal["numa", "gpu", "file"], ...]
    needs_gpu: bool
    cpu_accessible: bool
    parameters: tuple[Parameter, ...]
    traits: MemoryTraits


class OperationKind(Value, frozen=True):
    """Something that costs time and moves no bytes, with its source in the literature."""

    name: str
    description: str
    source: str
    places: tuple[Literal["numa", "gpu", "file", "rank"], ...]
    timing: TimingMode
    parameters: tuple[Parameter, ...]


def list_executors() -> tuple[ExecutorKind, ...]:
    """Every registered executor, by name. Needs no GPU and no driver."""
    return _executors_of(native.load().executors)


def collective_executor(collective: str) -> str:
    """The executor by which GPUs make a collective; empty if there is none."""
    return next(
        (
            kind.name
            for kind in list_executors()
            for parameter in kind.parameters
            if kind.among_several
            and parameter.name == COLLECTIVE
            and collective in parameter.choices
        ),
        "",
    )


def list_memories() -> tuple[MemoryKind, ...]:
    """Every registered kind of memory, by name. Needs no GPU and no driver."""
    return _memories_of(native.load().memories)


def list_operations() -> tuple[OperationKind, ...]:
    """Every registered operation, by name. Needs no GPU and no driver."""
    return _operations_of(native.load().operations)


@cache
def _executors_of(listed: Callable[[], Any]) -> tuple[ExecutorKind, ...]:
    return msgspec.convert(listed(), tuple[ExecutorKind, ...])


@cache
def _memories_of(listed: Callable[[], Any]) -> tuple[MemoryKind, ...]:
    return msgspec.convert(listed(), tuple[MemoryKind, ...])


@cache
def _operations_of(listed: Callable[[], Any]) -> tuple[OperationKind, ...]:
    return msgspec.convert(listed(), tuple[OperationKind, ...])


def registered_traits() -> Traits:
    """What all registered executors and kinds of memory declare, as a profile stores it."""
    executors, memories = list_executors(), list_memories()
    return Traits(tuple(kind.traits for kind in executors), tuple(kind.traits for kind in memories))


class Catalogue:
    """The registry's answers for one machine. Needs no GPU and no driver."""

    def __init__(self, machine: Machine) -> None:
        self._native = native.load()
        self._machine = native_machine(machine)
        self._ranks = {rank.index: rank for rank in machine.ranks}
        self._peers = {gpu.index: gpu.peers for gpu in machine.gpus}
        self._without_gpus = native_machine(msgspec.structs.replace(machine, gpus=()))
        self._host_places = [Place("numa", node.index) for node in machine.numa[:1]]
        self._host_places += [Place("file", file=file.name) for file in machine.files]
        self._needs_gpu: dict[str, bool] = {}
        self._answers: dict[tuple[str, str], Any] = {}
        self.executors = {kind.name: kind for kind in list_executors()}
        self.memories = {kind.name: kind for kind in list_memories()}
        self.operations = list_operations()
        self.traits = registered_traits()

    def unsupported_reason(self, transfer: Transfer) -> str | None:
        """The reason why the transfer cannot be run, or None. A place that only other tools name is
        one, and so is a setting that an executor does not have."""
        try:
            there = native_transfer(transfer)
            reason: str | None = self._native.unsupported_reason(there, self._machine)
        except self._native.NotSupported as error:
            return str(error)
        return reason

    def possible_without_gpu(self, transfer: Transfer) -> bool:
        """Whether the transfer could be run on the machine if its GPUs were taken out."""
        return (
            self._native.unsupported_reason(native_transfer(transfer), self._without_gpus) is None
        )

    def needs_gpu(self, executor: str) -> bool:
        """Whether the executor moves nothing between memories of the host without a GPU."""
        if executor not in self._needs_gpu:
            ends = [
                Memory(kind.name, place)
                for kind in self.memories.values()
                for place in self._host_places
                if place.kind in kind.places and not kind.needs_gpu
            ]
            paths = (Path(a, b, executor) for a in ends for b in ends)
            possible = any(self.possible_without_gpu(Transfer(path)) for path in paths)
            self._needs_gpu[executor] = not possible
        return self._needs_gpu[executor]

    def parameters(self, transfer: Transfer) -> tuple[Parameter, ...]:
        """The parameters that mean something on the transfer's path, narrowed to the machine."""
        found = self._native.parameters(native_transfer(transfer), self._machine)
        return msgspec.convert(found, tuple[Parameter, ...])

    def timing(self, transfer: Transfer) -> TimingMode:
        """Who times it."""
        mode: TimingMode = self._at_any_size("timing", transfer)
        return mode

    def in_place(self, transfer: Transfer) -> bool:
        """Whether source and destination are one buffer, whose bytes change places."""
        return bool(self._at_any_size("in_place", transfer))

    def repeatable(self, transfer: Transfer) -> bool:
        """Whether a start that follows another does the same again, with nothing between."""
        return bool(self._at_any_size("repeatable", transfer))

    def _at_any_size(self, question: str, transfer: Transfer) -> Any:
        """An answer that depends on the way alone, asked once."""
        key = question, transfer.way
        if key not in self._answers:
            ask = getattr(self._native, question)
            self._answers[key] = ask(native_transfer(transfer), self._machine)
        return self._answers[key]

    def peer_access(self, *transfers: Transfer) -> bool | None:
        """Whether the process needs peer access on or off, by the first transfer to which it
        matters; None if to none."""
        ask = self._native.peer_access
        answers = (ask(native_transfer(transfer), self._machine) for transfer in transfers)
        return next((needed for needed in answers if needed is not None), None)

    def loads(self, *transfers: Transfer) -> str:
        """The library that the process of the transfers loads; empty for none."""
        kinds = (self.executors[transfer.path.executor] for transfer in transfers)
        return next((kind.loads for kind in kinds if kind.loads), "")

    def requirements(self, transfer: Transfer) -> Requirements:
        """What the transfer takes at its number of bytes, with its settings."""
        found = self._native.requirements(native_transfer(transfer), self._machine)
        return msgspec.convert(found, Requirements)

    def local_place(self, memory: Memory) -> Place:
        """The place of a memory; of one at a rank, its NUMA node or its GPU."""
        rank = self._ranks.get(memory.place.index) if memory.place.kind == "rank" else None
        if rank is None:
            return memory.place
        at_node = "numa" in self.memories[memory.kind].places
        return Place("numa", rank.numa) if at_node else Place("gpu", rank.gpu)

    def buffer_places(self, memory: Memory) -> list[Place]:
        """The places of its buffers: ranks that share a GPU have one buffer there together."""
        found: list[Place] = []
        for single in memory.each:
            place = self.local_place(single)
            if single.place.kind != "rank" or place.kind != "gpu" or place not in found:
                found.append(place)
        return found

    def are_peers(self, one: int, other: int) -> bool:
        """Whether each of two GPUs can access the memory of the other."""
        return other in self._peers.get(one, ()) and one in self._peers.get(other, ())

    def extents(self, transfer: Transfer) -> tuple[int, int]:
        """Bytes that the source and the destination take up, gaps of the layout included."""
        if transfer.layout is None:
            return transfer.bytes, transfer.bytes
        source, destination = self._native.extents(native_transfer(transfer))
        return int(source), int(destination)

    def is_on_disk(self, memory: Memory) -> bool:
        """Whether its bytes are read from or written to a file, and not at an address."""
        return memory.place.kind == "file" and not self.memories[memory.kind].cpu_accessible

    def is_searched(self, transfer: Transfer) -> bool:
        """Whether a search has to find the best settings of its executor."""
        return self.executors[transfer.path.executor].settings_on_request

    def operation_unsupported_reason(self, operation: Operation) -> str | None:
        """The reason why the operation cannot be performed, or None."""
        requested = native_operation(operation)
        reason: str | None = self._native.operation_unsupported_reason(requested, self._machine)
        return reason

    def operation_parameters(self, operation: Operation) -> tuple[Parameter, ...]:
        """The parameters that mean something at the operation's place."""
        found = self._native.operation_parameters(native_operation(operation), self._machine)
        return msgspec.convert(found, tuple[Parameter, ...])


class Footprint(NamedTuple):
    """Bytes of all buffers and staging together, and what each place must be able to hold."""

    total: int
    at: dict[str, int]
    staging: int
    """Bytes of the total that are staging memory."""
    gpus: frozenset[int]
    """Whose memory or links the workload uses."""


def footprint(workload: Workload, catalogue: Catalogue) -> Footprint:
    """Each transfer has a source and a destination of its own, gaps of its layout included. What
    moves in place has one buffer, which both places must hold; in a shared workload equal memories
    on the same side are one. A memory at several places has a buffer at each. Staging is no buffer:
    each transfer takes its own."""
    sizes: dict[str, int] = {}
    copies: dict[str, int] = {}
    places: dict[str, Counter[str]] = {}
    at: Counter[str] = Counter()
    staging = 0
    gpus = {place.index for place in workload.places if place.kind == "gpu"}
    for number, transfer in enumerate(workload.transfers):
        in_place = catalogue.in_place(transfer)
        extents = catalogue.extents(transfer)
        sides = zip(("from", "to"), transfer.path.ends, extents, strict=True)
        for side, memory, extent in sides:
            own = f"{number}" if in_place else f"{side} {number}"
            buffer = f"{side} {memory}" if workload.shared and not in_place else own
            sizes[buffer] = max(extent, sizes.get(buffer, 0))
            local = catalogue.buffer_places(memory)
            gpus |= {place.index for place in local if place.kind == "gpu"}
            held = Counter(map(str, local))
            places[buffer] = places[buffer] | held if buffer in places else held
            copies[buffer] = len(local)
        needs = catalogue.requirements(transfer)
        staging += needs.staging_bytes
        at.update({f"gpu:{index}": size for index, size in needs.device_bytes.items()})
        gpus |= needs.gpus
    for buffer, size in sizes.items():
        at.update({place: size * number for place, number in places[buffer].items()})
    total = sum(size * copies[buffer] for buffer, size in sizes.items())
    return Footprint(total + staging, at, staging, frozenset(gpus))
