"""The thread of the coordinator that holds all connections."""

from __future__ import annotations

import os
import selectors
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import msgspec

from waywiser.cluster.connection.admission import Admission
from waywiser.cluster.connection.connection import AgentConnection
from waywiser.cluster.connection.protocol import (
    LINE_BYTES,
    Answer,
    Answered,
    AskAlive,
    Begin,
    Rejection,
    Request,
    Requested,
    RequestFailed,
    Welcome,
    decode_from_agent,
    encode,
)
from waywiser.cluster.connection.secure_channel import ChannelError
from waywiser.cluster.connection.unidentified import UnidentifiedConnections
from waywiser.measure.supervise import ChannelClosed, Deadline, Listen, ProtocolError, Team
from waywiser.words import ClusterNode, WaywiserError

_LEAVE_SECONDS = 2.0
"""Seconds for the last lines to be sent."""

_SIGN_SECONDS = 30.0
"""Every agent is sent a line that often: it knows then that this process runs, and not only its
kernel (`waywiser.cluster.node.agent.SILENCE_SECONDS`)."""

_NO_REQUEST = 0
"""The id of the request in that line; no other has it, and its answer is not waited for."""

_ENDED = "its connection ended"
_ENDED_EARLY = f"{_ENDED} before it said who it is"

OnAnswer = Callable[[str, Answer | str], None]
"""Called with the name of a node and its answer, or the reason why none comes any more."""


