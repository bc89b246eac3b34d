"""One worker as its supervisor holds it: a process, and the channel to it."""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Protocol

from waywiser.machine.met_limit import limit_in
from waywiser.measure.probe.protocol import (
    Abort,
    End,
    Failed,
    FromWorker,
    Ping,
    ToWorker,
    decode_from_worker,
    encode,
)
from waywiser.measure.probe.worker_process import WorkerProcess
from waywiser.measure.supervise import ChannelClosed, Deadline, LineChannel, ProtocolError
from waywiser.words import LIMIT, Failure
from waywiser.words.crash_text import PRINTED

_EXIT_SECONDS = 1.0
"""Seconds for the end of a worker to follow the end of its answers, before it is killed."""


class MemberProcess(Protocol):
    """The process of a member: `WorkerProcess`, or that of a rank."""

    @property
    def output(self) -> int:
        """The descriptor from which what it prints is read."""

    @property
    def prints(self) -> bool:
        """Until nothing more will be printed."""

    @property
    def descriptor(self) -> int | None:
        """Readable when the process has ended; None if there is no such descriptor."""

    @property
    def ended(self) -> bool: ...

    def drain_log(self) -> bool: ...

    def printed(self) -> str: ...

    def ending(self) -> tuple[str, str]: ...

    def await_end(self, deadline: Deadline) -> bool: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...


class MemberLost(Exception):
    """A worker is of no use any more; carries what that means for its order."""

    def __init__(self, failure: Failure, member: Member | None = None) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.member = member
        """The one to blame; None if none can be named."""


class Member:
    """A worker of a group, from its start to the last of its descriptors: a
    `waywiser.measure.supervise.team.TeamMember`."""

    def __init__(
        self, rank: int, process: MemberProcess, channel: LineChannel, name: str = "the worker"
    ) -> None:
        self.rank = rank
        self.name = name
        """As failures name it."""
        self.doing = "starting"
        """What the worker was last known to do, for the reason if that is the last of it."""
        self.process, self.channel = process, channel

    @classmethod
    def start(cls, command: Sequence[str], rank: int, name: str = "the worker") -> Member:
        """A worker of this machine, over two pipes. Raises `ProbeError`."""
        with ExitStack() as its, ExitStack() as mine:
            orders, write = _pipe(its, mine)
            read, answers = _pipe(mine, its)
            for descriptor in (read, write):
                os.set_blocking(descriptor, False)
            arguments = ("--read-fd", str(orders), "--write-fd", str(answers))
            process = WorkerProcess((*command, *arguments), (orders, answers))
            mine.pop_all()
            return cls(rank, process, LineChannel(read, write), name)

    @property
    def speaking(self) -> list[int]:
        """Descriptors that are readable when it says something or has ended."""
        found = (self.channel.reads, self.process.descriptor)
        return [descriptor for descriptor in found if descriptor is not None]

    def send(self, message: ToWorker, deadline: Deadline) -> None:
        """Writes the message, and takes in what the worker prints meanwhile: a worker whose pipes
        are full reads nothing. Raises `MemberLost` when it is not read until then, and for a
        worker that answers before it has read it."""
        channel, output = self.channel, self.process.output
        with channel.sending:
            channel.put(encode(message))
            is_sent = False
            while not is_sent:
                ready = self._poll(deadline)
                if not ready:
                    raise MemberLost(self.overdue("does not read its orders"), self)
                if ready.get(output):
                    self.process.drain_log()
                if ready.get(channel.reads, 0) & ~select.POLLOUT:
                    self._raise_for_answers()
                elif ready.get(channel.writes, 0) & ~select.POLLIN:
                    is_sent = self._flush()

    def _poll(self, deadline: Deadline) -> dict[int, int]:
        """What can be read or written; nothing at the deadline."""
        needed = {self.channel.reads: select.POLLIN}
        needed[self.channel.writes] = needed.get(self.channel.writes, 0) | select.POLLOUT
        if self.process.prints:
            needed[self.process.output] = select.POLLIN
        poll = select.poll()
        for descriptor, events in needed.items():
            poll.register(descriptor, events)
        return {} if deadline.is_over else dict(poll.poll(1000 * deadline.left))

    def _flush(self) -> bool:
        """Whether the channel took all that was to be sent."""
        try:
            return self.channel.flush()
        except ChannelClosed:
            self._raise_for_answers()  # the last that it said, if it said anything
            raise MemberLost(self.obituary(), self) from None

    def _raise_for_answers(self) -> None:
        """Raises `MemberLost` for what has arrived."""
        for message in self.receive():
            raise MemberLost(self.unexpected(message), self)

    def receive(self) -> list[FromWorker]:
        """What has arrived; call when one of `speaking` is readable. Raises `MemberLost` for what
        is no answer, and when nothing more can come."""
        try:
            self.channel.receive()
            return [decode_from_worker(line) for line in self.channel.taken()]
        except (ChannelClosed, BlockingIOError):  # another process may hold an ended worker's pipe
            raise MemberLost(self.obituary(), self) from None
        except ProtocolError as error:
            failure = self._failure("protocol", f"{self.name} wrote {error}")
            raise MemberLost(failure, self) from error

    def obituary(self) -> Failure:
        """Why the worker stopped answering; ends it if it did not end itself."""
        ended = self.process.await_end(Deadline(_EXIT_SECONDS))
        self.process.kill()
        if not ended:
            return self._failure("protocol", f"{self.name} closed its answers and went on running")
        torn = " in the middle of a line" if self.channel.is_torn else ""
        kind, reason = self.process.ending()
        return self._failure(kind, f"{reason}{torn if kind == 'crash' else ''}")

    def ping(self, number: int) -> None:
        """Asks what it does; a worker whose channel is full is not asked."""
        self.channel.offer(encode(Ping(number)))

    def abort(self) -> None:
        """Has it end what it does with other ranks. Any thread may call it."""
        self.channel.offer(encode(Abort()))

    def overdue(self, complaint: str, answer: str = "") -> Failure:
        """The failure of a worker whose time is over; kills it. ``answer``: what it said when it
        was asked."""
        self.process.kill()
        return self._failure("timeout", f"{self.name} {complaint} and was killed", answer)

    def unexpected(self, message: FromWorker) -> Failure:
        """The failure of a worker that said something out of turn. If the worker said why it
        cannot go on, that is the failure."""
        if isinstance(message, Failed) and message.fatal:
            return message.failure
        said = type(message).__name__.lower()
        reason = f": {message.failure.reason}" if isinstance(message, Failed) else ""
        return self._failure("protocol", f"{self.name} said {said!r} out of turn{reason}")

    def _failure(self, kind: str, reason: str, answer: str = "") -> Failure:
        words = self.process.printed()
        if kind == "crash" and (limit := limit_in(words)):
            return Failure(LIMIT, f"{limit}, while {self.doing}")
        printed = f"{PRINTED}{words}" if words else ""
        return Failure(kind, f"{reason}, while {self.doing}{answer}{printed}")

    def leave(self, deadline: Deadline) -> None:
        """Asks the worker to end."""
        self.doing = "ending"
        with suppress(MemberLost):
            self.send(End(), deadline)

    def await_end(self, deadline: Deadline) -> bool:
        return self.process.await_end(deadline)

    def close(self) -> None:
        """Kills the worker and closes every descriptor; any number of times."""
        self.process.close()
        self.channel.close()


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe whose two ends are closed with the stacks that own them."""
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write
