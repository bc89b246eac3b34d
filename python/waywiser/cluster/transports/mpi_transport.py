"""Tests between nodes by MPI, whose ranks the site's launcher starts for several rounds at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial

from msgspec.structs import replace

from waywiser.cluster.connection.message_size import LEAST_BYTES, MOST_BYTES
from waywiser.cluster.connection.rank_orders import (
    RankOrderError,
    TestPart,
    collective_part,
    memory_kind,
    pair_parts,
    rails_of,
)
from waywiser.cluster.connection.requested_agents import RequestedAgents
from waywiser.cluster.node.watched_interfaces import WATCHED
from waywiser.cluster.transports.mpi_memory import choose_memory
from waywiser.cluster.transports.mpi_nodes import MpiNodes
from waywiser.cluster.transports.mpi_reports import MpiReports
from waywiser.cluster.transports.mpi_round import MpiRound, is_collective
from waywiser.cluster.transports.mpi_test import TestEnd, run_test
from waywiser.cluster.transports.mpi_world import MpiWorld, WorldNotStarted
from waywiser.cluster.transports.time_limits import start_limit
from waywiser.cluster.transports.transport import OnFinished
from waywiser.cluster.transports.watched_sender import WatchedSender
from waywiser.machine import DECLARED
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.words import (
    MESSAGES,
    ClusterNode,
    FailedTest,
    Failure,
    FinishedTest,
    MessageMemory,
    PlannedTest,
    WaywiserError,
)

_TRIAL_SECONDS = 20.0
"""Seconds for a test that tries a kind of memory."""

_MOST_ROUNDS = 16
"""Rounds of pairs by the ranks of one launch. A launch takes longer than a round; but where the
memory of a process lies is chance, and few processes would make their node look slow."""

_MOST_RANKS = 1024
"""Ranks of a launch for several rounds: each has the places of all others, and so many of them are
100 MB that are sent."""

_SWEEPS = ("hangs", "pairs", "cover")
"""Phases in which each node is tested with others, round by round. In the others each round has a
launch of its own, since what is suspect shows again by another process."""

_CLOSE_SECONDS = 4.0
"""Seconds for a launch to end when the transport is closed."""


class MpiTransport:
    """A `waywiser.cluster.transports.transport.Transport`. A launch ends with the first loss; its
    unfinished tests are launched again without the nodes to blame."""

    name = "mpi"

    def __init__(
        self,
        agents: RequestedAgents,
        library: MpiLibrary,
        *,
        address: str,
        template: str = "",
        memory: MessageMemory = "host",
        seed: int = 1,
        start_seconds: float = 60.0,
    ) -> None:
        """``address`` is one of this machine that all nodes reach, without a port; ``template`` a
        launcher instead of that of the library or of Slurm
        (`waywiser.measure.ranks.launcher.launch_command`), which knows nodes by their names.
        Messages are between ``memory``; that of hosts is next to the GPU of each rail. ``seed`` is
        that of the bytes. Few ranks have ``start_seconds`` to connect; many have longer
        (`waywiser.cluster.transports.time_limits.start_limit`)."""
        self._agents = agents
        self._able = MpiNodes(agents, library)
        self._nodes: dict[str, ClusterNode] = {}
        self._memory: MessageMemory = memory
        self._seed = seed
        self._size = 0
        self._make_world = partial(MpiWorld, library, address=address, template=template)
        self._start_seconds = start_seconds
        self._launches: list[tuple[int, float]] = []
        """The ranks of each launch that got ready, and the seconds that it took."""
        self._world: MpiWorld | None = None
        """The ranks that were started last, until they are ended."""
        self._rounds = 0
        """The rounds that its ranks have made."""
        self._names: Sequence[str] = ()
        """Its nodes."""
        self._others: set[str] = set()
        """Nodes that are launched too, for rounds that follow."""
        self._is_closed = False
        self._is_idle = threading.Event()
        """No launch is being started, is running or is being ended."""
        self._is_idle.set()

    def choose_memory(self, nodes: Sequence[ClusterNode], size: int) -> tuple[MessageMemory, str]:
        """See `waywiser.cluster.transports.transport.Transport.choose_memory`."""

        def why_not(test: PlannedTest, memory: MessageMemory) -> str:
            self._memory = memory
            return next(filter(None, (self._why_not(test, each) for each in sizes)), "")

        sizes = (size,) if size else (LEAST_BYTES, MOST_BYTES)
        self._memory, reason = choose_memory(why_not, nodes)
        return self._memory, reason

    def _why_not(self, test: PlannedTest, size: int) -> str:
        """Why a test of two nodes fails, or an exchange of both; empty if none does. The two are
        compared later, and need the same memory."""
        found: list[FinishedTest] = []
        try:
            tests = [test, replace(test, phase="collective")]
            self.run(tests, size, _TRIAL_SECONDS, found.append)
        except WaywiserError as error:
            return error.what
        if len(found) < len(tests):
            return "it was stopped"
        return next((each.failed.failure.reason for each in found if each.failed), "")

    def run(
        self, tests: Sequence[PlannedTest], size: int, seconds: float, on_finished: OnFinished
    ) -> None:
        """See `waywiser.cluster.transports.transport.Transport.run`."""
        self._size = size
        self._nodes |= self._able.of(tests)
        has_started = bool(self._launches)
        todo = MpiRound(tests, is_proven=has_started)
        report = MpiReports(self.name, size, on_finished, is_open=has_started)
        self._is_idle.clear()
        try:
            while not self._is_closed and (batch := todo.next()):
                unable = {test: failed for test in batch if (failed := self._unable(test))}
                for test, failed in unable.items():
                    report(test, failed=failed)
                if able := [test for test in batch if test not in unable]:
                    self._run_batch(able, todo, report, seconds)
        except BaseException:
            self._end_world()
            raise
        finally:
            self._is_idle.set()
        if not self._is_closed:
            report.end()

    def close(self) -> None:
        """Ends the launch, also one that starts, from any thread, and what it has left on nodes;
        `run` ends then, and unfinished tests are not reported."""
        was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            return
        if (world := self._world) is not None and not self._is_idle.is_set():
            world.hang_up()
        if self._is_idle.wait(_CLOSE_SECONDS):
            self._end_world()

    def _unable(self, test: PlannedTest) -> FailedTest | None:
        """Why a test cannot be launched."""
        if failed := self._able.unable(test):
            return failed
        try:
            self._parts(test)
        except RankOrderError as error:
            return FailedTest(Failure("not-supported", error.what))
        return None

    def _run_batch(
        self, batch: Sequence[PlannedTest], todo: MpiRound, report: MpiReports, seconds: float
    ) -> None:
        """Runs the tests by the ranks that there are, or launches others. These are ended if they
        are not well, or if no other round is to use them."""
        try:
            if self._serves(batch):
                report.setup_seconds = 0.0
            elif not self._launch(batch, todo, report):
                return
            world = self._world
            assert world is not None
            self._rounds += 1
            lost = self._measure(world, batch, report, seconds)
            self._blame(world, lost, todo, report)
        finally:
            if not self._serves(batch):
                self._end_world()

    def _serves(self, batch: Sequence[PlannedTest]) -> bool:
        """Whether the ranks that there are can run such a round."""
        world = self._world
        return (
            world is not None
            and not self._is_closed
            and world.is_well
            and world.size == self._size
            and self._rounds < _MOST_ROUNDS
            and all(test.phase in _SWEEPS and world.can_test(test.nodes) for test in batch)
        )

    def _launch(self, batch: Sequence[PlannedTest], todo: MpiRound, report: MpiReports) -> bool:
        """Whether the ranks of the tests, and of others that follow, are ready."""
        self._end_world()
        began = time.monotonic()
        groups = self._groups(batch)
        names = [name for group in groups for name in group]
        ranks = sum(sum(group.values()) for group in groups)
        limit = start_limit(self._start_seconds, ranks, self._launches)
        self._world = world = self._make_world(
            groups, self._nodes, self._able.machines, size=self._size, seconds=limit
        )
        self._rounds = 0
        self._names = names
        try:
            if self._is_closed:  # before it could be hung up
                self._world = None
                return False
            world.start()
        except WorldNotStarted as error:
            self._world = None
            self._able.end_launch(error.secret, names)
            if self._is_closed:
                return False
            if self._others.isdisjoint(names):
                self._report_unstarted(error, batch, todo, report)
            else:  # of which one may be the reason
                todo.again(batch)
            self._others.clear()
            return False
        except BaseException:
            self._world = None
            raise
        report.setup_seconds = time.monotonic() - began
        self._launches.append((ranks, report.setup_seconds))
        todo.started()
        report.open()
        return True

    def _groups(self, batch: Sequence[PlannedTest]) -> list[dict[str, int]]:
        """The nodes to launch, with the ranks of each: those of a sweep together with those of the
        last launch that have no test now, if they are not too many."""
        own = [self._rails(test.nodes) for test in batch]
        if any(test.phase not in _SWEEPS for test in batch):
            return own
        names = {name for nodes in own for name in nodes}
        self._others -= names
        self._others &= {node.name for node in self._agents.nodes() if node.state == "joined"}
        together = sorted(names) + sorted(self._others)
        most = sorted(len(self._nodes[name].rails) for name in together)[-2]
        rails = {name: min(len(self._nodes[name].rails), most) for name in together}
        if sum(rails.values()) > _MOST_RANKS:
            self._others.clear()
            return own
        return [rails]

    def _rails(self, names: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(names, rails_of([self._nodes[name] for name in names]))

    def _end_world(self) -> None:
        """Ends the ranks that there are, and what is left of them on nodes."""
        world, self._world = self._world, None
        if world is None:
            return
        world.close()
        if world.is_well:
            self._others = set(self._names)
        else:
            self._others.clear()
            self._able.end_launch(world.launch.secret, self._names)

    def _report_unstarted(
        self,
        error: WorldNotStarted,
        batch: Sequence[PlannedTest],
        todo: MpiRound,
        report: MpiReports,
    ) -> None:
        """Reports the tests that cannot be launched. Raises `MpiError` if none can."""
        for test, node in todo.not_started(batch, error.nodes, is_late=error.is_late).items():
            failed = replace(error.failed, node=node)
            report(test, failed=failed) if node else report.unstarted(test, failed)
        if todo.is_hopeless:
            raise MpiError(error.failed.failure.reason) from error

    def _measure(
        self, world: MpiWorld, batch: Sequence[PlannedTest], report: MpiReports, seconds: float
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
        report: MpiReports,
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
        nodes = [self._nodes[name] for name in test.nodes]
        host = DECLARED.reference_memory("host", "numa")
        kind = memory_kind(nodes) if self._memory == "gpu" else host
        if is_collective(test):
            return (collective_part(nodes, self._size, "alltoall", kind),)
        return pair_parts(nodes[0], nodes[1], self._size, "mpi", kind)


def _ended_first(world: MpiWorld, failed: FailedTest, node: str, rank: int) -> FailedTest:
    """The failure of a test whose rank ended first. If that rank said that messages do not arrive,
    either end may be to blame."""
    if failed.rank == rank:
        return replace(failed, node="") if failed.failure.kind == MESSAGES else failed
    reason = f"rank {rank} on {node} ended first; then {failed.failure.reason}"
    return FailedTest(Failure("crash", reason), node, rank, failed.doing)
