"""When the supervisor is gone, so are its workers, however it went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from scripted_orders import PATIENCE_SECONDS, a_command, is_alive, processes_in, wait_until

from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.probe.inbox import Inbox
from waywiser.measure.supervise.channel import LineChannel

TESTS = Path(__file__).parent

SUPERVISOR = """
import sys
import threading
from pathlib import Path
sys.path.insert(0, {tests!r})
from scripted_orders import a_command, a_machine, an_order
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
run_orders([an_order({{"do": "hang", "when": "late"}})], a_machine(),
    options=ProbeOptions(command=a_command("--pids", {pids!r})),
    on_visit=lambda visit: None, on_progress=lambda said: print("measuring", flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_its_supervisor(number: signal.Signals, pids: Path) -> None:
    code = SUPERVISOR.format(tests=str(TESTS), pids=str(pids))
    supervisor = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"measuring\n"
        (worker,) = processes_in(pids)
        assert is_alive(worker)
        supervisor.send_signal(number)
        assert wait_until(lambda: not is_alive(worker))
        assert supervisor.wait(PATIENCE_SECONDS) != 0


def start(parent: int, pids: Path) -> tuple[subprocess.Popen[bytes], int, int]:
    """A worker by hand: the process, where to write orders, where to read answers."""
    orders, to_worker = os.pipe()
    from_worker, answers = os.pipe()
    descriptors = ("--read-fd", orders, "--write-fd", answers, "--parent", parent)
    process = subprocess.Popen(
        [*a_command("--pids", str(pids)), *map(str, descriptors)],
        pass_fds=(orders, answers),
        env=worker_environment(),
        start_new_session=True,
    )
    os.close(orders)
    os.close(answers)
    return process, to_worker, from_worker


def test_the_end_of_the_orders_ends_a_worker_whose_parent_lives_on(pids: Path) -> None:
    process, to_worker, from_worker = start(0, pids)
    os.close(to_worker)
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    os.close(from_worker)


def test_a_worker_that_comes_too_late_for_its_parent_ends_at_once(pids: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    process, to_worker, from_worker = start(gone.pid, pids)
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    os.close(to_worker)
    os.close(from_worker)


def test_a_worker_spoken_to_out_of_turn_says_so_and_ends(pids: Path) -> None:
    process, to_worker, from_worker = start(os.getpid(), pids)
    os.write(to_worker, b'{"v":1,"type":"start","id":1}\n')
    assert process.wait(PATIENCE_SECONDS) == 0
    assert b"'start' before 'hello'" in os.read(from_worker, 4096)
    os.close(to_worker)
    os.close(from_worker)


def test_signals_of_the_terminal_do_not_reach_a_measuring_worker(pids: Path) -> None:
    code = SUPERVISOR.format(tests=str(TESTS), pids=str(pids))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.readline()
        (worker,) = processes_in(pids)
        assert os.getsid(worker) == os.getpgid(worker) == worker
        os.kill(worker, signal.SIGINT)
        time.sleep(0.1)
        assert is_alive(worker)
        supervisor.kill()
    assert wait_until(lambda: not is_alive(worker))


def test_a_process_whose_threads_do_not_start_says_why_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(SystemExit) as ended:
        Inbox(LineChannel(0, 1), lambda _: None)
    said = str(ended.value)
    assert "a thread cannot be started: can't start new thread" in said
    assert "docker --pids-limit" in said and "ulimit -u" in said and "\n" not in said
