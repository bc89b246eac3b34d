"""The byte counters of a sender, read by its agent around a part of a test."""

from __future__ import annotations

import time
from collections.abc import Sequence

from waywiser.cluster.connection.rail_requests import BytesCounted, CountBytes
from waywiser.cluster.connection.rank_orders import TestPart, least_sent_bytes, sent_bytes
from waywiser.cluster.connection.requested_agents import RequestedAgents
from waywiser.cluster.node.watched_interfaces import LATE_SECONDS, with_crossed
from waywiser.words import ClusterNode, RailTime, Samples

_ASK_SECONDS = 5.0


class WatchedSender:
    """Reads the counters when it is made. A node that does not answer has none."""

    def __init__(self, agents: RequestedAgents, node: ClusterNode, part: TestPart) -> None:
        self._agents = agents
        self._node = node
        self._part = part
        rails = (rail.interface for rail in node.rails)
        self._names = {each.name for each in rails if each is not None}
        self._before = self._read()

    def with_crossed(
        self, times: Sequence[RailTime], samples: Samples, late_seconds: float = LATE_SECONDS
    ) -> tuple[RailTime, ...]:
        """The times of the part with the share of the bytes that crossed the interfaces. Counters
        that lack bytes are read again later."""
        counted = self._counted()
        if any(count < least_sent_bytes(self._part) for count in counted.values()):
            time.sleep(late_seconds)
            counted = self._counted()
        name = self._node.name
        sent = {name: sent_bytes(self._part, samples)}
        return with_crossed(times, {name: self._node.rails}, sent, {name: counted})

    def _counted(self) -> dict[str, int]:
        """What was counted since it was made; nothing of counters that were reset."""
        now, before = self._read(), self._before
        since = {name: now[name] - before[name] for name in now if name in before}
        return {name: count for name, count in since.items() if count >= 0}

    def _read(self) -> dict[str, int]:
        if not self._names:
            return {}
        name = self._node.name
        reply = self._agents.ask({name: CountBytes()}, _ASK_SECONDS)[name]
        sent = reply.sent if isinstance(reply, BytesCounted) else {}
        return {each: sent[each] for each in self._names if each in sent}
