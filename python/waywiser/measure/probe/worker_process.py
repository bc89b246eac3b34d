"""The process of one worker: its start, its log, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from waywiser.machine import limits
from waywiser.machine.met_limit import met_limit
from waywiser.measure.probe.channel import READ_BYTES
from waywiser.measure.probe.environment import worker_environment
from waywiser.words import WaywiserError
from waywiser.words.closeable import Closeable
from waywiser.words.crash_text import BETWEEN_LINES, crash_lines, names_signal
from waywiser.words.records import KILLED

_KEPT_BYTES = 65536
_SHOWN_LINES = 4
_SHOWN_CHARACTERS = 400

_POLL_SECONDS = 0.002
"""Seconds between two looks at a worker that is ending; nothing is being measured then."""

_KILL_SECONDS = 15.0
"""Seconds for a killed worker to be gone; one in the middle of a driver call can take seconds."""


class ProbeError(WaywiserError):
    """No worker can be had, or one cannot be got rid of: the survey cannot go on."""


class LimitReached(ProbeError):
    """A limit of the system leaves no room for a worker."""


class Log:
    """The last kilobytes of a stream of output."""

    def __init__(self) -> None:
        self._end = b""

    def add(self, data: bytes) -> None:
        self._end = (self._end + data)[-_KEPT_BYTES:]

    @property
    def text(self) -> str:
        return self._end.decode("utf-8", "replace")

    def tail(self) -> str:
        """The last lines as one line of printable text, or those that name a signal and the top
        frames; empty when nothing was printed."""
        lines = self.text.splitlines()
        if len(self._end) == _KEPT_BYTES:
            lines = lines[1:] or lines  # the first one is cut
        printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
        lines = crash_lines(printable)
        crashed = bool(lines) and names_signal(lines[0])
        shown = lines[:_SHOWN_LINES] if crashed else lines[-_SHOWN_LINES:]
        text = BETWEEN_LINES.join(shown)
        if crashed:
            return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
        return text if len(text) <= _SHOWN_CHARACTERS else "…" + text[-_SHOWN_CHARACTERS:]


class WorkerProcess(Closeable):
    """A process of a session of its own, whose output is kept as a log. Raises `ProbeError` if it
    cannot be started."""

    def __init__(self, command: Sequence[str], inherited: Sequence[int]) -> None:
        self._log = Log()
        self.prints = True
        """Until the worker has closed its output."""
        self._killed_before = limits.killed_for_memory()
        with ExitStack() as stack:
            self._process, self.output = _start(command, inherited, stack)
            stack.callback(self.kill)
            self.descriptor = _open_process(self._process.pid, stack)
            """Readable when the worker has ended, even if a child of it still holds its channel;
            None on kernels without process descriptors, before 5.3."""
            os.set_blocking(self.output, False)
            self._resources = stack.pop_all()

    @property
    def pid(self) -> int:
        """Its number, which is that of its session too; 0 once its end has been waited for: another
        process may have the number then."""
        return 0 if self._process.returncode is not None else self._process.pid

    def drain_log(self) -> bool:
        """Takes in what the worker has printed by now; False when nothing more will come."""
        with suppress(BlockingIOError):
            data = os.read(self.output, READ_BYTES)
            self._log.add(data)
            self.prints = bool(data)
        return self.prints

    def printed(self) -> str:
        """The last lines that it printed, as one line."""
        self.drain_log()
        return self._log.tail()

    def ending(self) -> tuple[str, str]:
        """The kind of failure that its end amounts to, and how it ended. It must have ended and
        been waited for (`kill`)."""
        status = self._process.returncode
        if status >= 0:
            return "crash", f"the worker ended with status {status}"
        name = signal_name(-status)
        if name == "SIGKILL" and (why := self._killed_before.why()):
            return KILLED, f"the kernel, out of memory, killed the worker: {why}"
        return "crash", f"the worker was killed by {name}"

    def kill(self) -> None:
        """Ends the worker and whatever it started; does nothing to one that is gone.

        Raises `ProbeError` when it does not go.
        """
        if self._process.returncode is not None:
            return
        # Not yet waited for, so the number is still its own, be it dead or alive.
        os.killpg(self._process.pid, signal.SIGKILL)
        if not self.await_end(_KILL_SECONDS):
            raise ProbeError(
                f"worker {self._process.pid} does not end, although killed",
                remedy="it is stuck in a driver; see the kernel's log, the GPU may need a reset",
            )
        self._process.wait()

    def await_end(self, seconds: float) -> bool:
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

    def close(self) -> None:
        """Kills the worker and closes its descriptors; any number of times."""
        self._resources.close()


def _start(
    command: Sequence[str], inherited: Sequence[int], owner: ExitStack
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, and the descriptor from which its output is read."""
    output, printed = os.pipe()
    owner.callback(os.close, output)
    try:
        process = subprocess.Popen(
            [*command, "--parent", str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            pass_fds=inherited,
            start_new_session=True,
            env=worker_environment(),
        )
    except OSError as error:
        if limit := met_limit(error):
            raise LimitReached(limit.what, remedy=limit.remedy) from error
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


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
