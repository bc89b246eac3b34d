"""The memory of a rank is named by its kind: host, GPU, or neither if it is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from waywiser.curves.curve import Curve
from waywiser.machine.calls import call_text
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
        ("mpi", "numa:0", "numa:1", "between ranks"),
        ("nccl", "numa:0", "numa:1", "between ranks"),
        ("mpi", "rank:0", "rank:1", "between ranks"),
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
    point: Any = SimpleNamespace(workload=workload, estimate=1.0)
    assert Curve((point,)).family == family
