"""Processes that this one starts, with their log and their end, and those that something else has
started, which are known by their numbers."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock

from waywiser.measure.supervise.channel import LOOK_SECONDS, READ_BYTES
from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Closeable, Value, WaywiserError
from waywiser.words.crash_text import BETWEEN_LINES, crash_lines, names_signal

_KEPT_BYTES = 65536
_SHOWN_LINES = 4
_SHOWN_CHARACTERS = 400

_POLL_SECONDS = 0.002
"""Seconds between two looks at a process that is ending, where the kernel does not announce it."""

_KILL_SECONDS = 15.0
"""Seconds for a killed process to be gone; one in the middle of a driver call can take seconds."""

_STARTTIME = 19
"""The place of starttime in /proc/PID/stat, after the name of the program."""

_GONE_SECONDS = 1.5
"""Seconds for killed processes to be gone; one in the middle of a driver call can take longer."""

_LOOK_SECONDS = 0.01


class ProcessError(WaywiserError):
    """A process cannot be had, or one cannot be got rid of."""


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


class ChildProcess(Closeable):
    """A process of a session of its own, whose output is kept as a log: a
    `waywiser.measure.supervise.team.TeamMember`. Its status is collected by `kill`: until then no
    other process has its number. Any thread may use it. Raises `OSError` if it cannot be started.
    """

    name = "process"

    takes_along = True
    """Whether what it has started is killed after its own end too."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        inherited: Sequence[int] = (),
        *,
        takes_input: bool = False,
    ) -> None:
        self.log = Log()
        self.prints = True
        """Until it has closed its output, and so has whatever it started."""
        self._reading, self._collecting = Lock(), Lock()
        with ExitStack() as stack:
            self.output, printed = os.pipe()
            stack.callback(os.close, self.output)
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    pass_fds=inherited,
                    start_new_session=True,
                    env=environment,
                )
            finally:
                os.close(printed)
            self.descriptor = _open_process(self._process.pid, stack)
            """Readable when it has ended, even if a child of it still holds its output; None on
            kernels without process descriptors, before 5.3."""
            stack.callback(self._read_no_more)
            stack.callback(self.give, b"")
            stack.callback(self.kill)
            os.set_blocking(self.output, False)
            self._resources = stack.pop_all()

    @property
    def pid(self) -> int:
        """Its number, which is that of its session too; 0 once its status is collected."""
        return 0 if self._process.returncode is not None else self._process.pid

    def give(self, data: bytes) -> None:
        """Writes to its standard input, and closes that. Does nothing if it has ended."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with suppress(BrokenPipeError), pipe:
                pipe.write(data)

    def drain_log(self) -> bool:
        """Takes in what it has printed by now; False when nothing more will come."""
        with self._reading, suppress(BlockingIOError):
            if self.prints:
                data = os.read(self.output, READ_BYTES)
                self.log.add(data)
                self.prints = bool(data)
        return self.prints

    def printed(self) -> str:
        """The last lines that it printed, as one line."""
        self.drain_log()
        return self.log.tail()

    @property
    def status(self) -> int | None:
        """What it ended with, negative for a signal; None while it runs."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with self._collecting:
            if self._process.returncode is not None:
                return self._process.returncode
            found = os.waitid(os.P_PID, self._process.pid, options)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    @property
    def ended(self) -> bool:
        return self.status is not None

    def leave(self, deadline: Deadline) -> None:
        """Nothing: it ends by itself, or when it is closed."""

    def how_it_ended(self) -> str:
        """In words. It must have ended."""
        status = self.status or 0
        if status < 0:
            names = (each.name for each in signal.Signals if each == -status)
            return f"the {self.name} was killed by {next(names, f'signal {-status}')}"
        return f"the {self.name} ended with status {status}"

    def await_end(self, deadline: Deadline) -> bool:
        """Whether it ends by then; takes in its log meanwhile, so that it does not wait for a
        reader."""
        return self._wait(deadline, lambda: self.ended, self.descriptor)

    def await_silence(self, deadline: Deadline) -> bool:
        """Whether it, and all that holds its output, prints nothing more by then."""
        return self._wait(deadline, lambda: not self.prints, self.output)

    def _wait(self, deadline: Deadline, is_over: Callable[[], bool], shows: int | None) -> bool:
        """Waits until something is over, which the descriptor ``shows`` if there is one."""
        while not is_over():
            if deadline.is_over:
                return False
            poll = select.poll()
            for descriptor in filter(None, {shows, self.output if self.prints else None}):
                poll.register(descriptor, select.POLLIN)
            look = _POLL_SECONDS if shows is None else LOOK_SECONDS
            poll.poll(1000 * min(deadline.left, look))
            self.drain_log()
        return True

    def stop(self, seconds: float, *, group: bool = True) -> None:
        """Lets it end by SIGTERM within this time."""
        if not self.ended:
            self.signal(signal.SIGTERM, group=group)
            self.await_end(Deadline(seconds))

    def signal(self, number: int, *, group: bool = True) -> None:
        """Sends a signal to it and what it started, or to it alone; not once it was collected."""
        with self._collecting, suppress(ProcessLookupError):
            if self._process.returncode is None:
                if group:
                    os.killpg(self._process.pid, number)
                else:
                    os.kill(self._process.pid, number)

    def kill(self) -> None:
        """Ends it and whatever it started; does nothing to one that is gone. Raises `ProcessError`
        when it does not go."""
        if self.takes_along or not self.ended:
            self.signal(signal.SIGKILL)
        if not self.await_end(Deadline(_KILL_SECONDS)):
            raise ProcessError(
                f"{self.name} {self._process.pid} does not end, although killed",
                remedy="it is stuck in a driver; see the kernel's log, the GPU may need a reset",
            )
        with self._collecting:
            self._process.wait()

    def close(self) -> None:
        """Kills it and closes its descriptors; any number of times."""
        self._resources.close()

    def _read_no_more(self) -> None:
        with self._reading:
            self.prints = False


