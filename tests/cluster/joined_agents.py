"""Agents and bare connections of tests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from waywiser.cluster.connection.joining import AgentError, Joining
from waywiser.cluster.connection.protocol import (
    AskNode,
    Challenge,
    JoinRequest,
    NodeNow,
    decode_to_agent,
    encode,
)
from waywiser.cluster.connection.secure_channel import client_context, fingerprint_of
from waywiser.cluster.connection.token_proof import JoinExchange, agent_proof
from waywiser.cluster.node.agent import Agent, Handlers
from waywiser.words.cluster import ClusterNode

TOKEN = "0123456789abcdef"
OWN_NONCE = "5" * 32
"""That of the agents that `greeting` speaks for."""
LONG = 300.0
"""Seconds that are never over: what a test waits for happens."""


_CONTEXT = client_context()


class AgentThread:
    """An agent of this process, in a thread."""

    def __init__(
        self,
        address: str,
        name: str,
        handlers: Handlers | None = None,
        token: str = TOKEN,
        seconds: float = LONG,
    ) -> None:
        node = ClusterNode(name)
        self.log: list[str] = []
        self.ends = 0
        self.error: AgentError | None = None
        self._seconds = seconds
        self._agent = Agent(
            Joining(address, token, node),
            handlers or {AskNode: lambda request: NodeNow(node)},
            on_end=self._count_end,
            log=self.log.append,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> AgentError | None:
        """Waits for its end; returns its error."""
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        return self.error

    def _count_end(self) -> None:
        self.ends += 1

    def _run(self) -> None:
        try:
            self._agent.run(self._seconds)
        except AgentError as error:
            self.error = error


class Bare:
    """A connection over TLS that says what a test lets it say."""

    def __init__(self, address: str) -> None:
        plain = connected(address)
        try:
            self.socket = _CONTEXT.wrap_socket(plain)
        except OSError:
            plain.close()
            raise
        self.certificate = fingerprint_of(self.socket.getpeercert(binary_form=True) or b"")
        self._file = self.socket.makefile("rb")

    def line(self) -> bytes:
        """The next line; empty at the end."""
        try:
            return self._file.readline()
        except ConnectionError:
            return b""

    def nonce(self) -> str:
        """That of the challenge, which is the first line."""
        challenge = decode_to_agent(self.line().rstrip(b"\n"))
        assert isinstance(challenge, Challenge)
        return challenge.nonce

    def greeting(self, name: str, token: str = TOKEN, node: ClusterNode | None = None) -> bytes:
        """The line of an agent in answer to the challenge."""
        return greeting(self.certificate, self.nonce(), name, token, node)

    def say(self, line: bytes) -> None:
        self.socket.sendall(line)

    def close(self) -> None:
        self._file.close()
        self.socket.close()


@contextmanager
def bare(address: str) -> Iterator[Bare]:
    connection = Bare(address)
    try:
        yield connection
    finally:
        connection.close()


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=LONG)


def greeting(
    certificate: str,
    nonce: str,
    name: str,
    token: str = TOKEN,
    node: ClusterNode | None = None,
) -> bytes:
    """The line of an agent that was sent this nonce by the coordinator with this certificate."""
    proof = agent_proof(token, JoinExchange(certificate, nonce, OWN_NONCE, name))
    return encode(JoinRequest(name, OWN_NONCE, proof, node or ClusterNode(name)))
