"""Workers that start side by side, wait, and take turns."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from scripted_orders import an_order, is_alive, processes_in

from waywiser.measure.probe.worker_process import LimitReached, ProbeError
from waywiser.words.records import Order, Process, Visit

Run = Callable[..., list[Visit]]

BLOCKS = 4


def blocks_from(block: int) -> list[Process]:
    return [Process(block=each) for each in range(block, BLOCKS)]


class Blocks:
    """Orders of several processes, with those that come."""

    def __init__(self, each: int = 2, before: Callable[[int], None] = lambda block: None) -> None:
        self._each = each
        self._before = before
        self._block = 0

    def __iter__(self) -> Iterator[Order]:
        for self._block in range(BLOCKS):
            self._before(self._block)
            for _ in range(self._each):
                yield an_order(block=self._block, process=Process(block=self._block))

    def coming(self) -> Sequence[Process]:
        return blocks_from(self._block)


def spans(file: Path, begin: str, end: str) -> list[tuple[float, float]]:
    """From one event to the next of the same worker."""
    found: list[tuple[float, float]] = []
    begun: dict[str, float] = {}
    for line in file.read_text().splitlines():
        time, pid, what, _ = line.split()
        if what == begin:
            begun[pid] = float(time)
        elif what == end:
            found.append((begun.pop(pid), float(time)))
    return found


def test_processes_that_come_start_side_by_side(run: Run) -> None:
    """Each worker waits for all others before it says that it is ready."""
    orders = Blocks()
    found = run(
        orders, "--startup", "gather", "--gather", "4", coming=orders.coming, together=BLOCKS
    )
    assert [visit.worker for visit in found] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert all(visit.failure is None for visit in found)


@pytest.mark.parametrize("together", [1, 2, 3, 4, 9])
def test_nothing_is_measured_while_a_worker_starts(run: Run, tmp_path: Path, together: int) -> None:
    orders = Blocks()
    found = run(orders, coming=orders.coming, together=together)
    starts = spans(tmp_path / "events", "start", "ready")
    visits = spans(tmp_path / "events", "order", "done")
    assert (len(starts), len(visits)) == (BLOCKS, len(found))
    for began, ended in visits:
        assert all(ready <= began or ended <= start for start, ready in starts)
    before_first = sum(ready <= visits[0][0] for _, ready in starts)
    assert before_first == min(together, BLOCKS)


@pytest.mark.parametrize("together", [1, 2, 3])
def test_no_more_workers_are_there_than_may_be(run: Run, pids: Path, together: int) -> None:
    alive: list[int] = []
    orders = Blocks()

    def look(visit: Visit) -> None:
        alive.append(sum(map(is_alive, processes_in(pids))))

    run(orders, coming=orders.coming, together=together, on_visit=look)
    assert max(alive) == together


def test_a_worker_that_is_killed_while_it_waits_is_replaced_before_its_turn(
    run: Run, pids: Path, tmp_path: Path
) -> None:
    of_worker: defaultdict[int, list[int]] = defaultdict(list)

    def kill_last(block: int) -> None:
        if block == 1:
            last = started(tmp_path / "events")[BLOCKS - 1]
            os.kill(last, signal.SIGKILL)
            assert os.waitid(os.P_PID, last, os.WEXITED | os.WNOWAIT) is not None

    orders = Blocks(before=kill_last)
    found = run(orders, coming=orders.coming, together=BLOCKS)
    for visit in found:
        of_worker[visit.worker].append(visit.block)
    assert all(visit.failure is None for visit in found)
    assert sorted(of_worker.values()) == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert 5 in of_worker
    assert len(processes_in(pids)) == BLOCKS + 1


def started(events: Path) -> dict[int, int]:
    """The first worker of each block."""
    lines = [line.split() for line in events.read_text().splitlines()]
    return {int(block): int(pid) for _, pid, what, block in lines[::-1] if what == "start"}


def test_a_worker_that_is_lost_at_its_turn_leaves_those_that_wait(run: Run) -> None:
    first = Process(block=0)
    orders = [
        an_order({"do": "kill"}, process=first),
        an_order(process=first),
        an_order(process=Process(block=1)),
    ]
    found = run(orders, coming=lambda: blocks_from(0)[:2], together=2)
    assert [visit.failure is None for visit in found] == [False, True, True]
    assert [visit.worker for visit in found] == [1, 3, 2]


def test_a_start_that_fails_ahead_of_its_turn_costs_nothing(run: Run, pids: Path) -> None:
    orders = Blocks()
    arguments = ("--startup", "exit-first", "--startup-of", "2")
    found = run(orders, *arguments, coming=orders.coming, together=BLOCKS, startup_attempts=1)
    assert [visit.block for visit in found] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(visit.failure is None for visit in found)
    assert len(processes_in(pids)) == BLOCKS + 1


def test_a_worker_that_never_gets_ready_ends_the_survey_at_its_turn(run: Run) -> None:
    seen: list[Visit] = []
    orders = Blocks()
    arguments = ("--startup", "exit-7", "--startup-of", "2")
    with pytest.raises(ProbeError, match="2 workers in a row did not get ready"):
        run(
            orders,
            *arguments,
            coming=orders.coming,
            together=BLOCKS,
            startup_attempts=2,
            on_visit=seen.append,
        )
    assert [visit.block for visit in seen] == [0, 0, 1, 1]


def test_what_blocks_behind_a_gate_is_known_to_workers_that_wait(run: Run) -> None:
    blocking = {"blocks": "yes"}
    processes = [Process(block=block) for block in (0, 1)]
    orders = [an_order(blocking, block=each.block, process=each) for each in processes]
    found = run(orders, coming=lambda: processes, together=2)
    assert [(visit.mode, visit.worker) for visit in found] == [("device", 1), ("host", 2)]


def test_an_interrupt_ends_workers_that_wait(run: Run, pids: Path) -> None:
    """The fixture sees that none is left."""
    orders = Blocks()

    def interrupt(visit: Visit) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(orders, coming=orders.coming, together=BLOCKS, on_visit=interrupt)
    assert len(processes_in(pids)) == BLOCKS


def test_a_limit_that_holds_for_several_holds_for_one_alone(run: Run, pids: Path) -> None:
    """Those that wait may be what is too much: the next attempt is of one."""
    orders = Blocks(each=1)
    with pytest.raises(LimitReached):
        run(orders, "--startup", "limit", coming=orders.coming, together=2)
    assert len(processes_in(pids)) == 3


def test_a_context_that_ends_its_worker_is_left_to_the_orders(run: Run, pids: Path) -> None:
    """So that they say what is wrong with the GPU, and others are measured."""
    orders = Blocks(each=1)
    arguments = ("--startup", "exit-with-gpus")
    found = run(orders, *arguments, coming=orders.coming, together=2, gpus=(0,))
    assert all(visit.failure is None for visit in found)
    assert len(found) == BLOCKS
