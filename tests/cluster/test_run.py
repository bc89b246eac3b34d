"""The loop over rounds: what is stored, what is repeated, and how a run ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from cluster.recorded_run import Record
from cluster.simulated_transport import RATE, SimulatedTransport, nodes
from waywiser.analysis.cluster.procedure import Round
from waywiser.cluster.connection.message_size import FIRST_BYTES
from waywiser.cluster.surveys import run as run_module
from waywiser.cluster.surveys import time_plan
from waywiser.cluster.surveys.run import ClusterRun, ClusterRunError, NodesGone, RunStopped
from waywiser.cluster.surveys.run_time import RunTime
from waywiser.cluster.transports.time_limits import RANK_SECONDS
from waywiser.measure.supervise.deadline import Deadline
from waywiser.profile.cluster_folder import ClusterFolder, read_cluster
from waywiser.words import WaywiserError
from waywiser.words.cluster import (
    ClusterNode,
    ClusterPlan,
    FailedTest,
    FinishedTest,
    Phase,
    PlannedTest,
)
from waywiser.words.records import Failure

PLAN = ClusterPlan("mpi", seed=7)

PHASES: tuple[Phase, ...] = ("hangs", "pairs", "pairs", "alone", "collective")


def scripted_round(
    known: Sequence[ClusterNode], plan: ClusterPlan, finished: Sequence[FinishedTest]
) -> Round | None:
    """Five rounds of neighbours, then nothing; nodes that have not joined are in none."""
    names = [node.name for node in known if node.state == "joined"]
    done = {(each.test.round, each.test.nodes) for each in finished}
    for number, phase in enumerate(PHASES if len(names) > 1 else ()):
        pairs = [tuple(names)] if phase == "collective" else list(pairwise(names))[::2]
        missing = tuple(
            PlannedTest(phase, number, pair) for pair in pairs if (number, pair) not in done
        )
        if missing:
            return Round(phase, number, missing)
    return None


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "next_round", scripted_round)
    monkeypatch.setattr(time_plan, "next_round", scripted_round)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[ClusterFolder]:
    with ClusterFolder.create(tmp_path / "c", PLAN) as made:
        yield made


def test_all_rounds_run_and_are_stored(folder: ClusterFolder) -> None:
    transport, watcher = SimulatedTransport(), Record()
    ClusterRun(folder, lambda: nodes(4), transport, watcher).go()
    stored = read_cluster(folder.path)
    assert [test.test for test in stored.tests] == [t for tests in transport.runs for t in tests]
    assert len(stored.tests) == 4 * 2 + 1
    assert all(test.times and not test.failed for test in stored.tests)
    assert list(stored.tests) == watcher.finished
    assert [node.name for node in stored.nodes] == ["n0", "n1", "n2", "n3"]


def test_the_size_is_chosen_from_the_first_tests_and_kept(folder: ClusterFolder) -> None:
    transport = SimulatedTransport()
    ClusterRun(folder, lambda: nodes(4), transport, Record()).go()
    assert transport.sizes[0] == FIRST_BYTES
    (size,) = set(transport.sizes[1:])
    assert size == min(2**24, 2 ** round(RATE * 0.01).bit_length())
    assert read_cluster(folder.path).plan == replace(PLAN, bytes=size, memory="host")


@pytest.mark.parametrize("after", range(9))
def test_a_resume_repeats_nothing(after: int, folder: ClusterFolder) -> None:
    def interrupt(count: int, test: PlannedTest) -> None:
        if count == after:
            raise KeyboardInterrupt

    whole = SimulatedTransport()
    with ClusterFolder.create(folder.path.parent / "whole", PLAN) as other:
        ClusterRun(other, lambda: nodes(4), whole, Record()).go()
    first = SimulatedTransport(on_test=interrupt)
    with pytest.raises(KeyboardInterrupt):
        ClusterRun(folder, lambda: nodes(4), first, Record()).go()
    folder.close()
    assert len(read_cluster(folder.path).tests) == after
    with ClusterFolder.resume(folder.path) as resumed:
        second = SimulatedTransport()
        ClusterRun(resumed, lambda: nodes(4), second, Record()).go()
        assert second.count == 9 - after
        ran = [test.test for test in resumed.tests]
        assert ran == [test for tests in whole.runs for test in tests]


@pytest.mark.parametrize("kind", ["crash", "timeout", "wrong-bytes", "out-of-memory"])
def test_a_failure_costs_its_tests_only(kind: str, folder: ClusterFolder) -> None:
    transport = SimulatedTransport(failures={"n1": kind})
    ClusterRun(folder, lambda: nodes(4), transport, Record()).go()
    failed = [test for test in folder.tests if test.failed]
    assert {test.test.nodes for test in failed} == {("n0", "n1"), ("n0", "n1", "n2", "n3")}
    assert {test.failed.node for test in failed if test.failed} == {"n1"}
    assert len(folder.tests) == 9


def test_a_test_without_a_result_has_failed(folder: ClusterFolder) -> None:
    class Forgetful(SimulatedTransport):
        def run(self, tests, size, seconds, on_finished):  # type: ignore[no-untyped-def]
            super().run(tests[:-1] or tests, size, seconds, on_finished)

    ClusterRun(folder, lambda: nodes(4), Forgetful(), Record()).go()
    failed = [test.failed for test in folder.tests if test.failed]
    assert [each.failure.reason for each in failed] == ["it gave no result"] * 4


def test_a_result_that_comes_twice_counts_once(folder: ClusterFolder) -> None:
    class Twice(SimulatedTransport):
        def run(self, tests, size, seconds, on_finished):  # type: ignore[no-untyped-def]
            def twice(test: FinishedTest) -> None:
                on_finished(test)
                on_finished(test)

            super().run(tests, size, seconds, twice)

    ClusterRun(folder, lambda: nodes(4), Twice(), Record()).go()
    assert len(folder.tests) == 9


def test_a_lost_node_is_stored_and_tested_no_more(folder: ClusterFolder) -> None:
    known = nodes(5)

    def lose(count: int, test: PlannedTest) -> None:
        if test.round == 1:
            known[1] = replace(known[1], state="lost", reason="its connection ended")

    watcher = Record()
    transport = SimulatedTransport(on_test=lose)
    ClusterRun(folder, lambda: known, transport, watcher).go()
    assert watcher.lost == ["n1"]
    stored = {node.name: node for node in read_cluster(folder.path).nodes}
    assert stored["n1"].state == "lost" and stored["n0"].state == "joined"
    assert all("n1" not in test.test.nodes for test in folder.tests if test.test.round > 1)
    assert folder.tests[-1].test.nodes == ("n0", "n2", "n3", "n4")


def test_the_end_of_the_allocation_blames_nobody(folder: ClusterFolder) -> None:
    known = nodes(4)
    transport = SimulatedTransport()

    def end(count: int, test: PlannedTest) -> None:
        if test.round == 2:
            transport.failures = {node.name: "crash" for node in known}
            known[:] = [replace(node, state="lost", reason="gone") for node in known]

    transport.on_test = end
    with pytest.raises(NodesGone, match="has the allocation ended"):
        ClusterRun(folder, lambda: known, transport, Record()).go()
    stored = read_cluster(folder.path)
    assert len(stored.tests) == 4 and not any(test.failed for test in stored.tests)
    assert {node.state for node in stored.nodes} == {"joined"}


def test_an_allocation_that_ends_between_rounds_blames_nobody(folder: ClusterFolder) -> None:
    known = nodes(4)
    looks = 0

    def states() -> list[ClusterNode]:
        """One more node is lost at each look, from the third round on."""
        nonlocal looks
        if folder.tests and folder.tests[-1].test.round == 2:
            known[looks] = replace(known[looks], state="lost", reason="gone")
            looks = min(looks + 1, 3)
        return list(known)

    with pytest.raises(NodesGone):
        ClusterRun(folder, states, SimulatedTransport(), Record()).go()
    assert {node.state for node in read_cluster(folder.path).nodes} == {"joined"}


def test_the_last_node_is_no_end_of_the_allocation(folder: ClusterFolder) -> None:
    known = nodes(2)

    def lose(count: int, test: PlannedTest) -> None:
        if test.round == 1:
            known[1] = replace(known[1], state="lost", reason="its connection ended")

    ClusterRun(folder, lambda: known, SimulatedTransport(on_test=lose), Record()).go()
    assert {n.name: n.state for n in read_cluster(folder.path).nodes} == {
        "n0": "joined", "n1": "lost"
    }  # fmt: skip


def test_an_interrupted_test_is_not_stored(folder: ClusterFolder) -> None:
    class Closed(SimulatedTransport):
        def run(self, tests, size, seconds, on_finished):  # type: ignore[no-untyped-def]
            failed = FailedTest(Failure("interrupted", "closed"))
            for test in tests:
                on_finished(FinishedTest(test, "mpi", size, "", failed=failed))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ClusterRun(folder, lambda: nodes(4), Closed(), Record()).go()
    assert folder.tests == []


def test_what_ends_after_a_stop_is_not_stored(folder: ClusterFolder) -> None:
    known = nodes(4)
    transport = SimulatedTransport()
    run = ClusterRun(folder, lambda: known, transport, Record())

    def stop(count: int, test: PlannedTest) -> None:
        if count == 3:
            run.stop()
            transport.failures = {"n2": "crash"}
            known[2] = replace(known[2], state="lost", reason="it left")

    transport.on_test = stop
    with pytest.raises(RunStopped):
        run.go()
    stored = read_cluster(folder.path)
    assert len(stored.tests) == 3 and not any(test.failed for test in stored.tests)
    assert {node.state for node in stored.nodes} == {"joined"}


def test_a_transport_that_cannot_run_any_test_ends_the_run(folder: ClusterFolder) -> None:
    transport = SimulatedTransport(error=WaywiserError("no mpicc"))
    with pytest.raises(WaywiserError, match="no mpicc"):
        ClusterRun(folder, lambda: nodes(4), transport, Record()).go()
    assert len(transport.runs) == 2 and folder.tests == []


def test_a_transport_that_can_run_no_test_is_tried_again(folder: ClusterFolder) -> None:
    transport = SimulatedTransport()

    def fail(count: int, test: PlannedTest) -> None:
        if len(transport.runs) in (1, 4):
            raise WaywiserError("the launcher is busy")

    transport.on_test = fail
    ClusterRun(folder, lambda: nodes(4), transport, Record()).go()
    assert len(folder.tests) == 9 and not any(test.failed for test in folder.tests)


def test_rounds_that_cannot_run_later_are_given_up_after_two(folder: ClusterFolder) -> None:
    transport = SimulatedTransport()

    def fail(count: int, test: PlannedTest) -> None:
        if test.round > 0:
            raise WaywiserError("the launcher is gone")

    transport.on_test = fail
    with pytest.raises(
        ClusterRunError,
        match=r"2 rounds in a row could run; .*: the launcher is gone",
    ):
        ClusterRun(folder, lambda: nodes(4), transport, Record()).go()
    assert [test.failed.failure.reason for test in folder.tests if test.failed] == [
        "the launcher is gone"
    ] * 4


def test_a_deadline_ends_pairs_before_what_says_more(folder: ClusterFolder) -> None:
    now = 0.0

    def pass_time(count: int, test: PlannedTest) -> None:
        nonlocal now
        now += 1.0

    watcher = Record()
    transport = SimulatedTransport(on_test=pass_time)
    # Two tests a round: a round costs 2 s; 3 rounds alone and a collective are kept free.
    time = RunTime(folder, Deadline(15.0, lambda: now))
    run = ClusterRun(folder, lambda: nodes(4), transport, watcher, time)
    run.go()
    assert run.skipped == 2
    assert [phase for phase, _, _ in watcher.rounds] == ["hangs", "pairs", "alone", "collective"]
    assert {test.test.phase for test in folder.tests} == {"hangs", "pairs", "alone", "collective"}
    assert not any(test.failed for test in folder.tests)


class Hanging(SimulatedTransport):
    """From the third test on, tests end only when the transport is closed, as failures of n1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.closed = threading.Event()

    def run(self, tests, size, seconds, on_finished):  # type: ignore[no-untyped-def]
        if self.count >= 2:
            assert self.closed.wait(60)
            self.failures = {"n1": "timeout", "n2": "crash"}
        super().run(tests, size, seconds, on_finished)

    def close(self) -> None:
        super().close()
        self.closed.set()


