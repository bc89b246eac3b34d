"""The memory of a rank is named by its kind: host, GPU, or neither if it is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.curves.curve import FAMILIES, Curve
from waywiser.machine.calls import call_text
from waywiser.machine.machine import PlacedRank
from waywiser.machine.traits import DECLARED
from waywiser.words import Memory, Path, Place, Transfer, Workload

KINDS = {
    "pinned": "pinned host memory",
    "pageable": "pageable host memory",
    "managed": "managed memory",
    "unheard": "unheard memory",
    "device": "",
}


def at_rank(kind: str, rank: int, variant: dict[str, str]) -> Memory:
    return Memory(kind, Place("rank", rank), variant)


@pytest.mark.parametrize("variant", [{}, {"node": "0"}, {"node": "1", "socket": "0"}])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_the_memory_of_a_rank_is_that_of_its_kind(
    kind: str, other: str, variant: dict[str, str]
) -> None:
    path = Path(at_rank(kind, 0, {}), at_rank(other, 1, variant), "mpi")
    text = call_text([Transfer(path, 64, {})], DECLARED)
    settings = ",".join(f"{key}={value}" for key, value in variant.items())
    varied = KINDS[other].replace(other, f"{other}[{settings}]", 1) if variant else KINDS[other]
    if other == "device" and variant:
        varied = f"device[{settings}] GPU memory"
    memories = [each for each in dict.fromkeys([KINDS[kind], varied]) if each]
    assert text == ", ".join(["mpi", *([" to ".join(memories)] if memories else [])])


@pytest.mark.parametrize(
    ("executor", "source", "destination", "family"),
    [
        ("cpu", "numa:0", "numa:1", "host to host (H2H), two NUMA nodes"),
        ("cpu", "numa:1", "numa:1", "host to host (H2H), one NUMA node"),
        ("mpi", "numa:0", "numa:1", "between ranks, host memory"),
        ("nccl", "numa:0", "numa:1", "between ranks, host memory"),
        ("mpi", "rank:0", "rank:1", "between ranks, host memory"),
    ],
)
def test_two_processes_of_another_tool_are_not_two_nodes_of_a_host(
    executor: str, source: str, destination: str, family: str
) -> None:
    path = Path(
        Memory("pageable", Place.parse(source)),
        Memory("pageable", Place.parse(destination)),
        executor,
    )
    workload = Workload((Transfer(path, 64, {}),))
    point: Any = SimpleNamespace(workload=workload, estimate=1.0, blocks=(), nodes="")
    assert Curve((point,)).family == family


MEMORY = {
    "pinned": "host",
    "pageable": "host",
    "device": "GPU",
    "managed": "",
    "unheard": "",
}


@pytest.mark.parametrize("source", MEMORY)
@pytest.mark.parametrize("destination", MEMORY)
@pytest.mark.parametrize(
    "nodes", ["one node", "two nodes", "", "of a survey", "of a smaller survey"]
)
def test_messages_stand_by_nodes_and_memory(source: str, destination: str, nodes: str) -> None:
    variants = {"one node": ("[node=3]", "[node=3]"), "two nodes": ("[node=0]", "[node=3]")}
    of_source, of_destination = variants.get(nodes, ("", ""))
    text = f"{source}{of_source}@rank:0 -> {destination}{of_destination}@rank:2 by mpi"
    started = {"of a survey": 3, "of a smaller survey": 2}.get(nodes, 0)
    ranks = tuple(PlacedRank(n, (n,), 0) for n in range(started))
    made = subject(curve(text, postal(1e-6, 1e9), (64,)), machine=replace(machine(0), ranks=ranks))
    (found,) = made.curves
    kinds = [MEMORY[source], MEMORY[destination]]
    memory = f", {' and '.join(sorted(set(kinds), reverse=True))} memory" if all(kinds) else ""
    where = "one node" if nodes == "of a survey" else nodes if nodes in variants else ""
    assert found.family == f"between ranks{f' of {where}' if where else ''}{memory}"
    assert found.family in FAMILIES
