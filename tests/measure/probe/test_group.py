"""Two workers that measure one workload together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_orders import PATIENCE_SECONDS, an_order, processes_in

from waywiser.measure.probe.blame import failure_of
from waywiser.measure.probe.member import Member
from waywiser.measure.probe.protocol import Pong
from waywiser.words.records import Failure, Visit

Run = Callable[..., list[Visit]]


def test_each_member_measures_its_own_transfers(run: Run, pids: Path) -> None:
    (visit,) = run([an_order({}, {"seconds": "5e-6"}, {})], size=2)
    assert visit.stop == "converged"
    assert visit.samples.transfers == ((1.0, 2.0, 3.0),) * 3
    assert visit.samples.span == (5e-6,) * 3
    assert visit.samples.flags == (3,) * 3  # ranks 0 and 1 set one bit each
    assert visit.buffer_bytes == 6
    assert len(visit.buffers) == 3
    assert len(processes_in(pids)) == 2


def test_a_member_without_a_share_is_not_asked(run: Run) -> None:
    alone, both = run([an_order({}), an_order({}, {})], size=2)
    assert alone.samples.transfers == ((1.0,),) * 3
    assert both.samples.transfers == ((1.0, 2.0),) * 3
    assert (alone.worker, both.worker) == (1, 1)


def test_nobody_starts_before_all_are_prepared(run: Run) -> None:
    """The first member would die on its start; the second fails the preparation."""
    scripts = ({"do": "kill"}, {"do": "not-supported", "when": "prepare"})
    unsupported_paths, after = run([an_order(*scripts), an_order({}, {})], size=2)
    assert unsupported_paths.failure is not None
    assert unsupported_paths.failure.kind == "not-supported"
    assert after.worker == 1
    assert after.stop == "converged"


@pytest.mark.parametrize("deed", ["kill", "hang", "sticky", "garbage"])
def test_the_loss_of_one_member_is_the_loss_of_the_group(run: Run, deed: str) -> None:
    seconds = 0.5 if deed == "hang" else PATIENCE_SECONDS
    orders = [an_order({}, {}), an_order({}, {"do": deed}, timeout_seconds=seconds)]
    orders.append(an_order({}, {}))
    _, lost, after = run(orders, size=2)
    assert lost.failure is not None
    assert lost.stop == "failed"
    assert (lost.worker, after.worker) == (1, 2)
    assert after.stop == "converged"


@pytest.mark.parametrize(
    ("deed", "reason"),
    [("sticky", "scripted sticky"), ("give-up-and-exit", "scripted loss of the device")],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_the_reason_is_that_of_the_member_which_gave_up(
    run: Run, deed: str, reason: str, rank: int
) -> None:
    """The other one is still at work, and need not answer."""
    scripts = [{"do": "hang"}, {"do": "hang"}]
    scripts[rank] = {"do": deed}
    lost, after = run([an_order(*scripts), an_order({}, {})], size=2)
    assert lost.failure == Failure("sticky", reason)
    assert (lost.worker, after.worker) == (1, 2)


def test_a_member_that_gives_up_after_its_answer_says_why(run: Run, tmp_path: Path) -> None:
    """The first member has answered, and the second is still at work."""
    (tmp_path / "go-on").touch()
    (lost,) = run([an_order({"do": "give-up-later"}, {"do": "hang"})], size=2)
    assert lost.failure == Failure("sticky", "scripted loss of the device")


def test_a_member_that_fails_while_the_other_measures_costs_no_worker(run: Run) -> None:
    lost, after = run([an_order({}, {"do": "not-supported"}), an_order({}, {})], size=2)
    assert lost.failure is not None
    assert after.worker == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_a_member_that_does_not_even_answer_is_named(run: Run, rank: int) -> None:
    """The other one hangs too, but answers: it waits for the stopped one."""
    scripts = [{"do": "hang", "when": "late"}, {"do": "hang", "when": "late"}]
    scripts[rank] = {"do": "freeze", "when": "late"}
    first = an_order({}, {})  # the workers are no longer fresh when they hang
    _, lost = run([first, an_order(*scripts, timeout_seconds=0.5)], size=2)
    assert lost.failure is not None
    assert lost.failure.reason.startswith(f"worker {rank + 1} of 2 took too long and was killed")
    assert lost.failure.reason.endswith("; when asked, it did not answer")


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        (("measuring, send to rank 1, call 7", "measuring"), "rank 1 took too long"),
        (("measuring", "measuring, send to rank 0, call 7"), "rank 0 took too long"),
    ],
)
def test_who_waits_for_another_is_not_to_blame(stages: tuple[str, str], says: str) -> None:
    found = blamed(stages)
    assert found.reason.startswith(says)
    assert found.reason.endswith("; when asked, it answered: measuring")


def test_of_members_that_all_wait_it_is_said_for_what() -> None:
    found = blamed(("measuring, receive from rank 1, call 7", "measuring, barrier, call 9"))
    assert found.reason.endswith(
        "; when asked, all wait: rank 0: measuring, receive from rank 1, call 7; "
        "rank 1: measuring, barrier, call 9"
    )


def blamed(stages: tuple[str, str]) -> Failure:
    """The failure of two members that answered so."""
    process: Any = SimpleNamespace(kill=lambda: None, printed=lambda: "")
    members = [Member(n, process, process, f"rank {n}") for n in range(2)]
    pongs = {n: Pong(1, stage, n, "," in stage) for n, stage in enumerate(stages)}
    return failure_of(members, pongs)


@pytest.mark.parametrize("rank", [0, 1])
def test_of_members_that_answer_the_one_that_is_behind_is_named(run: Run, rank: int) -> None:
    scripts = [{"do": "hang", "when": "late"}, {"do": "hang", "when": "late"}]
    scripts[rank]["when"] = "prepare"
    first = an_order({}, {})  # the workers are no longer fresh when they hang
    _, lost = run([first, an_order(*scripts, timeout_seconds=0.5)], size=2)
    assert lost.failure is not None
    assert lost.failure.reason.startswith(f"worker {rank + 1} of 2 took too long and was killed")
    assert lost.failure.reason.endswith("while preparing; when asked, it answered: preparing")
