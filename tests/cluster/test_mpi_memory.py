"""The choice of the memory of messages, by what happens between nodes."""

from __future__ import annotations

import pytest

from waywiser.cluster.transports.mpi_memory import choose_memory
from waywiser.words.cluster import ClusterNode, MessageMemory, PlannedTest, Rail

ON_GPUS = (Rail(0, gpu=0), Rail(1, gpu=1))


def nodes(count: int, rails: tuple[Rail, ...] = ON_GPUS) -> list[ClusterNode]:
    return [ClusterNode(f"n{number}", rails=rails) for number in range(count)]


class Trials:
    """What fails: (node, memory), with the reason."""

    def __init__(self, **failing: MessageMemory | str) -> None:
        self._failing = failing
        self.tried: list[tuple[tuple[str, ...], MessageMemory]] = []

    def why_not(self, test: PlannedTest, memory: MessageMemory) -> str:
        self.tried.append((test.nodes, memory))
        fails = {self._failing.get(name, self._failing.get("all", "")) for name in test.nodes}
        return f"no {memory}" if fails & {memory, "both"} else ""


@pytest.mark.parametrize(
    ("failing", "memory", "reason", "tries"),
    [
        ({}, "gpu", "", 1),
        ({"all": "gpu"}, "host", "no gpu", 2),
        ({"n1": "both"}, "gpu", "", 3),
        ({"n0": "both", "n3": "both"}, "gpu", "", 5),
        ({"n0": "both", "all": "gpu"}, "host", "no gpu", 4),
        ({"all": "both"}, "host", "no pair of nodes could try it", 6),
    ],
)
def test_memory_of_gpus_is_used_if_it_works_on_a_pair_that_is_well(
    failing: dict[str, str], memory: str, reason: str, tries: int
) -> None:
    trials = Trials(**failing)
    assert choose_memory(trials.why_not, nodes(9)) == (memory, reason)
    assert len(trials.tried) == tries


@pytest.mark.parametrize(
    "known",
    [
        nodes(4, (Rail(0),)),
        nodes(4, (Rail(0, gpu=0), Rail(1))),
        nodes(1),
        [*nodes(1), *nodes(3, ())],
    ],
)
def test_nothing_is_tried_without_two_nodes_with_a_gpu_on_each_rail(
    known: list[ClusterNode],
) -> None:
    trials = Trials()
    assert choose_memory(trials.why_not, known) == ("host", "")
    assert trials.tried == []
