"""Ends processes of a node: those that are named, and those of a launch of ranks."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from waywiser.cluster.connection.protocol import KillLaunch, KillProcesses, KillResult
from waywiser.measure.probe.environment import RANKS_VARIABLE
from waywiser.measure.ranks.launcher import LAUNCH_PARAMETER
from waywiser.measure.ranks.leftovers import name_of, remove_leftovers
from waywiser.measure.supervise import Deadline, RunningProcess
from waywiser.measure.supervise.process import end_all, processes

_LEAVE_SECONDS = 2.0
"""Seconds for daemons of a launcher to leave, and to remove their files."""


def kill_processes(request: KillProcesses) -> KillResult:
    """Kills processes that are named, and waits until they are gone."""
    named = {each.pid: each for each in request.processes if each.pid > 1}

    def running() -> Iterable[RunningProcess]:
        now = map(RunningProcess.of, named)
        return [each for each in now if each.birth and named[each.pid].birth in ("", each.birth)]

    return _end(running, request.seconds)


def kill_launch(request: KillLaunch) -> KillResult:
    """Kills every process that has the secret of the launch in its environment, and the launcher's
    daemons if they do not leave, waits until they are gone, and removes what they have left."""
    secret = request.secret
    for each in launcher_daemons(secret):
        each.kill(signal.SIGTERM)
    ranks = _end(lambda: launched_processes(secret), request.seconds)
    Deadline(_LEAVE_SECONDS).wait_until(lambda: not launcher_daemons(secret))
    daemons = _end(lambda: launcher_daemons(secret), request.seconds)
    remove_leftovers(secret)
    return KillResult(
        ranks.killed + daemons.killed, tuple(sorted(ranks.survivors + daemons.survivors))
    )


def launched_processes(secret: str) -> list[RunningProcess]:
    """The processes of this user that a launch with this secret has started here."""
    found = [RunningProcess.of(pid) for pid in processes() if _has_secret(pid, secret)]
    return [each for each in found if each.birth and each.pid != os.getpid()]


def launcher_daemons(secret: str) -> list[RunningProcess]:
    """The processes here by which the launcher of a launch with this secret starts ranks, if they
    state it (`waywiser.measure.ranks.launcher.LAUNCH_PARAMETER`)."""
    words = f"\0{LAUNCH_PARAMETER}\0{name_of(secret)}\0".encode()
    found = [RunningProcess.of(pid) for pid in processes() if words in _read(pid, "cmdline")]
    return [each for each in found if each.birth]


def _end(running: Callable[[], Iterable[RunningProcess]], seconds: float) -> KillResult:
    killed, left = end_all(running, Deadline(seconds))
    return KillResult(killed, tuple(sorted(each.pid for each in left)))


def _has_secret(pid: int, secret: str) -> bool:
    name = f"{RANKS_VARIABLE}=".encode()
    variables = _read(pid, "environ").split(b"\0") if secret else []
    return any(each.startswith(name) and secret.encode() in each for each in variables)


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty if it has ended, or is of another user."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
