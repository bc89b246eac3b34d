"""What can be done on a machine, as the native registry tells it: the plan's only source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from waywiser import native
from waywiser.native_words import native_operation, native_transfer
from waywiser.topology.machine import Machine
from waywiser.topology.native import native_machine
from waywiser.topology.traits import ExecutorTraits, MemoryTraits, PathClass, Traits
from waywiser.words import Memory, Operation, Path, Place, TimingMode, Transfer, Value


class Parameter(Value, frozen=True):
    """A setting of an executor, or a variant of a memory kind; the first choice is the default."""

    name: str
    description: str
    kind: Literal["choice", "ordered", "subset"]
    choices: tuple[str, ...]


class ExecutorKind(Value, frozen=True):
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
    in_sets: bool = False
    """Transfers of all GPUs at once are measured by it too, and not by the reference alone."""


class Requirements(Value, frozen=True):
    """What a transfer takes besides the memory of its two sides."""

    threads: int = 0
    """Of CPUs that move bytes."""
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
        """On the host and on all GPUs together."""
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
    places: tuple[Literal["numa", "gpu", "file"], ...]
    timing: TimingMode
    parameters: tuple[Parameter, ...]


def _parameters(entries: list[dict[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(e["name"], e["description"], e["kind"], tuple(e["choices"])) for e in entries
    )


def list_executors() -> tuple[ExecutorKind, ...]:
    """Every registered executor, by name. Needs no GPU and no driver."""
    known = ExecutorKind.__struct_fields__
    entries = [{n: e[n] for n in known if n in e} for e in native.load().executors()]
    return msgspec.convert(entries, tuple[ExecutorKind, ...])


def list_memories() -> tuple[MemoryKind, ...]:
    """Every registered kind of memory, by name. Needs no GPU and no driver."""
    return msgspec.convert(native.load().memories(), tuple[MemoryKind, ...])


def list_operations() -> tuple[OperationKind, ...]:
    """Every registered operation, by name. Needs no GPU and no driver."""
    return msgspec.convert(native.load().operations(), tuple[OperationKind, ...])


def registered_traits() -> Traits:
    """What all registered executors and kinds of memory declare, as a profile stores it."""
    return _traits_of(list_executors(), list_memories())


def _traits_of(executors: Iterable[ExecutorKind], memories: Iterable[MemoryKind]) -> Traits:
    return Traits(tuple(kind.traits for kind in executors), tuple(kind.traits for kind in memories))


class Catalogue:
    """The registry's answers for one machine. Needs no GPU and no driver."""

    def __init__(self, machine: Machine) -> None:
        self._native = native.load()
        self._machine = native_machine(machine)
        self._peers = {gpu.index: frozenset(gpu.peers) for gpu in machine.gpus}
        self._host = msgspec.structs.replace(machine, gpus=())
        self._without_gpus = native_machine(self._host)
        self._needs_gpu: dict[str, bool] = {}
        self._in_place: dict[str, bool] = {}
        self._repeatable: dict[str, bool] = {}
        self._timing: dict[str, TimingMode] = {}
        self.executors = list_executors()
        self._executors = {kind.name: kind for kind in self.executors}
        self.memories = {kind.name: kind for kind in list_memories()}
        self.traits = _traits_of(self.executors, self.memories.values())
        self.operations = list_operations()

    def refusal(self, transfer: Transfer) -> str | None:
        """The reason why the transfer cannot be run, or None."""
        reason: str | None = self._native.refusal(native_transfer(transfer), self._machine)
        return reason

    def executor(self, name: str) -> ExecutorKind:
        """The registered executor of that name; raises `KeyError` where there is none."""
        return self._executors[name]

    def reference_executor(self, paths: PathClass) -> str:
        """The executor that paths of the class are judged by; empty if the registry has none."""
        return self.traits.reference_executor(paths)

    def reference_memory(self, paths: PathClass, place: str) -> str:
        """The same for the kind of memory at a kind of place."""
        return self.traits.reference_memory(paths, place)

    def possible_without_gpu(self, transfer: Transfer) -> bool:
        """Whether the transfer could be run on the machine if its GPUs were taken out."""
        return self._native.refusal(native_transfer(transfer), self._without_gpus) is None

    def needs_gpu(self, executor: str) -> bool:
        """Whether the executor moves nothing between memories of the host without a GPU."""
        if executor not in self._needs_gpu:
            kinds = [kind for kind in self.memories.values() if not kind.needs_gpu]
            ends = [Memory(k.name, place) for k in kinds for place in self._host_places(k)]
            paths = (Path(a, b, executor) for a in ends for b in ends)
            possible = any(self.possible_without_gpu(Transfer(path)) for path in paths)
            self._needs_gpu[executor] = not possible
        return self._needs_gpu[executor]

    def _host_places(self, kind: MemoryKind) -> list[Place]:
        nodes = [Place("numa", node.index) for node in self._host.numa[:1]]
        files = [Place("file", file=file.name) for file in self._host.files]
        return [place for place in (*nodes, *files) if place.kind in kind.places]

    def parameters(self, transfer: Transfer) -> tuple[Parameter, ...]:
        """The parameters that mean something on the transfer's path, narrowed to the machine."""
        return _parameters(self._native.parameters(native_transfer(transfer), self._machine))

    def timing(self, transfer: Transfer) -> TimingMode:
        """Who times it: by way, since sizes do not matter."""
        way = transfer.way
        if way not in self._timing:
            mode: TimingMode = self._native.timing(native_transfer(transfer), self._machine)
            self._timing[way] = mode
        return self._timing[way]

    def peer_access(self, transfer: Transfer) -> bool | None:
        """Whether the process needs peer access on or off; None where it does not matter."""
        needed: bool | None = self._native.peer_access(native_transfer(transfer), self._machine)
        return needed

    def requirements(self, transfer: Transfer) -> Requirements:
        """What the transfer takes at its number of bytes, with its settings."""
        found = self._native.requirements(native_transfer(transfer), self._machine)
        return msgspec.convert(found, Requirements)

    def are_peers(self, one: int, other: int) -> bool:
        """Whether each of two GPUs can access the memory of the other."""
        return other in self._peers.get(one, ()) and one in self._peers.get(other, ())

    def in_place(self, transfer: Transfer) -> bool:
        """Whether source and destination are one buffer, whose bytes change places."""
        way = transfer.way
        if way not in self._in_place:
            found = bool(self._native.in_place(native_transfer(transfer), self._machine))
            self._in_place[way] = found
        return self._in_place[way]

    def repeatable(self, transfer: Transfer) -> bool:
        """Whether a start that follows another does the same again, with nothing between."""
        way = transfer.way
        if way not in self._repeatable:
            found = bool(self._native.repeatable(native_transfer(transfer), self._machine))
            self._repeatable[way] = found
        return self._repeatable[way]

    def extents(self, transfer: Transfer) -> tuple[int, int]:
        """Bytes that the source and the destination take up, gaps of the layout included."""
        if transfer.layout is None:
            return transfer.bytes, transfer.bytes
        source, destination = self._native.extents(native_transfer(transfer))
        return int(source), int(destination)

    def operation_refusal(self, operation: Operation) -> str | None:
        """The reason why the operation cannot be performed, or None."""
        reason: str | None = self._native.operation_refusal(
            native_operation(operation), self._machine
        )
        return reason

    def operation_parameters(self, operation: Operation) -> tuple[Parameter, ...]:
        """The parameters that mean something at the operation's place."""
        return _parameters(
            self._native.operation_parameters(native_operation(operation), self._machine)
        )
