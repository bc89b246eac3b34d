"""The nodes of a run as ranks of MPI need them: their machines, the bridge to the MPI library, and
the end of what is left of a launch."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.cluster.connection.coordinator import AgentLost, NoAnswer, Reply
from waywiser.cluster.connection.protocol import (
    AskMachine,
    BridgePath,
    FindBridge,
    KillLaunch,
    KillResult,
    MachineNow,
    PutBridge,
    Request,
    RequestFailed,
)
from waywiser.cluster.connection.rank_orders import placed_rails
from waywiser.cluster.connection.requested_agents import RequestedAgents
from waywiser.machine import Machine
from waywiser.measure.ranks.bridge_file import MOST_BYTES, sha256_of
from waywiser.measure.ranks.mpi_library import MpiLibrary
from waywiser.measure.ranks.placement import PlacementError
from waywiser.words import ClusterNode, FailedTest, Failure, PlannedTest, read_trusted

_ASK_SECONDS = 60.0

_ANSWER_SECONDS = 5.0
"""Seconds more for an agent to say so; that of a node without network does not."""

_KILL_SECONDS = 15.0
"""Seconds for a killed process to be gone; one in the middle of a driver call can take seconds."""


class MpiNodes:
    """Asks each node once for what its ranks need, through its agent."""

    def __init__(self, agents: RequestedAgents, library: MpiLibrary) -> None:
        self._agents = agents
        self._library = library
        self._sha256 = sha256_of(library.bridge)
        self.machines: dict[str, Machine] = {}
        self._unable: dict[str, FailedTest] = {}

    def of(self, tests: Sequence[PlannedTest]) -> dict[str, ClusterNode]:
        """The nodes of tests, which are made ready for ranks if they were not. Why one is not
        ready, `unable` says."""
        names = {name for test in tests for name in test.nodes}
        nodes = {node.name: node for node in self._agents.nodes() if node.name in names}
        new = [n for n in nodes if n not in self.machines and n not in self._unable]
        for name, reply in self._ask(dict.fromkeys(new, AskMachine())).items():
            if not isinstance(reply, MachineNow):
                self._note_failure(name, reply)
                continue
            try:
                placed_rails(reply.machine, nodes[name].rails)
            except PlacementError as error:
                self._unable[name] = FailedTest(
                    Failure("not-supported", f"{name}: {error.what}"), name
                )
                continue
            self.machines[name] = reply.machine
        self._send_bridge([name for name in new if name not in self._unable])
        return nodes

    def unable(self, test: PlannedTest) -> FailedTest | None:
        """Why a test cannot be launched."""
        known = {node.name: node for node in self._agents.nodes()}
        for name in test.nodes:
            node = known.get(name)
            if name in self._unable:
                return self._unable[name]
            if node is None or node.state != "joined":
                reason = node.reason or node.state if node else "it is no node of this run"
                return FailedTest(Failure("skipped", f"{name}: {reason}"), name)
            if not node.rails:
                return FailedTest(Failure("not-supported", f"{name} has no rail"), name)
        return None

    def end_launch(self, secret: str, names: Sequence[str]) -> None:
        """Ends what is left of a launch on its nodes. One where something survives is stuck."""
        requests = dict.fromkeys(names, KillLaunch(secret, _KILL_SECONDS))
        replies = self._agents.ask(requests, _KILL_SECONDS + _ANSWER_SECONDS)
        for name, reply in replies.items():
            if isinstance(reply, KillResult) and reply.survivors:
                pids = ", ".join(map(str, reply.survivors))
                reason = f"killed, and still there after {_KILL_SECONDS:.3g} s: process {pids}"
                self._agents.mark(name, "stuck", reason)

    def _send_bridge(self, names: Sequence[str]) -> None:
        """Nodes get the bridge if they do not have it."""
        find = FindBridge(self._sha256, self._library.bridge)
        found = self._ask(dict.fromkeys(names, find))
        absent = [name for name in names if found[name] == BridgePath("")]
        if absent:
            put = PutBridge(self._sha256, read_trusted(self._library.bridge, MOST_BYTES))
            found |= self._ask(dict.fromkeys(absent, put))
        for name, reply in found.items():
            if not isinstance(reply, BridgePath):
                self._note_failure(name, reply)

    def _ask(self, requests: dict[str, Request]) -> dict[str, Reply]:
        return self._agents.ask(requests, _ASK_SECONDS) if requests else {}

    def _note_failure(self, name: str, reply: Reply) -> None:
        reason = "its agent answered something else"
        if isinstance(reply, RequestFailed | AgentLost | NoAnswer):
            reason = reply.reason
        self._unable[name] = FailedTest(Failure("crash", f"{name}: {reason}"), name)
