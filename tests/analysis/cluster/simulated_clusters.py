"""Clusters without machines: times of tests, from planted faults, noise and shared up-links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from waywiser.analysis.cluster.procedure import Round, next_round
from waywiser.analysis.cluster.verdict import verdict
from waywiser.analysis.cluster.verdict_values import ClusterVerdict
from waywiser.words.cluster import (
    ClusterNode,
    ClusterPlan,
    FailedTest,
    FinishedTest,
    Interface,
    PlannedTest,
    Rail,
    RailTime,
)
from waywiser.words.records import Failure

BYTES = 1 << 26
SECONDS = 0.003
BOTH = (0, 1)
SHARE = 0.9
"""What tests reach of the rate of their interfaces."""


@dataclass
class SimulatedCluster:
    """Nodes below switches of ``group_size``. Noise and disturbances only of the time of a test in
    one direction; ``crossing`` is what another switch costs.

    ``uplinks`` of each switch are used by static routes: each pair of sender and receiver has one,
    and tests that use the same up-link or down-link at the same time share it. 0: no limit.
    """

    nodes: int
    rng: np.random.Generator
    noise: float = 0.015
    disturbed: float = 0.05
    disturbance: float = 0.15
    spread: float = 0.004
    crossing: float = 0.03
    group_size: int = 16
    uplinks: int = 0
    shuffled: bool = False
    """Whether names say nothing about switches."""
    rails: int = 1
    shows_interfaces: bool = False
    """Whether the rates of the interfaces are known."""
    slow: dict[tuple[int, int, int], float] = field(default_factory=dict)
    """Slowness by node, rail (-1: all), and sending (0) or receiving (1)."""
    slow_pairs: dict[tuple[int, int], float] = field(default_factory=dict)
    """Both directions of two nodes."""
    slow_groups: dict[int, float] = field(default_factory=dict)
    """All that leaves or enters a switch."""
    fail: Callable[[PlannedTest], FailedTest | None] = lambda test: None
    collective: Callable[[tuple[str, ...]], float] = lambda nodes: 1.0
    load: dict[str, float] = field(default_factory=dict)
    """By phase: how much slower every test is then."""
    tests: int = 0

    def __post_init__(self) -> None:
        width = len(str(self.nodes - 1))
        self.names = [f"n{n:0{width}}" for n in range(self.nodes)]
        self.index = {name: n for n, name in enumerate(self.names)}
        order = self.rng.permutation(self.nodes) if self.shuffled else np.arange(self.nodes)
        self.switch = order // self.group_size
        self.level = self.rng.normal(0, self.spread, (self.nodes, self.rails, 2))
        for (node, rail, way), slowness in self.slow.items():
            self.level[node, slice(None) if rail < 0 else rail, way] += np.log1p(slowness)
        self.route = self.rng.integers(0, max(1, self.uplinks), (self.nodes, self.nodes))

    def make_slow(self, node: int, slowness: float) -> None:
        """Makes all of a node slow."""
        self.level[node] += np.log1p(slowness)

    @property
    def members(self) -> list[ClusterNode]:
        rate = BYTES / SECONDS / SHARE if self.shows_interfaces else 0.0
        rails = tuple(
            Rail(n, interface=Interface(f"eth{n}", "ethernet", rate)) for n in range(self.rails)
        )
        return [ClusterNode(name, rails=rails) for name in self.names]

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        return {
            f"switch{switch}": tuple(self.names[n] for n in np.flatnonzero(self.switch == switch))
            for switch in np.unique(self.switch).tolist()
        }

    def run(self, tests: Sequence[PlannedTest]) -> list[FinishedTest]:
        """Runs the tests of a round at the same time."""
        self.tests += len(tests)
        if tests and tests[0].phase == "collective":
            return [self._collective(test) for test in tests]
        a = np.array([self.index[test.nodes[0]] for test in tests])
        b = np.array([self.index[test.nodes[1]] for test in tests])
        load = 1 + self.load.get(tests[0].phase, 0.0) if tests else 1.0
        seconds = (load * np.stack([self._seconds(a, b), self._seconds(b, a)], axis=2)).tolist()
        return [self._finished(test, each) for test, each in zip(tests, seconds, strict=True)]

    def _seconds(self, sender: np.ndarray, receiver: np.ndarray) -> np.ndarray:
        rng, shape = self.rng, (len(sender), self.rails)
        noise = rng.normal(0, self.noise, shape)
        hit = rng.random(len(sender)) < self.disturbed
        noise += (hit * rng.exponential(self.disturbance, len(sender)))[:, None]
        y = np.maximum(self.level[sender, :, 0], self.level[receiver, :, 1]) + noise
        first, second = self.switch[sender], self.switch[receiver]
        crosses = first != second
        y += (crosses * self.crossing + np.log(self._sharing(sender, receiver)))[:, None]
        for (p, q), slowness in self.slow_pairs.items():
            same = ((sender == p) & (receiver == q)) | ((sender == q) & (receiver == p))
            y += (same * np.log1p(slowness))[:, None]
        for group, slowness in self.slow_groups.items():
            y += (crosses * ((first == group) | (second == group)) * np.log1p(slowness))[:, None]
        return SECONDS * np.exp(y)

    def _sharing(self, sender: np.ndarray, receiver: np.ndarray) -> np.ndarray:
        """How many tests share the up-link or the down-link of each."""
        if not self.uplinks:
            return np.ones(len(sender))
        up: dict[tuple[int, int], int] = defaultdict(int)
        down: dict[tuple[int, int], int] = defaultdict(int)
        keys = []
        for a, b in zip(sender.tolist(), receiver.tolist(), strict=True):
            first, second = int(self.switch[a]), int(self.switch[b])
            route = int(self.route[a, b])
            keys.append(((first, route), (second, route)) if first != second else None)
            if first != second:
                up[first, route] += 1
                down[second, route] += 1
        return np.array([max(up[k[0]], down[k[1]]) if k else 1 for k in keys], dtype=float)

    def _finished(self, test: PlannedTest, seconds: list[list[float]]) -> FinishedTest:
        failed = self.fail(test)
        if failed is not None:
            return FinishedTest(test, "simulated", BYTES, "", failed=failed)
        times = tuple(
            RailTime(rail, sender, each[way], each[way], each[way], 10)
            for rail, each in enumerate(seconds)
            for way, sender in enumerate(test.nodes)
        )
        return FinishedTest(test, "simulated", BYTES, "", times=times)

    def _collective(self, test: PlannedTest) -> FinishedTest:
        failed = self.fail(test)
        if failed is not None:
            return FinishedTest(test, "simulated", BYTES, "", failed=failed)
        size = len(test.nodes)
        seconds = 2 * (size - 1) / size * SECONDS * 1.05 * self.collective(test.nodes)
        times = tuple(
            RailTime(rail, "", seconds, seconds, seconds, 10) for rail in range(self.rails)
        )
        return FinishedTest(test, "simulated", BYTES, "", times=times)

    def plan(self, *, groups: bool = False, uplink_pairs: int = 0, seed: int = 1) -> ClusterPlan:
        given = self.groups if groups else {}
        return ClusterPlan(
            "simulated", seed, given, "file" if groups else "", uplink_pairs, bytes=BYTES
        )


@dataclass(frozen=True)
class SurveyedCluster:
    """A run of the whole procedure."""

    finished: list[FinishedTest]
    rounds: list[Round]
    verdict: ClusterVerdict


def survey(cluster: SimulatedCluster, plan: ClusterPlan) -> SurveyedCluster:
    """Runs all rounds."""
    finished: list[FinishedTest] = []
    rounds: list[Round] = []
    while following := next_round(cluster.members, plan, finished):
        rounds.append(following)
        finished += cluster.run(following.tests)
        assert len(rounds) < 1000
    return SurveyedCluster(finished, rounds, verdict(cluster.members, plan, finished))


def failure(kind: str, node: str = "", rank: int = -1) -> FailedTest:
    return FailedTest(Failure(kind, f"{kind} of a test"), node, rank, "send")
