"""Agents of nodes without connections: they answer at once, as those of real nodes do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from waywiser.cluster.connection.coordinator import OnReply, Reply
from waywiser.cluster.connection.protocol import (
    AskMachine,
    FindBridge,
    KillLaunch,
    MachineNow,
    PutBridge,
    Request,
    RequestFailed,
)
from waywiser.cluster.node.node_files import find_bridge, put_bridge
from waywiser.cluster.node.node_processes import kill_launch
from waywiser.machine.machine import Machine, NumaNode
from waywiser.words.cluster import ClusterNode, NodeState

KillOnNode = Callable[[str, KillLaunch], Reply]


def machine_of(name: str) -> Machine:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    node = NumaNode(0, cpus, 2**30, 0)
    return Machine(name, "x86_64", "a CPU", (), (node,), (), ())


class AnsweringAgents:
    """A `waywiser.cluster.connection.requested_agents.RequestedAgents` whose nodes are all well."""

    def __init__(
        self,
        nodes: Sequence[ClusterNode],
        kill: KillOnNode = lambda name, request: kill_launch(request),
    ) -> None:
        self._nodes = list(nodes)
        self._kill = kill
        self.received: list[tuple[str, Request]] = []
        self.marks: list[tuple[str, NodeState, str]] = []
        self.answers: dict[tuple[str, type], Reply] = {}
        """Instead of those of nodes that are well."""

    def nodes(self) -> list[ClusterNode]:
        return self._nodes

    def mark(self, name: str, state: NodeState, reason: str) -> None:
        self.marks.append((name, state, reason))

    def ask(
        self,
        requests: Mapping[str, Request],
        seconds: float,
        on_reply: OnReply = lambda name, reply: None,
    ) -> dict[str, Reply]:
        self.received += requests.items()
        return {name: self._answer(name, request) for name, request in requests.items()}

    def _answer(self, name: str, request: Request) -> Reply:
        if answer := self.answers.get((name, type(request))):
            return answer
        if isinstance(request, AskMachine):
            return MachineNow(machine_of(name))
        if isinstance(request, FindBridge):
            return find_bridge(request)
        if isinstance(request, PutBridge):
            return put_bridge(request)
        if isinstance(request, KillLaunch):
            return self._kill(name, request)
        return RequestFailed(f"no test asks for {request}")
