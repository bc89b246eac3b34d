"""The workers of a node's rails: one process for each, kept from test to test.

A test that takes too long is aborted: its workers leave it, and go on. Those that do not leave it
are killed. A worker that is lost costs its test; a fresh group measures the next one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from waywiser.cluster.connection.rail_requests import (
    LossCause,
    MeasureRails,
    RailsMeasured,
    RailsReady,
    RankLoss,
    ReadyRails,
)
from waywiser.cluster.connection.rank_orders import (
    TestPart,
    least_sent_bytes,
    order_of,
    rail_times,
    sent_bytes,
)
from waywiser.cluster.node.rail_group import RailGroup
from waywiser.cluster.node.rail_groups import RailError, RailGroups
from waywiser.cluster.node.watched_interfaces import WatchedInterfaces
from waywiser.machine import Machine
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.protocol import OTHER_MEMBER
from waywiser.measure.supervise import Deadline
from waywiser.words import MESSAGES, Closeable, Failure, Rail, RailTime, Visit

KEY_SECONDS = 15.0
"""Seconds for NCCL to load and to make a key."""

LEAVE_SECONDS = 5.0
"""Seconds for workers to leave a test that is aborted, before they are killed."""

_ABORT_AGAIN_SECONDS = 0.25

END_SECONDS = 3.0
"""Seconds for workers that were asked to end, before they are killed."""

_OF_OTHERS = frozenset({"crash", MESSAGES, "timeout", "interrupted", "wrong-bytes", OTHER_MEMBER})
"""Kinds of failures that a worker survives and another node may have caused: messages failed, did
not come, or came with other bytes."""


class _Lost(Exception):
    """The test came to nothing on this node."""

    def __init__(self, loss: RankLoss) -> None:
        super().__init__(loss.failure.reason)
        self.loss = loss


class RailWorkers(Closeable):
    """One thread at a time measures; any may abort. ``machine`` is asked for when the first worker
    starts. ``make_group`` makes the workers of these GPUs."""

    def __init__(
        self,
        machine: Callable[[], Machine],
        rails: Sequence[Rail],
        make_group: Callable[[Sequence[int], int], RailGroup],
        *,
        options: ProbeOptions | None = None,
        leave_seconds: float = LEAVE_SECONDS,
    ) -> None:
        self._groups = RailGroups(machine, rails, make_group, options)
        self._leave_seconds = leave_seconds
        self._measures = threading.Lock()
        self._names = threading.Lock()
        self._test = ""
        self._aborted: set[str] = set()
        self._killed = False
        self._limit = ""
        """Why the test is ended, if it took too long, or did not end when it was stopped."""

    @property
    def stuck(self) -> str:
        """A process that did not end although it was killed; empty for none. Nothing is measured
        any more then."""
        return self._groups.stuck

    def ready(self, request: ReadyRails) -> RailsReady:
        """Starts the workers of the first rails if they do not run, and makes a key if that is
        requested."""
        with self._measures:
            try:
                with self._groups.stuck_noted():
                    return RailsReady(self._ready(request))
            except _Lost as lost:
                return RailsReady(loss=lost.loss)
            except RailError as error:
                return RailsReady(loss=self._loss(error), stuck=self.stuck)

    def measure(self, request: MeasureRails) -> RailsMeasured:
        """Measures the parts of a test together with other nodes."""
        with self._measures:
            try:
                with self._groups.stuck_noted(), self._under_limit(request):
                    return self._measure(request)
            except _Lost as lost:
                return RailsMeasured(loss=lost.loss)
            except RailError as error:
                return RailsMeasured(loss=self._loss(error), stuck=self.stuck)

    def abort(self, test: str) -> None:
        """Ends the test if it runs, and if it has not begun, when it does. Any thread may call
        it."""
        with self._names:
            if self._test != test:
                self._aborted.add(test)
                return
        self._end_test(test)

    def stop(self) -> None:
        """Ends the workers when no test runs."""
        with self._measures, self._groups.stuck_noted():
            self._groups.drop(END_SECONDS)

    def kill(self) -> None:
        """Ends the test that runs or gets ready, and kills the workers."""
        self._end(for_good=False)

    def close(self) -> None:
        """`kill`; no worker is started from now on."""
        self._end(for_good=True)

    def _end(self, *, for_good: bool) -> None:
        self._groups.end_start(for_good=for_good)
        with self._measures, suppress(RailError), self._groups.stuck_noted():
            self._groups.drop()

    def _ready(self, request: ReadyRails) -> str:
        group = self._groups.ready(request.rails)
        key = group.make_key(KEY_SECONDS) if request.makes_key else ""
        if isinstance(key, Failure):
            raise _Lost(RankLoss(key, "own", 0, "making a key"))
        return key

    def _loss(self, error: RailError) -> RankLoss:
        kind = "timeout" if self.stuck else "crash"
        return RankLoss(Failure(kind, str(error)), "own", doing="getting ready")

    def _measure(self, request: MeasureRails) -> RailsMeasured:
        group = self._groups.ready(request.rails)
        watch = WatchedInterfaces(self._groups.rails[: request.rails]) if request.watched else None
        ranks = range(request.first_rank, request.first_rank + request.rails)
        connected = group.connect(request.key, tuple(ranks), request.ranks, request.seconds)
        if isinstance(connected, Failure):
            raise self._lost(connected, "connecting")
        setup_seconds = connected
        times: list[RailTime] = []
        sent: list[int] = []
        counted: list[dict[str, int]] = []
        for part in request.parts:
            sources = {each.path.source.place.index for each in part.workload.transfers}
            sends = bool(part.sender) and not sources.isdisjoint(ranks)
            if watch and sends:
                watch.begin()
            visit = self._visit(group, part, request)
            setup_seconds += visit.setup_seconds
            if request.first_rank == 0:
                times += rail_times(part, visit.samples)
                sent.append(sent_bytes(part, visit.samples))
            counted.append(watch.end(least_sent_bytes(part)) if watch and sends else {})
        group.leave()
        return RailsMeasured(
            times=tuple(times),
            setup_seconds=setup_seconds,
            sent=tuple(sent),
            counted=tuple(counted) if watch else (),
        )

    def _visit(self, group: RailGroup, part: TestPart, request: MeasureRails) -> Visit:
        """The limit of the order is only for workers that do not leave when they are asked to."""
        seconds = request.seconds + self._leave_seconds + _ABORT_AGAIN_SECONDS
        visit, _ = group.measure(order_of(part, request.seed, seconds))
        if visit.failure is not None:
            doing = f"sending from {part.sender}" if part.sender else "in a collective"
            raise self._lost(visit.failure, doing)
        return visit

    def _lost(self, failure: Failure, doing: str) -> _Lost:
        """Who is lost by its own doing has ended its process, or had to be killed."""
        group = self._groups.group
        blamed = group.blamed if group is not None else None
        if self._killed:
            while_ = f", while {blamed.doing}" if blamed is not None else ""
            failure = Failure("timeout", f"{self._limit}; the worker was killed{while_}")
        elif self._limit:
            failure = Failure("timeout", f"{self._limit}: {failure.reason}")
        own = failure.kind not in _OF_OTHERS or (
            group is not None and group.lost and self._is_by_own_end(failure, group)
        )
        cause: LossCause = "own" if own else "others"
        return _Lost(RankLoss(failure, cause, blamed.rank if blamed is not None else -1, doing))

    def _is_by_own_end(self, failure: Failure, group: RailGroup) -> bool:
        """Whether a worker has ended, and not only been slow to notice that others failed."""
        if failure.kind == "timeout":
            return self._killed or not group.runs
        return failure.kind in ("crash", MESSAGES)

    @contextmanager
    def _under_limit(self, request: MeasureRails) -> Iterator[None]:
        """Aborts the test after its time, and lets others abort it. Raises `_Lost` if it was
        aborted before it began."""
        with self._names:
            if request.test in self._aborted:
                self._aborted.discard(request.test)
                stopped = Failure("interrupted", "stopped before it began")
                raise _Lost(RankLoss(stopped, "others"))
            self._test, self._killed, self._limit = request.test, False, ""
        reason = f"not finished in {request.seconds:.3g} s"
        limit = threading.Timer(request.seconds, self._end_test, [request.test, reason])
        limit.daemon = True
        limit.start()
        try:
            yield
        finally:
            limit.cancel()
            with self._names:
                self._test = ""

    def _end_test(self, test: str, reason: str = "") -> None:
        """Lets the workers leave the test; kills them if they do not. With a reason, it waits for
        workers that are not there yet."""
        until: Deadline | None = None
        while True:
            with self._names:
                if self._test != test:
                    return
                self._limit = self._limit or reason
                if self._groups.group is not None:
                    until = until or Deadline(self._leave_seconds)
                    if until.is_over:
                        left = f"not left {self._leave_seconds:.3g} s after it was stopped"
                        if not self._killed:  # the limit and the coordinator may both end it
                            self._limit = f"{self._limit}, {left}" if self._limit else left
                        self._killed = True
                        self._groups.kill()
                        return
                    self._groups.abort()  # again: it may have come before they joined
                elif not reason:
                    return
            time.sleep(_ABORT_AGAIN_SECONDS)
