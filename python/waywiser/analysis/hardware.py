"""Which nodes of a fleet are twins: classes of equal hardware, and who of a class lacks a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

from waywiser.analysis.node import Node
from waywiser.analysis.same_gpus import Matched, match

OWN_CLASS = 0.2
"""Share of hosts with another number of GPUs that makes them a class and not a row of faults."""


class Kind(NamedTuple):
    """What twins have in common. Widths and lanes are left out: they are what may be wrong."""

    architecture: str
    cpu: str
    packages: int
    numa: int
    gpus: tuple[str, ...]
    """Models, each once."""


class Twins(NamedTuple):
    """Hosts of one class, each with its profiles, the oldest first."""

    name: str
    gpus: int
    """That most of them have."""
    hosts: dict[str, list[Node]]
    matched: dict[str, list[Matched]]
    """The GPUs of each profile beside those of a host that has all of them."""


def twins_of(nodes: Sequence[Node]) -> list[Twins]:
    """All classes, the largest first.

    A host whose GPUs have all gone is of the class with the same rest, where there is one class
    of it.
    """
    classes: dict[Kind, list[Node]] = {}
    for node in nodes:
        classes.setdefault(_kind(node), []).append(node)
    for kind in [kind for kind in classes if not kind.gpus]:
        others = [other for other in classes if other.gpus and other[:4] == kind[:4]]
        if len(others) == 1:
            classes[others[0]] += classes.pop(kind)
    found = [
        _twins(hosts, gpus) for members in classes.values() for gpus, hosts in _by_count(members)
    ]
    return sorted(found, key=lambda twins: -len(twins.hosts))


def _kind(node: Node) -> Kind:
    machine = node.machine
    return Kind(
        machine.architecture,
        machine.cpu_model,
        len(machine.packages),
        len(machine.numa),
        tuple(sorted({gpu.name for gpu in machine.gpus})),
    )


def _by_count(nodes: Sequence[Node]) -> list[tuple[int, dict[str, list[Node]]]]:
    """Hosts by how many GPUs they ought to have.

    A number that a fifth of them have, and not one alone, is how those hosts are built; so is one
    above the usual. Else the usual number is what a host ought to have.
    """
    hosts = _hosts(sorted(nodes, key=lambda node: node.created))
    counts = Counter(len(same[-1].machine.gpus) for same in hosts.values())
    usual = max(counts, key=lambda count: (counts[count], count))
    built = {
        count
        for count, number in counts.items()
        if count >= usual or (count and number > 1 and number >= OWN_CLASS * len(hosts))
    }
    found: dict[int, dict[str, list[Node]]] = {}
    for name, same in hosts.items():
        count = len(same[-1].machine.gpus)
        found.setdefault(count if count in built else usual, {})[name] = same
    return list(found.items())


def _twins(hosts: dict[str, list[Node]], gpus: int) -> Twins:
    reference = _reference([same[-1] for same in hosts.values()], gpus)
    matched = {
        name: [match(reference.machine.gpus, node.machine.gpus) for node in same]
        for name, same in hosts.items()
    }
    return Twins(_name(reference), gpus, hosts, matched)


def _hosts(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """By a name that is a host's own. Virtual machines often share one: who has none of the GPUs
    is another host, and is told by its file."""
    hosts: dict[str, list[Node]] = {}
    known: dict[str, list[tuple[str, set[str]]]] = {}
    for node in nodes:
        uuids = {gpu.uuid for gpu in node.machine.gpus if gpu.uuid}
        namesakes = known.setdefault(node.name, [])
        same = [(name, theirs) for name, theirs in namesakes
                if uuids & theirs or not uuids or not theirs]  # fmt: skip
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


def _name(node: Node) -> str:
    models = Counter(gpu.name for gpu in node.machine.gpus)
    gpus = ", ".join(f"{count} × {model}" for model, count in models.items()) or "no GPU"
    return f"{gpus}; {node.machine.cpu_model}"
