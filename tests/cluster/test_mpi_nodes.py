"""What nodes are asked for before ranks of MPI start on them, and after a launch that was lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cluster.answering_agents import AnsweringAgents, machine_of

from waywiser.cluster.connection.coordinator import NoAnswer
from waywiser.cluster.connection.protocol import (
    AskMachine,
    BridgePath,
    FindBridge,
    KillLaunch,
    KillResult,
    MachineNow,
    PutBridge,
    RequestFailed,
)
from waywiser.cluster.transports.mpi_nodes import MpiNodes
from waywiser.machine.machine import NumaNode
from waywiser.measure.ranks.mpi_library import Mpicc, MpiLibrary
from waywiser.words.cluster import ClusterNode, PlannedTest, Rail

TESTS = [PlannedTest("pairs", 1, ("n1", "n2")), PlannedTest("pairs", 1, ("n3", "n4"))]


def nodes_of() -> list[ClusterNode]:
    return [ClusterNode(name, rails=(Rail(0),)) for name in ("n1", "n2", "n3", "n4")]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MpiLibrary:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bridge = tmp_path / "bridge.so"
    bridge.write_bytes(b"compiled")
    mpicc = Mpicc("/opt/bin/mpicc", "PATH")
    return MpiLibrary(mpicc, str(bridge), "MPICH Version: 5.0.2", "mpiexec", was_cached=True)


def received(agents: AnsweringAgents, kind: type) -> list[str]:
    return [name for name, request in agents.received if isinstance(request, kind)]


def test_each_node_is_asked_once_and_gets_the_bridge_that_it_does_not_have(
    library: MpiLibrary,
) -> None:
    agents = AnsweringAgents(nodes_of())
    agents.answers["n3", FindBridge] = BridgePath("")
    nodes = MpiNodes(agents, library)
    for _ in range(2):
        assert sorted(nodes.of(TESTS)) == ["n1", "n2", "n3", "n4"]
    assert sorted(nodes.machines) == ["n1", "n2", "n3", "n4"]
    assert [nodes.unable(test) for test in TESTS] == [None, None]
    assert sorted(received(agents, AskMachine)) == ["n1", "n2", "n3", "n4"]
    (put,) = [request for _, request in agents.received if isinstance(request, PutBridge)]
    assert put.content == b"compiled"
    assert received(agents, PutBridge) == ["n3"]


def test_a_node_that_cannot_take_part_costs_its_tests_alone(library: MpiLibrary) -> None:
    agents = AnsweringAgents(nodes_of())
    agents.answers["n3", FindBridge] = RequestFailed("no place for it")
    nodes = MpiNodes(agents, library)
    nodes.of(TESTS)
    well, full = (nodes.unable(test) for test in TESTS)
    assert well is None
    assert full is not None and (full.node, full.failure.reason) == ("n3", "n3: no place for it")
    agents.answers["n1", AskMachine] = NoAnswer("no answer in 60 s")
    again = MpiNodes(agents, library)
    again.of(TESTS)
    silent = again.unable(TESTS[0])
    assert silent is not None and silent.failure.reason == "n1: no answer in 60 s"


@pytest.mark.parametrize("numa", [(), (NumaNode(0, (), 2**30, 0),)], ids=["none", "no CPUs"])
def test_a_node_without_numa_nodes_costs_its_tests_alone(
    library: MpiLibrary, numa: tuple[NumaNode, ...]
) -> None:
    agents = AnsweringAgents(nodes_of())
    agents.answers["n3", AskMachine] = MachineNow(replace(machine_of("n3"), numa=numa))
    nodes = MpiNodes(agents, library)
    nodes.of(TESTS)
    well, failed = (nodes.unable(test) for test in TESTS)
    assert well is None and failed is not None
    assert failed.node == "n3" and failed.failure.kind == "not-supported"
    assert failed.failure.reason.startswith("n3: the machine shows no NUMA node with CPUs")
    assert received(agents, FindBridge) == ["n1", "n2", "n4"]


def test_nodes_that_have_left_or_have_no_rail_are_not_launched_on(library: MpiLibrary) -> None:
    own = nodes_of()
    own[0] = ClusterNode("n1", "lost", "its connection ended")
    own[2] = ClusterNode("n3")
    nodes = MpiNodes(AnsweringAgents(own), library)
    nodes.of(TESTS)
    lost, bare = (nodes.unable(test) for test in TESTS)
    assert lost is not None and lost.failure.reason == "n1: its connection ended"
    assert bare is not None and bare.failure.reason == "n3 has no rail"


def test_a_node_where_a_process_survives_is_stuck(library: MpiLibrary) -> None:
    agents = AnsweringAgents(nodes_of())
    names = ("n1", "n2", "n3", "n4")
    for name in names:
        agents.answers[name, KillLaunch] = KillResult(1, (77,) if name == "n3" else ())
    MpiNodes(agents, library).end_launch("the secret", names)
    (mark,) = agents.marks
    assert mark[:2] == ("n3", "stuck") and mark[2].endswith("process 77")
