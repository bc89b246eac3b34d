"""Who may not join: unknown programs, replays, and connections that say too much or too little."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from joined_agents import LONG, TOKEN, AgentThread, Bare, bare, connected, greeting

from tree import ROOT
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.connection.protocol import Rejection, Welcome, decode_to_agent
from waywiser.cluster.connection.secure_channel import SecureChannel
from waywiser.cluster.connection.unidentified import UnidentifiedConnections

OTHER_TOKEN = "fedcba9876543210"


class Watched:
    """A coordinator of one node whose log is read."""

    def __init__(self, greeting_seconds: float = LONG) -> None:
        self.log: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.coordinator = Coordinator(
            "127.0.0.1:0", TOKEN, ["n1"], log=self.log.put, greeting_seconds=greeting_seconds
        )

    def line(self) -> str:
        return self.log.get(timeout=LONG)

    def assert_whole(self) -> None:
        """The node joins as if nothing had happened, and nothing more was logged."""
        agent = AgentThread(self.coordinator.address, "n1")
        assert [node.state for node in self.coordinator.admit(LONG)] == ["joined"]
        self.coordinator.close()
        assert agent.join() is None
        assert self.log.empty()


@contextmanager
def watched(greeting_seconds: float = LONG) -> Iterator[Watched]:
    found = Watched(greeting_seconds)
    try:
        yield found
    finally:
        found.coordinator.close()


def _last_line(connection: Bare) -> bytes:
    """The line before the end."""
    line = connection.line()
    assert connection.line() == b""
    return line


SAID: dict[str, Callable[[Bare], bytes]] = {
    "HTTP": lambda own: b"GET / HTTP/1.1\r\nHost: n0\r\n\r\n",
    "bytes": lambda own: bytes(range(256)),
    "no object": lambda own: b"[1]\n",
    "another token": lambda own: own.greeting("n1", OTHER_TOKEN),
    "another nonce": lambda own: greeting(own.certificate, "0" * 32, "n1"),
    "no proof": lambda own: b'{"v":2,"type":"join","name":"n1"}\n',
    "an answer": lambda own: b'{"v":2,"type":"answer","id":1,"answer":{"type":"alive"}}\n',
    "deep": lambda own: own.nonce()[:0].encode() + b"[" * 60_000 + b"\n",
}


@pytest.mark.parametrize("what", SAID)
def test_a_stranger_is_rejected_and_logged_once(what: str) -> None:
    with watched() as own:
        for _ in range(3):
            with bare(own.coordinator.address) as stranger:
                said = SAID[what](stranger)
                with suppress(OSError):  # it was closed meanwhile
                    stranger.say(said)
                    stranger.socket.shutdown(socket.SHUT_WR)
                while stranger.line():
                    pass
        assert own.line().startswith("rejected a connection from 127.0.0.1: ")
        own.assert_whole()


def test_a_replayed_greeting_is_rejected_and_logged() -> None:
    with watched() as own:
        with bare(own.coordinator.address) as first:
            heard = first.greeting("n1")
            first.say(heard)
            assert isinstance(decode_to_agent(first.line().rstrip()), Welcome)
        assert "n1 (127.0.0.1) is lost" in own.line()
        with bare(own.coordinator.address) as second:
            second.nonce()
            second.say(heard)
            rejection = decode_to_agent(_last_line(second).rstrip())
            assert isinstance(rejection, Rejection)
        assert "another token, or for another connection" in own.line()
        own.assert_whole()


def test_a_long_line_is_rejected_before_it_ends() -> None:
    with watched() as own:
        with bare(own.coordinator.address) as stranger:
            stranger.nonce()
            try:
                while True:
                    stranger.say(b"x" * 4096)
            except OSError:
                pass
        assert "too long" in own.line()
        own.assert_whole()


def test_a_connection_that_speaks_too_slowly_is_ended() -> None:
    with watched(greeting_seconds=0.2) as own:
        with bare(own.coordinator.address) as slow, bare(own.coordinator.address) as silent:
            line = slow.greeting("n1")
            ended = threading.Event()

            def drip() -> None:
                try:
                    for byte in line[:-1] * 1000:
                        slow.say(bytes([byte]))
                        if ended.wait(0.02):
                            return
                except OSError:
                    pass

            dripping = threading.Thread(target=drip)
            dripping.start()
            silent.nonce()
            assert b"did not say in time" in _last_line(silent)
            assert b"did not say in time" in slow.line()
            ended.set()
            dripping.join()
        assert "did not say in time who it is" in own.line()
        assert own.log.empty()


def test_connections_that_only_look_are_not_logged() -> None:
    with watched() as own:
        for _ in range(5):
            with bare(own.coordinator.address) as port_scan:
                port_scan.nonce()
        own.assert_whole()


def test_many_silent_connections_do_not_keep_the_node_out() -> None:
    with watched() as own:
        silent = [Bare(own.coordinator.address) for _ in range(300)]
        own.assert_whole()
        for connection in silent:
            connection.close()


def test_beyond_a_number_the_oldest_is_closed_and_may_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(UnidentifiedConnections, "most", 3)
    with watched() as own:
        opened = [Bare(own.coordinator.address) for _ in range(5)]
        for oldest in opened[:2]:
            oldest.nonce()
            rejection = decode_to_agent(_last_line(oldest).rstrip())
            assert isinstance(rejection, Rejection) and not rejection.final
            assert "too many connections" in rejection.reason
        opened[2].say(opened[2].greeting("n1"))
        assert isinstance(decode_to_agent(opened[2].line().rstrip()), Welcome)
        for connection in opened:
            connection.close()


FEW_DESCRIPTORS = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from waywiser.cluster.connection.coordinator import Coordinator

with Coordinator("127.0.0.1:0", {TOKEN!r}, 1, log=lambda line: None) as coordinator:
    print(coordinator.address, flush=True)
    print(coordinator.admit(3600)[0].state, flush=True)
"""


