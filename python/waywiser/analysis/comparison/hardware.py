"""Classes of equal hardware, for fleets and comparisons, and which hosts of a class lack a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from waywiser.curves import Subject
from waywiser.machine import Gpu, Machine
from waywiser.machine.machine import is_nameless
from waywiser.words import count, format_bytes, grouped

OWN_CLASS = 0.2
"""Share of hosts with another number of GPUs that makes them a class and not a row of faults."""

LEAST_OF_CLASS = 0.5
"""A host with this share of the GPUs of others, or with less, but not without any, is built with
fewer: GPUs fail one by one."""

OTHER_MEMORY = 1.25
"""Hosts whose memory differs by this ratio are of different classes. Less is missing if a module
fails, and kernels keep some for themselves."""


class EqualHosts(NamedTuple):
    """Hosts of one class, each with its profiles, the oldest first."""

    name: str
    gpus: int
    """The number of GPUs that most of them have."""
    hosts: dict[str, list[Subject]]
    """Each with its GPUs beside those of a host that has all of them."""


def equal_hosts(nodes: Sequence[Subject], expected: int = 0) -> list[EqualHosts]:
    """All classes, the largest first. Each host should have as many GPUs as ``expected``.

    A host whose GPUs have all gone is of the class with the same rest, if there is one class
    of it. A host that had more GPUs in an earlier profile should have these.
    """
    found: list[EqualHosts] = []
    for members in _by_kind([node.machine for node in nodes]):
        hosts = _hosts(sorted((nodes[n] for n in members), key=lambda node: node.created))
        numbers = [
            max(number, expected, *(len(node.machine.gpus) for node in surveys))
            for number, surveys in zip(
                _numbers_of_class([len(same[-1].machine.gpus) for same in hosts.values()]),
                hosts.values(),
                strict=True,
            )
        ]
        for gpus in dict.fromkeys(numbers):
            own = [name for name, number in zip(hosts, numbers, strict=True) if number == gpus]
            reference = _reference([each for name in own for each in hosts[name]], gpus)
            models = counted_models(reference.machine.gpus, gpus)
            if reference.is_of_results and not reference.machine.gpus:
                models = "no GPU named"
            matched = {name: [node.beside(reference) for node in hosts[name]] for name in own}
            found.append(EqualHosts(f"{models}; {reference.machine.cpu_model}", gpus, matched))
    found.sort(key=lambda equal: -len(equal.hosts))
    return list(_named_apart(found))


def _named_apart(classes: Sequence[EqualHosts]) -> Iterator[EqualHosts]:
    """The classes; those of one name with their packages and their memory in it."""
    counts = Counter(equal.name for equal in classes)
    for equal in classes:
        machine = next(iter(equal.hosts.values()))[-1].machine
        if counts[equal.name] > 1:
            packages = count(len(machine.packages), "package")
            memory = format_bytes(_memory_bytes(machine) >> 30 << 30)
            equal = equal._replace(name=f"{equal.name}, {packages}, {memory} of memory")
        yield equal


def gpus_of_class(machines: Sequence[Machine]) -> list[int]:
    """How many GPUs the hardware class of each machine has."""
    found: dict[int, int] = {}
    for members in _by_kind(machines):
        numbers = _numbers_of_class([len(machines[n].gpus) for n in members])
        found.update(zip(members, numbers, strict=True))
    return [found[n] for n in range(len(machines))]


def _by_kind(machines: Sequence[Machine]) -> list[list[int]]:
    """Groups machines, by their numbers, by what hosts of a class share: the models of GPUs, and
    the rest. Widths and lanes are left out: they are what may be wrong."""
    classes = grouped((_kind(machine), n) for n, machine in enumerate(machines))
    for without in [kind for kind in classes if not kind[0]]:
        others = [kind for kind in classes if kind[0] and kind[1] == without[1]]
        if len(others) == 1:
            classes[others[0]] += classes.pop(without)
    return [
        same
        for members in classes.values()
        for same in _by_memory({n: _memory_bytes(machines[n]) for n in members})
    ]


def _by_memory(memories: Mapping[int, int]) -> Iterator[list[int]]:
    """Divides machines, by their numbers, where their memory differs by `OTHER_MEMORY` from that of
    the next smaller one. Those whose memory is not known are of the class with the most of them."""
    unknown = [n for n, memory in memories.items() if not memory]
    classes: list[list[int]] = []
    before = 0
    for n, memory in sorted(memories.items(), key=lambda each: each[1]):
        if not memory:
            continue
        if memory >= OTHER_MEMORY * before:
            classes.append([])
        classes[-1].append(n)
        before = memory
    if unknown:
        classes = classes or [[]]
        max(classes, key=len).extend(unknown)
    yield from classes


def _memory_bytes(machine: Machine) -> int:
    """Host memory; 0 if it is not known."""
    return sum(max(node.memory_bytes, 0) for node in machine.numa)


def _kind(machine: Machine) -> tuple[tuple[str, ...], tuple[str | int, ...]]:
    """(the models of GPUs, the rest of the machine)."""
    rest = (machine.architecture, machine.cpu_model, len(machine.packages), len(machine.numa))
    return tuple(sorted({gpu.name for gpu in machine.gpus})), rest


def _numbers_of_class(gpus: Sequence[int]) -> list[int]:
    """How many GPUs the class of each host has; ``gpus`` are those that the hosts have.

    A number that a fifth of the hosts have, and not one alone, is how those hosts are built. Else a
    host lacks GPUs if at least as many hosts have a number less than twice its own: the smallest
    such number is that of its class. A host without any GPU should have the usual number.
    """
    counts = Counter(gpus)
    usual = max(counts, key=lambda number: (counts[number], number))

    def of_class(own: int) -> int:
        if not own:
            return usual
        if counts[own] > 1 and counts[own] >= OWN_CLASS * len(gpus):
            return own
        more = (
            number
            for number in counts
            if LEAST_OF_CLASS * number < own < number and counts[number] >= counts[own]
        )
        return min(more, default=own)

    return list(map(of_class, gpus))


def _hosts(nodes: Sequence[Subject]) -> dict[str, list[Subject]]:
    """The nodes by a name that is a host's own. Virtual machines often share one: who has none of
    the GPUs is another host, and is named by its file. So is each simulated profile without a name
    of its own: it stands for a host like that of its original."""
    hosts: dict[str, list[Subject]] = {}
    known: dict[str, list[tuple[str, set[str]]]] = {}
    for node in nodes:
        uuids = {gpu.uuid for gpu in node.machine.gpus if gpu.uuid}
        namesakes = known.setdefault(node.name, [])
        same = [(name, theirs) for name, theirs in namesakes
                if not is_nameless(node.machine)
                and (uuids & theirs or not uuids or not theirs)]  # fmt: skip
        if same:
            name, theirs = same[0]
            theirs |= uuids
        else:
            name = node.name if not namesakes else _own_name(node, hosts)
            namesakes.append((name, uuids))
        hosts.setdefault(name, []).append(node)
    return hosts


def _own_name(node: Subject, taken: Container[str]) -> str:
    name = f"{node.name} ({Path(node.file).name or node.created})"
    number = 2
    while name in taken:
        name, number = f"{node.name} ({Path(node.file).name}, {number})", number + 1
    return name


def _reference(nodes: Sequence[Subject], gpus: int) -> Subject:
    """One with as many GPUs as its class, or the most if none has, in the slots that are usual."""
    most = max(len(node.machine.gpus) for node in nodes)
    whole = [node for node in nodes if len(node.machine.gpus) == min(gpus, most)]
    slots = Counter(tuple(gpu.pci for gpu in node.machine.gpus) for node in whole)
    usual = slots.most_common(1)[0][0]
    return next(n for n in whole if tuple(gpu.pci for gpu in n.machine.gpus) == usual)


def counted_models(gpus: Sequence[Gpu], number: int) -> str:
    """``8 × NVIDIA H200`` of a class with this number of GPUs, some of which may be gone; empty
    if all are."""
    if number and not gpus:
        return ""
    models = Counter(gpu.name for gpu in gpus)
    if len(models) == 1:
        models[gpus[0].name] = number
    return ", ".join(f"{many} × {model}" for model, many in models.items()) or "no GPU"
