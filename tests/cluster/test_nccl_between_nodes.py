"""Tests by NCCL from the coordinator to the workers: agents are processes, NCCL is the fake one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.measure.ranks.watching import is_running, wait_until

from tree import FAKE_FOLDER
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.transports.nccl_transport import NcclTransport
from waywiser.measure.supervise.process import descendants
from waywiser.words.cluster import FinishedTest, PlannedTest

AGENT = Path(__file__).with_name("rail_agent.py")
LIBRARY = FAKE_FOLDER / "waywiser_fake" / "nccl" / "libnccl.so.2"
TOKEN = "0123456789abcdef"
SIZE = 65536
LIMIT_SECONDS = 60.0

MESSAGES = f"least={SIZE}"
"""An option of the fake NCCL: it counts messages, and not the words of ranks to each other."""


class Cluster:
    """A coordinator, and agents with the fake's variables of a test."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = {**environment, "WAYWISER_NCCL": str(LIBRARY)}
        self._coordinator: Coordinator | None = None
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.workers: set[int] = set()

    def start(self, rails: int = 1, **variables: dict[str, str]) -> NcclTransport:
        """Starts the nodes, with further variables of their agents by name."""
        names = sorted(variables)
        self._coordinator = Coordinator("127.0.0.1:0", TOKEN, names)
        for name in names:
            command = [self._coordinator.address, TOKEN, name, str(rails)]
            self.agents[name] = subprocess.Popen(
                [sys.executable, str(AGENT), *command],
                env={**self._environment, **variables[name]},
            )
        nodes = self._coordinator.admit(LIMIT_SECONDS)
        assert [(node.name, node.state) for node in nodes] == [(name, "joined") for name in names]
        self._coordinator.begin_tests()
        return NcclTransport(self._coordinator)

    def run(
        self, transport: NcclTransport, *tests: PlannedTest, seconds: float = LIMIT_SECONDS
    ) -> dict[str, FinishedTest]:
        """The finished tests, by their nodes: ``ab``."""
        found: dict[str, FinishedTest] = {}
        transport.run(
            tests, SIZE, seconds, lambda test: found.update({"".join(test.test.nodes): test})
        )
        self._note_workers()
        return found

    def end(self) -> dict[str, int]:
        """Lets agents leave, and returns their exit codes."""
        self._note_workers()
        if self._coordinator is not None:
            self._coordinator.close()
        return {name: agent.wait(LIMIT_SECONDS) for name, agent in self.agents.items()}

    def kill(self) -> None:
        for agent in self.agents.values():
            agent.kill()
            agent.wait()
        if self._coordinator is not None:
            self._coordinator.close()

    def _note_workers(self) -> None:
        for agent in self.agents.values():
            self.workers.update(descendants(agent.pid))


@pytest.fixture
def cluster(fake_native_environment: dict[str, str]) -> Iterator[Cluster]:
    """In the end no process is left."""
    cluster = Cluster(fake_native_environment)
    try:
        yield cluster
    finally:
        cluster.kill()
    assert wait_until(lambda: not any(map(is_running, cluster.workers)))


def pairs(number: int, *names: str) -> list[PlannedTest]:
    """The tests of a round: ``ab``."""
    return [PlannedTest("pairs", number, (one, other)) for one, other in names]


def ended(test: FinishedTest) -> tuple[str, str]:
    """The node that is blamed and the kind of its failure."""
    assert test.failed is not None
    return test.failed.node, test.failed.failure.kind


def test_pairs_and_collectives_of_nodes_with_two_rails(cluster: Cluster) -> None:
    transport = cluster.start(rails=2, a={}, b={"NCCL_NVLS_ENABLE": "1"})
    found = cluster.run(transport, *pairs(1, "ab"))["ab"]
    assert found.failed is None
    assert len(cluster.workers) == 4
    variables = [Path(f"/proc/{pid}/environ").read_bytes() for pid in cluster.workers]
    assert all(b"NCCL_NVLS_ENABLE=0" in each.split(b"\0") for each in variables)
    assert [(time.sender, time.rail) for time in found.times] == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1)
    ]  # fmt: skip
    assert all(0 < time.low <= time.seconds <= time.high for time in found.times)
    assert found.setup_seconds > 0
    workers = set(cluster.workers)
    whole = cluster.run(transport, PlannedTest("collective", 2, ("b", "a")))["ba"]
    assert whole.failed is None
    assert [time.sender for time in whole.times] == [""]
    assert cluster.workers == workers, "workers are kept from test to test"
    transport.close()
    assert wait_until(lambda: not any(map(is_running, workers)))
    assert cluster.run(transport, *pairs(3, "ba"))["ba"].failed is None
    assert set(cluster.end().values()) == {0}


def test_faults_of_nodes_cost_their_tests_alone(cluster: Cluster, tmp_path: Path) -> None:
    transport = cluster.start(
        a={"WAYWISER_FAKE_NCCL": "rate=0.02"},
        b={},
        c={"WAYWISER_FAKE": f"crash=sync@2;once={tmp_path / 'crashed'}"},
        d={},
        e={"WAYWISER_FAKE_NCCL": f"{MESSAGES};flip=1"},
        f={},
        g={},
        h={"WAYWISER_FAKE_NCCL": f"{MESSAGES};miss=2"},
    )
    found = cluster.run(transport, *pairs(1, "ab", "dc", "fe"))
    assert ended(found["dc"]) == ("c", "crash")
    assert found["dc"].failed is not None and "SIGSEGV" in found["dc"].failed.failure.reason
    assert found["dc"].failed.rank == 1
    assert ended(found["fe"]) == ("", "wrong-bytes")
    # 64 KiB at 20 MB/s, however busy the machine is
    assert min(time.low for time in found["ab"].times) > 0.003

    cluster.agents["b"].kill()
    found = cluster.run(transport, *pairs(2, "ab", "dc"))
    assert ended(found["ab"]) == ("b", "crash")
    assert found["dc"].failed is None, "a fresh worker"

    (worker,) = descendants(cluster.agents["d"].pid)
    os.kill(worker, signal.SIGSTOP)
    found = cluster.run(transport, *pairs(3, "cd", "gh"), seconds=10.0)
    assert ended(found["cd"]) == ("d", "timeout")
    assert not is_running(worker)
    assert ended(found["gh"]) == ("", "timeout"), "each waits for the other"
    found = cluster.run(transport, *pairs(4, "dg", "hc"))
    assert [test.failed for test in found.values()] == [None, None]

    assert {name for name, code in cluster.end().items() if code} == {"b"}
