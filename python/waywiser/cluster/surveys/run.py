"""The tests of a run, round by round, each stored as soon as it is finished.

`waywiser.analysis.cluster.procedure.next_round` derives the next tests from those that are
finished. So a run that was interrupted goes on by the same means, and repeats nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from time import sleep
from typing import Protocol

from msgspec.structs import replace

from waywiser.analysis.cluster.procedure import Round, next_round
from waywiser.cluster.connection.message_size import FIRST_BYTES, choose_size
from waywiser.cluster.surveys.run_time import RunTime
from waywiser.cluster.surveys.time_plan import RoundCosts, TimePlan, skipped
from waywiser.cluster.transports.transport import OnFinished, Transport
from waywiser.measure.supervise import NEVER
from waywiser.profile import ClusterFolder
from waywiser.words import (
    ClusterNode,
    FailedTest,
    Failure,
    FinishedTest,
    PlannedTest,
    WaywiserError,
)

_UNRUN_ROUNDS = 2
"""So many rounds in a row of which no test could run end a run."""

_ATTEMPTS = 2
"""A transport that can run no test is tried again: a scheduler that has just lost a node is busy
with that."""

_SETTLE_SECONDS = 0.5
"""Agents of an allocation that ends are lost one after the other, and tests before them."""

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
    """Is informed while tests run; `waywiser.notebook.cluster_progress` says it."""

    def begin_round(self, round: Round, bytes: int, plan: TimePlan | None) -> None:
        """Tests start. ``plan``: what the run needs from here on; None if that is not known."""

    def finish(self, test: FinishedTest) -> None:
        """A test is stored."""

    def lose(self, node: ClusterNode) -> None:
        """A node is tested no more."""

    def note(self, line: str) -> None:
        """Anything else that happened."""


class ClusterRun:
    """Runs the tests of a survey. ``nodes`` returns the nodes with their present state. Tests that
    have not ended by the deadline of the ``time`` are skipped, and are no failures."""

    def __init__(
        self,
        folder: ClusterFolder,
        nodes: Callable[[], Sequence[ClusterNode]],
        transport: Transport,
        watcher: RunWatcher,
        time: RunTime | None = None,
    ) -> None:
        self._folder = folder
        self._nodes = nodes
        self._transport = transport
        self._watcher = watcher
        self._time = time or RunTime(folder, NEVER)
        self._lock = threading.Lock()
        self._stops = False
        self._skipped: list[FinishedTest] = []

    @property
    def costs(self) -> RoundCosts:
        """What rounds cost, measured ones included."""
        return self._time.costs

    @property
    def finished(self) -> list[FinishedTest]:
        """The stored tests, and those for which there was no time."""
        return [*self._folder.tests, *self._skipped]

    @property
    def skipped(self) -> int:
        """How many tests had no time before the deadline."""
        return len(self._skipped)

    def stop(self) -> None:
        """From now on nothing is stored, from any thread: what ends now, something else ended. `go`
        returns as soon as the transport does."""
        with self._lock:
            self._stops = True

    def go(self) -> None:
        """Runs all rounds. Raises `ClusterRunError`."""
        self._choose_memory()
        unrun = 0
        while following := next_round(self._states(), self._folder.plan, self.finished):
            if not self._time.has_time(following):
                self._skip(following.tests)
                continue
            unrun = 0 if self._run(following) else unrun + 1
            if unrun == _UNRUN_ROUNDS:
                raise ClusterRunError(
                    f"no test of {_UNRUN_ROUNDS} rounds in a row could run; the last one: "
                    f"{self._last_reason()}",
                    where=str(self._folder.path),
                    remedy="correct that, then resume with --retry",
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
            sleep(_SETTLE_SECONDS)
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

    def _skip(self, tests: Iterable[PlannedTest]) -> None:
        self._skipped += (skipped(test, self._folder.plan) for test in tests)

    def _last_reason(self) -> str:
        failed = [test.failed for test in self._folder.tests if test.failed]
        return failed[-1].failure.reason if failed else "it gave no result"

    def _run(self, following: Round) -> bool:
        """Whether a test of the round could run, or was skipped."""
        size = self._folder.plan.bytes or FIRST_BYTES
        waiting = {test.nodes: test for test in following.tests}
        failed: list[FinishedTest] = []
        self._watcher.begin_round(following, size, self._time.plan(following, self.finished))

        def take(test: FinishedTest) -> None:
            with self._lock:
                is_ended = self._stops or (test.failed and self._time.is_over)
                if is_ended or waiting.pop(test.test.nodes, None) is None:
                    return
                if test.failed is None:
                    self._store(test)
                else:
                    failed.append(test)

        with self._time.measured(following, self._transport.close):
            reason = self._attempt(following, waiting, size, take)
        self._require_running()
        # One pair that fails, or one set of nodes, is a result; all pairs of a round are none.
        is_reported = bool(failed) and (len(following.tests) == 1 or following.phase in _REPEATED)
        if self._time.is_over:
            self._skip(waiting.values())
        else:
            failed += (self._unrun(test, size, reason) for test in waiting.values())
        if failed:
            self._store_failures(failed)
        has_result = self._time.is_over or is_reported or len(failed) < len(following.tests)
        return has_result or any(test.failed and test.failed.node for test in failed)

    def _attempt(
        self,
        following: Round,
        waiting: Mapping[tuple[str, ...], PlannedTest],
        size: int,
        take: OnFinished,
    ) -> str:
        """Runs the tests that wait. Returns why there is no result of those that still do."""
        limit = self._time.limit(following, self._nodes())
        for attempt in range(_ATTEMPTS):
            try:
                self._transport.run(tuple(waiting.values()), size, limit, take)
                break
            except WaywiserError as error:
                self._require_running()
                if self._time.is_over:
                    break
                if attempt + 1 == _ATTEMPTS:
                    if not self._folder.tests:
                        raise
                    return error.what
                sleep(_SETTLE_SECONDS)
        return "it gave no result"

    def _unrun(self, test: PlannedTest, size: int, reason: str) -> FinishedTest:
        failed = FailedTest(Failure("crash", reason))
        return FinishedTest(test, self._transport.name, size, _now(), failed=failed)

    def _store_failures(self, failed: Sequence[FinishedTest]) -> None:
        """Stores failed tests, unless all nodes are gone: then no node is to blame. Raises
        `NodesGone`."""
        if len({name for test in failed for name in test.test.nodes}) >= self._joined():
            sleep(_SETTLE_SECONDS)
        self._states()
        for test in failed:
            self._store(test)

    def _joined(self) -> int:
        return sum(node.state == "joined" for node in self._nodes())

    def _store(self, test: FinishedTest) -> None:
        self._folder.add_test(test)
        self._watcher.finish(test)

    def _choose_memory(self) -> None:
        """Chooses the memory of messages before the first test. Raises `RunStopped`."""
        plan = self._folder.plan
        if plan.memory or self._folder.tests:
            return
        nodes = [node for node in self._states() if node.state == "joined"]
        memory, reason = self._transport.choose_memory(nodes, plan.bytes)
        self._require_running()
        if reason:
            self._watcher.note(f"messages are between memories of hosts, not of GPUs: {reason}")
        self._folder.set_plan(replace(self._folder.plan, memory=memory))

    def _choose_bytes(self) -> None:
        """Chooses the size of messages after the first tests."""
        plan = self._folder.plan
        if not plan.bytes and (size := choose_size(self._folder.tests)):
            self._folder.set_plan(replace(plan, bytes=size))


def _lost(nodes: Iterable[ClusterNode]) -> set[str]:
    return {node.name for node in nodes if node.state == "lost"}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
