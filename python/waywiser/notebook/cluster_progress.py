"""What a survey of a cluster says while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from waywiser.analysis.cluster.procedure import Round
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.surveys.survey_hosts import SurveyHosts, join_line
from waywiser.cluster.surveys.time_plan import TimePlan
from waywiser.words import (
    ClusterNode,
    FinishedTest,
    compress_hosts,
    count,
    format_bytes,
    format_seconds,
    visible,
)

_MOST_JOINED = 64
"""Nodes that are named as they join; of more, every so many are counted."""


class ClusterProgress:
    """A `waywiser.cluster.surveys.survey.ClusterWatcher` that writes lines; any thread may call
    it."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._expected = 0
        self._joined: set[str] = set()

    def note(self, line: str) -> None:
        with self._lock:
            self._write(visible(line))

    def wait(self, address: str, token: str, hosts: SurveyHosts, nodes: int) -> None:
        self._expected = len(hosts.names) or nodes
        if hosts.template:
            self.note(f"starting agents on {compress_hosts(hosts.names)}; they join {address}")
            return
        among = f" of {compress_hosts(hosts.names)}" if hosts.names else ""
        self.note(f"waiting for {count(self._expected, 'node')}{among}; start on each of them:")
        if not token:
            self.note(f"(with the {TOKEN_VARIABLE} of this process)")
        self.note(f"  {join_line(address, TOKEN_VARIABLE, token)}")

    def join(self, node: ClusterNode) -> None:
        if node.state != "joined":
            self.note(f"{node.name} is {node.state}: {node.reason}")
            return
        self._joined.add(node.name)
        joined = len(self._joined)
        if self._expected <= _MOST_JOINED or joined in (self._expected, 1):
            rails = count(len(node.rails), "rail")
            self.note(f"{node.name} joined, with {rails} ({joined} of {self._expected})")

    def check(self, nodes: Sequence[ClusterNode]) -> None:
        self.note(f"{count(len(nodes), 'node')} are surveyed, each by itself")

    def begin_round(self, round: Round, bytes: int, plan: TimePlan | None) -> None:
        left = f", about {format_seconds(plan.seconds)} left" if plan and plan.seconds else ""
        tests = count(len(round.tests), "test")
        self.note(f"round {round.number}, {round.phase}: {tests} of {format_bytes(bytes)}{left}")

    def finish(self, test: FinishedTest) -> None:
        if test.failed is None:
            return
        failed = test.failed
        where = f" on {failed.node}" if failed.node else ""
        rank = f", rank {failed.rank}" if failed.rank >= 0 else ""
        doing = f" ({failed.doing})" if failed.doing else ""
        among = compress_hosts(test.test.nodes)
        reason = f"{failed.failure.kind}{where}{rank}{doing}: {failed.failure.reason}"
        self.note(f"the test of {among} failed: {reason}")

    def lose(self, node: ClusterNode) -> None:
        self.note(f"{node.name} is {node.state}: {node.reason}; it is tested no more")
