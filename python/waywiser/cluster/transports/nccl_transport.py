"""Tests by NCCL: agents keep a worker for each rail, whose ranks join each other anew in each test.

No MPI and no launcher has a part in it: an agent's worker makes the key, and the coordinator gives
it to the agents of the test.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from waywiser.cluster.connection.coordinator import NoAnswer, Reply
from waywiser.cluster.connection.rail_requests import (
    AbortTest,
    CloseRails,
    MeasureRails,
    RailsClosed,
    RailsMeasured,
    RailsReady,
    RankLoss,
    ReadyRails,
)
from waywiser.cluster.connection.rank_orders import (
    STREAM_OF_NCCL,
    TestPart,
    collective_part,
    pair_parts,
    rails_of,
)
from waywiser.cluster.connection.requested_agents import RequestedAgents
from waywiser.cluster.node.watched_interfaces import WATCHED, with_crossed
from waywiser.cluster.transports.transport import OnFinished
from waywiser.measure.probe.protocol import OTHER_MEMBER
from waywiser.words import (
    MESSAGES,
    ClusterNode,
    FailedTest,
    Failure,
    FinishedTest,
    MessageMemory,
    PlannedTest,
    RailTime,
    WaywiserError,
)

NCCL = "nccl"

COLLECTIVE = {"collective": "allreduce", "type": "int32"}
"""Sums of whole numbers can be checked, however many there are."""

READY_SECONDS = 180.0
"""Seconds for workers that do not run to be ready, tried twice."""

KILL_SECONDS = 30.0
"""Seconds beyond the limit of a test in which an agent ends it, kills what does not leave it, and
says what does not end."""

CLOSE_SECONDS = 30.0

_CLEAREST = ("wrong-bytes", "timeout", "crash", MESSAGES)
"""Kinds of failures for which no node is blamed, what says most first."""

_FOLLOWING = frozenset({"interrupted", OTHER_MEMBER})
"""Kinds of failures that follow from another one."""


class NcclTransport:
    """A `waywiser.cluster.transports.transport.Transport`. ``seed`` is that of the bytes."""

    name = NCCL

    def __init__(self, agents: RequestedAgents, seed: int = 1) -> None:
        self._agents = agents
        self._seed = seed
        self._used: set[str] = set()
        self._running: set[PlannedTest] = set()

    def choose_memory(self, nodes: Sequence[ClusterNode], size: int) -> tuple[MessageMemory, str]:
        """That of GPUs: NCCL has no other."""
        return "gpu", ""

    def run(
        self, tests: Sequence[PlannedTest], size: int, seconds: float, on_finished: OnFinished
    ) -> None:
        """Runs each test by a thread of its own; ``on_finished`` is called by this one."""
        nodes = {node.name: node for node in self._agents.nodes()}
        finished: queue.SimpleQueue[FinishedTest | BaseException] = queue.SimpleQueue()

        def run(test: PlannedTest) -> None:
            try:
                own = [nodes.get(name) or ClusterNode(name) for name in test.nodes]
                finished.put(_NcclTest(self._agents, test, own, size, seconds, self._seed).run())
            except BaseException as error:  # it would be lost otherwise
                finished.put(error)

        for test in tests:
            self._used.update(test.nodes)
            self._running.add(test)
            threading.Thread(target=run, args=(test,), name="test", daemon=True).start()
        for _ in tests:
            found = finished.get()
            if isinstance(found, BaseException):
                raise found
            self._running.discard(found.test)
            on_finished(found)

    def close(self) -> None:
        """Ends the workers of all nodes, so that others may use the GPUs; at once if tests were
        left before they ended."""
        request = CloseRails(kills=bool(self._running))
        requests = dict.fromkeys(sorted(self._used), request)
        self._used.clear()
        self._running.clear()
        for name, reply in self._agents.ask(requests, CLOSE_SECONDS).items():
            if isinstance(reply, RailsClosed) and reply.stuck:
                self._agents.mark(name, "stuck", reply.stuck)


class _NcclTest:
    """One test, from its key to its times."""

    def __init__(
        self,
        agents: RequestedAgents,
        test: PlannedTest,
        nodes: Sequence[ClusterNode],
        size: int,
        seconds: float,
        seed: int,
    ) -> None:
        self._agents = agents
        self._test = test
        self._nodes = nodes
        self._size = size
        self._seconds = seconds
        self._seed = seed
        self._rails = rails_of(nodes)
        self._name = f"{test.round} {' '.join(test.nodes)}"

    def run(self) -> FinishedTest:
        started, began = datetime.now(UTC), time.monotonic()
        times: tuple[RailTime, ...] = ()
        setup_seconds = 0.0
        try:
            found = self._found()
        except WaywiserError as error:
            found = FailedTest(Failure("not-supported", str(error)))
        failed = found if isinstance(found, FailedTest) else None
        if not isinstance(found, FailedTest):
            times, setup_seconds = found
        return FinishedTest(
            test=self._test,
            transport=NCCL,
            bytes=self._size,
            started=started.isoformat(timespec="milliseconds"),
            setup_seconds=setup_seconds,
            elapsed_seconds=time.monotonic() - began,
            times=times,
            failed=failed,
        )

    def _found(self) -> tuple[tuple[RailTime, ...], float] | FailedTest:
        """The times and the seconds of set-up, or why there are none."""
        parts = self._parts()
        key = self._key()
        if isinstance(key, FailedTest):
            return key
        replies = self._measure(key, parts)
        failed = failed_test(replies, self._rails, self._test.nodes)
        if failed is not None:
            return failed
        measured = {n: each for n, each in replies.items() if isinstance(each, RailsMeasured)}
        setup_seconds = max(each.setup_seconds for each in measured.values())
        return self._times(measured, parts), setup_seconds

    def _key(self) -> str | FailedTest:
        """The key that the first node makes when all are ready."""
        first, *others = self._test.nodes
        requests = {first: ReadyRails(self._rails, makes_key=True)}
        requests.update({name: ReadyRails(self._rails) for name in others})
        replies = self._agents.ask(requests, READY_SECONDS)
        self._mark_stuck(replies)
        lost = failed_test(replies, self._rails, self._test.nodes)
        if lost is not None:
            return lost
        made = replies[first]
        assert isinstance(made, RailsReady)
        return made.key

    def _parts(self) -> tuple[TestPart, ...]:
        if self._test.phase == "collective" or len(self._nodes) != 2:
            part = collective_part(self._nodes, self._size, NCCL, settings=COLLECTIVE)
            return (part,)
        one, other = self._nodes
        return pair_parts(one, other, self._size, NCCL, settings=STREAM_OF_NCCL)

    def _measure(self, key: str, parts: Sequence[TestPart]) -> dict[str, Reply]:
        """What all nodes say. If one is lost, the others are stopped."""
        requests = {
            name: MeasureRails(
                test=self._name,
                key=key,
                first_rank=number * self._rails,
                rails=self._rails,
                ranks=len(self._nodes) * self._rails,
                parts=tuple(parts),
                seed=self._seed + self._test.round,
                seconds=self._seconds,
                watched=self._test.phase in WATCHED,
            )
            for number, name in enumerate(self._test.nodes)
        }
        waiting = set(requests)

        def stop_others(name: str, reply: Reply) -> None:
            waiting.discard(name)
            if waiting and _loss(reply) is not None:
                self._agents.ask({other: AbortTest(self._name) for other in waiting}, 0.0)

        replies = self._agents.ask(requests, self._seconds + KILL_SECONDS, stop_others)
        self._mark_stuck(replies)
        return replies

    def _mark_stuck(self, replies: Mapping[str, Reply]) -> None:
        for name, reply in replies.items():
            if isinstance(reply, RailsMeasured | RailsReady) and reply.stuck:
                self._agents.mark(name, "stuck", reply.stuck)

    def _times(
        self, measured: Mapping[str, RailsMeasured], parts: Sequence[TestPart]
    ) -> tuple[RailTime, ...]:
        first = measured[self._test.nodes[0]]
        counted = {
            part.sender: measured[part.sender].counted[number]
            for number, part in enumerate(parts)
            if part.sender and measured[part.sender].counted
        }
        sent = {part.sender: count for part, count in zip(parts, first.sent, strict=True)}
        return with_crossed(first.times, {n.name: n.rails for n in self._nodes}, sent, counted)


def failed_test(
    replies: Mapping[str, Reply], rails: int, order: Sequence[str]
) -> FailedTest | None:
    """What ended a test, and the node to blame: the first one that was lost by its own doing, and
    surely so. None is blamed if all waited for one another, or if several did not answer.
    ``replies`` are in the order in which they came, ``order`` is that of the ranks."""
    losses = {name: loss for name, reply in replies.items() if (loss := _loss(reply))}
    if not losses:
        return None
    own = [name for name, loss in losses.items() if loss.cause == "own"]
    sure = [name for name in own if losses[name].failure.kind != "timeout"]
    if not sure and len(own) != 1:
        return _unblamed(losses)
    node = (sure or own)[0]
    loss = losses[node]
    rank = order.index(node) * rails + loss.rail if loss.rail >= 0 else -1
    return FailedTest(loss.failure, node, rank, loss.doing)


def _unblamed(losses: Mapping[str, RankLoss]) -> FailedTest:
    """The failures that do not follow from another one, if there are some; the kind that says most
    is that of all."""
    stated = {name: each for name, each in losses.items() if each.failure.kind not in _FOLLOWING}
    known = stated or losses
    reason = "; ".join(f"{name}: {loss.failure.reason}" for name, loss in known.items())
    kinds = [loss.failure.kind for loss in known.values()]
    kind = next((each for each in _CLEAREST if each in kinds), kinds[0])
    return FailedTest(Failure(kind, reason), doing=next(iter(known.values())).doing)


def _loss(reply: Reply) -> RankLoss | None:
    """Why the node did not finish; None if it did."""
    if isinstance(reply, RailsMeasured | RailsReady):
        return reply.loss
    kind = "timeout" if isinstance(reply, NoAnswer) else "crash"
    reason = getattr(reply, "reason", f"a wrong answer: {type(reply).__name__}")
    return RankLoss(Failure(kind, reason), "own", doing="answering the coordinator")
