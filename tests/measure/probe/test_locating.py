"""Workers look where memory is before their first order, and survive whatever comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_orders import an_order, processes_in

from waywiser.measure.probe.worker_process import ProbeError
from waywiser.words import Memory, Place
from waywiser.words.records import Locality, Process, Visit

Run = Callable[..., list[Visit]]
MEMORIES = (Memory("pinned", Place("numa", 0)), Memory("pinned", Place("numa", 1)))


def located(run: Run, *arguments: str, **options: object) -> tuple[list[Visit], list[Locality]]:
    found: list[Locality] = []
    processes = [Process(), Process(), Process(block=1)]
    orders = [an_order(block=n, process=process) for n, process in enumerate(processes)]
    settings = {"located": MEMORIES, "located_cpus": (0, 5), **options}
    return run(orders, *arguments, on_locality=found.append, **settings), found


def test_each_kind_of_worker_looks_once_at_each_memory(run: Run) -> None:
    visits, found = located(run)
    assert [visit.stop for visit in visits] == ["converged"] * 3
    assert [(each.worker, each.memory) for each in found] == [
        (1, "pinned@numa:0"),
        (1, "pinned@numa:1"),
        (2, "pinned@numa:0"),
        (2, "pinned@numa:1"),
    ]
    assert found[0].cpus == (0, 5) and found[0].gpus == (0,) and found[0].failure is None
    assert found[0].blocks[0].copies == ((6e-6,),)
    assert found[0].started.endswith("+00:00")


@pytest.mark.parametrize(
    ("deed", "kind"),
    [("segv", "crash"), ("garbage", "protocol"), ("hang", "timeout"), ("sticky", "sticky")],
)
def test_a_worker_that_is_lost_while_looking_costs_no_order(
    run: Run, pids: Path, deed: str, kind: str
) -> None:
    options = {"locating_seconds": 0.5} if deed == "hang" else {}
    visits, found = located(run, "--locating", deed, **options)
    assert [visit.stop for visit in visits] == ["converged"] * 3
    assert [each.failure.kind for each in found if each.failure] == [kind, kind]
    assert all(not each.blocks for each in found)
    assert [visit.worker for visit in visits] == [2, 2, 4], "a fresh one, which is not asked again"
    assert len(processes_in(pids)) == 4


@pytest.mark.parametrize(
    ("deed", "kind", "reason"),
    [
        ("stop", "crash", "scripted stop (scripted remedy)"),
        ("give-up", "sticky", "scripted loss of the device"),
        ("complain", "protocol", "'failed' out of turn: scripted complaint"),
        ("stale", "protocol", "'progressed' out of turn"),
    ],
)
def test_a_worker_that_is_lost_while_looking_says_why(
    run: Run, deed: str, kind: str, reason: str
) -> None:
    _, found = located(run, "--locating", deed)
    failures = [each.failure for each in found if each.failure]
    assert [failure.kind for failure in failures] == [kind, kind]
    assert all(reason in failure.reason for failure in failures)


def test_a_survey_that_no_worker_survives_says_what_it_was_lost_for(run: Run) -> None:
    with pytest.raises(ProbeError, match="1 workers in a row did not get ready: scripted sticky"):
        located(run, "--locating", "sticky", startup_attempts=1)


def test_a_worker_that_fails_goes_on(run: Run) -> None:
    visits, found = located(run, "--locating", "not-supported")
    assert [each.failure.kind for each in found if each.failure] == ["not-supported"] * 4
    assert [visit.worker for visit in visits] == [1, 1, 2]