def _open_process(pid: int, owner: ExitStack) -> int | None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    owner.callback(os.close, descriptor)
    return descriptor


class RunningProcess(Value, frozen=True):
    """A process of a node."""

    pid: int
    birth: str = ""
    """When it started, in ticks of its kernel: a later process may have the same number."""

    @classmethod
    def of(cls, pid: int) -> RunningProcess:
        """The process that has this number now."""
        return cls(pid, birth(pid))

    @property
    def is_running(self) -> bool:
        return self.birth != "" and birth(self.pid) == self.birth

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal, if its number is not that of another one by now."""
        if self.is_running:
            with suppress(OSError):
                os.kill(self.pid, number)


def end_all(
    running: Callable[[], Iterable[RunningProcess]], deadline: Deadline
) -> tuple[int, set[RunningProcess]]:
    """Kills what runs, as long as something does and there is time. Returns how many are gone, and
    those that are not."""
    killed: set[RunningProcess] = set()
    left: set[RunningProcess] = set()

    def all_gone() -> bool:
        nonlocal left
        left = set(running())
        for each in left - killed:
            each.kill()
        killed.update(left)
        return not left

    deadline.wait_until(all_gone, _LOOK_SECONDS)
    return len(killed - left), left


def kill_descendants() -> None:
    """Kills every process that comes from this one, and waits some time until they are gone."""
    end_all(lambda: map(RunningProcess.of, descendants(os.getpid())), Deadline(_GONE_SECONDS))


def processes() -> Iterator[int]:
    """The numbers of all processes that can be seen."""
    return map(int, filter(str.isdigit, os.listdir("/proc")))


def descendants(pid: int) -> list[int]:
    """The running processes that come from a process."""
    children: dict[int, list[int]] = {}
    for each in processes():
        fields = _fields(each)
        if fields and fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(each)
    found: list[int] = []
    ahead = [pid]
    while ahead:
        own = children.get(ahead.pop(), [])
        found += own
        ahead += own
    return found


def birth(pid: int) -> str:
    """When a process started, in ticks of the kernel; empty if it has ended."""
    fields = _fields(pid)
    return "" if not fields or fields[0] in "ZX" else fields[_STARTTIME]


def _fields(pid: int) -> list[str]:
    """What /proc says after the name of the program."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
