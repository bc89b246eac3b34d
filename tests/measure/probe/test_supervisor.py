"""One order lost for each misfortune, with its reason, and the next one measured afresh."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from scripted_orders import a_machine, an_order, processes_in, wait_until

from waywiser.measure.probe import member
from waywiser.measure.probe.supervisor import Progress
from waywiser.measure.probe.worker_process import ProbeError
from waywiser.words.records import Failure, Order, Process, Visit

Run = Callable[..., list[Visit]]

MISFORTUNES = [
    ("segv", "crash", "killed by SIGSEGV, while"),
    ("kill", "crash", "killed by SIGKILL, while"),
    ("exit", "crash", "ended with status 0, while"),
    ("exit-7", "crash", "ended with status 7, while"),
    ("half", "crash", "ended with status 3 in the middle of a line"),
    ("raise", "crash", "ZeroDivisionError"),
    ("garbage", "protocol", "'libgpu: warning 7'"),
    ("version", "protocol", "protocol version 2, this is version 1"),
    ("late-version", "protocol", "does not begin with its version"),
    ("turn", "protocol", "said 'ready' out of turn"),
    ("stale", "protocol", "said 'progressed' out of turn"),
    ("complain", "protocol", "said 'failed' out of turn: scripted complaint"),
    ("stop", "crash", "scripted stop (scripted remedy)"),
    ("give-up", "sticky", "scripted loss of the device"),
    ("give-up-and-exit", "sticky", "scripted loss of the device"),
    ("close", "protocol", "closed its answers and went on running"),
    ("out-of-memory", "out-of-memory", "scripted out-of-memory"),
    ("sticky", "sticky", "scripted sticky"),
]


@pytest.mark.parametrize(("deed", "kind", "reason"), MISFORTUNES)
@pytest.mark.parametrize("when", ["prepare", "measure"])
def test_a_misfortune_costs_one_order_and_the_worker(
    run: Run, monkeypatch: pytest.MonkeyPatch, deed: str, kind: str, reason: str, when: str
) -> None:
    if deed == "close":  # which never ends by itself
        monkeypatch.setattr(member, "_EXIT_SECONDS", 0.2)
    lost, after = run([an_order({"do": deed, "when": when}), an_order()])
    assert lost.stop == "failed"
    assert lost.failure is not None
    assert lost.failure.kind == kind
    assert reason in lost.failure.reason
    assert "\n" not in lost.failure.reason
    assert len(lost.samples) == 0
    assert (lost.worker, after.worker) == (1, 2)
    assert after.stop == "converged"
    assert len(after.samples) == 3


def test_the_reason_says_what_the_worker_was_doing(run: Run) -> None:
    orders = [an_order({"do": "kill", "when": w}) for w in ("prepare", "measure", "late")]
    reasons = [visit.failure.reason for visit in run(orders) if visit.failure]
    assert "while preparing" in reasons[0]
    assert "while measuring, before the first sample" in reasons[1]
    assert "while measuring: 6 samples, median 1.5e-06 s" in reasons[2]


def test_the_reason_ends_with_what_the_worker_printed(run: Run) -> None:
    (lost,) = run([an_order({"do": "exit-7"})])
    assert lost.failure is not None
    assert lost.failure.reason.endswith("; it printed: cannot go on")


def test_a_hang_is_ended_by_the_time_out_of_the_order(run: Run) -> None:
    first = an_order()  # its worker is no longer fresh when it hangs
    lost, after = run([first, an_order({"do": "hang"}, timeout_seconds=0.3), an_order(block=1)])[1:]
    assert lost.failure is not None
    assert lost.failure.kind == "timeout"
    assert "took too long and was killed, while " in lost.failure.reason
    assert lost.elapsed_seconds >= 0.3
    assert after.stop == "converged"


def test_the_first_order_of_a_worker_may_take_longer_by_the_startup_time(run: Run) -> None:
    slow = {"do": "sleep", "when": "prepare"}
    (visit,) = run([an_order(slow, timeout_seconds=0.2)])
    assert visit.stop == "converged"


def test_a_line_without_end_is_cut_off(run: Run) -> None:
    lost, after = run([an_order({"do": "huge"}), an_order()])
    assert lost.failure is not None
    assert lost.failure.kind == "protocol"
    assert "a line of more than 67108864 bytes: 'xxx" in lost.failure.reason
    assert len(lost.failure.reason) < 300
    assert after.stop == "converged"


def test_an_order_that_fails_leaves_the_worker_alive(run: Run) -> None:
    unsupported_paths, after = run(
        [an_order({"do": "not-supported", "when": "prepare"}), an_order()]
    )
    assert unsupported_paths.failure is not None
    assert unsupported_paths.failure.kind == "not-supported"
    assert (unsupported_paths.worker, after.worker) == (1, 1)


def test_noise_on_standard_output_is_not_the_protocol(run: Run) -> None:
    noisy, lost = run([an_order({"do": "noise"}), an_order({"do": "exit"})])
    assert noisy.stop == "converged"
    assert lost.failure is not None
    assert lost.failure.reason.count("driver:") == 1  # equal lines are one
    assert lost.failure.reason.isprintable()


def test_children_of_a_worker_go_with_it(run: Run, pids: Path) -> None:
    (lost,) = run([an_order({"do": "child"})])  # the fixture sees that the child is gone
    assert lost.failure is not None
    assert "SIGKILL" in lost.failure.reason
    assert len(processes_in(pids)) == 2


def test_a_worker_serves_consecutive_orders_of_equal_process_settings(run: Run) -> None:
    settings = [Process(block=0), Process(block=0), Process(block=1), Process(False, block=1)]
    visits = run(an_order(process=process, block=i) for i, process in enumerate(settings))
    assert [visit.worker for visit in visits] == [1, 1, 2, 3]
    assert [visit.block for visit in visits] == [0, 1, 2, 3]


def test_the_next_order_is_asked_for_after_the_visit_before_was_seen(run: Run) -> None:
    seen: list[int] = []

    def orders() -> Iterator[Order]:
        for block in range(3):
            assert seen == list(range(block))
            yield an_order(block=block)

    run(orders(), on_visit=lambda visit: seen.append(visit.block))
    assert seen == [0, 1, 2]


def test_a_worker_that_is_killed_between_two_orders_costs_none(run: Run, pids: Path) -> None:
    def orders() -> Iterator[Order]:
        yield an_order()
        (worker,) = processes_in(pids)
        os.kill(worker, signal.SIGKILL)
        over = os.WEXITED | os.WNOWAIT  # with its last thread: what the supervisor looks at
        assert os.waitid(os.P_PID, worker, over) is not None
        yield an_order(block=1)

    visits = run(orders())
    assert [(visit.failure, visit.worker) for visit in visits] == [(None, 1), (None, 2)]


def test_a_worker_that_gives_up_between_two_orders_says_why(
    run: Run, pids: Path, tmp_path: Path
) -> None:
    def orders() -> Iterator[Order]:
        yield an_order({"do": "give-up-later"})
        (tmp_path / "go-on").touch()
        assert wait_until((tmp_path / "given-up").exists)
        yield an_order(block=1)
        yield an_order(block=2)

    before, lost, after = run(orders())
    assert (before.failure, before.worker) == (None, 1)
    assert lost.failure == Failure("sticky", "scripted loss of the device")
    assert (after.failure, after.worker) == (None, 2)


@pytest.mark.parametrize(
    ("when", "deed", "reason"),
    [
        ("--before", "give-up", "scripted loss of the device"),
        ("--before", "give-up-and-exit", "scripted loss of the device"),
        ("--before", "complain", "said 'failed' out of turn: scripted complaint, while starting"),
        ("--before", "stale", "said 'progressed' out of turn, while starting"),
        ("--startup", "give-up", "scripted loss of the device"),
        ("--startup", "stop", r"scripted stop \(scripted remedy\)"),
        ("--startup", "not-supported", "scripted not-supported"),
        ("--startup", "complain", "said 'failed' out of turn: scripted complaint, while starting"),
        ("--startup", "stale", "said 'progressed' out of turn, while starting"),
    ],
)
def test_a_survey_that_gives_up_says_what_the_worker_said(
    run: Run, when: str, deed: str, reason: str
) -> None:
    with pytest.raises(ProbeError, match=f"1 workers in a row did not get ready: .*{reason}"):
        run([an_order()], when, deed, startup_attempts=1)


def test_progress_arrives_with_its_order(run: Run) -> None:
    heard: list[Progress] = []
    order = an_order()
    run([order], on_progress=heard.append)
    assert heard == [Progress(order, 6, 1.5e-6, 1e-6, 2e-6)]


def test_a_visit_carries_its_context(run: Run) -> None:
    order = an_order(block=4)
    (visit,) = run([order], first_worker=9)
    assert (visit.workload, visit.block, visit.worker) == (order.workload, 4, 9)
    assert visit.started.endswith("+00:00")
    assert visit.samples.host == (2e-6,) * 3
    assert visit.buffers[0].state == "verified"
    assert visit.elapsed_seconds > 0


def test_interrupting_drops_the_current_visit_and_the_worker(run: Run) -> None:
    seen: list[Visit] = []

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([an_order({"do": "hang", "when": "late"})], on_progress=interrupt, on_visit=seen.append)
    assert seen == []


def test_an_error_of_the_caller_leaves_nothing_behind(run: Run) -> None:
    def orders() -> Iterator[Order]:
        yield an_order()
        raise RuntimeError("the plan broke")

    with pytest.raises(RuntimeError, match="the plan broke"):
        run(orders())


def test_the_survey_gives_up_when_no_worker_gets_ready(run: Run, pids: Path) -> None:
    with pytest.raises(
        ProbeError, match=r"3 workers in a row .* status 7.* cannot go on"
    ) as caught:
        run([an_order()], "--startup", "exit-7", startup_attempts=3)
    assert caught.value.remedy
    assert len(processes_in(pids)) == 3


def test_a_worker_that_starts_too_slowly_is_replaced(run: Run) -> None:
    with pytest.raises(ProbeError, match="took too long and was killed, while starting"):
        run([an_order()], "--startup", "hang", startup_seconds=0.5, startup_attempts=2)


def test_a_command_that_does_not_exist_is_said_clearly(run: Run) -> None:
    with pytest.raises(ProbeError, match="/no/such/worker: a worker cannot be started"):
        run([an_order()], command=("/no/such/worker",))


def test_a_path_found_to_block_is_remembered_for_later_workers(run: Run) -> None:
    blocking = {"blocks": "yes"}
    orders = [an_order(blocking, block=b, process=Process(block=b)) for b in (0, 1)]
    assert [visit.mode for visit in run(orders)] == ["device", "host"]


def test_gpus_counted_differently_are_not_measured(run: Run) -> None:
    """The scripted worker counts GPUs in the order in which the machine names them."""
    machine = a_machine(gpus=2)
    other = msgspec.structs.replace(machine, gpus=machine.gpus[::-1])
    with pytest.raises(ProbeError, match="gpu:1 is GPU-1 in the capture, but GPU-0 to CUDA"):
        run([an_order()], machine=other)
