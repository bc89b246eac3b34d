"""Processes that are started: what they print, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.measure.ranks.watching import is_running, wait_until

from waywiser.measure.supervise.deadline import NEVER, Deadline
from waywiser.measure.supervise.process import ChildProcess, RunningProcess


def started(code: str, *, takes_input: bool = False) -> ChildProcess:
    return ChildProcess([sys.executable, "-c", code], os.environ, takes_input=takes_input)


@pytest.mark.parametrize(
    ("code", "status", "how"),
    [
        ("print('hello')", 0, "the process ended with status 0"),
        ("print('hello'); raise SystemExit(3)", 3, "the process ended with status 3"),
        (
            "import os; print('hello', flush=True); os.kill(os.getpid(), 9)",
            -9,
            "the process was killed by SIGKILL",
        ),
    ],
)
def test_it_is_known_how_a_process_ended_and_what_it_printed(
    code: str, status: int, how: str
) -> None:
    with started(code) as process:
        assert process.await_end(NEVER)
        assert process.pid, "its status is not collected: no other process has its number"
        assert (process.status, process.how_it_ended()) == (status, how)
        assert process.printed() == "hello"
    assert (process.status, process.printed(), process.pid) == (status, "hello", 0)
    process.close()


def test_a_process_that_prints_more_than_a_pipe_holds_ends() -> None:
    with started("print('x' * (1 << 22)); print('last')") as process:
        assert process.await_end(NEVER)
        assert process.await_silence(NEVER)
        assert process.printed().endswith("last")


CHILD = """
import subprocess, sys
print(subprocess.Popen(["sleep", "3600"]).pid, flush=True)
"""


@pytest.mark.parametrize("ends", [True, False])
def test_what_a_process_has_started_ends_with_it(ends: bool) -> None:
    """Whether or not the process itself is there."""
    with started(CHILD + ("" if ends else "sys.stdin.read()"), takes_input=True) as process:
        assert wait_until(lambda: bool(process.printed()))
        child = int(process.printed())
        assert process.await_end(NEVER if ends else Deadline(0.0)) is ends
        assert not process.await_silence(Deadline(0.0)), "the child holds the output"
        assert is_running(child)
    assert wait_until(lambda: not is_running(child))


STAYS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: print("asked", flush=True))
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


def test_a_process_that_does_not_stop_is_killed_when_it_is_closed() -> None:
    with started(STAYS) as process:
        pid = process.pid
        assert wait_until(lambda: process.printed() == "ready")
        process.stop(0.0)
        assert wait_until(lambda: process.printed() == "ready | asked")
        assert not process.ended
    assert process.status == -signal.SIGKILL
    assert not is_running(pid)
    process.signal(signal.SIGTERM)  # which nothing gets


def test_a_process_reads_what_it_is_given() -> None:
    with started("import sys; print(sys.stdin.read())", takes_input=True) as process:
        process.give(b"a word")
        process.give(b"nothing more")
        assert process.await_silence(NEVER)
        assert process.printed() == "a word"


def test_a_program_that_is_missing_is_an_error_of_the_system(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FileNotFoundError):
        ChildProcess([str(tmp_path / "none")], os.environ)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_signal_is_not_sent_to_a_later_process_of_the_same_number() -> None:
    with started("input()", takes_input=True) as process:
        RunningProcess(process.pid, "1").kill()
        assert RunningProcess.of(process.pid).is_running
        RunningProcess.of(process.pid).kill()
        assert process.await_end(NEVER)
        assert process.status == -signal.SIGKILL
