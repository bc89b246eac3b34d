"""The survey of a node by itself, as an agent makes it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.measure.ranks.watching import is_running, wait_until

from waywiser.cluster.connection.protocol import CheckEnded, ReadPart, RunCheck
from waywiser.cluster.node.node_check import NodeCheck
from waywiser.cluster.node.node_files import NodeFiles
from waywiser.measure.probe.sharing import SurveyLock
from waywiser.measure.supervise.process import descendants
from waywiser.profile import Profile

ONLY = ("malloc@numa:0",)
CHECK = RunCheck("quick", "none", ONLY)

PROCESS = """
import os, sys
from waywiser.cluster.node import check_process
from waywiser.measure import survey_run
from waywiser.measure.probe.sharing import SurveyLock
survey_run.SurveyLock = lambda: SurveyLock(f"waywiser-test-{os.getppid()}")
sys.exit(check_process.main())
"""
"""The process with a lock that only the test has beside it."""

COMMAND = (sys.executable, "-c", PROCESS)


@pytest.fixture
def files() -> Iterator[NodeFiles]:
    with NodeFiles() as files:
        yield files


def run_in_thread(check: Callable[[], CheckEnded]) -> tuple[threading.Thread, list[CheckEnded]]:
    ended: list[CheckEnded] = []
    thread = threading.Thread(target=lambda: ended.append(check()))
    thread.start()
    return thread, ended


def test_the_profile_is_offered_when_no_other_survey_runs(files: NodeFiles, tmp_path: Path) -> None:
    with SurveyLock(f"waywiser-test-{os.getpid()}"):
        thread, ended = run_in_thread(lambda: NodeCheck(files, COMMAND).run(CHECK))
        assert wait_until(lambda: bool(descendants(os.getpid())))
        thread.join(1.0)
        assert not ended
    thread.join()
    assert (ended[0].exit_code, ended[0].printed) == (0, "")
    assert ended[0].profile is not None
    copy = tmp_path / "n1.wwp"
    copy.write_bytes(files.read(ReadPart(ended[0].profile.name)).content)
    assert copy.stat().st_size == ended[0].profile.bytes
    with Profile.open(copy) as profile:
        visits = list(profile.visits())
    assert any(len(visit.samples) for visit in visits)


def test_a_survey_that_measures_nothing_says_why(files: NodeFiles) -> None:
    ended = NodeCheck(files, COMMAND).run(RunCheck(gpus="none", only=("no such path",)))
    assert ended.profile is None
    assert ended.exit_code != 0
    assert "no such path" in ended.printed
    assert "Traceback" not in ended.printed


def test_a_survey_that_takes_too_long_is_killed(files: NodeFiles) -> None:
    with SurveyLock(f"waywiser-test-{os.getpid()}"):
        ended = NodeCheck(files, COMMAND).run(RunCheck("check", "none", ONLY, 0.2))
    assert ended == CheckEnded(-1, printed="the survey took longer than 0.2 s", is_late=True)


AGENT = """
import sys
from waywiser.cluster.node.node_check import NodeCheck
from waywiser.cluster.node.node_files import NodeFiles
from waywiser.cluster.connection.protocol import RunCheck
NodeCheck(NodeFiles(), (sys.executable, "-c", sys.argv[1])).run(RunCheck("check", "none"))
"""


def test_a_survey_ends_with_its_agent(tmp_path: Path) -> None:
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, PROCESS], env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    with SurveyLock(f"waywiser-test-{agent.pid}"):
        try:
            assert wait_until(lambda: bool(descendants(agent.pid)))
            started = descendants(agent.pid)
            assert wait_until(lambda: any(b"--parent" in command_line(pid) for pid in started))
        finally:
            agent.kill()
            agent.wait()
        assert wait_until(lambda: not any(map(is_running, started)))


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
