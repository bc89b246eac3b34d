"""One worker process, as its supervisor holds it: two pipes for the protocol, one for its log."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from waywiser.machine import limits
from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.probe.protocol import (
    End,
    Failed,
    FromWorker,
    Lines,
    ProtocolError,
    ToWorker,
    decode_from_worker,
    encode,
)
from waywiser.words import WaywiserError
from waywiser.words.records import Failure

_KEPT_BYTES = 8192
_SHOWN_LINES = 4
_SHOWN_CHARACTERS = 400


class Log:
    """The last few kilobytes of a stream of output."""

    def __init__(self) -> None:
        self._end = b""

    def add(self, data: bytes) -> None:
        self._end = (self._end + data)[-_KEPT_BYTES:]

    def tail(self) -> str:
        """The last lines as one line of printable text; empty when nothing was printed."""
        lines = self._end.decode("utf-8", "replace").splitlines()
        printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
        shown = [line.strip() for line in printable if line.strip()][-_SHOWN_LINES:]
        text = " | ".join(shown)
        return text if len(text) <= _SHOWN_CHARACTERS else "…" + text[-_SHOWN_CHARACTERS:]


_READ_BYTES = 1 << 20
"""All that a pipe holds, unless an administrator has allowed larger pipes."""

_EXIT_SECONDS = 1.0
"""Seconds for the end of a worker to follow the end of its answers, before it is killed."""

_POLL_SECONDS = 0.002
"""Seconds between two looks at a worker that is ending; nothing is being measured then."""

_KILL_SECONDS = 15.0
"""Seconds for a killed worker to be gone; one in the middle of a driver call can take seconds."""


class ProbeError(WaywiserError):
    """No worker can be had, or one cannot be got rid of: the survey cannot go on."""


class MemberLost(Exception):
    """A worker is of no use any more; carries what that means for its order."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class Member:
    """A worker process of its own session, from its start to the last of its descriptors."""

    def __init__(self, command: Sequence[str], rank: int) -> None:
        self.rank = rank
        self.doing = "starting"
        """What the worker was last known to do, for the reason if that is the last of it."""
        self._log = Log()
        self._prints = True
        """Until the worker has closed its output."""
        self._lines = Lines()
        self._killed_before = limits.killed_for_memory()
        with ExitStack() as mine, ExitStack() as its:
            orders, self._orders = _pipe(its, mine)
            self.answers, answers = _pipe(mine, its)
            self._process, self.output = _start(command, orders, answers, mine)
            mine.callback(self.kill)
            self.process = _open_process(self._process.pid, mine)
            """Readable when the worker has ended, even if a child of it still holds its pipes;
            None on kernels without process descriptors, before 5.3."""
            for descriptor in (self._orders, self.answers, self.output):
                os.set_blocking(descriptor, False)
            self._resources = mine.pop_all()

    def send(self, message: ToWorker, deadline: float) -> None:
        """Writes the message, and takes in what the worker prints meanwhile: a worker whose pipes
        are full reads nothing. Raises `MemberLost` when nobody reads it until `deadline`, on the
        clock of ``time.monotonic``, and for a worker that answers before it has read it."""
        line = memoryview(encode(message))
        pipes = select.poll()
        pipes.register(self._orders, select.POLLOUT)
        pipes.register(self.answers, select.POLLIN)
        if self._prints:
            pipes.register(self.output, select.POLLIN)
        while line:
            left = deadline - time.monotonic()
            ready = dict(pipes.poll(1000 * left)) if left > 0 else {}
            if not ready:
                raise MemberLost(self.overdue("does not read its orders"))
            if self.output in ready and not self.drain_log():
                pipes.unregister(self.output)
            if self.answers in ready:
                self._raise_for_answers()
            elif self._orders in ready:
                line = line[self._write(line) :]

    def _write(self, line: memoryview) -> int:
        """How many bytes the pipe took."""
        try:
            return os.write(self._orders, line)
        except BrokenPipeError:
            self._raise_for_answers()  # the last that it said, if it said anything
            raise MemberLost(self.obituary()) from None

    def _raise_for_answers(self) -> None:
        """Raises `MemberLost` for what has arrived."""
        for message in self.receive():
            raise MemberLost(self.unexpected(message))

    def receive(self) -> list[FromWorker]:
        """What has arrived; call when `answers` or `process` is readable. Raises `MemberLost` for
        what is no answer, and when nothing more can come."""
        try:
            data = os.read(self.answers, _READ_BYTES)
        except BlockingIOError:  # woken by the end of the process: somebody else holds the pipe
            data = b""
        if not data:
            raise MemberLost(self.obituary())
        try:
            return [decode_from_worker(line) for line in self._lines.feed(data)]
        except ProtocolError as error:
            raise MemberLost(self._failure("protocol", f"the worker wrote {error}")) from error

    def drain_log(self) -> bool:
        """Takes in what the worker has printed by now; False when nothing more will come."""
        with suppress(BlockingIOError):
            data = os.read(self.output, _READ_BYTES)
            self._log.add(data)
            self._prints = bool(data)
        return self._prints

    def obituary(self) -> Failure:
        """Why the worker stopped answering; ends it if it did not end itself."""
        ended = self._await_end(_EXIT_SECONDS)
        self.kill()
        if not ended:
            return self._failure("protocol", "the worker closed its answers and went on running")
        status = self._process.returncode
        torn = " in the middle of a line" if self._lines.unfinished else ""
        if status >= 0:
            return self._failure("crash", f"the worker ended with status {status}{torn}")
        name = _signal_name(-status)
        if name == "SIGKILL" and limits.killed_for_memory() > self._killed_before:
            reason = "the kernel killed the worker: the control group's memory limit was reached"
            return self._failure("out-of-memory", reason)
        return self._failure("crash", f"the worker was killed by {name}{torn}")

    def overdue(self, complaint: str) -> Failure:
        """The failure of a worker whose time is over; kills it."""
        self.kill()
        return self._failure("timeout", f"the worker {complaint} and was killed")

    def unexpected(self, message: FromWorker) -> Failure:
        """The failure of a worker that said something out of turn. If the worker said why it
        cannot go on, that is the failure."""
        if isinstance(message, Failed) and message.fatal:
            return message.failure
        said = type(message).__name__.lower()
        reason = f": {message.failure.reason}" if isinstance(message, Failed) else ""
        return self._failure("protocol", f"the worker said {said!r} out of turn{reason}")

    def _failure(self, kind: str, reason: str) -> Failure:
        self.drain_log()
        words = self._log.tail()
        printed = f"; it printed: {words}" if words else ""
        return Failure(kind, f"{reason}, while {self.doing}{printed}")

    def end(self, seconds: float) -> None:
        """Stops the worker, waits that long, and makes sure of it."""
        self.doing = "ending"
        with suppress(MemberLost):
            self.send(End(), time.monotonic() + seconds)
            self._await_end(seconds)
        self.close()

    def kill(self) -> None:
        """Ends the worker and whatever it started; does nothing to one that is gone.

        Raises `ProbeError` when it does not go.
        """
        if self._process.returncode is not None:
            return
        # Not yet waited for, so the number is still its own, be it dead or alive.
        os.killpg(self._process.pid, signal.SIGKILL)
        if not self._await_end(_KILL_SECONDS):
            raise ProbeError(
                f"worker {self._process.pid} does not end, although killed",
                remedy="it is stuck in a driver; see the kernel's log, the GPU may need a reset",
            )
        self._process.wait()

    def close(self) -> None:
        """Kills the worker and closes every descriptor; any number of times."""
        self._resources.close()

    def _await_end(self, seconds: float) -> bool:
        """Whether the process ended within that time; takes in its log meanwhile, so that it does
        not wait for a reader, and leaves its status to be collected."""
        deadline = time.monotonic() + seconds
        while not self.ended:
            if time.monotonic() > deadline:
                return False
            self.drain_log()
            time.sleep(_POLL_SECONDS)
        return True

    @property
    def ended(self) -> bool:
        """Whether the process is gone by now."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return (
            self._process.returncode is not None
            or os.waitid(os.P_PID, self._process.pid, options) is not None
        )


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe whose two ends are closed with the stacks that own them."""
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _start(
    command: Sequence[str], orders: int, answers: int, owner: ExitStack
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and the descriptor from which its output is read."""
    output, printed = os.pipe()
    owner.callback(os.close, output)
    arguments = ("--read-fd", orders, "--write-fd", answers, "--parent", os.getpid())
    try:
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            pass_fds=(orders, answers),
            start_new_session=True,
            env=worker_environment(),
        )
    except OSError as error:
        raise ProbeError(f"a worker cannot be started: {error}", where=command[0]) from error
    finally:
        os.close(printed)
    return process, output


def _open_process(pid: int, owner: ExitStack) -> int | None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    owner.callback(os.close, descriptor)
    return descriptor


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
