"""What is known of ranks: whether two are on one node, where those of a launch are, whether they
share CPUs, how many a survey started, and how many memories several have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from waywiser.machine.machine import Machine, PlacedRank
from waywiser.machine.system_files import format_list
from waywiser.machine.traits import Traits
from waywiser.words import Memory, Path, Transfer, grouped

Nodes = Literal["one node", "two nodes", ""]

NODE = "node"
"""The setting of a memory that says which node it is on."""

_MEMORY = {"numa": "host", "gpu": "GPU"}

WINDOW, TEST, STREAM = "window", "test", "bw"
"""The settings for the messages that one sender has in flight, and for the test; and the value of
the test for messages in one direction. The time is that of one message."""

COUNTS, NEIGHBOURS = "counts", "neighbours"
"""The settings that say who sends how much: a value of the first has the name of the second."""

UNIQUE = "unique"
"""The setting that says how much of what a GPU sends differs."""

OF_EXCHANGE = (COUNTS, NEIGHBOURS, UNIQUE)
"""Settings that make another exchange; all others are of the method."""

OF_TASK = frozenset({WINDOW, TEST, *OF_EXCHANGE})
"""Settings that say what messages are sent, and not how: methods differ in the others."""

_WHERE = frozenset({NODE, "socket", "gpu"})


def nodes_of(path: Path) -> Nodes:
    """Empty if the ends do not say where they are."""
    source, destination = (end.variant.get(NODE, "") for end in path.ends)
    if not source or not destination:
        return ""
    return "one node" if source == destination else "two nodes"


def nodes_between(path: Path, machine: Machine) -> Nodes:
    """The same of a profile: the ranks that its survey started are all on its machine."""
    started = {rank.index for rank in machine.ranks}
    if all(place.kind == "rank" and place.index in started for place in path.places):
        return "one node"
    return nodes_of(path)


def memory_of(path: Path, traits: Traits) -> str:
    """``host memory``, ``GPU memory`` or ``host and GPU memory`` at the ends of a message; empty if
    that is not known of an end: managed memory is where it was touched last."""
    found = set()
    for end in path.ends:
        places = traits.memory(end.kind).places
        known = places if end.place.kind == "rank" else (end.place.kind,)
        is_known = len(known) == 1 and not traits.memory(end.kind).migrates
        found.add(_MEMORY.get(known[0], "") if is_known else "")
    return "" if "" in found else f"{' and '.join(sorted(found, reverse=True))} memory"


def launch_options(machine: Machine, environment: Mapping[str, Any]) -> list[str]:
    """The options of ``waywiser survey`` that start as many ranks as this survey had, at the same
    nodes, by the MPI library of its ``environment``; empty if it measured no messages."""
    if not machine.ranks:
        return []
    found = placements(machine.ranks)
    places = [own[0].placement for own in found if own[0].placement]
    options = ["--ranks", str(len(found[0]))]
    each = max(Counter(rank.gpu for rank in found[0] if rank.gpu >= 0).values(), default=0)
    if each not in (0, -(-len(found[0]) // max(len(machine.gpus), 1))):
        options += ["--ranks-per-gpu", str(each)]
    options += ["--rank-cpus", ",".join(places)] if places else []
    library = environment.get("messages")
    mpicc = library.get("mpicc") if isinstance(library, dict) else None
    return [*options, "--mpicc", mpicc] if isinstance(mpicc, str) and mpicc else options


def measurement(transfer: Transfer) -> dict[str, str]:
    """The settings that say what of messages was measured, if that is not one message alone: how
    they are sent is in the other settings."""
    known = transfer.parameters
    is_stream = known.get(TEST) == STREAM
    return {
        name: value
        for name, value in known.items()
        if name == WINDOW or (name == TEST and is_stream)
    }


def task_settings(transfer: Transfer) -> dict[str, str]:
    """The settings that say what was measured, in which test of a benchmark: two transfers that
    differ in these alone are made by one method."""
    return {name: value for name, value in transfer.parameters.items() if name in OF_TASK}


def kind_alone(memory: Memory) -> Memory:
    """The memory without the settings by which results of parallel programs say where it is, and
    not what it is."""
    kept = {name: value for name, value in memory.variant.items() if name not in _WHERE}
    return replace(memory, variant=kept)


def placements(ranks: Sequence[PlacedRank]) -> list[tuple[PlacedRank, ...]]:
    """The ranks of each placement, between which messages are."""
    return [tuple(own) for own in grouped((rank.placement, rank) for rank in ranks).values()]


def placement_text(ranks: Sequence[PlacedRank]) -> str:
    """``rank:0 on CPUs 0,2 of numa:0 with gpu:0; rank:1 on ...``."""
    return "; ".join(
        f"rank:{rank.index} on CPUs {format_list(rank.cpus)} of numa:{rank.numa}"
        + (f" with gpu:{rank.gpu}" if rank.gpu >= 0 else "")
        + (f" ({rank.placement})" if rank.placement else "")
        for rank in ranks
    )


def crowd_note(ranks: Sequence[PlacedRank]) -> str:
    """What is said of ranks that share CPUs with others of their placement; empty if none do."""
    for own in placements(ranks):
        cpus = {cpu for rank in own for cpu in rank.cpus}
        if sum(len(rank.cpus) for rank in own) != len(cpus):
            shared = f"{len(own)} ranks share {len(cpus)} CPUs"
            return f"{shared}: what such ranks measure has no verdict"
    return ""


def memories_of(memory: Memory, machine: Machine) -> int:
    """How many memories a memory at several places is: ranks that have one GPU, if the machine
    shows that, have one together."""
    at_node = "numa" in machine.traits.memory(memory.kind).places
    gpus = {} if at_node else {rank.index: rank.gpu for rank in machine.ranks if rank.gpu >= 0}
    places = (single.place for single in memory.each)
    return len({("gpu", gpus[p.index]) if p.kind == "rank" and p.index in gpus
                else (p.kind, p.index) for p in places})  # fmt: skip
