"""The tests of a run, round by round, each stored as soon as it is finished.

`waywiser.analysis.cluster.procedure.next_round` derives the next tests from those that are
finished. So a run that was interrupted goes on by the same means, and repeats nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from msgspec.structs import replace

from waywiser.analysis.cluster.procedure import Round, next_round
from waywiser.cluster.message_size import FIRST_BYTES, choose_limit, choose_size
from waywiser.cluster.time_plan import (
    TimePlan,
    expected_rounds,
    has_time,
    measured_costs,
    skipped,
    time_plan,
)
from waywiser.cluster.transport import Transport
from waywiser.profile.cluster_folder import ClusterFolder
from waywiser.words import WaywiserError
from waywiser.words.cluster import ClusterNode, FailedTest, FinishedTest, PlannedTest
from waywiser.words.records import Failure

_UNRUN_ROUNDS = 2
"""So many rounds in a row of which no test could run end a run."""

_ATTEMPTS = 2
"""A transport that can run no test is tried again: a scheduler that has just lost a node is busy
with that."""

_LEAST_LIMIT_SECONDS = 5.0
"""A test that begins before the deadline has at least so long."""

_SETTLE_SECONDS = 0.5
"""Agents of an allocation that ends are lost one after the other, and tests before them."""

MOST_FORESEEN_NODES = 2048
"""Nodes beyond which the rounds that follow are not counted: it would take long."""

_REPEATED = ("alone", "among", "pair", "collective")
"""Phases of tests that were chosen because others passed or failed."""

FINAL_STATES = ("lost", "stuck", "excluded", "not reached")


class ClusterRunError(WaywiserError):
    """A run that cannot go on; what is finished is stored."""


class NodesGone(ClusterRunError):
    """No node is left."""


class RunStopped(ClusterRunError):
    """`ClusterRun.stop` was called."""


class RunWatcher(Protocol):
    """Is informed while tests run; `waywiser.cli.cluster_progress` prints it."""

    def begin_round(self, round: Round, bytes: int, plan: TimePlan | None) -> None:
        """Tests start. ``plan``: what the run needs from here on; None if that is not known."""

    def finish(self, test: FinishedTest) -> None:
        """A test is stored."""

    def lose(self, node: ClusterNode) -> None:
        """A node is tested no more."""

    def skip(self, round: Round) -> None:
        """There is no time for the tests."""


class ClusterRun:
    """Runs the tests of a survey. ``nodes`` returns the nodes with their present state.
    ``deadline`` is a time of the clock."""

    def __init__(
        self,
        folder: ClusterFolder,
        nodes: Callable[[], Sequence[ClusterNode]],
        transport: Transport,
        watcher: RunWatcher,
        *,
        deadline: float | None = None,
        limit_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._nodes = nodes
        self._transport = transport
        self._watcher = watcher
        self._deadline = deadline
        self._limit_seconds = limit_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._stops = False
        self._skipped: list[FinishedTest] = []
        self._phase = ""
        self._ahead: list[Round] = []
        self.costs = measured_costs(folder.plan.transport, len(folder.nodes), folder.tests)

    @property
    def finished(self) -> list[FinishedTest]:
        """The stored tests, and those for which there was no time."""
        return [*self._folder.tests, *self._skipped]

    def stop(self) -> None:
        """From now on nothing is stored, from any thread: what ends now, something else ended. `go`
        returns as soon as the transport does."""
        with self._lock:
            self._stops = True

    def go(self) -> None:
        """Runs all rounds. Raises `ClusterRunError`."""
        unrun = 0
        while following := next_round(self._states(), self._folder.plan, self.finished):
            if not self._has_time(following):
                self._watcher.skip(following)
                self._skipped += (skipped(test, self._folder.plan) for test in following.tests)
                continue
            unrun = 0 if self._run(following) else unrun + 1
            if unrun == _UNRUN_ROUNDS:
                raise ClusterRunError(
                    f"no test of {_UNRUN_ROUNDS} rounds could run", where=str(self._folder.path)
                )
            self._choose_bytes()

    def _states(self) -> list[ClusterNode]:
        """The nodes of now; each new state is stored. Raises `NodesGone`, `RunStopped`."""
        nodes = self._settled()
        self._require_running()
        for node in nodes:
            known = self._folder.nodes.get(node.name)
            if known is None or (known.state, known.reason) != (node.state, node.reason):
                self._folder.add_node(node)
                if node.state in FINAL_STATES:
                    self._watcher.lose(node)
        return nodes

    def _require_running(self) -> None:
        if self._stops:
            raise RunStopped("the run was stopped", where=str(self._folder.path))

    def _settled(self) -> list[ClusterNode]:
        """The nodes of now, after a loss those of a little later. Raises `NodesGone` if none is
        left: the allocation has ended, which is no fault of a node."""
        before = _lost(self._folder.nodes.values())
        nodes = list(self._nodes())
        lost = _lost(nodes) - before
        while lost:
            time.sleep(_SETTLE_SECONDS)
            nodes = list(self._nodes())
            if (now := _lost(nodes) - before) == lost:
                break
            lost = now
        if lost and not any(node.state == "joined" for node in nodes):
            raise NodesGone(
                "the agents of all nodes are gone: has the allocation ended?",
                where=str(self._folder.path),
            )
        return nodes

    def _has_time(self, following: Round) -> bool:
        if self._deadline is None:
            return True
        return has_time(following.phase, self.costs, self._deadline - self._clock())

    def _run(self, following: Round) -> bool:
        """Whether a test of the round could run."""
        plan = self._folder.plan
        size = plan.bytes or FIRST_BYTES
        limit = self._limit()
        waiting = {test.nodes: test for test in following.tests}
        failed: list[FinishedTest] = []
        self._watcher.begin_round(following, size, self._plan(following))
        began = self._clock()

        def take(test: FinishedTest) -> None:
            with self._lock:
                if self._stops or waiting.pop(test.test.nodes, None) is None:
                    return
                if test.failed is None:
                    self._store(test)
                elif test.failed.failure.kind != "interrupted":
                    failed.append(test)

        reason = "it gave no result"
        for attempt in range(_ATTEMPTS):
            try:
                self._transport.run(tuple(waiting.values()), size, limit, take)
                break
            except WaywiserError as error:
                self._require_running()
                if attempt + 1 < _ATTEMPTS:
                    time.sleep(_SETTLE_SECONDS)
                elif not self._folder.tests:
                    raise
                reason = error.what
        self._require_running()
        # One pair that fails, or one set of nodes, is a result; all pairs of a round are none.
        is_reported = bool(failed) and (len(following.tests) == 1 or following.phase in _REPEATED)
        failed += (self._unrun(test, size, reason) for test in waiting.values())
        self.costs.add(following.phase, self._clock() - began)
        if failed:
            self._store_failures(failed)
        has_result = is_reported or len(failed) < len(following.tests)
        return has_result or any(test.failed and test.failed.node for test in failed)

    def _limit(self) -> float:
        """The seconds that a test may take; a deadline ends those that hang."""
        limit = self._limit_seconds or choose_limit(self._folder.tests)
        if self._deadline is None:
            return limit
        return min(limit, max(self._deadline - self._clock(), _LEAST_LIMIT_SECONDS))

    def _plan(self, following: Round) -> TimePlan | None:
        """What the run needs, from this round on. Rounds are counted when a phase begins."""
        if following.phase != self._phase:
            self._phase = following.phase
            nodes = list(self._folder.nodes.values())
            self._ahead = (
                expected_rounds(nodes, self._folder.plan, self.finished)
                if len(nodes) <= MOST_FORESEEN_NODES
                else []
            )
        ahead = [round for round in self._ahead if round.number >= following.number]
        return time_plan(ahead, self.costs) if ahead else None

    def _unrun(self, test: PlannedTest, size: int, reason: str) -> FinishedTest:
        failed = FailedTest(Failure("crash", reason))
        return FinishedTest(test, self._transport.name, size, _now(), failed=failed)

    def _store_failures(self, failed: Sequence[FinishedTest]) -> None:
        """Stores failed tests, unless all nodes are gone: then no node is to blame. Raises
        `NodesGone`."""
        if len({name for test in failed for name in test.test.nodes}) >= self._joined():
            time.sleep(_SETTLE_SECONDS)
        self._states()
        for test in failed:
            self._store(test)

    def _joined(self) -> int:
        return sum(node.state == "joined" for node in self._nodes())

    def _store(self, test: FinishedTest) -> None:
        self._folder.add_test(test)
        self._watcher.finish(test)

    def _choose_bytes(self) -> None:
        """Chooses the size of messages after the first tests."""
        plan = self._folder.plan
        if not plan.bytes and (size := choose_size(self._folder.tests)):
            self._folder.set_plan(replace(plan, bytes=size))


def _lost(nodes: Iterable[ClusterNode]) -> set[str]:
    return {node.name for node in nodes if node.state == "lost"}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
