"""Agents in threads of this process, with what a survey requests of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from msgspec.structs import replace

from waywiser.cluster.connection.joining import AgentError, Joining
from waywiser.cluster.connection.protocol import (
    AskMachine,
    AskNode,
    CheckEnded,
    MachineNow,
    NodeNow,
    ReadPart,
    RunCheck,
)
from waywiser.cluster.node.agent import Agent, Handler
from waywiser.cluster.node.node_files import NodeFiles
from waywiser.machine.machine import Machine, NumaNode
from waywiser.words.cluster import ClusterNode, Rail

TOKEN = "0123456789abcdef"

A_MACHINE = Machine("host", "x86_64", "a CPU", (), (NumaNode(0, (0,), 2**30, 0),), (), ())


class SurveyedAgent:
    """An agent that joins, and offers ``profile`` as the result of its own survey."""

    def __init__(
        self,
        address: str,
        name: str,
        files: NodeFiles,
        *,
        profile: bytes = b"",
        versions: Mapping[str, str] | None = None,
        handlers: Mapping[type, Handler] | None = None,
        rails: tuple[Rail, ...] = (Rail(0),),
    ) -> None:
        node = ClusterNode(name, rails=rails, versions=dict(versions or {}))
        self.checks = 0
        self._files = files
        self._profile = profile
        known: dict[type, Handler] = {
            AskNode: lambda _: NodeNow(replace(node, counters={"eth0 rx_errors": 7})),
            AskMachine: lambda _: MachineNow(A_MACHINE),
            RunCheck: self._check,
            ReadPart: files.read,
        }
        self.agent = Agent(Joining(address, TOKEN, node), {**known, **(handlers or {})})
        self.error: AgentError | None = None
        self.thread = threading.Thread(target=self._run, name=f"agent {name}")
        self.thread.start()

    def _run(self) -> None:
        try:
            self.agent.run(60.0)
        except AgentError as error:
            self.error = error

    def _check(self, request: RunCheck) -> CheckEnded:
        self.checks += 1
        if not self._profile:
            return CheckEnded(2, printed="the GPU is gone")
        (self._files.folder / "check.wwp").write_bytes(self._profile)
        return CheckEnded(0, self._files.offer("check.wwp"))
