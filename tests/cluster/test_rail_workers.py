"""The workers of a node's rails, with groups whose behaviour is scripted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from profiles import machine
from waywiser.cluster.connection.rail_requests import (
    MeasureRails,
    RailsMeasured,
    RailsReady,
    RankLoss,
    ReadyRails,
)
from waywiser.cluster.connection.rank_orders import STREAM_OF_NCCL, pair_parts
from waywiser.cluster.node.rail_workers import RailWorkers
from waywiser.machine.machine import Machine
from waywiser.measure.probe.member import Member
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import MeasuredVisit
from waywiser.measure.probe.worker_process import ProbeError
from waywiser.words.cluster import ClusterNode, Rail, RailTime
from waywiser.words.records import Failure, Order, Samples, Visit

RAILS = (Rail(0, gpu=0), Rail(1, gpu=1))
NODES = ClusterNode("a", rails=RAILS), ClusterNode("b", rails=RAILS)
TEST = MeasureRails(
    test="3 a b",
    key="ab",
    first_rank=0,
    rails=2,
    ranks=4,
    parts=pair_parts(*NODES, 100, "nccl", settings=STREAM_OF_NCCL),
    seed=1,
    seconds=60.0,
)

KEY = ReadyRails(2, makes_key=True)

SPANS = (1.0,) * 6


@dataclass
class Script:
    """What groups do, the first ones differently; and what was requested of them."""

    ready: list[Failure | None] = field(default_factory=list)
    key: str | Failure = "ab12"
    connected: float | Failure = 0.5
    failures: list[Failure] = field(default_factory=list)
    """One for each measurement, while there are some."""
    loses: bool = False
    """A failure is that of a worker that is lost."""
    ends_by_abort: bool = True
    """A measurement that hangs ends if it is aborted."""
    hangs: bool = False
    is_stuck: bool = False
    starts: threading.Event | None = None
    """Set when a group starts, which is ready only when its process ends."""
    on_made: Callable[[ScriptedGroup], None] = lambda group: None
    groups: list[ScriptedGroup] = field(default_factory=list)
    measures: threading.Event = field(default_factory=threading.Event)

    def make(self, gpus: Sequence[int], number: int) -> ScriptedGroup:
        self.groups.append(ScriptedGroup(self, gpus))
        self.on_made(self.groups[-1])
        return self.groups[-1]


class ScriptedGroup:
    """Has a process, which tests kill and which does nothing."""

    def __init__(self, script: Script, gpus: Sequence[int]) -> None:
        self.script = script
        self.gpus = tuple(gpus)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        self.size = len(gpus)
        self.lost = False
        self.blamed: Member | None = None
        self.aborted = threading.Event()
        self.connections: list[tuple[str, tuple[int, ...], int] | str] = []

    @property
    def usable(self) -> bool:
        return not self.lost

    def get_ready(self, machine: Machine, options: ProbeOptions) -> Failure | None:
        if self.script.starts is not None:
            self.script.starts.set()
            self.script.starts = None
            assert self.process.wait(60) < 0
            self.lost = True
            return Failure("crash", "the worker was killed by SIGKILL")
        return self.script.ready.pop(0) if self.script.ready else None

    def make_key(self, seconds: float) -> str | Failure:
        return self.script.key

    def connect(self, key: str, ranks: Sequence[int], size: int, seconds: float) -> float | Failure:
        self.connections.append((key, tuple(ranks), size))
        return self.script.connected

    def leave(self) -> None:
        self.connections.append("left")

    def measure(self, order: Order) -> tuple[Visit, tuple[MeasuredVisit, ...]]:
        self.script.measures.set()
        visit = Visit(order.workload, 0, "converged", "", setup_seconds=0.25)
        if self.script.is_stuck:
            raise ProbeError("worker 7 does not end, although killed")
        if self.script.hangs:
            return replace(visit, failure=self._hang()), ()
        if self.script.failures:
            self.lost = self.script.loses
            return replace(visit, failure=self.script.failures.pop(0)), ()
        rails = len(order.workload.transfers)
        samples = Samples(
            SPANS, repetitions=(2,) * 6, flags=(0,) * 6, transfers=((1.0,) * rails,) * 6
        )
        return replace(visit, samples=samples), ()

    def _hang(self) -> Failure:
        if self.script.ends_by_abort:
            assert self.aborted.wait(60)
            return Failure("interrupted", "messages to 3 were stopped")
        assert self.process.wait(60) < 0
        self.lost = True
        return Failure("crash", "the worker was killed by SIGKILL")

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def abort(self) -> None:
        self.aborted.set()

    def kill(self) -> None:
        self.process.kill()

    def end(self, seconds: float) -> None:
        self.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


MakeWorkers = Callable[..., RailWorkers]


@pytest.fixture
def script() -> Iterator[Script]:
    script = Script()
    yield script
    for group in script.groups:
        assert group.process.poll() is not None, "it was closed"


@pytest.fixture
def make(script: Script) -> Iterator[MakeWorkers]:
    made: list[RailWorkers] = []

    def make(rails: Sequence[Rail] = RAILS) -> RailWorkers:
        made.append(RailWorkers(machine, rails, script.make, leave_seconds=0.1))
        return made[-1]

    yield make
    for workers in made:
        workers.close()


def test_the_node_of_the_first_rank_has_the_times(script: Script, make: MakeWorkers) -> None:
    workers = make()
    assert workers.ready(KEY) == RailsReady("ab12")
    found = workers.measure(TEST)
    assert found.times == tuple(
        RailTime(rail, sender, 1.0, 1.0, 1.0, 6) for sender in "ab" for rail in range(2)
    )
    assert (found.setup_seconds, found.sent, found.loss) == (1.0, (1200, 1200), None)
    other = workers.measure(replace(TEST, first_rank=2))
    assert (other.times, other.sent, other.loss) == ((), (), None)
    (group,) = script.groups
    assert group.gpus == (0, 1)
    assert group.connections == [("ab", (0, 1), 4), "left", ("ab", (2, 3), 4), "left"]


def test_fewer_rails_have_other_workers(script: Script, make: MakeWorkers) -> None:
    workers = make()
    assert workers.ready(ReadyRails(2)) == RailsReady()
    workers.ready(ReadyRails(1))
    assert [group.gpus for group in script.groups] == [(0, 1), (0,)]
    assert script.groups[0].process.poll() is not None


def test_workers_that_do_not_get_ready_are_tried_again(script: Script, make: MakeWorkers) -> None:
    script.ready = [Failure("crash", "first"), None]
    assert make().ready(KEY) == RailsReady("ab12")
    script.ready = [Failure("crash", "first"), Failure("gpu", "gpu:1 is lost")]
    reason = "the workers did not get ready: gpu:1 is lost (run waywiser doctor on the node)"
    assert make().ready(KEY) == RailsReady(
        loss=RankLoss(Failure("crash", reason), "own", doing="getting ready")
    )


def test_a_key_that_is_not_made_says_why(script: Script, make: MakeWorkers) -> None:
    script.key = Failure("gpu", "NCCL is not found")
    assert make().ready(KEY).loss == RankLoss(script.key, "own", 0, "making a key")
    assert make().ready(ReadyRails(2)).loss is None


def test_rails_without_gpus_are_not_supported(make: MakeWorkers) -> None:
    loss = make([Rail(0)]).ready(KEY).loss
    assert loss is not None
    assert loss.failure.reason.startswith("0 of the 2 rails of this test have a GPU on this node (")


@pytest.mark.parametrize(
    ("kind", "loses", "cause"),
    [
        ("crash", True, "own"),
        ("crash", False, "others"),
        ("timeout", False, "others"),
        ("timeout", True, "others"),
        ("other-member", True, "others"),
        ("wrong-bytes", False, "others"),
        ("other-member", False, "others"),
        ("out-of-memory", False, "own"),
        ("sticky", True, "own"),
    ],
)
def test_what_a_worker_survives_may_be_of_others(
    script: Script, make: MakeWorkers, kind: str, loses: bool, cause: str
) -> None:
    failure = Failure(kind, "why")
    script.failures, script.loses = [failure], loses
    workers = make()
    assert workers.measure(TEST).loss == RankLoss(failure, cause, -1, "sending from a")  # type: ignore[arg-type]
    assert workers.measure(TEST).loss is None
    assert len(script.groups) == (2 if loses else 1)


def test_ranks_that_do_not_connect_fail_the_test(script: Script, make: MakeWorkers) -> None:
    script.connected = Failure("timeout", "2 of 4 ranks have joined")
    assert make().measure(TEST).loss == RankLoss(script.connected, "others", -1, "connecting")


def test_a_test_that_takes_too_long_is_aborted(script: Script, make: MakeWorkers) -> None:
    script.hangs = True
    found = make().measure(replace(TEST, seconds=0.05))
    reason = "not finished in 0.05 s: messages to 3 were stopped"
    assert found.loss == RankLoss(Failure("timeout", reason), "others", -1, "sending from a")


def test_a_test_whose_time_is_over_before_its_workers_are_there_is_aborted(
    script: Script, make: MakeWorkers
) -> None:
    script.hangs = True
    script.on_made = lambda group: time.sleep(0.3)
    found = make().measure(replace(TEST, seconds=0.05))
    reason = "not finished in 0.05 s: messages to 3 were stopped"
    assert found.loss == RankLoss(Failure("timeout", reason), "others", -1, "sending from a")


def test_workers_that_do_not_leave_are_killed(script: Script, make: MakeWorkers) -> None:
    script.hangs, script.ends_by_abort = True, False
    workers = make()
    found = workers.measure(replace(TEST, seconds=0.05))
    assert found.loss is not None
    assert (found.loss.cause, found.loss.failure.kind) == ("own", "timeout")
    assert found.loss.failure.reason == (
        "not finished in 0.05 s, not left 0.1 s after it was stopped; the worker was killed"
    )
    script.hangs = False
    assert workers.measure(TEST).loss is None


def measured_in_thread(
    workers: RailWorkers, request: MeasureRails
) -> tuple[threading.Thread, list[RailsMeasured]]:
    found: list[RailsMeasured] = []
    thread = threading.Thread(target=lambda: found.append(workers.measure(request)))
    thread.start()
    return thread, found


def test_a_test_is_stopped_by_another_thread(script: Script, make: MakeWorkers) -> None:
    script.hangs = True
    workers = make()
    thread, found = measured_in_thread(workers, TEST)
    assert script.measures.wait(60)
    workers.abort("another test")
    workers.abort(TEST.test)
    thread.join()
    assert found[0].loss is not None
    assert (found[0].loss.cause, found[0].loss.failure.kind) == ("others", "interrupted")


def test_a_test_that_is_stopped_before_it_begins_does_not_begin(
    script: Script, make: MakeWorkers
) -> None:
    workers = make()
    workers.abort(TEST.test)
    found = workers.measure(TEST)
    assert found.loss is not None
    assert found.loss.failure == Failure("interrupted", "stopped before it began")
    assert not script.groups
    assert workers.measure(TEST).loss is None


def test_what_survives_its_kill_ends_the_tests_of_the_node(
    script: Script, make: MakeWorkers
) -> None:
    script.is_stuck = True
    workers = make()
    stuck = "worker 7 does not end, although killed"
    found = workers.measure(TEST)
    loss = RankLoss(Failure("timeout", stuck), "own", doing="getting ready")
    assert (found.stuck, found.loss) == (stuck, loss)
    assert workers.ready(KEY) == RailsReady(loss=loss, stuck=stuck)
    script.groups[0].close()


def test_closing_ends_a_test_that_hangs(script: Script, make: MakeWorkers) -> None:
    script.hangs, script.ends_by_abort = True, False
    workers = make()
    thread, found = measured_in_thread(workers, TEST)
    assert script.measures.wait(60)
    workers.close()
    thread.join()
    assert found[0].loss is not None


@pytest.mark.parametrize("ends", [False, True])
def test_no_worker_is_left_of_a_group_that_is_killed_while_it_starts(
    script: Script, make: MakeWorkers, ends: bool
) -> None:
    """A second group is not made instead."""
    starts = script.starts = threading.Event()
    workers = make()
    found: list[RailsReady] = []
    thread = threading.Thread(target=lambda: found.append(workers.ready(KEY)))
    thread.start()
    assert starts.wait(60)
    workers.close() if ends else workers.kill()
    thread.join()
    (group,) = script.groups
    assert group.process.poll() is not None
    assert found[0].loss is not None and "ended while they started" in found[0].loss.failure.reason
    again = workers.ready(KEY)
    assert (again.loss is None) is not ends
    assert len(script.groups) == (1 if ends else 2)


def test_workers_that_appear_after_their_end_was_requested_are_killed(
    script: Script, make: MakeWorkers
) -> None:
    """The request comes between the start of the processes and the time when they are known."""
    workers = make()
    ending = threading.Thread(target=workers.close)

    def made(group: ScriptedGroup) -> None:
        ending.start()
        while not workers._groups._ends:
            time.sleep(0.001)

    script.on_made = made
    loss = workers.ready(KEY).loss
    ending.join()
    assert loss is not None and "ended while they started" in loss.failure.reason
    assert [group.process.poll() is not None for group in script.groups] == [True]


def test_stopped_workers_are_started_again(script: Script, make: MakeWorkers) -> None:
    workers = make()
    workers.stop()
    workers.ready(KEY)
    workers.stop()
    assert script.groups[0].process.poll() is not None
    assert workers.ready(KEY) == RailsReady("ab12")
    assert len(script.groups) == 2
