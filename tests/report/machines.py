"""Profiles to report of: seeded, realistic in shape, made of no measurement."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import profiles
from analysis.questions.subjects import of_series
from machine.captured import machine as captured
from sides import records
from waywiser.curves.subject import Subject
from waywiser.machine.machine import Machine
from waywiser.profile import WritableProfile
from waywiser.profile.writable import write_profile
from waywiser.words import Transfer, Workload
from waywiser.words.records import Series, Visit

SIZES = tuple(2**n for n in range(3, 31, 3))
LATENCY = 5.5e-6
RATES = {
    ("numa", "gpu"): 55.4e9,
    ("gpu", "numa"): 55.3e9,
    ("gpu", "gpu"): 395e9,
    ("numa", "numa"): 12e9,
}
WITHIN = 2080e9
SLOWER = {"pageable": 0.2, "write-combined": 0.98, "managed": 0.8}


def eight_gpus(hostname: str = "node8") -> Machine:
    """Eight GPUs on a switch, in a virtual machine that hides its sockets."""
    return msgspec.structs.replace(captured("h200-vm-8gpu"), hostname=hostname)


def curves(machine: Machine, variants: int = 0) -> Iterator[str]:
    """Copies between all places; ``variants`` more settings of the first GPU's links."""
    gpus = [f"gpu:{gpu.index}" for gpu in machine.gpus]
    for gpu in gpus:
        for kind in ("pinned", "pageable", "write-combined"):
            yield f"{kind}@numa:0 -> device@{gpu} by copy-engine"
            yield f"device@{gpu} -> {kind}@numa:0 by copy-engine"
        yield f"pinned@numa:0 -> device@{gpu} by sm"
        yield f"device@{gpu} -> device@{gpu} by copy-engine"
    for first in gpus:
        for second in gpus:
            if first != second:
                yield f"device@{first} -> device@{second} by copy-engine"
                yield f"device@{first} -> device@{second} by sm"
    yield "pageable@numa:0 -> pageable@numa:0 by cpu"
    if gpus:
        there = "pinned@numa:0 -> device@gpu:0 by copy-engine"
        yield f"{there}; device@gpu:0 -> pinned@numa:0 by copy-engine"
    for number in range(variants):
        gpu = gpus[number % len(gpus)]
        yield f"pinned@numa:0 -> device@{gpu} by sm[blocks={number + 1}]"


def visits(
    machine: Machine,
    seed: int = 1,
    *,
    blocks: int = 2,
    count: int = 12,
    variants: int = 0,
    sizes: Sequence[int] = SIZES,
    slow: Callable[[Workload], float] = lambda _: 1.0,
) -> Iterator[Visit]:
    """A survey of `curves`; ``slow`` is the factor by which a workload takes longer."""
    rng = random.Random(seed)
    texts = list(curves(machine, variants))
    for block in range(blocks):
        for text in texts:
            for size in sizes:
                workload = profiles.workload(text, size)
                yield _visit(rng, workload, block, count, slow(workload))


def _visit(rng: random.Random, workload: Workload, block: int, count: int, factor: float) -> Visit:
    seconds = max(map(_seconds, workload.transfers)) * rng.uniform(0.999, 1.001) * factor
    width = len(workload.transfers)
    taken = profiles.samples(rng, seconds, count, transfers=width)
    return profiles.visit(workload, block, taken)


def _seconds(transfer: Transfer) -> float:
    source, destination = transfer.path.source, transfer.path.destination
    rate = RATES[source.place.kind, destination.place.kind]
    if source.place == destination.place and source.place.kind == "gpu":
        rate = WITHIN
    rate *= SLOWER.get(source.kind, 1.0) * SLOWER.get(destination.kind, 1.0)
    return LATENCY + transfer.bytes / rate


def subject(machine: Machine, seed: int = 1, **survey: Any) -> Subject:
    """The same without a file."""
    found: dict[str, list[Visit]] = {}
    for visit in visits(machine, seed, **survey):
        found.setdefault(visit.workload.identity, []).append(visit)
    series = [Series(blocks[0].workload, tuple(blocks)) for blocks in found.values()]
    gpus = len(machine.gpus)
    return of_series(
        machine, sorted(series, key=lambda each: (each.workload.curve, each.workload.bytes)),
        environment=profiles.ENVIRONMENT, unsupported_paths=profiles.UNSUPPORTED_PATHS,
        localities=records(seed, gpus=gpus) if gpus > 1 else (),
    )  # fmt: skip


def write(path: Path, machine: Machine, seed: int = 1, **survey: int) -> Path:
    """A finished profile; ``survey`` as in `visits`."""
    write_profile(
        path, machine, profiles.ENVIRONMENT, visits(machine, seed, **survey),
        plan_json='{"request":{"preset":"full"}}', unsupported_paths=profiles.UNSUPPORTED_PATHS,
        command=("waywiser", "survey"),
    )  # fmt: skip
    if len(machine.gpus) > 1:
        with WritableProfile.resume(path, profiles.ENVIRONMENT) as profile:
            for found in records(seed, gpus=len(machine.gpus)):
                profile.commit_locality(found)
    return path
