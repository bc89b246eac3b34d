"""Tests between nodes by real MPI libraries, where nodes are processes of this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cluster.answering_agents import AnsweringAgents
from tests.cluster.wrong_bridge import wrong_bridge
from tests.measure.plan.machines import machine
from tests.measure.ranks.watching import (
    PATIENCE_SECONDS,
    launcher_of,
    own_files_here,
    wait_until,
)

from mpi_wheels import mpicc_of
from waywiser.cluster.connection import rank_orders
from waywiser.cluster.connection.coordinator import AgentLost
from waywiser.cluster.connection.protocol import AskMachine, KillLaunch, MachineNow
from waywiser.cluster.transports.mpi_transport import MpiTransport
from waywiser.cluster.transports.mpi_world import MpiWorld
from waywiser.machine import native
from waywiser.machine.traits import DECLARED
from waywiser.measure.ranks.mpi_library import MpiError, find_library
from waywiser.words.cluster import ClusterNode, FinishedTest, MessageMemory, PlannedTest, Rail
from waywiser.words.records import Rule

SIZE = 65536

NAMES = ("n1", "n2", "n3", "n4")

HOST_RAILS = (Rail(0), Rail(1))

GPU_RAILS = (Rail(0, gpu=0), Rail(1, gpu=1))


@pytest.fixture
def places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_native_environment: dict[str, str]
) -> Iterator[None]:
    """Ranks use the fake GPU; nothing of their launches is left."""
    native.load()
    for name in ("PYTHONPATH", native.MODULE_VARIABLE):
        monkeypatch.setenv(name, fake_native_environment[name])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with own_files_here():
        yield


AS_NODES = """
import os, sys
rank = int(next(os.environ[n] for n in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if n in os.environ))
hosts = [line.split()[0].split(":")[0] for line in open(sys.argv[1])]
os.environ["WAYWISER_NODE"] = hosts[rank % len(hosts)]
words = sys.argv[2:]
if os.environ["WAYWISER_NODE"] == "n3" and {bridge!r}:
    words[-2:] = [{bridge!r}]
