"""The simulated nodes: separate hosts with slow interfaces, and the faults that can be planted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import SimulatedNodes, simulated_nodes
from tests.measure.ranks.watching import is_running, wait_until

BYTES = 1 << 19

RECEIVE = """
import socket, sys
server = socket.create_server((sys.argv[1], 5000))
print("up", flush=True)
for _ in range(int(sys.argv[2])):
    connection, _ = server.accept()
    while connection.recv(1 << 16): pass
    connection.sendall(b"x")
"""
SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5000))
start = time.monotonic()
connection.sendall(bytes(int(sys.argv[2])))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
print(time.monotonic() - start)
"""


def is_at_full_speed(nodes: SimulatedNodes, pair: str) -> bool:
    """Whether it was this time: a busy machine makes a transfer slower, never faster."""
    return megabytes_per_second(nodes, pair)[0] > 4


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    with simulated_nodes(tmp_path_factory.mktemp("world") / "nodes") as world:
        yield world


@pytest.fixture
def nodes(world: SimulatedNodes) -> Iterator[SimulatedNodes]:
    yield world
    world.heal()


def megabytes_per_second(nodes: SimulatedNodes, *pairs: str) -> list[float]:
    """Returns the bandwidth of each pair, ``n1 n2``, one after the other."""
    rates = []
    for pair in pairs:
        sender, receiver = pair.split()
        address = nodes.address(receiver)
        with nodes.start(
            receiver, sys.executable, "-c", RECEIVE, address, "1", stdout=subprocess.PIPE
        ) as server:
            assert server.stdout is not None and server.stdout.readline() == "up\n"
            seconds = nodes.run(sender, sys.executable, "-c", SEND, address, str(BYTES))
            rates.append(BYTES / float(seconds) / 1e6)
    return rates


def test_each_node_is_a_host_of_its_own(nodes: SimulatedNodes) -> None:
    assert nodes.names == ("n1", "n2", "n3", "n4")
    ask = "hostname; cat /proc/net/dev | grep -c :; ls /dev/shm | wc -l; echo $$"
    for name in nodes.names:
        host, interfaces, shared, pid = nodes.run(name, "sh", "-c", ask).split()
        assert (host, interfaces, shared) == (name, "2", "0")
        assert int(pid) < 100, "it has process numbers of its own"
    assert nodes.run(nodes.head, nodes.remote, "-x", "10.77.0.3", "hostname") == "n3\n"
    assert nodes.run(nodes.head, nodes.remote, "n4", "hostname") == "n4\n"


def test_no_node_reaches_anything_else(nodes: SimulatedNodes) -> None:
    assert nodes.run("n1", "ip", "route").split()[:3] == ["10.77.0.0/24", "dev", "eth0"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        attempt = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"
        with pytest.raises(AssertionError, match="refused"):
            nodes.run("n1", sys.executable, "-c", attempt, port)


def test_a_fault_slows_what_it_should_and_nothing_else(nodes: SimulatedNodes) -> None:
    nodes.limit("n1", sending="20mbit")
    nodes.limit("n4", receiving="20mbit")
    nodes.limit_pair("n2", "n3", "20mbit")
    slow = megabytes_per_second(nodes, "n1 n2", "n3 n4", "n2 n3")
    assert max(slow) < 3
    for healthy in ("n2 n1", "n4 n3", "n3 n2", "n4 n1"):
        assert wait_until(partial(is_at_full_speed, nodes, healthy))
    nodes.heal()
    nodes.limit_group("b", "20mbit")
    assert max(megabytes_per_second(nodes, "n1 n3")) < 3
    assert wait_until(lambda: is_at_full_speed(nodes, "n3 n4"))


def test_a_node_without_its_cable_is_not_reached(nodes: SimulatedNodes) -> None:
    nodes.cut("n2")
    reach = "import socket, sys; socket.create_connection((sys.argv[1], 5000), 0.5)"
    with pytest.raises(AssertionError, match=r"timed out|No route"):
        nodes.run("n1", sys.executable, "-c", reach, nodes.address("n2"))
    with pytest.raises(AssertionError, match="connect to host n2 port 22: No route to host"):
        nodes.run(nodes.head, nodes.remote, "n2", "hostname")


def sleeping(nodes: SimulatedNodes, name: str) -> int:
    """The process of ``sleep 1000`` on a node, when nothing runs another program in it any more."""

    def found() -> list[int]:
        each = ((pid, Path(f"/proc/{pid}/cmdline").read_bytes()) for pid in nodes.processes(name))
        return [pid for pid, command in each if command.startswith(b"sleep\0")]

    assert wait_until(lambda: len(found()) == 1)
    return found()[0]


def test_to_kill_what_was_started_is_to_kill_the_command(nodes: SimulatedNodes) -> None:
    with nodes.start("n2", "sleep", "1000") as process:
        command = sleeping(nodes, "n2")
        assert nodes.pid_of(process) == command
        assert nodes.processes("n1", "n3") == []
        process.kill()
        assert wait_until(lambda: not is_running(command))
    with nodes.start("n3", "sleep", "1000") as process:
        os.kill(sleeping(nodes, "n3"), signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
    assert nodes.processes() == []


def test_what_a_failed_test_leaves_is_ended(nodes: SimulatedNodes) -> None:
    """Streams that nobody closes would fail a later test."""
    left = nodes.start("n1", "sleep", "1000", stdout=subprocess.PIPE)
    ended = nodes.start("n2", "true", stdout=subprocess.PIPE)
    assert wait_until(lambda: nodes.processes() == [sleeping(nodes, "n1")])
    nodes.end_started()
    for process in (left, ended):
        assert process.returncode is not None
        assert process.stdout is not None and process.stdout.closed
    assert wait_until(lambda: nodes.processes() == [])


def test_nothing_survives_the_nodes(tmp_path: Path) -> None:
    with simulated_nodes(tmp_path / "nodes", ("a",)) as nodes:
        process = nodes.start("n1", "sleep", "1000")
        assert sleeping(nodes, "n1")
        (command,) = nodes.processes("n1")
    assert wait_until(lambda: not is_running(command))
    process.wait()
