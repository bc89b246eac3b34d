"""Launches of ranks with real MPI libraries: messages, ends, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.measure.ranks.watching import (
    PATIENCE_SECONDS,
    OwnFiles,
    descendants,
    is_running,
    launcher_of,
    wait_until,
)

from mpi_wheels import mpicc_of
from waywiser.measure.probe.environment import RANKS_VARIABLE
from waywiser.measure.probe.protocol import Greeting, encode
from waywiser.measure.ranks import launch as launch_module
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.mpi_library import Mpicc, MpiError, MpiLibrary, find_library

RANK = Path(__file__).with_name("checking_rank.py")

NO_MPI = MpiLibrary(Mpicc("/none/mpicc", "PATH"), "/none.so", "none 1.0", "", was_cached=True)

ONLY_CONNECTS = """
import os, time
from waywiser.measure.ranks.rank import connect_back, end_with
end_with(connect_back())
time.sleep(600)
"""


pytestmark = pytest.mark.usefixtures("places")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "victim", "lost"),
    [
        ("mpich", "rank", "rank [0-2] ended, in the wait"),
        ("openmpi", "launcher", "the launcher was killed by SIGKILL, in the wait"),
    ],
)
def test_ranks_exchange_the_right_bytes_and_leave_nothing_when_one_is_killed(
    name: str,
    victim: str,
    lost: str,
    nothing_left: Callable[[Launch], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch_module, "_EXIT_SECONDS", PATIENCE_SECONDS)
    library = find_library(mpicc_of(name))
    with Launch(library, [sys.executable, str(RANK), library.bridge], 3) as launch:
        launch.join()
        found = [json.loads(line) for line in launch.answers("checks", PATIENCE_SECONDS)]
        nothing_left(launch)
        assert [each["wrong"] for each in found] == [[], [], []]
        assert [rank.joined.rank for rank in launch.ranks if rank.joined] == [0, 1, 2]
        assert {rank.stated for rank in launch.ranks} == {0, 1, 2}
        assert {each["multicast"] for each in found} == {"0"}
        assert {each["stage"] for each in found} == {""}
        assert re.fullmatch(r"receive from rank 1, call \d+", found[0]["blocked"])
        assert Path(found[0]["temporary"]).name.startswith("waywiser-ranks-")
        launcher = launcher_of(launch)
        assert b"NCCL_NVLS_ENABLE=0" in Path(f"/proc/{launcher}/environ").read_bytes().split(b"\0")
        pid = launch.ranks[1].pid if victim == "rank" else launcher
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(MpiError, match=lost) as caught:
            launch.answers("wait", PATIENCE_SECONDS)
        assert "\n" not in str(caught.value)


ALONE = """
import time
from waywiser.measure.probe.protocol import Joined, encode
from waywiser.measure.ranks.rank import connect_back, end_with
from waywiser.measure.supervise.deadline import NEVER
channel = connect_back()
end_with(channel)
channel.send(encode(Joined(0, 1, "another 1.0", "", -1)), NEVER)
time.sleep(600)
"""


def test_processes_that_are_alone_have_the_launcher_of_another_library(
    nothing_left: Callable[[Launch], None], tmp_path: Path
) -> None:
    rank = tmp_path / "alone.py"
    rank.write_text(ALONE)
    template = "sh -c 'env R={ranks} {command} & exec {command}'"
    with Launch(NO_MPI, [sys.executable, str(rank)], 2, template=template) as launch:
        nothing_left(launch)
        with pytest.raises(MpiError, match="2 processes that are alone: it is not the launcher of"):
            launch.join()


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("false {ranks} {command}", "false: the launcher ended with status 1 when 0 of 1 ranks"),
        ("/nowhere/x {ranks} {command}", "/nowhere/x: the launcher is no program that can be run"),
        ("sh -c 'echo hello; exit 3' {ranks} {command}", "status 3 .* printed: hello"),
    ],
)
def test_a_launcher_that_starts_no_rank_is_one_line(
    template: str, reason: str, files: OwnFiles
) -> None:
    with pytest.raises(MpiError, match=reason) as caught:
        Launch(NO_MPI, [sys.executable, "-c", "pass"], 1, template=template)
    assert "\n" not in str(caught.value)
    assert files.left() == set()


def test_ranks_that_do_not_come_in_time_are_an_error() -> None:
    with pytest.raises(MpiError, match=r"0 of 1 ranks have connected in 0\.2 s"):
        Launch(NO_MPI, ["600"], 1, template="sleep {ranks} {command}", seconds=0.2)


def test_whoever_does_not_know_the_secret_is_no_rank(
    nothing_left: Callable[[Launch], None],
) -> None:
    stranger = (
        f"""