os.execvp(words[0], words)
"""
"""Starts a rank as on one node of the hostfile after the other."""

Make = Callable[..., MpiTransport]


@pytest.fixture
def transport(places: None, tmp_path: Path) -> Iterator[Make]:
    """Makes a transport whose nodes are processes of this machine, and closes it in the end. n3 may
    have another bridge."""
    made = ExitStack()

    def make(
        mpi: str, agents: AnsweringAgents, bridge: str = "", memory: MessageMemory = "host"
    ) -> MpiTransport:
        script = tmp_path / "as_node.py"
        script.write_text(AS_NODES.format(bridge=bridge))
        library = find_library(mpicc_of(mpi))
        own = "--oversubscribe --bind-to none" if mpi == "openmpi" else ""
        command = f"{sys.executable} {script} {{hostfile}} {{command}}"
        transport = MpiTransport(
            agents,
            library,
            address="127.0.0.1",
            template=f"{library.launcher} {own} -n {{ranks}} {command}",
            start_seconds=PATIENCE_SECONDS,
            memory=memory,
        )
        return made.enter_context(closing(transport))

    with made:
        yield make


def agents_of(rails: tuple[Rail, ...] = HOST_RAILS) -> AnsweringAgents:
    agents = AnsweringAgents([ClusterNode(name, rails=rails) for name in NAMES])
    if rails[0].gpu >= 0:
        gpus = machine(gpus=2).gpus
        own = [replace(gpu, uuid=f"fake {gpu.index}") for gpu in gpus]
        for name in NAMES:
            here = (
                agents.answers.get((name, AskMachine))
                or agents.ask({name: AskMachine()}, 1.0)[name]
            )
            assert isinstance(here, MachineNow)
            agents.answers[name, AskMachine] = MachineNow(replace(here.machine, gpus=tuple(own)))
    return agents


def pairs(*names: str) -> list[PlannedTest]:
    return [PlannedTest("pairs", 3, (a, b)) for a, b in zip(names[::2], names[1::2], strict=True)]


def run(transport: MpiTransport, tests: Sequence[PlannedTest]) -> dict[str, FinishedTest]:
    found: list[FinishedTest] = []
    transport.run(tests, SIZE, PATIENCE_SECONDS, found.append)
    assert sorted(str(each.test) for each in found) == sorted(map(str, tests))
    return {"-".join(each.test.nodes): each for each in found}


def require_times(test: FinishedTest) -> None:
    directions = [(time.sender, time.rail) for time in test.times]
    assert directions == [(name, rail) for name in test.test.nodes for rail in range(2)]
    assert all(0 < t.low <= t.seconds <= t.high and t.n >= 6 for t in test.times)


@pytest.mark.slow
def test_pairs_and_all_together_are_measured(transport: Make) -> None:
    """An agent that is gone costs its test and no launch."""
    agents = agents_of()
    agents.answers["n4", AskMachine] = AgentLost("its connection ended")
    tests = [*pairs(*NAMES), PlannedTest("collective", 4, ("n1", "n2", "n3"))]
    found = run(transport("mpich", agents), tests)
    assert found["n1-n2"].failed is None and found["n1-n2-n3"].failed is None
    require_times(found["n1-n2"])
    (together,) = found["n1-n2-n3"].times
    assert together.sender == "" and together.seconds > 0
    lost = found["n3-n4"].failed
    assert lost is not None and (lost.node, lost.failure.reason) == (
        "n4",
        "n4: its connection ended",
    )


@pytest.mark.slow
def test_wrong_bytes_cost_the_test_and_blame_nobody_alone(transport: Make, tmp_path: Path) -> None:
    """They may be of the sender, of the receiver, or of what is between."""
    bridge = wrong_bridge(mpicc_of("openmpi"), tmp_path)
    on_gpus = transport("openmpi", agents_of(GPU_RAILS), bridge, memory="gpu")
    found = run(on_gpus, pairs(*NAMES))
    assert found["n1-n2"].failed is None
    require_times(found["n1-n2"])
    wrong = found["n3-n4"].failed
    assert wrong is not None and wrong.failure.kind == "wrong-bytes"
    assert wrong.node == ""
    assert wrong.failure.reason.startswith(("n4 received from n3: ", "n3 received from n4: "))
    assert f"1 of {SIZE} bytes are wrong at the destination" in wrong.failure.reason


@pytest.mark.slow
def test_a_transport_that_is_closed_ends_its_ranks_and_reports_no_test(
    transport: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Rule(minimum=10**6, minimum_seconds=600, soft_seconds=600, hard_seconds=600)
    monkeypatch.setattr(rank_orders, "RULE", endless)
    closed = transport("mpich", agents_of())

    def close() -> None:
        while closed._world is None or not closed._world.is_well:
            time.sleep(0.01)
        closed.close()

    threading.Thread(target=close, daemon=True).start()
    found: list[FinishedTest] = []
    closed.run(pairs(*NAMES), SIZE, PATIENCE_SECONDS, found.append)
    assert found == []


@pytest.mark.slow
def test_memory_of_gpus_is_used_only_if_its_bytes_are_right(
    transport: Make, tmp_path: Path
) -> None:
    """The fake GPU has memory that every library takes; a bridge whose bytes are wrong does not."""
    rails = GPU_RAILS[1:]
    takes = transport("openmpi", agents_of(rails))
    nodes = [ClusterNode(name, rails=rails) for name in NAMES]
    assert takes.choose_memory(nodes, SIZE) == ("gpu", "")
    of_gpus = DECLARED.reference_memory("gpu", "gpu")
    for test in (*pairs("n1", "n2"), PlannedTest("collective", 4, NAMES[:2])):
        transfers = [each for part in takes._parts(test) for each in part.workload.transfers]
        used = {memory.kind for t in transfers for memory in (t.path.source, t.path.destination)}
        assert used == {of_gpus}, "a collective is compared with pairs"
    wrong = transport("openmpi", agents_of(rails), wrong_bridge(mpicc_of("openmpi"), tmp_path))
    nodes = [*nodes[2:], *nodes[:2]]
    memory, reason = wrong.choose_memory(nodes[:2], SIZE)
    assert (memory, reason) == ("host", "no pair of nodes could try it")
    assert wrong.choose_memory(nodes, SIZE) == ("gpu", "")


def test_closing_ends_a_launch_that_starts_and_what_it_has_left_on_nodes(
    places: None, tmp_path: Path
) -> None:
    """Its ranks never connect."""
    agents = agents_of()
    transport = MpiTransport(
        agents,
        find_library(mpicc_of("mpich")),
        address="127.0.0.1",
        template=f"sh -c 'touch {tmp_path}/started; exec sleep 600' {{ranks}} {{command}}",
    )
    found: list[FinishedTest] = []
    running = threading.Thread(
        target=transport.run, args=(pairs(*NAMES), SIZE, PATIENCE_SECONDS, found.append)
    )
    running.start()
    assert wait_until((tmp_path / "started").exists)
    transport.close()
    running.join()
    assert found == []
    ended = [name for name, request in agents.received if isinstance(request, KillLaunch)]
    assert sorted(ended) == sorted(NAMES)
    transport.run(pairs(*NAMES), SIZE, PATIENCE_SECONDS, found.append)
    assert found == [], "a transport that is closed starts nothing"


@pytest.mark.slow
def test_a_launcher_that_is_killed_costs_no_test(transport: Make) -> None:
    """Its tests are launched again, and no node is to blame."""
    killed = transport("mpich", agents_of(HOST_RAILS[:1]))
    worlds: list[MpiWorld] = []

    def kill() -> None:
        while killed._world is None or not killed._world.is_well:
            time.sleep(0.01)
        worlds.append(killed._world)
        os.kill(launcher_of(worlds[0].launch), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    found = run(killed, pairs(*NAMES))
    assert len(worlds) == 1
    assert [test.failed for test in found.values()] == [None, None]


def test_a_launcher_that_starts_nothing_is_an_error_and_no_failure_of_nodes(
    places: None,
) -> None:
    transport = MpiTransport(
        agents_of(),
        find_library(mpicc_of("mpich")),
        address="127.0.0.1",
        template="sh -c 'echo no queue; exit 3' {ranks} {command}",
    )
    found: list[FinishedTest] = []
    with pytest.raises(MpiError, match=r"status 3 .*no queue"):
        transport.run(pairs(*NAMES), SIZE, PATIENCE_SECONDS, found.append)
    assert found == []


@pytest.mark.slow
def test_rounds_of_pairs_share_a_launch(transport: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a node rests in each round. Suspects are tested by other ranks."""
    several = transport("mpich", agents_of(HOST_RAILS[:1]))
    worlds: list[MpiWorld] = []
    start = MpiWorld.start
    monkeypatch.setattr(MpiWorld, "start", lambda world: worlds.append(world) or start(world))
    for names in (("n1", "n2"), ("n2", "n3"), ("n3", "n1"), ("n2", "n1")):
        assert run(several, pairs(*names))["-".join(names)].failed is None
    assert [len(world.ranks) for world in worlds] == [2, 3]
    assert run(several, [PlannedTest("alone", 9, ("n1", "n2"))])["n1-n2"].failed is None
    assert len(worlds) == 3
    assert run(several, pairs("n1", "n3"))["n1-n3"].failed is None
    several.close()
    assert all(world.launch.launcher.status == 0 for world in worlds), "they ended by themselves"


