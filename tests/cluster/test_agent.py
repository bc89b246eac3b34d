"""The agent of a node: how it joins, works, and ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from joined_agents import LONG, TOKEN, AgentThread, bare
from other_servers import server

from tree import ROOT
from waywiser.cluster.connection import hub
from waywiser.cluster.connection.coordinator import AgentLost, Coordinator
from waywiser.cluster.connection.protocol import (
    LINE_BYTES,
    Alive,
    Answer,
    AskAlive,
    AskMachine,
    AskNode,
    Challenge,
    CheckEnded,
    FilePart,
    JoinRequest,
    NodeNow,
    ReadPart,
    Request,
    Requested,
    RequestFailed,
    RunCheck,
    Welcome,
    decode_from_agent,
    decode_to_agent,
    encode,
)
from waywiser.cluster.connection.run_certificate import RunCertificate
from waywiser.cluster.connection.token_proof import JoinExchange, coordinator_proof, new_nonce
from waywiser.cluster.node import agent as agent_module
from waywiser.measure.supervise.process import birth
from waywiser.words import WaywiserError
from waywiser.words.cluster import ClusterNode

ANY = "127.0.0.1:0"
NODE_NOW = NodeNow(ClusterNode("n1"))


def say_node(request: AskNode) -> NodeNow:
    return NODE_NOW


def test_an_agent_tries_until_the_coordinator_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    agent = AgentThread(address, "n1")
    while not agent.log:
        pass
    assert "trying again" in agent.log[0]
    with Coordinator(address, TOKEN, ["n1"]) as coordinator:
        assert [node.state for node in coordinator.admit(LONG)] == ["joined"]
    assert agent.join() is None
    assert len(agent.log) == 1


def test_an_agent_gives_up_in_the_end_and_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    error = AgentThread(address, "n1", seconds=0.0).join()
    assert error is not None
    assert error.exit_code == 1
    assert str(error).startswith(f"{address}: the coordinator cannot be joined: Connection refused")


def test_errors_of_handlers_are_answers() -> None:
    def bad(request: object) -> Answer:
        raise WaywiserError("no disk", remedy="buy one")

    def wrong(request: object) -> Answer:
        raise ZeroDivisionError("by zero")

    def long(request: object) -> Answer:
        return FilePart(bytes(LINE_BYTES))

    handlers = {AskNode: bad, AskMachine: wrong, ReadPart: long}
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1", handlers)
        coordinator.admit(LONG)
        ask = coordinator.ask
        assert ask({"n1": AskNode()}, LONG)["n1"] == RequestFailed("no disk (buy one)")
        assert ask({"n1": AskMachine()}, LONG)["n1"] == RequestFailed("ZeroDivisionError: by zero")
        assert ask({"n1": ReadPart("x")}, LONG)["n1"] == RequestFailed("the answer is too long")
    assert agent.join() is None


def test_a_busy_agent_says_what_it_does_and_works_on_other_requests() -> None:
    go = threading.Event()
    began = threading.Event()

    def wait(request: object) -> Answer:
        began.set()
        go.wait(LONG)
        return CheckEnded(0, printed="waited")

    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1", {RunCheck: wait, AskNode: say_node})
        coordinator.admit(LONG)
        found: dict[str, object] = {}
        asking = threading.Thread(
            target=lambda: found.update(coordinator.ask({"n1": RunCheck()}, LONG))
        )
        asking.start()
        began.wait(LONG)
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive(("check",))}
        assert coordinator.ask({"n1": AskNode()}, LONG) == {"n1": NODE_NOW}
        go.set()
        asking.join()
        assert found == {"n1": CheckEnded(0, printed="waited")}
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive()}
    assert agent.join() is None


def test_requests_in_turn_are_of_one_thread_that_does_not_end() -> None:
    """What a thread has started with ``die_with`` ends with the thread."""
    threads: list[threading.Thread] = []

    def note(request: object) -> Answer:
        threads.append(threading.current_thread())
        return NODE_NOW

    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1", {AskNode: note})
        coordinator.admit(LONG)
        for _ in range(5):
            assert coordinator.ask({"n1": AskNode()}, LONG) == {"n1": NODE_NOW}
        assert all(thread.is_alive() for thread in threads)
    assert agent.join() is None


PROCESS = f"""
import subprocess, sys
from waywiser.cli.signals import stopped_by_signals
from waywiser.cluster.node.agent import Agent, run_as_process
from waywiser.cluster.connection.joining import AgentError, Joining
from waywiser.cluster.connection.protocol import AskNode, NodeNow
from waywiser.words.cluster import ClusterNode

def start(request):
    # A shell of a session of its own, and a child of it that outlives it.
    command = "sleep 3600 & echo $! > $0.part; mv $0.part $0"
    subprocess.run(["sh", "-c", command, sys.argv[2]], start_new_session=True)
    return NodeNow(ClusterNode("n1"))

agent = Agent(Joining(sys.argv[1], {TOKEN!r}, ClusterNode("n1")), {{AskNode: start}},
              on_end=lambda: print("ended", flush=True))
try:
    with stopped_by_signals():
        run_as_process(agent, 3600)
except AgentError as error:
    sys.exit(f"{{error}}")