import os, socket
port = os.environ["{RANKS_VARIABLE}"].split(":")[1]
for line in ({encode(Greeting("a guess", 1))!r}, b"no line\\n", b""):
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
"""
        + ONLY_CONNECTS
    )
    with Launch(NO_MPI, [sys.executable, "-c", stranger], 1, template=ONE_RANK) as launch:
        nothing_left(launch)
        (rank,) = launch.ranks
        assert rank.pid == launcher_of(launch)
        assert rank.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0


ONE_RANK = "env RANKS={ranks} {command}"
"""A launcher that is the rank itself, without MPI."""


@pytest.mark.parametrize(
    ("stage", "number", "said"),
    [
        ("send to rank 1, call 7", 0, "rank 4 is in 'send to rank 1, call 7'"),
        ("", 0, "rank 4 is not in MPI"),
        ("", signal.SIGSTOP, "rank 4 does not answer"),
    ],
)
def test_a_hang_names_the_call_that_each_rank_is_in(
    stage: str, number: int, said: str, nothing_left: Callable[[Launch], None]
) -> None:
    code = ONLY_CONNECTS.replace("connect_back())", f"connect_back(), lambda: {stage!r})")
    template = f"env PMI_RANK=4 {ONE_RANK.removeprefix('env ')}"
    with Launch(NO_MPI, [sys.executable, "-c", code], 1, template=template) as launch:
        nothing_left(launch)
        os.kill(launch.ranks[0].pid, number)
        with pytest.raises(MpiError, match=rf"no end of the send in 0\.1 s: {said}"):
            launch.answers("send", 0.1)
        if number == signal.SIGSTOP:
            os.kill(launch.ranks[0].pid, signal.SIGCONT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSTOP])
def test_a_rank_ends_with_its_launch(
    number: signal.Signals, nothing_left: Callable[[Launch], None]
) -> None:
    with Launch(NO_MPI, [sys.executable, "-c", ONLY_CONNECTS], 1, template=ONE_RANK) as launch:
        nothing_left(launch)
        os.kill(launch.ranks[0].pid, number)


@pytest.mark.parametrize("connects", [True, False])
def test_nothing_is_left_when_the_process_that_launched_is_killed(
    connects: bool, files: OwnFiles
) -> None:
    """Whether or not a rank has connected, which could clean up itself."""
    rank = (
        [sys.executable, "-m", "waywiser.measure.ranks.attempt"] if connects else ["sleep", "600"]
    )
    code = f"""
import sys, time
from waywiser.measure.ranks.launch import Launch
from waywiser.measure.ranks.mpi_library import MpiLibrary, Mpicc
library = MpiLibrary(Mpicc("/none/mpicc", "PATH"), "", "", "", was_cached=True)
launch = Launch(library, {rank!r}, 1, template={ONE_RANK!r}, seconds=600)
print(flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        if connects:
            assert first.stdout.readline() == b"\n"
        assert wait_until(lambda: len(descendants(first.pid)) == 2), "guard and rank"
        pids = descendants(first.pid)
        assert files.left()
        first.kill()
    assert wait_until(lambda: not any(map(is_running, pids)))


def test_nothing_is_left_when_a_process_ends_after_its_thread_that_launched(
    files: OwnFiles,
) -> None:
    """The threads of a process that is killed end one after the other."""
    code = """
import os, sys, threading, time
from waywiser.measure.ranks.launch_start import Launcher
from waywiser.measure.ranks.leftovers import folders

def launch():
    launcher = Launcher(["sleep", "600"], os.environ, temporary)
    launcher.start()
    sys.stdin.readline()

with folders("secret") as temporary:
    threading.Thread(target=launch).start()
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as first:
        assert wait_until(lambda: len(descendants(first.pid)) == 2), "guard and launcher"
        pids = descendants(first.pid)
        assert files.left()
        assert first.stdin is not None
        first.stdin.write(b"\n")
        first.stdin.flush()
        assert wait_until(lambda: sum(map(is_running, pids)) <= 1), "the guard at most"
        first.kill()
    assert wait_until(lambda: not any(map(is_running, pids)))
