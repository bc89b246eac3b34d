"""An agent ends processes of its node, and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from waywiser.cluster.connection.protocol import (
    KillLaunch,
    KillProcesses,
    KillResult,
    RunningProcess,
)
from waywiser.cluster.node.node_processes import (
    kill_launch,
    kill_processes,
    launched_processes,
    launcher_daemons,
)
from waywiser.measure.probe.environment import RANKS_VARIABLE
from waywiser.measure.ranks.launcher import LAUNCH_PARAMETER
from waywiser.measure.ranks.leftovers import name_of
from waywiser.measure.supervise.process import birth, descendants

LONG = 300.0


@contextmanager
def sleeping(**environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "3600"], env={**os.environ, **environment}) as process:
        try:
            yield process
        finally:
            process.kill()


def test_named_processes_are_killed() -> None:
    with sleeping() as one, sleeping() as other:
        named = (RunningProcess(one.pid, birth(one.pid)), RunningProcess(2**22 + 1))
        assert kill_processes(KillProcesses(named, LONG)) == KillResult(1)
        assert one.wait() == -9
        assert birth(other.pid)


def test_a_later_process_of_the_same_number_is_spared() -> None:
    with sleeping() as process:
        named = (RunningProcess(process.pid, "1"), RunningProcess(1), RunningProcess(-1))
        assert kill_processes(KillProcesses(named, LONG)) == KillResult(0)
        assert birth(process.pid)


def test_what_a_launch_has_started_is_killed() -> None:
    with (
        sleeping(**{RANKS_VARIABLE: "10.0.0.1:7:the-secret"}) as ours,
        sleeping(**{RANKS_VARIABLE: "10.0.0.1:7:another"}) as other,
        sleeping(OTHER="the-secret") as stranger,
    ):
        while not launched_processes("the-secret"):
            pass  # the environment is that of this process until it has become `sleep`
        assert kill_launch(KillLaunch("the-secret", LONG)) == KillResult(1)
        assert ours.wait() == -9
        assert birth(other.pid) and birth(stranger.pid)
        assert kill_launch(KillLaunch("the-secret", LONG)) == KillResult(0)
        assert kill_launch(KillLaunch("", LONG)) == KillResult(0)


@contextmanager
def daemon(name: str, *, heeds: bool) -> Iterator[subprocess.Popen[bytes]]:
    """What the launcher of the launch with this name has started on a node. It may not heed
    SIGTERM."""
    code = "import time; print(flush=True); time.sleep(3600)"
    if not heeds:
        code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {code}"
    command = [sys.executable, "-c", code, "--prtemca", LAUNCH_PARAMETER, name, "--prtemca", "x"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def test_daemons_of_the_launcher_that_stay_may_leave_and_are_killed() -> None:
    ours, theirs = name_of("the-secret"), name_of("another")
    with (
        daemon(ours, heeds=True) as leaves,
        daemon(ours, heeds=False) as stays,
        daemon(theirs, heeds=True) as other,
        sleeping(OTHER=ours) as stranger,
    ):
        assert {each.pid for each in launcher_daemons("the-secret")} == {leaves.pid, stays.pid}
        assert kill_launch(KillLaunch("the-secret", LONG)) == KillResult(1)
        assert (leaves.wait(), stays.wait()) == (-signal.SIGTERM, -signal.SIGKILL)
        assert birth(other.pid) and birth(stranger.pid)


def test_who_does_not_end_in_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "kill", lambda pid, number: None)
    with sleeping() as process:
        found = kill_processes(KillProcesses((RunningProcess(process.pid),), 0.0))
        assert found == KillResult(0, (process.pid,))
        monkeypatch.undo()


def test_descendants_are_children_and_their_children() -> None:
    command = ["sh", "-c", "sleep 3600 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert {child.pid, grandchild} <= set(descendants(os.getpid()))
        assert descendants(child.pid) == [grandchild]
        named = tuple(RunningProcess(pid) for pid in (grandchild, child.pid))
        assert kill_processes(KillProcesses(named, LONG)) == KillResult(2)
        assert not birth(child.pid)