@pytest.mark.slow
def test_ranks_that_were_lost_between_rounds_cost_no_test(transport: Make) -> None:
    between = transport("mpich", agents_of(HOST_RAILS[:1]))
    assert run(between, pairs("n1", "n2", "n3", "n4"))["n1-n2"].failed is None
    world = between._world
    assert world is not None
    os.kill(launcher_of(world.launch), signal.SIGKILL)
    found = run(between, pairs("n1", "n3", "n2", "n4"))
    assert [test.failed for test in found.values()] == [None, None]
    assert between._world is not world
    between.close()


def test_nodes_with_other_numbers_of_rails_share_a_launch(places: None) -> None:
    """Each has as many ranks as a pair of it can need."""
    sizes = zip(NAMES, (1, 2, 4, 8), strict=True)
    agents = AnsweringAgents([ClusterNode(n, rails=tuple(map(Rail, range(k)))) for n, k in sizes])
    transport = MpiTransport(agents, find_library(mpicc_of("mpich")), address="127.0.0.1")
    transport._nodes = {node.name: node for node in agents.nodes()}
    assert transport._groups(pairs(*NAMES)) == [{"n1": 1, "n2": 2, "n3": 4, "n4": 4}]
    assert transport._groups([PlannedTest("collective", 4, NAMES)]) == [dict.fromkeys(NAMES, 1)]