@pytest.mark.parametrize("raises", [False, True])
def test_what_the_deadline_ends_is_skipped_and_accuses_nobody(
    folder: ClusterFolder, raises: bool
) -> None:
    def fail(count: int, test: PlannedTest) -> None:
        if raises and count >= 2:
            raise WaywiserError("the launch was stopped")

    transport = Hanging(on_test=fail)
    time = RunTime(folder, Deadline(0.3, lambda: 0.0))
    run = ClusterRun(folder, lambda: nodes(4), transport, Record(), time)
    for phase in ("hangs", "pairs", "alone", "collective"):
        run.costs.add(phase, 0.001)
    run.go()
    assert len(folder.tests) == 2 and not any(test.failed for test in folder.tests)
    assert run.skipped == 7
    assert len(transport.runs) == 2


def test_a_test_that_ends_well_at_the_deadline_counts(folder: ClusterFolder) -> None:
    class Late(Hanging):
        def run(self, tests, size, seconds, on_finished):  # type: ignore[no-untyped-def]
            assert self.closed.wait(60)
            SimulatedTransport.run(self, tests, size, seconds, on_finished)

    time = RunTime(folder, Deadline(0.3, lambda: 0.0))
    run = ClusterRun(folder, lambda: nodes(4), Late(), Record(), time)
    run.costs.add("hangs", 0.001)
    run.go()
    assert [test.test.phase for test in folder.tests] == ["hangs", "hangs"]
    assert run.skipped == 7


