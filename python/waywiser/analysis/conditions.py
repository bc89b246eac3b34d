"""The machine while it was measured: its health, and what of its environment moves numbers.

What the doctor asks of a machine before a survey is asked here of the record, which may be
anybody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waywiser.analysis.answer import Finding
from waywiser.analysis.subject import Subject
from waywiser.words import Place

BUSY_FRACTION = 0.1
"""Of the CPUs: a load above this, and above one process, is somebody else's work."""
SWAPPED_FRACTION = 0.01
"""Of the memory; a few pages that nobody needs are always out."""


def conditions(subject: Subject) -> Iterator[Finding]:
    yield from _health(subject)
    found = list(_unrest(subject))
    if found:
        yield Finding(
            id="unfit-machine",
            severity="warning",
            statement=f"the machine was not at rest when it was measured: {'; '.join(found)}",
            remedy="ask waywiser doctor, which names a remedy for each, and survey again",
        )


def _health(subject: Subject) -> Iterator[Finding]:
    health = subject.overview.health
    if health is None or not health.speaks_against:
        return
    gpus = [
        subject.device(Place("gpu", gpu.index))
        for gpu in subject.machine.gpus
        if any(f"gpu:{gpu.index} " in f"{text} " for text in _told(subject))
    ]
    corrected = all(" corrected" in text or "replays" in text for text in _told(subject))
    yield Finding(
        id="health",
        severity="warning" if corrected else "error",
        statement=f"error counters speak against the GPUs: {', '.join(_told(subject))}",
        devices=tuple(gpus),
        remedy="look at nvidia-smi -q and the kernel's log, and have what rises again replaced",
    )


def _told(subject: Subject) -> list[str]:
    health = subject.overview.health
    return [] if health is None else [*map(str, health.rises), *health.xids, *health.standing]


def _unrest(subject: Subject) -> Iterator[str]:
    environment, machine = subject.environment, subject.machine
    governors = _texts(environment.get("governor"))
    if governors and set(governors) != {"performance"}:
        yield f"the frequency governor was {', '.join(governors)}"
    load, cpus = environment.get("load"), sum(package.cpus for package in machine.packages)
    if isinstance(load, list) and load and _number(load[0]) > max(1.0, BUSY_FRACTION * cpus):
        yield f"the load was {_number(load[0]):g} on {cpus} CPUs when it began"
    if environment.get("numa_balancing") and len(machine.numa) > 1:
        yield "automatic NUMA balancing moved pages"
    swapped, memory = environment.get("swap_used_bytes"), environment.get("memory_total_bytes")
    if _number(swapped) > SWAPPED_FRACTION * _number(memory) > 0:
        yield f"{_number(swapped) / 2**30:.1f} GiB were swapped out"
    quota = environment.get("cgroup_cpus")
    usable = sum(len(node.cpus) for node in machine.numa)
    if 0 < _number(quota) < usable:
        yield f"the cgroup allowed {_number(quota):g} CPUs' time for {usable} CPUs"
    for gpu in machine.gpus:
        if gpu.processes:
            yield f"gpu:{gpu.index} had other processes ({len(gpu.processes)})"
        if gpu.throttle:
            yield f"gpu:{gpu.index} was throttled when captured ({', '.join(gpu.throttle)})"


def _texts(value: Any) -> list[str]:
    """Of a record that anybody may have made: a text, or a list of texts."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str) and each]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
