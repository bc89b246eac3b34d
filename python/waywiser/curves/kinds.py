"""Transfers sorted into kinds, as the thesis chapter's tables have rows: ``pageable -> GPU``.

A kind is what is moved between which memories by whom, and whether the places are near; which GPU
or node it is, is not part of it. Of curves that differ in settings alone one is usual: that with
the fewest away from their defaults, which other tools' results need not be. Peer access is no such
setting, since literature asks for it by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from waywiser.curves.curve import Curve
from waywiser.curves.former_words import is_numbered_by_rank
from waywiser.curves.methods import principal
from waywiser.curves.subject import Subject
from waywiser.machine import Machine, PathClass, Traits
from waywiser.machine.routes import is_through_host
from waywiser.words import MOST_INDEX, Memory, Path, Transfer, Value, whole_number

Class = Literal["host-GPU", "GPU-GPU", "host-host", "within a GPU", "file", "between ranks"]

Nearness = Literal["local", "remote", ""]


class Kind(Value, frozen=True):
    """One row of a table."""

    source: str
    destination: str
    executor: str
    group: Class
    nearness: Nearness = ""
    """Whether host memory and GPU are local or remote, if the system shows it; the same for two
    nodes, and for ranks and their GPUs; ``local`` for two GPUs of one node."""
    is_quiet: bool = False
    """Whether a GPU moves it between memories that its engines reach by themselves: no thread and
    no memory bus of the host has a part in it, so that blocks scatter little."""
    reference: PathClass = ""
    """The class of paths that are compared by the executor."""
    scatters_as: tuple[str, ...] = ()
    """The kinds of memory at its ends, in alphabetical order, as GPUs reach them."""
    link: str = ""
    """The link between two GPUs: ``NVLink``, ``no peer access``, ``peer off``, ``through the host``
    ...; empty if the profile does not say which link is between them."""
    submitter: str = ""
    """Which of two GPUs are local to the NUMA node that submits the transfer, if it names one."""
    call: str = ""
    """The call in place of the executor, if multiprocessors were observed to make such copies."""

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} by {self.by}{self.states}"

    @property
    def shows_hardware(self) -> bool:
        """Whether it is slow for no other reason than a link or a memory of the machine: a GPU
        moves it by itself, and no library of messages has a part in it."""
        return self.is_quiet and self.group != "between ranks"

    @property
    def by(self) -> str:
        """Who makes such copies, as tables name it."""
        return self.call or self.executor

    @property
    def bidirectional(self) -> str:
        return f"{self.source} <-> {self.destination} by {self.by}{self.states}"

    @property
    def bare(self) -> str:
        """The kind without the nearness of its places."""
        link = f" ({self.link})" if self.link else ""
        return f"{self.source} -> {self.destination} by {self.by}{link}"

    @property
    def states(self) -> str:
        """What is in brackets; empty for nothing."""
        parts = ", ".join(part for part in (self.link, self.nearness, self.submitter) if part)
        return f" ({parts})" if parts else ""


def kind_of(transfer: Transfer, machine: Machine) -> Kind:
    """The kind of a transfer of this machine, whatever its settings."""
    path = transfer.path
    traits = machine.traits
    group = _class_of(path, traits)
    of_ranks = group == "between ranks"
    return Kind(
        _word(path.source, path.destination, traits, of_ranks),
        _word(path.destination, path.source, traits, of_ranks),
        path.executor,
        group,
        "" if is_numbered_by_rank(transfer) else nearness_of(path, machine),
        traits.executor(path.executor).is_undisturbed and traits.are_reached_by_gpus(*path.ends),
        traits.executor(path.executor).reference,
        tuple(sorted({traits.same_memory(end.kind) for end in path.ends})),
        _link(transfer, machine) if group == "GPU-GPU" else "",
        submitter_of(transfer, machine),
        traits.are_by_multiprocessors(path),
    )


def submitter_of(transfer: Transfer, machine: Machine) -> str:
    """Empty if the transfer does not name a node, or is not between two GPUs."""
    node = whole_number(transfer.parameters.get("submit", ""), MOST_INDEX)
    gpus = [machine.gpu(place.index) for place in transfer.path.places if place.kind == "gpu"]
    if node is None or len(gpus) != 2 or len(set(transfer.path.places)) < 2:
        return ""
    local = [gpu is not None and gpu.numa == node for gpu in gpus]
    if any(gpu is None or gpu.numa < 0 for gpu in gpus):
        return f"submitted by numa:{node}"
    return {
        (True, True): "submitted locally",
        (True, False): "submitted by the source's node",
        (False, True): "submitted by the destination's node",
        (False, False): "submitted by another node",
    }[local[0], local[1]]


def _class_of(path: Path, traits: Traits) -> Class:
    """The class of a path: between which sorts of places it leads."""
    source, destination = path.places
    sorts = {"numa" if place.kind == "rank" else place.kind for place in path.places}
    if "file" in sorts:
        return "file"
    if traits.is_between_ranks(path):
        return "between ranks"
    if sorts == {"numa"}:
        return "host-host"
    if sorts == {"numa", "gpu"}:
        return "host-GPU"
    return "within a GPU" if source == destination else "GPU-GPU"


def nearness_of(path: Path, machine: Machine) -> Nearness:
    """Whether both ends are on one NUMA node, as the system shows it; empty if it does not, or
    if there is only one node to be on."""
    if len(machine.numa) < 2:
        return ""
    if any(place.kind == "rank" for place in path.places):
        return _nearness_of_ranks(path, machine)
    nodes = [_node(memory, machine) for memory in path.ends]
    if min(nodes) < 0:
        return ""
    return "local" if nodes[0] == nodes[1] else "remote"


def _nearness_of_ranks(path: Path, machine: Machine) -> Nearness:
    """Whether all ranks are at the nodes of their GPUs if an end is on a GPU, else whether they are
    at one node."""
    numbers = {one.index for place in path.places for one in place.each}
    ranks = [rank for rank in machine.ranks if rank.index in numbers]
    if len(ranks) < len(numbers):
        return ""
    if not any("gpu" in machine.traits.memory(end.kind).places for end in path.ends):
        return "local" if len({rank.numa for rank in ranks}) == 1 else "remote"
    gpus = [machine.gpu(rank.gpu) for rank in ranks]
    nodes = [gpu.numa for gpu in gpus if gpu is not None and gpu.numa >= 0]
    if len(nodes) < len(ranks):
        return ""
    return "local" if nodes == [rank.numa for rank in ranks] else "remote"


def usual(subject: Subject) -> Iterator[tuple[Curve, Kind]]:
    """The principal curve of each path: with peer access and without, and by each node that
    submits it."""
    for curve in principal(subject.curves, peer_apart=True):
        yield curve, kind_of(curve.first_transfer, subject.machine)


def _word(memory: Memory, other: Memory, traits: Traits, of_ranks: bool) -> str:
    """``pinned``, ``GPU``; of memory that migrates also where it is, if it is no rank's."""
    on_gpu = memory.place.kind == "gpu"
    found = traits.memory(memory.kind)
    if on_gpu and found.reference == "gpu":
        return "GPU" if other.place != memory.place else "same GPU"
    if not found.migrates or of_ranks or memory.place.kind == "rank":
        return memory.kind
    return f"{memory.kind} at {'GPU' if on_gpu else 'host'}"


def _node(memory: Memory, machine: Machine) -> int:
    if memory.place.kind == "numa":
        return memory.place.index
    gpu = machine.gpu(memory.place.index) if memory.place.kind == "gpu" else None
    return gpu.numa if gpu is not None else -1


def _link(transfer: Transfer, machine: Machine) -> str:
    one, other = (machine.gpu(place.index) for place in transfer.path.places)
    if transfer.parameters.get("peer") == "off":
        return "peer off"
    if one is None or other is None:
        return ""
    known = one.links_known and other.links_known
    if other.index not in one.peers:
        return "no peer access" if known else ""
    if is_through_host(transfer, machine):
        return "through the host"
    lanes = [link.lanes for link in one.nvlinks if link.to == f"gpu:{other.index}"]
    if lanes:
        return f"NVLink ×{sum(lanes)}" if all(lanes) else "NVLink"
    switched = all(any(link.to == "switch" for link in gpu.nvlinks) for gpu in (one, other))
    if switched:
        return "NVSwitch"
    return "PCIe" if known else ""
