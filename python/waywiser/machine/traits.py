"""What statistics and reports must know of executors and kinds of memory beside their names.

The registry declares it (``native/include/waywiser/traits.hpp``). A survey stores it with the
machine, so that a profile is read without the native library and also by a program whose registry
knows other executors. Files of earlier programs and of other tools store none: for them
``traits.json`` has what the executors of this version declare, written by
``scripts/declared-traits``. Of an executor that neither of them knows, the defaults hold.

Which unit makes the copies of an executor that may use either (`ExecutorTraits.either_unit`) is not
declared but observed: a survey adds what it saw (`Traits.who_copies`).
"""

from __future__ import annotations

import pathlib
from functools import cache, cached_property
from typing import Literal

import msgspec
from msgspec.structs import replace

from waywiser.words import Memory, Path, Transfer, Value, WhileOccupied, WhoCopies, format_settings

PathClass = Literal["", "host", "gpu", "unified", "file"]
"""Paths within the host, with a GPU at an end, of unified memory, and of files; empty for none."""

Resource = Literal["links", "host memory", "CPUs", "file system"]

Route = Literal["shortest", "through host", "over relays", "between ranks"]
"""The links that bytes go over. The last is that of messages between processes, whatever the
library of messages uses; those of other tools' programs may be on two machines."""


class Alternative(Value, frozen=True, forbid_unknown_fields=False):
    """Another executor that a program may use instead on the same path."""

    executor: str
    question: str
    """As the title of a table."""
    own: str
    """As a cell names the executor that declares the alternative."""
    other: str
    """As a cell names the other executor."""
    host_only: bool = False
    """Asked only of paths with memory of the host at an end."""


