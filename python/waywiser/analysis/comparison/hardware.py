"""Classes of equal hardware, for fleets and comparisons, and which hosts of a class lack a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

from waywiser.analysis.comparison.node import Node
from waywiser.machine.machine import Gpu, Machine, is_nameless
from waywiser.words.grouping import grouped

OWN_CLASS = 0.2
"""Share of hosts with another number of GPUs that makes them a class and not a row of faults."""

LEAST_OF_CLASS = 0.5
"""The share of the GPUs of a class that a host must have: a host with fewer, but not without any,
is built with fewer, since GPUs fail one by one."""


class EqualHosts(NamedTuple):
    """Hosts of one class, each with its profiles, the oldest first."""

    name: str
    gpus: int
    """The number of GPUs that most of them have."""
    hosts: dict[str, list[Node]]
    """Each with its GPUs beside those of a host that has all of them."""


def equal_hosts(nodes: Sequence[Node]) -> list[EqualHosts]:
    """All classes, the largest first.

    A host whose GPUs have all gone is of the class with the same rest, if there is one class
    of it.
    """
    found: list[EqualHosts] = []
    for members in _by_kind(nodes):
        hosts = _hosts(sorted(members, key=lambda node: node.created))
        numbers = _numbers_of_class([len(same[-1].machine.gpus) for same in hosts.values()])
        for gpus in dict.fromkeys(numbers):
            own = [name for name, number in zip(hosts, numbers, strict=True) if number == gpus]
            reference = _reference([hosts[name][-1] for name in own], gpus)
            models = counted_models(reference.machine.gpus, gpus)
            if reference.is_of_results and not reference.machine.gpus:
                models = "no GPU named"
            matched = {name: [node.beside(reference) for node in hosts[name]] for name in own}
            found.append(EqualHosts(f"{models}; {reference.machine.cpu_model}", gpus, matched))
    return sorted(found, key=lambda equal: -len(equal.hosts))


def gpus_of_class(nodes: Sequence[Node]) -> dict[int, int]:
    """How many GPUs the hardware class of each node has, by the node's ``id``."""
    found: dict[int, int] = {}
    for members in _by_kind(nodes):
        numbers = _numbers_of_class([len(node.machine.gpus) for node in members])
        found |= {id(node): number for node, number in zip(members, numbers, strict=True)}
    return found


def _by_kind(nodes: Sequence[Node]) -> list[list[Node]]:
    """Groups nodes by what hosts of a class share: the models of GPUs, and the rest of the machine.
    Widths and lanes are left out: they are what may be wrong."""
    classes = grouped((_kind(node.machine), node) for node in nodes)
    for without in [kind for kind in classes if not kind[0]]:
        others = [kind for kind in classes if kind[0] and kind[1] == without[1]]
        if len(others) == 1:
            classes[others[0]] += classes.pop(without)
    return list(classes.values())


def _kind(machine: Machine) -> tuple[tuple[str, ...], tuple[str | int, ...]]:
    """(the models of GPUs, the rest of the machine)."""
    rest = (machine.architecture, machine.cpu_model, len(machine.packages), len(machine.numa))
    return tuple(sorted({gpu.name for gpu in machine.gpus})), rest


def _numbers_of_class(gpus: Sequence[int]) -> list[int]:
    """How many GPUs the class of each host has; ``gpus`` are those that the hosts have.

    A number that a fifth of the hosts have, and not one alone, is how those hosts are built; so is
    one above the usual, and one below half of it. Else a host should have the usual number.
    """
    counts = Counter(gpus)
    usual = max(counts, key=lambda count: (counts[count], count))
    built = {
        count
        for count, number in counts.items()
        if count >= usual
        or 0 < count < LEAST_OF_CLASS * usual
        or (count and number > 1 and number >= OWN_CLASS * len(gpus))
    }
    return [count if count in built else usual for count in gpus]


def _hosts(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """The nodes by a name that is a host's own. Virtual machines often share one: who has none of
    the GPUs is another host, and is named by its file. So is each simulated profile without a name
    of its own: it stands for a host like that of its original."""
    hosts: dict[str, list[Node]] = {}
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


def _own_name(node: Node, taken: Container[str]) -> str:
    name = f"{node.name} ({Path(node.file).name or node.created})"
    number = 2
    while name in taken:
        name, number = f"{node.name} ({Path(node.file).name}, {number})", number + 1
    return name


def _reference(nodes: Sequence[Node], gpus: int) -> Node:
    """One with as many GPUs as usual, in the slots that are usual."""
    whole = [node for node in nodes if len(node.machine.gpus) == gpus]
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
    return ", ".join(f"{count} × {model}" for model, count in models.items()) or "no GPU"
