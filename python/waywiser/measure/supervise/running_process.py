"""Processes that something else has started: known by their numbers, and when they started."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from waywiser.measure.supervise.deadline import Deadline
from waywiser.words import Value

_STARTTIME = 19
"""The place of starttime in /proc/PID/stat, after the name of the program."""

_KILL_SECONDS = 1.5
"""Seconds for killed processes to be gone; one in the middle of a driver call can take longer."""

_POLL_SECONDS = 0.01


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
    while left := set(running()):
        for each in left - killed:
            each.kill()
        killed |= left
        if deadline.is_over:
            break
        time.sleep(_POLL_SECONDS)
    return len(killed - left), left


def kill_descendants() -> None:
    """Kills every process that comes from this one, and waits some time until they are gone."""
    end_all(lambda: map(RunningProcess.of, descendants(os.getpid())), Deadline(_KILL_SECONDS))


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
