"""Which nodes of a fleet are twins: classes of equal hardware, and who of a class lacks a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from waywiser.analysis.node import Node
from waywiser.analysis.same_gpus import Matched, match


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
    found = [_twins(members) for members in classes.values()]
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


def _twins(nodes: Sequence[Node]) -> Twins:
    hosts: dict[str, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: node.created):
        hosts.setdefault(node.name, []).append(node)
    usual = Counter(len(same[-1].machine.gpus) for same in hosts.values())
    most = max(usual, key=lambda count: (usual[count], count))
    reference = _reference([same[-1] for same in hosts.values()], most)
    matched = {
        name: [match(reference.machine.gpus, node.machine.gpus) for node in same]
        for name, same in hosts.items()
    }
    return Twins(_name(reference), most, hosts, matched)


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