except KeyboardInterrupt:
    sys.exit("stopped")
"""


class AgentProcess:
    """An agent in a process of its own, that has started a process which stays."""

    def __init__(self, coordinator: Coordinator, folder: Path) -> None:
        file = folder / "pid"
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, coordinator.address, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        )
        coordinator.admit(LONG)
        coordinator.begin_tests()
        assert coordinator.ask({"n1": AskNode()}, LONG) == {"n1": NODE_NOW}
        self.child = int(file.read_text())
        assert birth(self.child)

    def end(self) -> tuple[int, str, str]:
        """Status and output, after its child is gone too."""
        output, errors = self.process.communicate()
        assert not birth(self.child)
        return self.process.returncode, output, errors


def test_an_orderly_end_leaves_no_process(tmp_path: Path) -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentProcess(coordinator, tmp_path)
    assert agent.end() == (0, "ended\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_agent_and_what_it_started(tmp_path: Path, number: int) -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentProcess(coordinator, tmp_path)
        agent.process.send_signal(number)
        status, output, errors = agent.end()
        assert (status, output) == (1, "ended\n")
        assert errors == "stopped\n"
        found = coordinator.ask({"n1": AskNode()}, LONG)["n1"]
        assert isinstance(found, AgentLost)


COORDINATOR = f"""
import sys
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.connection.protocol import AskNode

with Coordinator("{ANY}", {TOKEN!r}, 1) as coordinator:
    print(coordinator.address, flush=True)
    coordinator.admit(3600)
    coordinator.begin_tests()
    coordinator.ask({{"n1": AskNode()}}, 3600)
    print("asked", flush=True)
    sys.stdin.read()
"""


def test_a_killed_coordinator_leaves_no_agent_and_no_process(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(
        [sys.executable, "-c", COORDINATOR],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as coordinator:
        assert coordinator.stdout is not None
        address = coordinator.stdout.readline().strip()
        file = tmp_path / "pid"
        agent = subprocess.Popen(
            [sys.executable, "-c", PROCESS, address, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert coordinator.stdout.readline() == "asked\n"
        child = int(file.read_text())
        coordinator.kill()
    output, errors = agent.communicate()
    assert (agent.returncode, output) == (1, "ended\n")
    assert errors == f"{address}: the coordinator is gone\n"
    assert not birth(child)


def test_an_agent_that_loses_the_coordinator_before_the_tests_joins_again() -> None:
    with Coordinator(ANY, TOKEN, ["n1"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1")
        coordinator.admit(LONG)
        address = coordinator.address
        coordinator._hub.call(
            lambda: coordinator._hub._lost(coordinator._hub.agents["n1"], "a broken cable")
        )
        while not agent.log:
            pass
        assert "joining again" in agent.log[0]
        coordinator.admit(LONG)
        coordinator.begin_tests()
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive()}
        with pytest.raises(ConnectionError), bare(address):
            pass
    assert agent.join() is None


@pytest.mark.parametrize("orders", [(), (ReadPart("x"), AskAlive())], ids=["none", "answers"])
def test_an_agent_ends_when_the_coordinator_is_stopped(
    monkeypatch: pytest.MonkeyPatch, orders: tuple[Request, ...]
) -> None:
    """Its kernel holds the connection, also one that takes no more bytes."""
    monkeypatch.setattr(agent_module, "SILENCE_SECONDS", 0.3)
    own = RunCertificate()

    def serve(connection: socket.socket) -> None:
        with own.context.wrap_socket(connection, server_side=True) as channel:
            challenge = new_nonce()
            channel.sendall(encode(Challenge(challenge)))
            with channel.makefile("rb") as file:
                said = decode_from_agent(file.readline().rstrip(b"\n"))
            assert isinstance(said, JoinRequest)
            exchange = JoinExchange(own.fingerprint, challenge, said.nonce, said.name)
            channel.sendall(encode(Welcome("n1", coordinator_proof(TOKEN, exchange))))
            for number, order in enumerate(orders):
                channel.sendall(encode(Requested(number, order)))
            ended.wait(LONG)

    ended = threading.Event()
    with server(serve) as address:
        agent = AgentThread(address, "n1", {ReadPart: lambda _: FilePart(bytes(LINE_BYTES // 2))})
        error = agent.join()
        ended.set()
    assert error is not None and "has sent nothing for 0.3 s: it is stopped" in str(error)
    assert agent.ends == 1


def test_a_coordinator_shows_that_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_SIGN_SECONDS", 0.01)
    with Coordinator(ANY, TOKEN, ["n1", "n2"]) as coordinator:
        agent = AgentThread(coordinator.address, "n1")
        with bare(coordinator.address) as other:
            other.say(other.greeting("n2"))
            coordinator.admit(LONG)
            assert isinstance(decode_to_agent(other.line().rstrip()), Welcome)
            for _ in range(5):
                assert decode_to_agent(other.line().rstrip()) == Requested(0, AskAlive())
        assert coordinator.ask({"n1": AskAlive()}, LONG) == {"n1": Alive()}
        assert coordinator.ask({"n1": AskNode()}, LONG) == {"n1": NODE_NOW}
    assert agent.join() is None
