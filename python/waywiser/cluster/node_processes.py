"""Ends processes of a node: those that come from the agent, and those of a launch of ranks."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from waywiser.cluster.protocol import KillLaunch, KillProcesses, KillResult, RunningProcess
from waywiser.measure.ranks.greeting import VARIABLE as LAUNCH_VARIABLE
from waywiser.measure.ranks.launcher import LAUNCH_PARAMETER
from waywiser.measure.ranks.leftovers import name_of, remove_leftovers

_PR_SET_CHILD_SUBREAPER = 36  # from <sys/prctl.h>

_STARTTIME = 19
"""The place of starttime in /proc/PID/stat, after the name of the program."""

_KILL_SECONDS = 1.5
"""Seconds for killed processes to be gone; one in the middle of a driver call can take longer."""

_LEAVE_SECONDS = 2.0
"""Seconds for daemons of a launcher to leave, and to remove their files."""

_POLL_SECONDS = 0.01


def adopt_orphans() -> None:
    """Makes this process the parent of what its children leave behind, so that
    `kill_descendants` finds that too."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Kills every process that comes from this one, and waits some time until they are gone."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (found := descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in found:
            _kill(pid)
        time.sleep(_POLL_SECONDS)


def descendants(pid: int) -> list[int]:
    """The running processes that come from a process."""
    children: dict[int, list[int]] = {}
    for each in _processes():
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


def kill_processes(request: KillProcesses) -> KillResult:
    """Kills processes that are named, and waits until they are gone."""
    named = {each.pid: each for each in request.processes if each.pid > 1}

    def running() -> Iterable[RunningProcess]:
        now = {pid: birth(pid) for pid in named}
        return [
            RunningProcess(pid, now[pid])
            for pid, each in named.items()
            if now[pid] and each.birth in ("", now[pid])
        ]

    return _end(running, request.seconds)


def kill_launch(request: KillLaunch) -> KillResult:
    """Kills every process that has the secret of the launch in its environment, and the launcher's
    daemons if they do not leave, waits until they are gone, and removes what they have left."""
    secret = request.secret
    for each in launcher_daemons(secret):
        _kill(each.pid, signal.SIGTERM)
    ranks = _end(lambda: launched_processes(secret), request.seconds)
    deadline = time.monotonic() + _LEAVE_SECONDS
    while launcher_daemons(secret) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    daemons = _end(lambda: launcher_daemons(secret), request.seconds)
    remove_leftovers(secret)
    return KillResult(
        ranks.killed + daemons.killed, tuple(sorted(ranks.survivors + daemons.survivors))
    )


def launched_processes(secret: str) -> list[RunningProcess]:
    """The processes of this user that a launch with this secret has started here."""
    found = [RunningProcess(pid, birth(pid)) for pid in _processes() if _has_secret(pid, secret)]
    return [each for each in found if each.birth and each.pid != os.getpid()]


def launcher_daemons(secret: str) -> list[RunningProcess]:
    """The processes here by which the launcher of a launch with this secret starts ranks, if they
    state it (`waywiser.measure.ranks.launcher.LAUNCH_PARAMETER`)."""
    words = f"\0{LAUNCH_PARAMETER}\0{name_of(secret)}\0".encode()
    found = [RunningProcess(pid, birth(pid)) for pid in _processes() if words in _command(pid)]
    return [each for each in found if each.birth]


def birth(pid: int) -> str:
    """When a process started, in ticks of the kernel; empty if it has ended."""
    fields = _fields(pid)
    return "" if not fields or fields[0] in "ZX" else fields[_STARTTIME]


def _end(running: Callable[[], Iterable[RunningProcess]], seconds: float) -> KillResult:
    """Kills what runs, as long as something does and there is time."""
    deadline = time.monotonic() + seconds
    killed: set[RunningProcess] = set()
    while left := set(running()):
        for each in left - killed:
            _kill(each.pid)
        killed |= left
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_SECONDS)
    return KillResult(len(killed - left), tuple(sorted(each.pid for each in left)))


def _has_secret(pid: int, secret: str) -> bool:
    if not secret:
        return False
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    name = f"{LAUNCH_VARIABLE}=".encode()
    return any(each.startswith(name) and secret.encode() in each for each in variables)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _fields(pid: int) -> list[str]:
    """What /proc says after the name of the program."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
