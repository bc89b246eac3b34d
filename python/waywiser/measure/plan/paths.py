"""Which paths a machine has: every executor over every pair of memories, asked of the registry.

A machine without a GPU is asked about a hypothetical ``gpu:0`` as well, so that every path a GPU
would add is listed with the reason why it cannot be measured.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from waywiser.machine import Catalogue, ExecutorKind, Machine, MemoryKind
from waywiser.measure.plan.basis import with_hypothetical_gpu
from waywiser.measure.plan.layouts import example_on
from waywiser.words import Layout, Memory, Path, Place, Transfer, Unsupported

_PLACE = re.compile(r"@?\b(numa|gpu):\d+")
"""Reasons that differ only in it are one reason."""

NO_GPU = "there is no GPU"
"""The reason where the machine gives none."""


@dataclass(frozen=True)
class MachinePaths:
    """The paths of a machine with default variants, and why the others are not paths of it."""

    valid: tuple[Path, ...]
    unsupported_paths: tuple[Unsupported, ...]


@dataclass(frozen=True)
class _Senseless:
    """The impossible paths of one executor and one pair of kinds, each with the reason."""

    paths: list[tuple[Path, str]]
    alone: bool
    """Whether no other places of the two kinds are served."""


def find_paths(machine: Machine) -> MachinePaths:
    """Every valid path, and the unsupported: those that make no sense anywhere are reported once
    per pair of memory kinds, those that only this machine or these places do not support one by
    one. Executors that are loads, and no methods of a copy, have none; those between ranks have
    others (`waywiser.measure.plan.ranks`)."""
    here = Catalogue(machine)
    world = with_hypothetical_gpu(machine)
    anywhere = here if world is machine else Catalogue(world)
    valid: list[Path] = []
    unsupported_paths: list[Unsupported] = []
    senseless: list[_Senseless] = []
    executors = [each for each in anywhere.executors.values() if _has_paths(each)]
    for executor, (source, destination) in itertools.product(
        executors, itertools.product(anywhere.memories.values(), repeat=2)
    ):
        usable: list[Path] = []
        missing: list[Unsupported] = []
        nonsense: list[tuple[Path, str]] = []
        ends = list(itertools.product(_memories(source, world), _memories(destination, world)))
        if executor.among_several and source is destination:
            ends += ((both, both) for both in _at_all_gpus(source, world))
        for a, b in ends:
            path = Path(a, b, executor.name)
            layout = example_on(path, anywhere)
            possible: Iterable[Path] = (path,)
            if reason := anywhere.unsupported_reason(Transfer(path, layout=layout)):
                nonsense.append((path, reason))
                possible = _in_another_state(path, layout, anywhere)
            for candidate in possible:
                if reason := _missing_here(candidate, layout, here, machine):
                    missing.append(Unsupported(str(candidate), reason))
                else:
                    usable.append(candidate)
        valid += usable
        unsupported_paths += missing
        senseless.append(_Senseless(nonsense, alone=not usable and not missing))
    of_memories = _given_by_all(senseless, len(executors))
    for each in senseless:
        unsupported_paths += _unsupported_paths(each, of_memories)
    return MachinePaths(tuple(valid), tuple(unsupported_paths))


def _has_paths(executor: ExecutorKind) -> bool:
    if executor.traits.bystander:
        return False
    return executor.among_several or executor.traits.route != "between ranks"


def _memories(kind: MemoryKind, machine: Machine) -> list[Memory]:
    places = [Place("numa", node.index) for node in machine.numa]
    places += [Place("gpu", gpu.index) for gpu in machine.gpus]
    places += [Place("file", file=file.name) for file in machine.files]
    return [Memory(kind.name, known) for known in places if known.kind in kind.places]


def _at_all_gpus(kind: MemoryKind, machine: Machine) -> list[Memory]:
    """The memory at all GPUs together, if they are several."""
    indexes = sorted(gpu.index for gpu in machine.gpus)
    if len(indexes) < 2 or kind.places != ("gpu",):
        return []
    first, last = indexes[0], indexes[-1]
    if last - first != len(indexes) - 1:
        return []  # no range names them
    return [Memory(kind.name, Place("gpu", first, last=last))]


def _in_another_state(path: Path, layout: Layout | None, catalogue: Catalogue) -> Iterator[Path]:
    """A path between a GPU and a file in another state, if its place does not support the usual
    state of files: the first that it takes, as in memory that is never cold."""
    if {place.kind for place in path.places} != {"gpu", "file"}:
        return
    from_file = path.source.place.kind == "file"
    file = path.source if from_file else path.destination
    for parameter in catalogue.memories[file.kind].parameters:
        for value in parameter.choices[1:]:
            memory = Memory(file.kind, file.place, {parameter.name: value})
            end = {"source": memory} if from_file else {"destination": memory}
            varied = msgspec.structs.replace(path, **end)
            if catalogue.unsupported_reason(Transfer(varied, layout=layout)) is None:
                yield varied
                return


def _missing_here(
    path: Path, layout: Layout | None, here: Catalogue, machine: Machine
) -> str | None:
    """Why a possible path cannot be measured on this machine."""
    if machine.gpus:
        return None
    on_gpu = any(m.place.kind == "gpu" or here.memories[m.kind].needs_gpu for m in path.ends)
    missing = on_gpu or here.unsupported_reason(Transfer(path, layout=layout))
    return machine.gpu_reason or NO_GPU if missing else None


def _given_by_all(senseless: list[_Senseless], executors: int) -> set[str]:
    """Reasons that every executor gives are of a memory, as that a tmpfs is never cold."""
    given = {(reason, path.executor) for each in senseless for path, reason in each.paths}
    by = Counter(reason for reason, _ in given)
    return {reason for reason, count in by.items() if count == executors}


def _unsupported_paths(senseless: _Senseless, of_memories: set[str]) -> Iterator[Unsupported]:
    """Each path; if no place is served, the pair once per reason. Reasons against the
    pair itself count before reasons against a memory at one of its places."""
    if not senseless.alone:
        yield from (Unsupported(str(path), reason) for path, reason in senseless.paths)
        return
    of_pair = [each for each in senseless.paths if each[1] not in of_memories]
    first: dict[str, tuple[Path, str]] = {}
    for path, reason in of_pair or senseless.paths:
        first.setdefault(_PLACE.sub("", reason), (path, reason))
    for path, reason in first.values():
        yield Unsupported(path.kinds, reason)