class Hub:
    """Holds all connections in one thread. Other threads may use `changed` with `nodes` and
    `agents`, `call`, `ask`, `forget` and `stop`."""

    def __init__(
        self,
        listen: Listen,
        port: int,
        admission: Admission,
        log: Callable[[str], None],
        greeting_seconds: float,
        tls: ssl.SSLContext,
    ) -> None:
        self.changed = threading.Condition()
        """Held by who reads or changes `nodes`; notified when they change."""
        self.nodes: dict[str, ClusterNode] = {}
        self.agents: dict[str, AgentConnection] = {}
        self._admission = admission
        self._logs = log
        self._waiting: dict[int, tuple[str, OnAnswer]] = {}
        self._last_id = 0
        self._calls: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._tests_began = False
        self._ends = False
        self._next_sign = Deadline(_SIGN_SECONDS)
        self._selector = selectors.DefaultSelector()
        self._strangers = UnidentifiedConnections(
            self._selector, listen, port, self._log, greeting_seconds, tls
        )
        self.port = self._strangers.port
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)

    def call(self, function: Callable[[], None]) -> None:
        """Lets the thread of the connections call the function soon; later than its end, at
        once."""
        with self._lock:
            if self._wake_write >= 0:
                self._calls.append(function)
                with suppress(BlockingIOError):
                    os.write(self._wake_write, b"x")
                return
        function()

    def ask(self, requests: Mapping[str, Request], on_answer: OnAnswer) -> list[int]:
        """Sends the requests; ``on_answer`` is called once for each, by the thread of the
        connections. Returns what `forget` takes."""
        with self._lock:
            first = self._last_id + 1
            self._last_id += len(requests)
        lines = [
            (number, name, encode(Requested(number, request)))
            for number, (name, request) in enumerate(requests.items(), first)
        ]

        def send() -> None:
            for number, name, line in lines:
                agent = self.agents.get(name)
                if agent is None:
                    on_answer(name, self._why_not(name))
                elif len(line) > LINE_BYTES:
                    on_answer(name, RequestFailed("the request is too long"))
                else:
                    self._waiting[number] = (name, on_answer)
                    agent.say(line)

        self.call(send)
        return [number for number, _, _ in lines]

    def forget(self, ids: Iterable[int]) -> None:
        """No answer is wanted any more."""

        def drop() -> None:
            for number in ids:
                self._waiting.pop(number, None)

        self.call(drop)

    def begin_tests(self) -> None:
        """Called by `call`: closes the port for good."""
        self._tests_began = True
        self._strangers.close()
        for agent in tuple(self.agents.values()):
            agent.say(Begin())

    def close_admission(self) -> None:
        """Called by `call`: closes the port, unless a node that was lost may join again."""
        if not any(node.state == "lost" for node in self.nodes.values()):
            self._strangers.close()

    def stop(self) -> None:
        """Lets all agents leave, and ends the thread."""

        def stop() -> None:
            self._ends = True

        self.call(stop)

    def run(self) -> None:
        """What the thread does."""
        try:
            while not self._ends:
                overdue = self._strangers.seconds_to_overdue()
                until_sign = self._next_sign.left
                self._step(until_sign if overdue is None else min(overdue, until_sign))
                self._strangers.reject_overdue()
                self._show_life()
            self._leave()
        finally:
            self._close_all()

    def _show_life(self) -> None:
        """Sends every agent a line when it is time."""
        if not self._next_sign.is_over:
            return
        self._next_sign = Deadline(_SIGN_SECONDS)
        line = encode(Requested(_NO_REQUEST, AskAlive()))
        for agent in tuple(self.agents.values()):
            agent.say(line)

    def _step(self, seconds: float) -> None:
        for key, events in self._selector.select(seconds):
            if key.fileobj is self._strangers.listener:
                self._strangers.accept()
            elif key.data is None:
                with suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            elif not key.data.is_closed:  # by another event of the same step
                self._serve(key.data, events)
        with self._lock:
            calls, self._calls = self._calls, []
        for function in calls:
            function()

    def _serve(self, connection: AgentConnection, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            connection.flush()
        if not events & selectors.EVENT_READ:
            return
        try:
            connection.receive()
            for line in connection.taken():
                if connection.name:
                    self._hear(connection, line)
                elif connection in self._strangers:
                    self._greet(connection, line)
        except BlockingIOError:
            return
        except ChannelClosed:
            self._lost(connection, _ENDED if connection.name else _ENDED_EARLY)
        except ChannelError as error:
            self._lost(connection, f"it sent {error.what}")
        except ProtocolError as error:  # the words of a stranger are not repeated
            what = error.what if connection.name else "a line that is too long"
            self._lost(connection, f"it sent {what}")

    def _greet(self, connection: AgentConnection, line: bytes) -> None:
        """The first line of a connection."""
        decision = self._admission.decide(connection.nonce, line, self.agents)
        node = decision.node
        if isinstance(decision.answer, Welcome) and node:
            self._strangers.admit(connection, node.name, self._step)
            self.agents[node.name] = connection
            connection.say(decision.answer)
            self._know(msgspec.structs.replace(node, address=node.address or connection.host))
        elif isinstance(decision.answer, Rejection):
            if node and node.name not in self.agents:
                self._know(node)
            self._strangers.reject_with(connection, decision.answer)

    def _hear(self, connection: AgentConnection, line: bytes) -> None:
        message = decode_from_agent(line)
        if not isinstance(message, Answered):
            raise ProtocolError("a second greeting")
        name, on_answer = self._waiting.get(message.id, ("", None))
        if on_answer and name == connection.name:  # else it comes too late
            del self._waiting[message.id]
            on_answer(name, message.answer)

    def _lost(self, connection: AgentConnection, reason: str) -> None:
        """The connection ended, or has to."""
        name = connection.name
        if not name:
            if connection.has_spoken:
                self._strangers.reject(connection, reason)
            else:
                self._strangers.drop(connection)
            return
        with self.changed:
            del self.agents[name]
            connection.close()
            if self._ends:
                return
            node = self.nodes[name]
            if node.state == "joined":
                self.nodes[name] = msgspec.structs.replace(node, state="lost", reason=reason)
            self.changed.notify_all()
        self._log(f"node {name} ({connection.host}) is lost: {reason}")
        for number, (whose, on_answer) in tuple(self._waiting.items()):
            if whose == name:
                del self._waiting[number]
                on_answer(name, reason)
        if not self._tests_began:
            with suppress(WaywiserError):  # another program has the port by now
                self._strangers.open()

    def _log(self, line: str) -> None:
        with suppress(OSError):  # its reader is gone
            self._logs(line)

    def _know(self, node: ClusterNode) -> None:
        with self.changed:
            self.nodes[node.name] = node
            self.changed.notify_all()

    def _why_not(self, name: str) -> str:
        node = self.nodes.get(name)
        return (node.reason if node else "") or "it did not join"

    def _leave(self) -> None:
        """Lets all agents leave, and waits until they have closed their connections."""
        self._strangers.close()
        Team(self.agents.values()).end(Deadline(_LEAVE_SECONDS))

    def _close_all(self) -> None:
        for number, (name, on_answer) in tuple(self._waiting.items()):
            del self._waiting[number]
            on_answer(name, "the run ends")
        self._strangers.close()
        for agent in self.agents.values():
            agent.close()
        self.agents.clear()
        self._selector.close()
        with self._lock:
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_write = -1
            calls, self._calls = self._calls, []
        for function in calls:
            function()
