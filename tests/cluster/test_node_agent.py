"""``waywiser cluster join``: the agent of a real node."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from joined_agents import LONG, TOKEN

from tree import ROOT
from waywiser import __version__
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.connection.protocol import AskMachine, AskNode, MachineNow, NodeNow
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.node.node_facts import node_name

ANY = "127.0.0.1:0"


def join(address: str, *options: str, token: str = TOKEN) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "waywiser", "cluster", "join", address, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), TOKEN_VARIABLE: token},
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Status and errors."""
    _, errors = process.communicate()
    assert "Traceback" not in errors
    return process.returncode, errors


def test_a_node_joins_with_its_facts_and_leaves() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        process = join(coordinator.address, "--node-name", "n1")
        (node,) = coordinator.admit(LONG)
        assert (node.name, node.state, node.address) == ("n1", "joined", "127.0.0.1")
        assert node.rails
        assert node.versions["waywiser"] == __version__
        assert node.versions["kernel"] == os.uname().release
        replies = coordinator.ask({"n1": AskMachine()}, LONG)
        assert isinstance(machine := replies["n1"], MachineNow)
        assert machine.machine.hostname == socket.gethostname()
        again = coordinator.ask({"n1": AskNode()}, LONG)["n1"]
        assert isinstance(again, NodeNow)
        assert again.node.rails == node.rails
    assert ended(process) == (0, "")


def test_an_agent_is_stopped_by_sigterm() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        process = join(coordinator.address, "--node-name", "n1")
        coordinator.admit(LONG)
        process.send_signal(signal.SIGTERM)
        status, _ = ended(process)
        assert status == 130
        while coordinator.is_connected("n1"):
            pass
        assert coordinator.nodes()[0].state == "lost"


def test_who_cannot_join_says_why() -> None:
    options = ("--node-name", "n1", "--join-seconds", "1")
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        ends = [
            (join(ANY, token="short"), 2, f"{TOKEN_VARIABLE} has fewer than 16 characters"),
            (join("host:port"), 2, "host:port: is no address"),
            (join(coordinator.address, *options, token="f" * 16), 1, f"the same {TOKEN_VARIABLE}"),
            (join("127.0.0.1:9", *options), 1, "the coordinator cannot be joined: "),
        ]
        for process, status, text in ends:
            found, errors = ended(process)
            assert (found, text in errors) == (status, True), errors


def test_the_name_of_a_node() -> None:
    assert node_name("given", {"SLURMD_NODENAME": "n1"}) == "given"
    assert node_name("", {"SLURMD_NODENAME": "n1"}) == "n1"
    assert node_name("", {}) == socket.gethostname()
