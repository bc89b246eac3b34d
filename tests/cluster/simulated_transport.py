"""A transport in the place of MPI and NCCL: nodes are numbers, and faults are planted."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from waywiser.cluster.transports.transport import OnFinished
from waywiser.words import WaywiserError
from waywiser.words.cluster import (
    ClusterNode,
    FailedTest,
    FinishedTest,
    MessageMemory,
    PlannedTest,
    Rail,
    RailTime,
)
from waywiser.words.records import Failure

RATE = 10e9
"""Bytes per second of each rail, without a fault."""


@dataclass
class SimulatedTransport:
    """Runs tests in no time. Slowness is a factor on seconds."""

    slow_senders: Mapping[str, float] = field(default_factory=dict)
    slow_receivers: Mapping[str, float] = field(default_factory=dict)
    slow_pairs: Mapping[frozenset[str], float] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    """The group of each node."""
    slow_groups: Mapping[str, float] = field(default_factory=dict)
    """Factors of tests between a group and others."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Node -> kind of its failure: crash, timeout, wrong-bytes, out-of-memory."""
    failing_sets: frozenset[frozenset[str]] = frozenset()
    """Tests of exactly these nodes time out, and no node is named."""
    rails: int = 1
    noise: float = 0.003
    seed: int = 1
    on_test: Callable[[int, PlannedTest], None] = lambda count, test: None
    """Called before each test with the number of those before it."""
    error: WaywiserError | None = None
    """Raised by each run."""
    name: str = "mpi"
    runs: list[tuple[PlannedTest, ...]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    is_closed: bool = False

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.count = 0

    def choose_memory(self, nodes: Sequence[ClusterNode], size: int) -> tuple[MessageMemory, str]:
        return "host", ""

    def run(
        self, tests: Sequence[PlannedTest], size: int, seconds: float, on_finished: OnFinished
    ) -> None:
        self.runs.append(tuple(tests))
        self.sizes.append(size)
        if self.error is not None:
            raise self.error
        for test in tests:
            self.on_test(self.count, test)
            self.count += 1
            on_finished(self._finished(test, size))

    def close(self) -> None:
        self.is_closed = True

    def _finished(self, test: PlannedTest, size: int) -> FinishedTest:
        started = "2026-01-01T00:00:00.000+00:00"
        for node in test.nodes:
            if kind := self.failures.get(node):
                failed = FailedTest(Failure(kind, f"planted {kind}"), node, 0, "send, sample 3")
                return FinishedTest(test, self.name, size, started, failed=failed)
        if frozenset(test.nodes) in self.failing_sets:
            failed = FailedTest(Failure("timeout", "all wait for one another"))
            return FinishedTest(test, self.name, size, started, failed=failed)
        if test.phase == "collective":
            slowest = max(self._seconds(one, other, size) for one in test.nodes
                          for other in test.nodes if one != other)  # fmt: skip
            times = [self._time(rail, "", 2 * slowest) for rail in range(self.rails)]
        else:
            one, other = test.nodes
            times = [
                self._time(rail, sender, self._seconds(sender, receiver, size))
                for sender, receiver in ((one, other), (other, one))
                for rail in range(self.rails)
            ]
        return FinishedTest(test, self.name, size, started, 0.2, 0.5, tuple(times))

    def _seconds(self, sender: str, receiver: str, size: int) -> float:
        factor = self.slow_senders.get(sender, 1.0) * self.slow_receivers.get(receiver, 1.0)
        factor *= self.slow_pairs.get(frozenset((sender, receiver)), 1.0)
        groups = self.groups.get(sender), self.groups.get(receiver)
        if groups[0] != groups[1]:
            factor *= max(self.slow_groups.get(group or "", 1.0) for group in groups)
        return factor * size / RATE

    def _time(self, rail: int, sender: str, seconds: float) -> RailTime:
        seconds *= 1 + abs(self._random.gauss(0, self.noise))
        return RailTime(rail, sender, seconds, 0.99 * seconds, 1.01 * seconds, 10)


def nodes(count: int, rails: int = 1) -> list[ClusterNode]:
    """Nodes n0, n1, … that have joined."""
    own = tuple(Rail(rail) for rail in range(rails))
    return [ClusterNode(f"n{number}", rails=own) for number in range(count)]
