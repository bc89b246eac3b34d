"""Tests between nodes by MPI: one launch by the site's launcher for each round."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec.structs import replace

from waywiser.cluster.mpi_nodes import MpiNodes
from waywiser.cluster.mpi_round import MpiRound, is_collective
from waywiser.cluster.mpi_test import TestEnd, run_test
from waywiser.cluster.mpi_world import MpiWorld, WorldNotStarted
from waywiser.cluster.rank_orders import (
    RankOrderError,
    TestPart,
    collective_part,
    memory_kind,
    pair_parts,
)
from waywiser.cluster.requested_agents import RequestedAgents
from waywiser.cluster.transport import OnFinished
from waywiser.cluster.watched_interfaces import WATCHED
from waywiser.cluster.watched_sender import WatchedSender
from waywiser.machine.traits import DECLARED
from waywiser.measure.probe.worker import MESSAGES_FAILED
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.words.cluster import ClusterNode, FailedTest, FinishedTest, PlannedTest, RailTime
from waywiser.words.records import Failure


class MpiTransport:
    """A `waywiser.cluster.transport.Transport`. The launch of a round ends with the first loss; its
    unfinished tests are launched again without the nodes to blame."""

    name = "mpi"

    def __init__(
        self,
        agents: RequestedAgents,
        library: MpiLibrary,
        *,
        address: str,
        template: str = "",
        takes_gpu_memory: bool = False,
        seed: int = 1,
        start_seconds: float = 60.0,
    ) -> None:
        """``address`` is one of this machine that all nodes reach, without a port; ``template`` a
        launcher instead of that of the library or of Slurm
        (`waywiser.measure.ranks.launcher.launch_command`), which knows nodes by their names.
        Messages are between host memory, next to the GPU of each rail, unless the library
        ``takes_gpu_memory``. ``seed`` is that of the bytes."""
        self._agents = agents
        self._able = MpiNodes(agents, library)
        self._nodes: dict[str, ClusterNode] = {}
        self._takes_gpu_memory = takes_gpu_memory
        self._seed = seed
        self._size = 0
        self._start = partial(
            MpiWorld,
            library,
            address=address,
            template=template,
            seconds=start_seconds,
        )
        self._world: MpiWorld | None = None
        self._has_started = self._is_closed = False

    def run(
        self, tests: Sequence[PlannedTest], size: int, seconds: float, on_finished: OnFinished
    ) -> None:
        """See `waywiser.cluster.transport.Transport.run`."""
        self._size = size
        self._is_closed = False
        self._nodes |= self._able.of(tests)
        todo = MpiRound(tests, is_proven=self._has_started)
        report = _Reports(self.name, size, on_finished, is_open=self._has_started)
        while not self._is_closed and (batch := todo.next()):
            unable = {test: failed for test in batch if (failed := self._unable(test))}
            for test, failed in unable.items():
                report(test, failed=failed)
            if able := [test for test in batch if test not in unable]:
                self._launch(able, todo, report, seconds)
        report.end()

    def close(self) -> None:
        """Ends the launch, from any thread; `run` ends then, and unfinished tests are not
        reported."""
        self._is_closed = True
        if self._world is not None:
            self._world.hang_up()

    def _unable(self, test: PlannedTest) -> FailedTest | None:
        """Why a test cannot be launched."""
        if failed := self._able.unable(test):
            return failed
        try:
            self._parts(test)
        except RankOrderError as error:
            return FailedTest(Failure("not-supported", error.what))
        return None

    def _launch(
        self, batch: Sequence[PlannedTest], todo: MpiRound, report: _Reports, seconds: float
    ) -> None:
        began = time.monotonic()
        try:
            world = self._start(batch, self._nodes, self._able.machines)
        except WorldNotStarted as error:
            self._able.end_launch(error.secret, batch)
            for test in todo.not_started(batch, error.nodes):
                named = set(error.nodes) & set(test.nodes)
                failed = replace(error.failed, node=min(named, default=""))
                report.unstarted(test, failed) if not named else report(test, failed=failed)
            if todo.is_hopeless:
                raise MpiError(error.failed.failure.reason) from error
            return
        self._world = world
        self._has_started = True
        todo.started()
        report.open()
        report.setup_seconds = time.monotonic() - began
        try:
            with world:
                lost = self._measure(world, batch, report, seconds)
                self._blame(world, lost, todo, report)
        finally:
            self._world = None
            if not world.is_well:
                self._able.end_launch(world.launch.secret, batch)

    def _measure(
        self, world: MpiWorld, batch: Sequence[PlannedTest], report: _Reports, seconds: float
    ) -> dict[PlannedTest, TestEnd]:
        """Runs the tests side by side, and reports those that end by themselves. Returns those
        whose ranks were lost."""
        lost: dict[PlannedTest, TestEnd] = {}
        with ThreadPoolExecutor(len(batch), "mpi test") as threads:
            try:
                running = {
                    threads.submit(
                        run_test,
                        world,
                        test,
                        self._parts(test),
                        number=number,
                        seed=self._seed,
                        seconds=seconds,
                        watch=partial(self._watch, test),
                    ): test
                    for number, test in enumerate(batch)
                }
                for future in as_completed(running):
                    end, test = future.result(), running[future]
                    if end.is_lost:
                        world.is_well = False
                    if end.is_lost and end.failed and end.failed.failure.kind != "timeout":
                        lost[test] = end
                    elif not self._is_closed:
                        report(test, end.times, end.failed, end.elapsed_seconds)
            except BaseException:
                world.hang_up()
                raise
        return lost

    def _blame(
        self,
        world: MpiWorld,
        lost: Mapping[PlannedTest, TestEnd],
        todo: MpiRound,
        report: _Reports,
    ) -> None:
        """Reports the test whose rank ended first, and launches the others again."""
        if not lost or self._is_closed:
            return
        first = world.first_lost()
        node = "" if first is None else world.node_of(first)
        unfinished = []
        for test, end in lost.items():
            assert end.failed is not None
            if node and node in test.nodes:
                report(test, failed=_ended_first(world, end.failed, node, first or 0))
            else:
                unfinished.append(test)
        for test in todo.lost(unfinished):
            failed = lost[test].failed
            assert failed is not None
            report(test, failed=replace(failed, node="", rank=-1))

    def _watch(self, test: PlannedTest, part: TestPart) -> WatchedSender | None:
        if test.phase not in WATCHED or not part.sender:
            return None
        return WatchedSender(self._agents, self._nodes[part.sender], part)

    def _parts(self, test: PlannedTest) -> tuple[TestPart, ...]:
        """An exchange of all nodes is between host memory in any case: it tests what is between
        nodes."""
        nodes = [self._nodes[name] for name in test.nodes]
        host = DECLARED.reference_memory("host", "numa")
        if is_collective(test):
            return (collective_part(nodes, self._size, "alltoall", host),)
        kind = memory_kind(nodes) if self._takes_gpu_memory else host
        return pair_parts(nodes[0], nodes[1], self._size, "mpi", kind)


def _ended_first(world: MpiWorld, failed: FailedTest, node: str, rank: int) -> FailedTest:
    """The failure of a test whose rank ended first. If that rank said that messages do not arrive,
    either end may be to blame."""
    if failed.rank == rank:
        says_messages = failed.failure.reason.startswith(MESSAGES_FAILED)
        return replace(failed, node="") if says_messages else failed
    reason = f"rank {rank} on {node} ended first; then {failed.failure.reason}"
    return FailedTest(Failure("crash", reason), node, rank, failed.doing)


class _Reports:
    """Reports finished tests. Failures of launches that name no node wait until a launch got ready:
    if none does, the launcher is to blame and not the tests."""

    def __init__(self, name: str, size: int, on_finished: OnFinished, *, is_open: bool) -> None:
        self._name, self._size, self._on_finished = name, size, on_finished
        self._is_open = is_open
        self._waiting: list[tuple[PlannedTest, FailedTest]] = []
        self.setup_seconds = 0.0
        """Seconds that the launch of the next tests took."""

    def __call__(
        self,
        test: PlannedTest,
        times: tuple[RailTime, ...] = (),
        failed: FailedTest | None = None,
        elapsed_seconds: float = 0.0,
    ) -> None:
        ended = datetime.now(UTC) - timedelta(seconds=elapsed_seconds)
        self._on_finished(
            FinishedTest(
                test,
                self._name,
                self._size,
                ended.isoformat(timespec="milliseconds"),
                self.setup_seconds,
                elapsed_seconds,
                times,
                failed,
            )
        )

    def unstarted(self, test: PlannedTest, failed: FailedTest) -> None:
        if self._is_open:
            self(test, failed=failed)
        else:
            self._waiting.append((test, failed))

    def open(self) -> None:
        """A launch got ready."""
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        for test, failed in waiting:
            self(test, failed=failed)

    def end(self) -> None:
        """Raises `MpiError` if no launch got ready."""
        if self._waiting:
            raise MpiError(self._waiting[0][1].failure.reason)
