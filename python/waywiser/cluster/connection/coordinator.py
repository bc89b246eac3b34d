"""The coordinator: one agent per node connects to it, and is given requests.

One thread holds all connections; any thread may ask. Whatever an agent says outside the protocol
ends its connection and nothing else.
"""

from __future__ import annotations

import queue
import resource
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from waywiser.cluster.connection.admission import Admission
from waywiser.cluster.connection.checked_answers import checked
from waywiser.cluster.connection.hub import Hub
from waywiser.cluster.connection.protocol import Answer, Request
from waywiser.cluster.connection.run_certificate import RunCertificate
from waywiser.cluster.connection.token_proof import TokenError, with_certificate
from waywiser.measure.supervise import GREETING_SECONDS, Deadline, listening_socket
from waywiser.words import Closeable, ClusterNode, NodeState, Value, WaywiserError, natural_key


class CoordinatorError(WaywiserError):
    """The coordinator cannot listen there."""


class AgentLost(Value, frozen=True):
    """The connection to the agent ended before it answered, or it never joined."""

    reason: str


class NoAnswer(Value, frozen=True):
    """The agent is connected and did not answer in time."""

    reason: str


_DECIDED = ("joined", "excluded", "not reached")
"""States of nodes that are not waited for: ``not reached`` is one that was given up by `mark`."""

Reply = Answer | AgentLost | NoAnswer
OnReply = Callable[[str, Reply], None]
Log = Callable[[str], None]


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``HOST``, ``:PORT`` or ``[IPV6]:PORT``; port 0 is one that is
    free. Raises `CoordinatorError`."""
    host, separator, port = text.rpartition(":")
    if not separator or "]" in port:
        host, port = text, "0"
    host = host.strip("[]")
    if not (port.isascii() and port.isdigit() and int(port) < 2**16):
        raise CoordinatorError("is no address", where=text, remedy="name HOST:PORT")
    return host, int(port)


class Coordinator(Closeable):
    """Listens from the start on. ``address`` is ``HOST:PORT``; both may be empty. ``expected`` are
    the names of the nodes, or how many there are; 0 if unknown. ``log`` is called with a line
    for who is rejected, and for who is lost. Raises `CoordinatorError`,
    `waywiser.cluster.connection.run_certificate.CertificateError`."""

    def __init__(
        self,
        address: str,
        token: str,
        expected: Sequence[str] | int = 0,
        *,
        log: Log = lambda line: None,
        greeting_seconds: float = GREETING_SECONDS,
    ) -> None:
        if not token:
            raise TokenError("a coordinator needs a token")
        names = () if isinstance(expected, int) else tuple(expected)
        self._count = expected if isinstance(expected, int) else len(names)
        self._names = names
        _allow_descriptors()
        host, port = parse_address(address)
        certificate = RunCertificate()
        self.token = with_certificate(token, certificate.fingerprint)
        """What agents of this run alone are given; those with ``token`` join too."""
        self._hub = Hub(
            partial(_listen, host),
            port,
            Admission(token, certificate.fingerprint, names),
            log,
            greeting_seconds,
            certificate.context,
        )
        self.address = _advertised(host, self._hub.port)
        """What agents are given: ``HOST:PORT``."""
        self._thread = threading.Thread(target=self._hub.run, name="coordinator", daemon=True)
        self._thread.start()

    def admit(
        self, seconds: float, on_joined: Callable[[ClusterNode], None] = lambda node: None
    ) -> list[ClusterNode]:
        """Waits until all expected nodes have joined, at most so long. Returns all nodes: those
        that joined, those excluded, and those not reached. The port is closed then; it opens again
        for a node that is lost before `begin_tests`."""
        deadline = Deadline(seconds)
        seen: dict[str, ClusterNode] = {}
        while True:
            with self._hub.changed:
                nodes = [n for n in self._hub.nodes.values() if seen.get(n.name) is not n]
                is_over = deadline.is_over or self._is_complete()
                if not nodes and not is_over:
                    self._hub.changed.wait(min(deadline.left, 1.0))
                    continue
            for node in nodes:
                seen[node.name] = node
                on_joined(node)
            if is_over:
                break
        self._hub.call(self._hub.close_admission)
        return self.nodes(reason=f"it did not join in {seconds:.3g} s")

    def nodes(self, reason: str = "it did not join") -> list[ClusterNode]:
        """All nodes by name, with their state of now; those that were expected and never joined
        are "not reached" for this reason."""
        with self._hub.changed:
            found = dict(self._hub.nodes)
        for name in self._names:
            found.setdefault(name, ClusterNode(name, "not reached", reason))
        return [found[name] for name in sorted(found, key=natural_key)]

    def begin_tests(self) -> None:
        """Rejects all further nodes."""
        self._hub.call(self._hub.begin_tests)

    def mark(self, name: str, state: NodeState, reason: str) -> None:
        """Sets the state of a node, for example ``stuck``."""
        with self._hub.changed:
            node = self._hub.nodes.get(name) or ClusterNode(name)
            changed = msgspec.structs.replace(node, state=state, reason=reason)
            self._hub.nodes[name] = changed
            self._hub.changed.notify_all()

    def keep(self, node: ClusterNode) -> None:
        """Takes over a node as a former run has found it."""
        with self._hub.changed:
            self._hub.nodes[node.name] = node
            self._hub.changed.notify_all()

    def is_connected(self, name: str) -> bool:
        return name in self._hub.agents

    def ask(
        self,
        requests: Mapping[str, Request],
        seconds: float,
        on_reply: OnReply = lambda name, reply: None,
    ) -> dict[str, Reply]:
        """Sends each node its request, and waits for all replies, at most so long. ``on_reply`` is
        called by this thread for each reply as it comes. Several threads may ask at once."""
        replies: queue.SimpleQueue[tuple[str, Reply]] = queue.SimpleQueue()
        found: dict[str, Reply] = {}
        ids = self._hub.ask(requests, lambda name, answer: replies.put((name, _reply(answer))))
        deadline = Deadline(seconds)
        try:
            while len(found) < len(requests):
                try:
                    name, reply = replies.get(timeout=deadline.left)
                except queue.Empty:
                    break
                if not isinstance(reply, AgentLost | NoAnswer):
                    reply = checked(requests[name], reply)
                found[name] = reply
                on_reply(name, reply)
        finally:
            self._hub.forget(ids)
        for name in requests:
            if name not in found:
                found[name] = NoAnswer(f"no answer in {seconds:.3g} s")
                on_reply(name, found[name])
        return found

    def close(self) -> None:
        """Lets all agents leave, and ends."""
        self._hub.stop()
        self._thread.join()

    def _is_complete(self) -> bool:
        there = [n.name for n in self._hub.nodes.values() if n.state in _DECIDED]
        return 0 < self._count <= len(there)


def _reply(answer: Answer | str) -> Reply:
    return AgentLost(answer) if isinstance(answer, str) else answer


def _allow_descriptors() -> None:
    """Lets this process have as many connections as it may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listening_socket(host, port)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise CoordinatorError(
            f"cannot listen there: {reason}",
            where=f"{host}:{port}",
            remedy="name an address of this node with --address HOST:PORT",
        ) from error


def _advertised(host: str, port: int) -> str:
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
