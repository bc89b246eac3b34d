"""Which paths a machine has: every executor over every pair of memories, asked of the registry.

A machine without a GPU is asked about a hypothetical ``gpu:0`` as well, so that every path a GPU
would add is listed with the reason why it cannot be measured.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from waywiser.plan.catalogue import Catalogue, MemoryKind
from waywiser.plan.layouts import example
from waywiser.records import Refusal
from waywiser.topology.machine import Gpu, Machine
from waywiser.words import Layout, Memory, Path, Place, Transfer

_PLACE = re.compile(r"@?\b(numa|gpu):\d+")
"""Reasons that differ only in it are one reason."""

NO_GPU = "there is no GPU"
"""The reason where the machine gives none."""


@dataclass(frozen=True)
class Found:
    """The paths of a machine with default variants, and why the others are not paths of it."""

    valid: tuple[Path, ...]
    refused: tuple[Refusal, ...]


def find_paths(machine: Machine) -> Found:
    """Every valid path, and the refused: those that make no sense anywhere are told once per pair
    of memory kinds, those that only this machine or these places refuse one by one."""
    here = Catalogue(machine)
    world = with_hypothetical_gpu(machine)
    anywhere = here if world is machine else Catalogue(world)
    valid: list[Path] = []
    refused: list[Refusal] = []
    for executor, (source, destination) in itertools.product(
        anywhere.executors, itertools.product(anywhere.memories.values(), repeat=2)
    ):
        usable: list[Path] = []
        missing: list[Refusal] = []
        senseless: list[tuple[Path, str]] = []
        layout = example(executor)
        for a, b in itertools.product(_memories(source, world), _memories(destination, world)):
            path = Path(a, b, executor.name)
            if reason := anywhere.refusal(Transfer(path, layout=layout)):
                senseless.append((path, reason))
            elif reason := _missing_here(path, layout, here, machine):
                missing.append(Refusal(str(path), reason))
            else:
                usable.append(path)
        valid += usable
        refused += missing
        refused += _told(senseless, alone=not usable and not missing)
    return Found(tuple(valid), tuple(refused))


def with_hypothetical_gpu(machine: Machine) -> Machine:
    """The machine itself where it has a GPU, else the machine with one that answers for all."""
    if machine.gpus:
        return machine
    return msgspec.structs.replace(machine, gpus=(Gpu(0, uuid="", name="hypothetical", pci=""),))


def _memories(kind: MemoryKind, machine: Machine) -> list[Memory]:
    places = [Place("numa", node.index) for node in machine.numa]
    places += [Place("gpu", gpu.index) for gpu in machine.gpus]
    places += [Place("file", file=file.name) for file in machine.files]
    return [Memory(kind.name, known) for known in places if known.kind in kind.places]


def _missing_here(
    path: Path, layout: Layout | None, here: Catalogue, machine: Machine
) -> str | None:
    """Why a path that makes sense cannot be measured on this machine."""
    if machine.gpus:
        return None
    reason = machine.gpu_reason or NO_GPU
    memories = (path.source, path.destination)
    if any(m.place.kind == "gpu" or here.memories[m.kind].needs_gpu for m in memories):
        return reason
    return reason if here.refusal(Transfer(path, layout=layout)) else None


def _told(senseless: list[tuple[Path, str]], *, alone: bool) -> Iterator[Refusal]:
    """Refusals of one executor and pair of kinds: once per reason where no place is served."""
    if not alone:
        yield from (Refusal(str(path), reason) for path, reason in senseless)
        return
    first: dict[str, tuple[Path, str]] = {}
    for path, reason in senseless:
        first.setdefault(_PLACE.sub("", reason), (path, reason))
    for path, reason in first.values():
        pair = f"{path.source.kind} -> {path.destination.kind}"
        yield Refusal(f"{pair} by {path.executor}", reason)
