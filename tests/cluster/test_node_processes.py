"""An agent ends processes of its node, and no others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from waywiser.cluster.node_processes import (
    birth,
    descendants,
    kill_launch,
    kill_processes,
    launched_processes,
)
from waywiser.cluster.protocol import KillLaunch, KillProcesses, KillResult, RunningProcess
from waywiser.measure.ranks.greeting import VARIABLE

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
        sleeping(**{VARIABLE: "10.0.0.1:7:the-secret"}) as ours,
        sleeping(**{VARIABLE: "10.0.0.1:7:another"}) as other,
        sleeping(OTHER="the-secret") as stranger,
    ):
        while not launched_processes("the-secret"):
            pass  # the environment is that of this process until it has become `sleep`
        assert kill_launch(KillLaunch("the-secret", LONG)) == KillResult(1)
        assert ours.wait() == -9
        assert birth(other.pid) and birth(stranger.pid)
        assert kill_launch(KillLaunch("the-secret", LONG)) == KillResult(0)
        assert kill_launch(KillLaunch("", LONG)) == KillResult(0)


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
