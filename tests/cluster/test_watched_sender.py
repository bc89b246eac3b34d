"""The byte counters of a sender, read by its agent around a part of a test."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from waywiser.cluster.connection.coordinator import NoAnswer, OnReply, Reply
from waywiser.cluster.connection.protocol import Request
from waywiser.cluster.connection.rail_requests import BytesCounted, CountBytes
from waywiser.cluster.connection.rank_orders import pair_parts, rail_times
from waywiser.cluster.transports.watched_sender import WatchedSender
from waywiser.words.cluster import ClusterNode, Interface, NodeState, Rail
from waywiser.words.records import Samples

RAILS = (Rail(0, interface=Interface("eth0", "ethernet")),)
A, B = ClusterNode("a", rails=RAILS), ClusterNode("b", rails=RAILS)
PART = pair_parts(A, B, 100, "mpi")[1]
SAMPLES = Samples(span=(1.0,) * 6, flags=(0,) * 6, repetitions=(4,) * 6)
"""2,400 bytes of ``b``."""


class CountingAgents:
    """Answers with one count after the other."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def ask(
        self, requests: Mapping[str, Request], seconds: float, on_reply: OnReply = lambda *_: None
    ) -> dict[str, Reply]:
        assert requests == {"b": CountBytes()}
        return {"b": self.replies.pop(0)}

    def nodes(self) -> list[ClusterNode]:
        return [A, B]

    def mark(self, name: str, state: NodeState, reason: str) -> None:
        pytest.fail("nothing is marked")


def counted(sent: int) -> BytesCounted:
    return BytesCounted({"eth0": sent, "eth1": 7})


def crossed(*replies: Reply, node: ClusterNode = B) -> float | None:
    agents = CountingAgents(*replies)
    watched = WatchedSender(agents, node, PART)
    (time,) = watched.with_crossed(rail_times(PART, SAMPLES), SAMPLES, late_seconds=0)
    assert not agents.replies
    return time.crossed


def test_the_share_of_the_bytes_is_that_of_the_interface_of_the_rail() -> None:
    assert crossed(counted(50), counted(1250)) == 0.5
    assert crossed(counted(50), counted(5000)) == 1.0


def test_counters_that_lack_bytes_are_read_again() -> None:
    assert crossed(counted(50), counted(60), counted(2450)) == 1.0
    assert crossed(counted(50), counted(60), counted(60)) == pytest.approx(10 / 2400)


def test_without_counters_nothing_is_known() -> None:
    assert crossed(counted(50), counted(10)) is None
    assert crossed(NoAnswer("no answer in 5 s"), counted(10)) is None
    assert crossed(node=ClusterNode("b", rails=(Rail(0),))) is None
