"""Tests by real MPI libraries between simulated nodes: who is slow, and what losses cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.cluster.mpi_coordinator import (
    TEMPORARY,
    MpiFinished,
    MpiRequest,
    command_of,
    divide_temporary,
    environment_of,
    finished_of,
    rounds_of,
)
from tests.cluster.simulated_nodes import SimulatedNodes, simulated_nodes
from tests.measure.ranks.watching import PATIENCE_SECONDS, wait_until

from mpi_wheels import mpicc_of
from waywiser.words.cluster import FinishedTest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent

LAUNCHERS = {
    "mpich": "MPIEXEC -launcher ssh -launcher-exec REMOTE -iface core -f {hostfile} -n {ranks}",
    "openmpi": (
        "MPIEXEC --oversubscribe --bind-to none --prtemca plm_ssh_agent REMOTE --prtemca "
        "prte_if_include 10.77.0.0/24 --hostfile {hostfile} -n {ranks}"
    ),
}

SIZE = 65536

HANG_SECONDS = 25.0
"""The limit of tests in which a rank is stopped; the others take two on an idle machine, and few
more on a busy one."""

PAIRS = (("n1", "n2"), ("n3", "n4"))
OTHER_PAIRS = (("n1", "n3"), ("n2", "n4"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    with simulated_nodes(tmp_path_factory.mktemp("world") / "nodes") as world:
        divide_temporary(world)
        yield world


@pytest.fixture
def nodes(world: SimulatedNodes) -> Iterator[SimulatedNodes]:
    """Nothing of a launch is left on a node in the end."""
    yield world
    world.end_started()
    world.heal()
    assert wait_until(lambda: world.processes() == []), world.commands()
    for name in world.names:
        assert world.run(name, "ls", "-A", "/dev/shm", TEMPORARY).split() == [
            "/dev/shm:",
            f"{TEMPORARY}:",
        ]


Run = Callable[..., MpiFinished]


@pytest.fixture
def run(nodes: SimulatedNodes, tmp_path: Path, fake_native_environment: dict[str, str]) -> Run:
    """Runs rounds of pairs on the head. ``fault`` is a node and what happens to its rank."""
    remote = tmp_path / "remote"
    remote.write_text(
        f'#!/bin/sh\nexec env -i PATH="$PATH" HOME="$HOME" TMPDIR={TEMPORARY} {nodes.remote} "$@"\n'
    )
    remote.chmod(0o755)

    def run(
        mpi: str, *rounds: Sequence[tuple[str, str]], fault: str = "", seconds: float = 0.0
    ) -> MpiFinished:
        faulty = f"{sys.executable} {HERE / 'faulty_rank.py'} {fault}" if fault else ""
        request = MpiRequest(
            mpicc_of(mpi),
            f"{LAUNCHERS[mpi]} {faulty} {{command}}",
            str(remote),
            rounds_of(*rounds),
            SIZE,
            seconds or PATIENCE_SECONDS,
            HANG_SECONDS if fault.endswith("start") else PATIENCE_SECONDS,
        )
        command = command_of(request, tmp_path / "request.json")
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = environment_of(fake_native_environment, tmp_path)
        with nodes.start("head", *command, env=environment, **streams) as process:
            out, err = process.communicate(timeout=2 * PATIENCE_SECONDS)
        assert process.returncode == 0, err
        found = finished_of(out)
        assert sorted(t.test.nodes for t in found.tests) == sorted(p for r in rounds for p in r)
        return found

    return run


def sent(found: MpiFinished) -> dict[str, list[float]]:
    """The times of messages that each node sent."""
    times = [time for test in found.tests for time in test.times]
    return {
        name: [t.seconds for t in times if t.sender == name] for name in ("n1", "n2", "n3", "n4")
    }


def test_a_node_that_sends_slowly_does_so_to_everyone(nodes: SimulatedNodes, run: Run) -> None:
    nodes.limit("n2", sending="25mbit")
    found = run("mpich", PAIRS, OTHER_PAIRS)
    assert [test.failed for test in found.tests] == [None] * 4
    assert found.killed == {}
    times = sent(found)
    others = min(seconds for name in ("n1", "n3", "n4") for seconds in times[name])
    assert len(times["n2"]) == 2
    assert min(times["n2"]) > 2 * others


def of_pair(found: MpiFinished, pair: tuple[str, str]) -> FinishedTest:
    return next(test for test in found.tests if test.test.nodes == pair)


def test_a_crash_costs_its_test_and_names_the_node(run: Run) -> None:
    found = run("openmpi", PAIRS, fault="n3 crash")
    assert of_pair(found, ("n1", "n2")).failed is None
    failed = of_pair(found, ("n3", "n4")).failed
    assert failed is not None and failed.failure.kind == "crash"
    assert failed.node == "n3", failed
    assert "on n3 ended" in failed.failure.reason


@pytest.mark.parametrize(("mpi", "fault"), [("openmpi", "stop"), ("mpich", "start")])
def test_what_is_stopped_is_named_and_ends_with_its_launch(mpi: str, fault: str, run: Run) -> None:
    """In a measurement, and before MPI starts."""
    found = run(mpi, PAIRS, fault=f"n3 {fault}", seconds=HANG_SECONDS)
    assert of_pair(found, ("n1", "n2")).failed is None
    failed = of_pair(found, ("n3", "n4")).failed
    assert failed is not None and failed.failure.kind == "timeout"
    assert failed.node == "n3", failed
    assert "on n3 took too long" in failed.failure.reason
