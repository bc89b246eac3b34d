"""The agent of a node: it joins the coordinator, and does what that asks for.

Each request is handled by a thread of its own, and no thread ends before the agent does: what a
thread has started ends with that thread (`waywiser.measure.supervise.lifeline.die_with`). When the
run has ended, or the coordinator is gone or stopped, so is all that the agent has started.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from waywiser.cluster.connection.coordinator_link import CoordinatorLink
from waywiser.cluster.connection.joining import AgentError, Joining, join
from waywiser.cluster.connection.protocol import (
    LINE_BYTES,
    Alive,
    Answer,
    Answered,
    AskAlive,
    Begin,
    FromAgent,
    Leave,
    Requested,
    RequestFailed,
    decode_to_agent,
    encode,
)
from waywiser.cluster.connection.secure_channel import ChannelError
from waywiser.measure.supervise import Deadline, ProtocolError
from waywiser.measure.supervise.lifeline import adopt_orphans
from waywiser.measure.supervise.process import kill_descendants
from waywiser.words import WaywiserError

END_SECONDS = 3.0
"""Seconds for handlers to give back what they hold, before their processes are killed."""

SILENCE_SECONDS = 300.0
"""Seconds without a line of the coordinator, which sends one every 30 s, until the agent ends. The
kernel of a host holds the connections of a process that is stopped."""

Handler = Callable[[Any], Answer]
Handlers = Mapping[type, Handler]
"""What answers each kind of request. An error of a handler becomes `RequestFailed`."""


class Agent:
    """An agent of a node. ``on_end`` is called once, when the agent ends."""

    def __init__(
        self,
        joining: Joining,
        handlers: Handlers,
        *,
        on_end: Callable[[], None] = lambda: None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._joining = joining
        self._handlers = handlers
        self._on_end = on_end
        self._log = log
        self._threads = _Threads()
        self._doing: dict[int, str] = {}
        self._tests_began = False

    def run(self, seconds: float) -> None:
        """Joins within so many seconds, and returns after an orderly end. Raises `AgentError`: the
        coordinator cannot be reached, rejects, is gone, or is stopped."""
        try:
            while True:
                link = join(self._joining, Deadline(seconds), self._log)
                with link:
                    if self._converse(link):
                        return
                if self._tests_began:
                    raise AgentError("the coordinator is gone", where=self._joining.where)
                self._log("the connection to the coordinator ended; joining again")
        finally:
            self._end()

    def _converse(self, link: CoordinatorLink) -> bool:
        """Whether it came to an orderly end."""
        until = Deadline(SILENCE_SECONDS)
        try:
            while not isinstance(message := decode_to_agent(link.next(until)), Leave):
                until = Deadline(SILENCE_SECONDS)
                if isinstance(message, Begin):
                    self._tests_began = True
                elif isinstance(message, Requested):
                    self._take(message, link)
                else:
                    raise ProtocolError("a second greeting")
        except (OSError, ChannelError) as error:
            if until.is_over:
                raise AgentError(
                    f"the coordinator has sent nothing for {SILENCE_SECONDS:.3g} s: it is stopped",
                    where=self._joining.where,
                    remedy="let it go on (fg, or kill -CONT), and resume the survey after its end",
                ) from error
            return False
        except ProtocolError as error:
            raise AgentError(f"the coordinator sent {error.what}") from error
        return True

    def _take(self, requested: Requested, link: CoordinatorLink) -> None:
        if isinstance(requested.request, AskAlive):
            self._answer(link, Answered(requested.id, Alive(tuple(self._doing.copy().values()))))
            return
        self._doing[requested.id] = str(type(requested.request).__struct_config__.tag)
        self._threads.run(lambda: self._work(requested, link))

    def _work(self, requested: Requested, link: CoordinatorLink) -> None:
        handler = self._handlers.get(type(requested.request), _unknown)
        try:
            answer = handler(requested.request)
        except WaywiserError as error:
            answer = RequestFailed(str(error))
        except Exception as error:  # one request is lost, and not the node
            answer = RequestFailed(f"{type(error).__name__}: {error}")
        self._doing.pop(requested.id, None)
        self._answer(link, Answered(requested.id, answer))

    def _answer(self, link: CoordinatorLink, message: FromAgent) -> None:
        line = encode(message)
        if len(line) > LINE_BYTES and isinstance(message, Answered):
            line = encode(Answered(message.id, RequestFailed("the answer is too long")))
        with suppress(OSError):
            link.send(line, Deadline(SILENCE_SECONDS))

    def _end(self) -> None:
        """Lets handlers give back what they hold, for some time."""
        ending = threading.Thread(target=self._on_end, name="end", daemon=True)
        ending.start()
        ending.join(END_SECONDS)
        self._threads.end()


def run_as_process(agent: Agent, seconds: float) -> None:
    """`Agent.run` as all that this process does: in the end, and after Ctrl-C, nothing is left of
    what it has started. Raises `AgentError`."""
    adopt_orphans()
    try:
        agent.run(seconds)
    finally:
        kill_descendants()


def _unknown(request: object) -> Answer:
    return RequestFailed("this agent does not do that")


class _Threads:
    """Threads that handle one request after another, until `end`."""

    def __init__(self) -> None:
        self._idle: list[_Queue] = []
        self._ended = False
        self._lock = threading.Lock()

    def run(self, function: Callable[[], None]) -> None:
        """Lets an idle thread call the function, or a new one."""
        with self._lock:
            work = self._idle.pop() if self._idle else None
        if work is None:
            work = queue.SimpleQueue()
            threading.Thread(target=self._loop, args=(work,), name="request", daemon=True).start()
        work.put(function)

    def end(self) -> None:
        """Ends each thread once it is idle. Does not wait."""
        with self._lock:
            self._ended = True
            for work in self._idle:
                work.put(None)

    def _loop(self, work: _Queue) -> None:
        while function := work.get():
            function()
            with self._lock:
                if self._ended:
                    return
                self._idle.append(work)


_Queue = queue.SimpleQueue[Callable[[], None] | None]