def test_collectives_have_longer_than_pairs(folder: ClusterFolder) -> None:
    limits: dict[str, float] = {}

    class Noting(SimulatedTransport):
        def run(self, tests, size, seconds, on_finished):  # type: ignore[no-untyped-def]
            limits[tests[0].phase] = seconds
            super().run(tests, size, seconds, on_finished)

    ClusterRun(folder, lambda: nodes(4, rails=8), Noting(rails=8), Record()).go()
    assert limits["pairs"] == 15.0
    assert limits["collective"] == 60.0 + 32 * RANK_SECONDS


def test_the_memory_of_messages_is_chosen_once_and_said(folder: ClusterFolder) -> None:
    class OnGpus(SimulatedTransport):
        chosen = 0

        def choose_memory(self, nodes, size):  # type: ignore[no-untyped-def]
            self.chosen += 1
            assert [node.name for node in nodes] == ["n0", "n1", "n3"] and self.count == 0
            return "host", "the rank crashed"

    known = nodes(4)
    known[2] = replace(known[2], state="excluded", reason="another library")
    transport, watcher = OnGpus(), Record()
    for _ in range(2):
        ClusterRun(folder, lambda: known, transport, watcher).go()
    assert transport.chosen == 1 and folder.plan.memory == "host"
    assert watcher.notes == [
        "messages are between memories of hosts, not of GPUs: the rank crashed"
    ]
