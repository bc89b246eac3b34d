"""Runs tests between simulated nodes by MPI, as the coordinator does on the head, and prints each
that is finished.

    python mpi_coordinator.py REQUEST
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from tests.cluster.answering_agents import AnsweringAgents
from tests.cluster.simulated_nodes import SimulatedNodes

from tree import ROOT
from waywiser.cluster.connection.coordinator import NoAnswer, Reply
from waywiser.cluster.connection.protocol import KillLaunch, KillResult
from waywiser.cluster.transports.mpi_transport import MpiTransport
from waywiser.machine import native
from waywiser.measure.ranks.mpi_library import MpiError, find_library
from waywiser.words import Value
from waywiser.words.cluster import ClusterNode, FinishedTest, PlannedTest, Rail

KILL = """
import sys
from waywiser.cluster.node.node_processes import kill_launch
from waywiser.cluster.connection.protocol import KillLaunch
print(kill_launch(KillLaunch(sys.argv[1])).killed)
"""


TEMPORARY = "/mnt"

UNREACHABLE = 255
"""The exit code of ssh."""


class MpiRequest(Value, frozen=True):
    mpicc: str
    template: str
    """With MPIEXEC, that of the library, and REMOTE."""
    remote: str
    """Takes a host and a command, as ssh does."""
    rounds: tuple[tuple[PlannedTest, ...], ...]
    size: int
    seconds: float
    start_seconds: float
    address: str = "10.77.0.254"
    rails: int = 1


class MpiFinished(Value, frozen=True):
    """What came of the rounds."""

    tests: tuple[FinishedTest, ...]
    killed: dict[str, int]
    """Processes that agents had to kill, by node."""
    error: str = ""


def divide_temporary(nodes: SimulatedNodes) -> None:
    """Gives each node a folder for temporary files that no other has: their names are made of
    process ids, which nodes have in common."""
    for name in (nodes.head, *nodes.names):
        nodes.run(name, "mount", "-t", "tmpfs", "tmpfs", TEMPORARY)


def rounds_of(*rounds: Sequence[tuple[str, ...]]) -> tuple[tuple[PlannedTest, ...], ...]:
    """Rounds of tests between these nodes."""
    return tuple(
        tuple(PlannedTest("pairs", number, nodes) for nodes in each)
        for number, each in enumerate(rounds)
    )


def command_of(request: MpiRequest, path: Path) -> tuple[str, ...]:
    """The command that runs the tests on the head."""
    path.write_bytes(msgspec.json.encode(request))
    return (sys.executable, __file__, str(path))


def environment_of(fake_native: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of the command: ranks use the fake GPU, and wait without taking the CPUs of
    others."""
    tests = (str(ROOT / "tests"), str(ROOT))
    return {
        "PYTHONPATH": os.pathsep.join((*tests, fake_native["PYTHONPATH"])),
        native.MODULE_VARIABLE: fake_native[native.MODULE_VARIABLE],
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TMPDIR": TEMPORARY,
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }


def finished_of(said: str) -> MpiFinished:
    """What the command found; no round may have failed as a whole."""
    found = msgspec.json.decode(said, type=MpiFinished)
    assert found.error == ""
    return found


def main() -> int:
    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=MpiRequest)
    tests = [test for each in request.rounds for test in each]
    names = dict.fromkeys(name for test in tests for name in test.nodes)
    killed: dict[str, int] = {}

    def kill(name: str, of: KillLaunch) -> Reply:
        """On the node, as its agent does."""
        command = [request.remote, name, f"{sys.executable} -c '{KILL}' {of.secret}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == UNREACHABLE:
            return NoAnswer("the node has no network")
        assert done.returncode == 0, done.stderr
        killed[name] = killed.get(name, 0) + int(done.stdout)
        return KillResult(int(done.stdout))

    rails = tuple(Rail(n) for n in range(request.rails))
    agents = AnsweringAgents([ClusterNode(name, rails=rails) for name in names], kill)
    library = find_library(request.mpicc)
    template = request.template.replace("MPIEXEC", library.launcher)
    transport = MpiTransport(
        agents,
        library,
        address=request.address,
        template=template.replace("REMOTE", request.remote),
        start_seconds=request.start_seconds,
    )
    finished: list[FinishedTest] = []
    error = ""
    try:
        for each in request.rounds:
            transport.run(each, request.size, request.seconds, finished.append)
    except MpiError as found:
        error = str(found)
    finally:
        transport.close()
    ended = MpiFinished(tuple(finished), killed, error)
    print(msgspec.json.encode(ended).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