def test_more_silent_connections_than_descriptors_do_not_keep_the_node_out() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(
        [sys.executable, "-c", FEW_DESCRIPTORS], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        silent = [Bare(address) for _ in range(150)]
        agent = AgentThread(address, "n1")
        assert process.stdout.readline() == "joined\n"
        for connection in silent:
            connection.close()
    assert agent.join() is None


def test_an_agent_with_another_token_ends_with_the_remedy() -> None:
    with watched() as own:
        error = AgentThread(own.coordinator.address, "n1", token=OTHER_TOKEN, seconds=0.0).join()
        assert error is not None and "WAYWISER_CLUSTER_TOKEN" in str(error)
        assert "another token" in own.line()
        own.assert_whole()


def test_another_version_is_excluded_with_the_remedy() -> None:
    with watched() as own:
        with bare(own.coordinator.address) as newer:
            line = newer.greeting("n1").replace(b'{"v":2,', b'{"v":7,"new":[1],')
            newer.say(line)
            rejection = decode_to_agent(_last_line(newer).rstrip())
            assert isinstance(rejection, Rejection)
            assert "version 7" in rejection.reason
            assert rejection.remedy == "install the same Waywiser on all nodes"
        (node,) = own.coordinator.admit(LONG)
        assert (node.name, node.state) == ("n1", "excluded")
        assert "install the same Waywiser" in node.reason


PLAIN: dict[str, bytes] = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: n0\r\n\r\n",
    "an older agent": b'{"v":1,"type":"join","name":"n1","nonce":"","proof":"","node":{}}\n',
    "no record": b"\x16" * 4096,
    "a record of nothing": b"\x16\x03\x01\x00\x04\x01\x00\x00\x00",
}


@pytest.mark.parametrize("what", PLAIN)
def test_who_speaks_no_tls_is_rejected_and_logged_once(what: str) -> None:
    with watched() as own:
        for _ in range(3):
            with connected(own.coordinator.address) as stranger:
                stranger.sendall(PLAIN[what])
                stranger.shutdown(socket.SHUT_WR)
                try:
                    while b"welcome" not in (heard := stranger.recv(1 << 16)) and heard:
                        pass
                except ConnectionError:
                    pass
        assert "TLS" in own.line()
        own.assert_whole()


def test_handshakes_that_do_not_end_keep_no_node_out() -> None:
    """Connections that say nothing, half of a handshake, or one byte of it after the other."""
    hello = SecureChannel().unsent()
    with watched() as own:
        silent = [connected(own.coordinator.address) for _ in range(90)]
        for number, stranger in enumerate(silent):
            stranger.sendall(hello[: (0, 1, len(hello) // 2)[number % 3]])
        dripping = connected(own.coordinator.address)
        for byte in hello[:-1]:
            dripping.sendall(bytes([byte]))
        own.assert_whole()
        for stranger in (*silent, dripping):
            stranger.close()


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_handshake_has_the_time_of_a_greeting(part: float) -> None:
    hello = SecureChannel().unsent()
    with watched(greeting_seconds=0.2) as own:
        with connected(own.coordinator.address) as stranger:
            stranger.sendall(hello[: int(part * len(hello))])
            while stranger.recv(1 << 16):
                pass
        line = own.line()
        assert "did not say in time who it is" in line
        assert ("older Waywiser" in line) == (part == 0)
