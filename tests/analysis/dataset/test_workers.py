"""Processes that call functions for this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waywiser.analysis.dataset.workers import WorkerProcesses
from waywiser.words import WordError, natural_key


def call_for_test(number: int, parent: int, fails_in: str) -> tuple[int, int]:
    """Returns the number and the process, or ends the process as it is said."""
    if os.getpid() != parent and fails_in == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if os.getpid() != parent and fails_in == "raises":
        raise ValueError("not here")
    return number, os.getpid()


@pytest.fixture(autouse=True)
def _in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets other processes import this module."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_answers_are_in_order_and_each_place_has_its_process(processes: int) -> None:
    here = os.getpid()
    with WorkerProcesses(processes) as workers:
        first = workers.each(call_for_test, [(n, here, "") for n in range(7)])
        again = workers.each(call_for_test, [(n, here, "") for n in range(7)])
    assert [number for number, _ in first] == list(range(7))
    assert first == again
    assert len({process for _, process in first}) == processes
    assert all(not Path(f"/proc/{process}").exists() for _, process in first if process != here)


@pytest.mark.parametrize("how", ["killed", "raises"])
def test_what_a_lost_process_had_to_do_this_one_does(how: str) -> None:
    here = os.getpid()
    with WorkerProcesses(3) as workers:
        for _ in range(2):
            found = workers.each(call_for_test, [(n, here, how) for n in range(7)])
            assert found == [(n, here) for n in range(7)]


def test_a_call_aside_has_a_process_of_its_own_beside_the_others() -> None:
    here = os.getpid()
    with WorkerProcesses(2, aside=("waywiser.words",)) as workers:
        answer = workers.start_aside(call_for_test, 7, here, "")
        others = workers.each(call_for_test, [(n, here, "") for n in range(4)])
        number, process = answer()
        assert number == 7
        assert process not in {here, *(each for _, each in others)}
        while Path(f"/proc/{process}").exists():  # it ends with the call
            time.sleep(0.01)


@pytest.mark.parametrize("how", ["killed", "raises"])
def test_a_call_aside_that_is_lost_is_made_here(how: str) -> None:
    here = os.getpid()
    with WorkerProcesses(2, aside=("waywiser.words",)) as workers:
        assert workers.start_aside(call_for_test, 7, here, how)() == (7, here)
        assert workers.start_aside(call_for_test, 8, here, how)() == (8, here)


def test_without_a_process_aside_the_call_is_made_when_its_answer_is_needed() -> None:
    with WorkerProcesses(1) as workers:
        answer = workers.start_aside(natural_key, 1)
        with pytest.raises(TypeError):
            answer()


def test_a_module_that_cannot_be_loaded_costs_its_process_alone() -> None:
    here = os.getpid()
    with WorkerProcesses(2, modules=("no.such.module",), aside=("no.such.module",)) as workers:
        assert workers.start_aside(call_for_test, 7, here, "")() == (7, here)
        assert workers.each(call_for_test, [(n, here, "") for n in range(2)]) == [
            (0, here),
            (1, here),
        ]


def test_an_error_is_raised_here() -> None:
    with WorkerProcesses(2) as workers, pytest.raises(TypeError):
        workers.each(natural_key, [("a",), (1,)])


def test_without_python_this_process_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waywiser.analysis.dataset.workers.COMMAND", ("/no/such/program",))
    with WorkerProcesses(4) as workers:
        assert workers.each(natural_key, [("a",), ("b",)]) == [((-1, "a"),), ((-1, "b"),)]


def wait_in_worker(file: str, parent: int) -> None:
    """Waits for long in another process, whose number it writes, and fails in this one."""
    if os.getpid() == parent:
        while not Path(file).exists() or not Path(file).read_text():
            time.sleep(0.01)
        raise WordError("here")
    Path(file).write_text(str(os.getpid()))
    time.sleep(600)


def test_a_process_that_works_ends_when_this_one_fails(tmp_path: Path) -> None:
    file = tmp_path / "number"
    with WorkerProcesses(2) as workers, pytest.raises(WordError):
        workers.each(wait_in_worker, [(str(file), os.getpid())] * 2)
    assert not Path(f"/proc/{file.read_text()}").exists()


def test_a_process_that_works_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    file = tmp_path / "number"
    program = (
        "import os, signal, sys, threading, test_workers as t\n"
        "from pathlib import Path\n"
        "from waywiser.analysis.dataset.workers import WorkerProcesses\n"
        "def die(file, parent):\n"
        "    try: t.wait_in_worker(file, parent)\n"
        "    finally: os.kill(os.getpid(), signal.SIGKILL)\n"
        "other = t.wait_in_worker\n"
        "with WorkerProcesses(2) as workers:\n"
        "    threading.Thread(target=die, args=(sys.argv[1], os.getpid()), daemon=True).start()\n"
        "    workers.each(other, [(sys.argv[1] + 'x', 0), (sys.argv[1], 0)])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    number = file.read_text()
    while Path(f"/proc/{number}").exists():
        if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break  # it has ended, and its status is not collected
        time.sleep(0.01)
