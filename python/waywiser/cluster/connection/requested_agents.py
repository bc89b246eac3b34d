"""What transports need of the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from waywiser.cluster.connection.coordinator import OnReply, Reply
from waywiser.cluster.connection.protocol import Request
from waywiser.words import ClusterNode, NodeState


class RequestedAgents(Protocol):
    """A `waywiser.cluster.connection.coordinator.Coordinator`."""

    def ask(
        self, requests: Mapping[str, Request], seconds: float, on_reply: OnReply = ...
    ) -> dict[str, Reply]: ...

    def nodes(self) -> list[ClusterNode]: ...

    def mark(self, name: str, state: NodeState, reason: str) -> None: ...