class Call(Value, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """A call with which a program makes a transfer like that of an executor."""

    text: str
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """The call makes only transfers with these settings, which are not shown."""
    between: tuple[str, ...] = ()
    """Kinds of the places of source and destination; empty for any."""
    two_places: bool = False
    """The call makes no transfer within one place."""
    defaults: dict[str, str] = msgspec.field(default_factory=dict)
    """Settings that are shown if they have their default values too."""

    def makes(self, transfer: Transfer) -> bool:
        """Whether the call makes this transfer of its executor."""
        source, destination = transfer.path.places
        return (
            self.settings.items() <= transfer.parameters.items()
            and self.between in ((), (source.kind, destination.kind))
            and not (self.two_places and source == destination)
        )


class LibraryUse(Value, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """What the transfer library does by the method of an executor. Profiles of earlier versions
    store none: `DECLARED` has it."""

    contiguous: bool = False
    """It makes copies of one range."""
    lists: bool = False
    """It makes copies of many pieces."""
    settings: tuple[str, ...] = ()
    """The parameters that a policy may set."""


class ExecutorTraits(Value, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """What is known of an executor. Programs of later versions may declare more."""

    name: str
    family: str = "other"
    """Executors of one family do their work by the same means."""
    shares: tuple[Resource, ...] = ("links", "host memory", "CPUs", "file system")
    """What it uses that other work on the machine uses too."""
    route: Route = "shortest"
    reference: PathClass = ""
    """The class of paths that are compared by it."""
    bystander: bool = False
    """A load that is measured alone and beside copies, and no method of a copy."""
    either_unit: bool = False
    """The runtime chooses whether copy engines or multiprocessors do its work."""
    alternative: Alternative | None = None
    calls: tuple[Call, ...] = ()
    """The first one that makes a transfer is shown."""
    library: LibraryUse = LibraryUse()

    @property
    def is_kernel(self) -> bool:
        """Whether a kernel of a GPU moves bytes."""
        return self.family == "kernels"

    @property
    def is_undisturbed(self) -> bool:
        """Whether no thread, memory bus or file system of the host has a part in what it does."""
        return set(self.shares) <= {"links"}

    @property
    def uses_cpus(self) -> bool:
        """Whether CPUs of the host move bytes."""
        return "CPUs" in self.shares


class MemoryTraits(Value, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """What is known of a kind of memory."""

    name: str
    places: tuple[str, ...] = ()
    page_locked: bool = False
    """Host memory that GPUs read and write by themselves at an address that does not change."""
    migrates: bool = False
    """Its pages move to the processor that touches them."""
    cpu_accessible: bool = False
    """Loads and stores of a CPU reach it, and leave it where it is."""
    reference: PathClass = ""
    """The class of paths that are compared by memory of this kind."""
    same_as: str = ""
    """The kind of memory that GPUs reach exactly as they reach this one."""

    @property
    def is_reached_by_gpus(self) -> bool:
        """Whether engines and kernels of a GPU reach it where it is, so that no driver stages it
        and no page of it moves."""
        return self.page_locked or self.places == ("gpu",)

    @property
    def is_moved_by_cpus(self) -> bool:
        """Whether CPUs have a part in every copy between it and a GPU."""
        return not self.is_reached_by_gpus and not self.migrates


BY_MULTIPROCESSORS = ", by multiprocessors"
"""What follows a call if multiprocessors were observed to do its work."""


class Traits(Value, frozen=True, forbid_unknown_fields=False, omit_defaults=True, dict=True):
    """The traits that a registry declared; of what it did not have, those of this version."""

    executors: tuple[ExecutorTraits, ...] = ()
    memories: tuple[MemoryTraits, ...] = ()
    who_copies: tuple[WhoCopies, ...] = ()
    """What a survey observed of the machine's GPUs; empty if it was not read."""

    @cached_property
    def _executors(self) -> dict[str, ExecutorTraits]:
        return {each.name: each for each in (*_declared().executors, *self.executors)}

    @cached_property
    def _memories(self) -> dict[str, MemoryTraits]:
        return {each.name: each for each in (*_declared().memories, *self.memories)}

    @cached_property
    def _reference_memories(self) -> dict[tuple[str, str], str]:
        """The first kind of memory that paths of a class are compared by, by the class and the kind
        of place."""
        known = reversed(self.memories or _declared().memories)
        return {(each.reference, place): each.name for each in known for place in each.places}

    def executor(self, name: str) -> ExecutorTraits:
        return self._executors.get(name) or ExecutorTraits(name)

    def call(self, transfer: Transfer) -> Call | None:
        """The call that makes the transfer, or None. An executor of a profile without calls has
        those that this version declares."""
        name = transfer.path.executor
        calls = self.executor(name).calls or DECLARED.executor(name).calls
        return next((call for call in calls if call.makes(transfer)), None)

    def while_occupied(self, transfer: Transfer) -> WhileOccupied:
        """What was observed of copies like this one: by the same executor with the same settings,
        between the same kinds of memory of the same GPUs, in the same kind of layout. Undecided
        without observations, and if they differ."""
        ends = [place.index for place in transfer.path.places if place.kind == "gpu"]
        found = {
            copy.seen.found
            for each in self.who_copies
            if each.gpu in ends[:1]
            for copy in each.copies
            if _are_alike(copy.transfer, transfer)
        }
        return found.pop() if len(found) == 1 else "undecided"

    def are_by_multiprocessors(self, path: Path) -> str:
        """`by_multiprocessors` of all paths between such kinds of memory, whatever the GPUs: where
        it was decided, and if no GPU showed anything else."""
        found: dict[str, str] = {}
        for copy in (copy for each in self.who_copies for copy in each.copies):
            if copy.seen.found != "undecided" and _is_of_kind(copy.transfer, path):
                found[copy.seen.found] = self.by_multiprocessors(copy.transfer)
        return found.get("waited", "") if len(found) == 1 else ""

    def by_multiprocessors(self, transfer: Transfer) -> str:
        """The call that makes the transfer, if multiprocessors were observed to do its work:
        ``cudaMemcpyAsync, by multiprocessors``; else empty."""
        if self.while_occupied(transfer) != "waited":
            return ""
        call = self.call(transfer)
        hidden = call.settings if call is not None else {}
        shown = {name: each for name, each in transfer.parameters.items() if name not in hidden}
        text = call.text if call is not None else transfer.path.executor
        return f"{text}{format_settings(shown)}{BY_MULTIPROCESSORS}"

    def is_between_ranks(self, path: Path) -> bool:
        """Whether its ends belong to two processes of a parallel program, which may be on two
        hosts, or to GPUs that a library of messages calls ranks: its transfers are messages, or
        collectives. They say nothing of the links of this machine, whatever
        the places of the ends are called."""
        route = self.executor(path.executor).route
        of_ranks = {place.kind for place in path.places} == {"rank"}
        return route == "between ranks" or of_ranks or path.is_among_several

    def is_of_gpu(self, memory: Memory) -> bool:
        """Whether it is memory of a GPU, also of one that is known by its rank alone."""
        return memory.place.kind == "gpu" or self.memory(memory.kind).places == ("gpu",)

    def moves_nothing(self, source: Memory, destination: Memory) -> bool:
        """Whether the bytes are where they should go before it begins: memory that migrates has one
        buffer, and its driver knows the host as one place."""
        one, other = source.place, destination.place
        migrates = self.memory(source.kind).migrates
        return migrates and (one == other or one.kind == other.kind == "numa")

    def memory(self, kind: str) -> MemoryTraits:
        return self._memories.get(kind) or MemoryTraits(kind)

    def reference_executor(self, paths: PathClass) -> str:
        """The executor that paths of the class are compared by; empty if there is none."""
        known = self.executors or _declared().executors
        return next((each.name for each in known if each.reference == paths), "")

    def reference_memory(self, paths: PathClass, place: str) -> str:
        """The kind of memory at a kind of place that paths of the class are compared by; empty if
        there is none."""
        return self._reference_memories.get((paths, place), "")

    def same_memory(self, kind: str) -> str:
        """The kind of memory that stands for all that GPUs reach in the same way."""
        return self.memory(kind).same_as or kind

    def are_reached_by_gpus(self, *memories: Memory) -> bool:
        return all(self.memory(memory.kind).is_reached_by_gpus for memory in memories)


def traits_of_hip() -> Traits:
    """Those of this version for machines whose programs call HIP: the same calls by HIP's names."""
    executors = _declared().executors
    calls = ([replace(c, text=c.text.replace("cuda", "hip")) for c in e.calls] for e in executors)
    named = zip(executors, calls, strict=True)
    return Traits(tuple(replace(each, calls=tuple(own)) for each, own in named))


def declared_names() -> tuple[str, ...]:
    """The names of the executors and of the kinds of memory of this version."""
    return declared_executors() + declared_memories()


def declared_executors() -> tuple[str, ...]:
    return tuple(each.name for each in _declared().executors)


def declared_memories() -> tuple[str, ...]:
    return tuple(each.name for each in _declared().memories)


def _is_of_kind(transfer: Transfer, path: Path) -> bool:
    """Whether it is a contiguous copy with default settings between the same kinds of memory and,
    as the path, within one place or between two."""
    own = transfer.path
    kinds = [
        [(each.executor, end.kind, end.variant, end.place.kind) for end in each.ends]
        for each in (own, path)
    ]
    within = [len(set(each.places)) for each in (own, path)]
    plain = not transfer.parameters and transfer.layout is None
    return plain and kinds[0] == kinds[1] and within[0] == within[1]


def _are_alike(one: Transfer, other: Transfer) -> bool:
    """Whether the same unit makes two transfers: it does not matter which NUMA node has the memory
    of the host, and how long the pieces of a layout are."""
    if one.path.executor != other.path.executor or one.parameters != other.parameters:
        return False
    kinds = [each.layout.kind if each.layout is not None else "" for each in (one, other)]
    ends = zip(one.path.ends, other.path.ends, strict=True)
    return kinds[0] == kinds[1] and all(
        (a.kind, a.variant, a.place.kind) == (b.kind, b.variant, b.place.kind)
        and (a.place.kind != "gpu" or a.place.index == b.place.index)
        for a, b in ends
    )


@cache
def _declared() -> Traits:
    data = pathlib.Path(__file__).with_suffix(".json").read_bytes()
    return msgspec.json.decode(data, type=Traits)


DECLARED = Traits()
"""Those of this version alone."""
