"""Tests by NCCL as the coordinator runs them, with agents whose answers are scripted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import pytest

from waywiser.cluster.connection.coordinator import AgentLost, NoAnswer, OnReply, Reply
from waywiser.cluster.connection.protocol import Request, RequestFailed
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
from waywiser.cluster.transports.nccl_transport import NcclTransport, failed_test
from waywiser.words.cluster import (
    ClusterNode,
    FinishedTest,
    Interface,
    NodeState,
    PlannedTest,
    Rail,
    RailTime,
)
from waywiser.words.records import Failure

ETH0 = Interface("eth0", "ethernet")
RAILS = (Rail(0, gpu=0, interface=ETH0), Rail(1, gpu=1, interface=ETH0))


class ScriptedAgents:
    """Four nodes with two rails; ``answers`` replace those of nodes that are well."""

    def __init__(self, answers: Mapping[tuple[str, type], Reply] | None = None) -> None:
        self.answers = dict(answers or {})
        self.received: list[tuple[str, Request]] = []
        self.marks: list[tuple[str, NodeState, str]] = []
        self._lock = threading.Lock()

    def nodes(self) -> list[ClusterNode]:
        return [ClusterNode(name, rails=RAILS) for name in "abcd"]

    def mark(self, name: str, state: NodeState, reason: str) -> None:
        self.marks.append((name, state, reason))

    def ask(
        self,
        requests: Mapping[str, Request],
        seconds: float,
        on_reply: OnReply = lambda name, reply: None,
    ) -> dict[str, Reply]:
        replies: dict[str, Reply] = {}
        lost_first = sorted(
            requests, key=lambda name: (name, type(requests[name])) not in self.answers
        )
        for name in lost_first:
            request = requests[name]
            with self._lock:
                self.received.append((name, request))
            replies[name] = self.answers.get((name, type(request))) or well(request)
            on_reply(name, replies[name])
        return replies

    def requests(self, kind: type) -> list[tuple[str, Request]]:
        return [(name, request) for name, request in self.received if isinstance(request, kind)]


def well(request: Request) -> Reply:
    if isinstance(request, ReadyRails):
        return RailsReady("ab12" if request.makes_key else "")
    if not isinstance(request, MeasureRails):
        return RailsClosed()
    counted = tuple({"eth0": 800} for _ in request.parts) if request.watched else ()
    if request.first_rank:
        return RailsMeasured(setup_seconds=2.0, counted=counted)
    times = tuple(
        RailTime(rail, part.sender, 1.0, 0.9, 1.1, 6)
        for part in request.parts
        for rail in range(request.rails)
    )
    return RailsMeasured(times, 1.0, tuple(800 for _ in request.parts), counted)


def run(
    agents: ScriptedAgents, *tests: PlannedTest, on_finished: Callable[[FinishedTest], None]
) -> None:
    NcclTransport(agents, seed=5).run(tests, 100, 20.0, on_finished)


def finished(agents: ScriptedAgents, *tests: PlannedTest) -> list[FinishedTest]:
    found: list[FinishedTest] = []
    run(agents, *tests, on_finished=found.append)
    return sorted(found, key=lambda each: each.test.nodes)


PAIR = PlannedTest("pairs", 3, ("a", "b"))


def test_a_pair_has_the_key_of_its_first_node_and_the_times_of_each_rail() -> None:
    agents = ScriptedAgents()
    (test,) = finished(agents, PAIR)
    assert (test.transport, test.bytes, test.failed, test.setup_seconds) == ("nccl", 100, None, 2.0)
    assert [(each.sender, each.rail) for each in test.times] == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1)
    ]  # fmt: skip
    sent_requests = dict(agents.requests(MeasureRails))
    assert [(r.key, r.first_rank, r.ranks) for r in sent_requests.values()] == [
        ("ab12", 0, 4),
        ("ab12", 2, 4),
    ]
    parts = sent_requests["a"].parts
    assert str(parts[1].workload.transfers[0].path) == "device@rank:2 -> device@rank:0 by nccl"
    assert (sent_requests["a"].seconds, sent_requests["a"].seed) == (20.0, 8)


def test_a_collective_is_of_all_ranks() -> None:
    agents = ScriptedAgents()
    (test,) = finished(agents, PlannedTest("collective", 9, ("a", "b", "c")))
    assert [(each.sender, each.rail) for each in test.times] == [("", 0), ("", 1)]
    (part,) = agents.requests(MeasureRails)[0][1].parts
    assert str(part.workload) == (
        "device@rank:0-5 -> device@rank:0-5 by nccl[collective=allreduce,type=int32] of 100"
    )


def test_a_collective_of_more_ranks_than_can_be_named_is_not_supported() -> None:
    agents = ScriptedAgents()
    agents.nodes = lambda: [ClusterNode(f"n{n}", rails=RAILS) for n in range(513)]  # type: ignore[method-assign]
    names = tuple(f"n{n}" for n in range(513))
    (test,) = finished(agents, PlannedTest("collective", 9, names))
    assert test.failed is not None
    assert test.failed.failure.kind == "not-supported"
    assert "1026 ranks" in test.failed.failure.reason


def test_a_node_that_nobody_knows_is_not_supported() -> None:
    (test,) = finished(ScriptedAgents(), PlannedTest("pairs", 3, ("a", "x")))
    assert test.failed is not None
    assert test.failed.failure == Failure("not-supported", "x has no rail")


def test_watched_tests_say_how_many_bytes_crossed_the_interface() -> None:
    (test,) = finished(ScriptedAgents(), PlannedTest("hangs", 1, ("a", "b")))
    assert {each.crossed for each in test.times} == {0.5}
    (other,) = finished(ScriptedAgents(), PAIR)
    assert {each.crossed for each in other.times} == {None}


CRASH = RankLoss(Failure("crash", "the worker was killed by SIGSEGV"), "own", 1, "sending from a")
STOPPED = RankLoss(Failure("interrupted", "stopped"), "others", doing="sending from a")


def test_a_crash_is_that_of_its_node_and_stops_the_others() -> None:
    agents = ScriptedAgents({("b", MeasureRails): RailsMeasured(loss=CRASH)})
    failed, other = finished(agents, PAIR, PlannedTest("pairs", 3, ("c", "d")))
    assert failed.failed is not None
    assert (failed.failed.node, failed.failed.rank, failed.failed.doing) == (
        "b", 3, "sending from a",
    )  # fmt: skip
    assert failed.failed.failure == CRASH.failure
    assert agents.requests(AbortTest) == [("a", AbortTest("3 a b"))]
    assert other.failed is None


def test_a_node_that_is_not_ready_fails_its_test_alone() -> None:
    loss = RankLoss(Failure("crash", "gpu:0 is lost"), "own", doing="getting ready")
    agents = ScriptedAgents({("a", ReadyRails): RailsReady(loss=loss)})
    (test,) = finished(agents, PAIR)
    assert test.failed is not None
    assert (test.failed.node, test.failed.failure) == ("a", Failure("crash", "gpu:0 is lost"))
    assert not agents.requests(MeasureRails)


@pytest.mark.parametrize("request_type", [ReadyRails, MeasureRails])
def test_what_survives_its_kill_makes_the_node_stuck(request_type: type) -> None:
    stuck = "worker 12 does not end, although killed"
    answer = (
        RailsReady(loss=RankLoss(Failure("timeout", stuck), "own"), stuck=stuck)
        if request_type is ReadyRails
        else RailsMeasured(loss=RankLoss(Failure("timeout", stuck), "own"), stuck=stuck)
    )
    agents = ScriptedAgents({("b", request_type): answer})
    (test,) = finished(agents, PAIR)
    assert agents.marks == [("b", "stuck", stuck)]
    assert test.failed is not None and test.failed.node == "b"


def test_workers_are_closed_on_all_nodes_that_had_tests() -> None:
    agents = ScriptedAgents({("c", CloseRails): RailsClosed("worker 3 does not end")})
    transport = NcclTransport(agents)
    tests = [PAIR, PlannedTest("pairs", 3, ("c", "a"))]
    transport.run(tests, 8, 1.0, lambda test: None)
    transport.close()
    assert agents.requests(CloseRails) == [(name, CloseRails()) for name in "cab"]
    transport.close()
    assert len(agents.requests(CloseRails)) == 3
    assert agents.marks == [("c", "stuck", "worker 3 does not end")]


def test_workers_are_killed_if_a_test_was_left_before_it_ended() -> None:
    def stop(test: FinishedTest) -> None:
        raise KeyboardInterrupt

    agents = ScriptedAgents()
    transport = NcclTransport(agents)
    with pytest.raises(KeyboardInterrupt):
        transport.run([PAIR, PlannedTest("pairs", 3, ("c", "d"))], 8, 1.0, stop)
    transport.close()
    assert dict(agents.requests(CloseRails)) == dict.fromkeys("abcd", CloseRails(kills=True))


def loss(kind: str, cause: str, reason: str = "why") -> RailsMeasured:
    return RailsMeasured(loss=RankLoss(Failure(kind, reason), cause))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("replies", "node", "reason"),
    [
        pytest.param({"a": loss("crash", "others"), "b": AgentLost("its connection ended")},
                     "b", "its connection ended", id="the agent that is gone"),
        pytest.param({"a": loss("timeout", "own"), "b": loss("sticky", "own", "lost")},
                     "b", "lost", id="a sure cause before silence"),
        pytest.param({"a": loss("interrupted", "others"), "b": NoAnswer("no answer")},
                     "b", "no answer", id="the agent that does not answer"),
        pytest.param({"a": RailsMeasured(), "b": RequestFailed("it does not do that")},
                     "b", "it does not do that", id="an agent that cannot"),
        pytest.param({"a": loss("crash", "others", "x"), "b": loss("timeout", "others", "y")},
                     "", "a: x; b: y", id="messages that fail at both ends"),
        pytest.param({"a": loss("timeout", "own"), "b": loss("timeout", "own")},
                     "", "a: why; b: why", id="two that are silent"),
        pytest.param({"a": loss("timeout", "others"), "b": loss("interrupted", "others")},
                     "", "a: why", id="each waits for the other"),
        pytest.param({"a": loss("other-member", "others"), "b": loss("wrong-bytes", "others")},
                     "", "b: why", id="wrong bytes are of either end"),
    ],
)  # fmt: skip
def test_who_is_blamed(replies: dict[str, Reply], node: str, reason: str) -> None:
    found = failed_test(replies, 2, ("a", "b"))
    assert found is not None
    assert (found.node, found.failure.reason) == (node, reason)


def test_nobody_is_blamed_for_a_test_that_was_finished() -> None:
    assert failed_test({"a": RailsMeasured(), "b": RailsMeasured()}, 1, ("a", "b")) is None
