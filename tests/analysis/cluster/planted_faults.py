"""Faults planted in simulated clusters, and what a verdict makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.cluster.simulated_clusters import SimulatedCluster
from waywiser.analysis.cluster.procedure import next_round
from waywiser.analysis.cluster.verdict_values import ClusterVerdict, FindingKind
from waywiser.words.cluster import ClusterPlan, FinishedTest, PlannedTest

Expected = set[tuple[FindingKind, frozenset[str]]]


def plant(cluster: SimulatedCluster, plan: ClusterPlan, kind: str, amount: float) -> Expected:
    """Plants ``node``, ``nodes`` (a share of them, 10 to 100 % slow), ``switch``, ``pair`` or
    nothing (``healthy``), and returns the findings that are right."""
    rng = cluster.rng
    if kind == "node":
        node = int(rng.integers(cluster.nodes))
        cluster.make_slow(node, amount)
        return {("slow node", frozenset([cluster.names[node]]))}
    if kind == "nodes":
        nodes = rng.choice(cluster.nodes, int(amount * cluster.nodes), replace=False)
        for node in nodes.tolist():
            cluster.make_slow(node, float(rng.uniform(0.1, 1.0)))
        return {("slow node", frozenset([cluster.names[node]])) for node in nodes.tolist()}
    if kind == "switch":
        names = list(cluster.groups.values())
        group = int(rng.integers(len(names)))
        cluster.slow_groups[group] = amount
        return {("slow group", frozenset(names[group]))}
    if kind == "pair":
        a, b = _tested_pair(cluster, plan)
        cluster.slow_pairs[a, b] = amount
        return {("slow pair", frozenset([cluster.names[a], cluster.names[b]]))}
    assert kind == "healthy"
    return set()


def _tested_pair(cluster: SimulatedCluster, plan: ClusterPlan) -> tuple[int, int]:
    """Draws a pair inside a group that the first round of pairs tests."""
    tests: list[PlannedTest] = []
    finished: list[FinishedTest] = []
    while not tests and (following := next_round(cluster.members, plan, finished)):
        if following.phase == "pairs":
            tests = list(following.tests)
        finished += cluster.run(following.tests)
    pairs = [tuple(cluster.index[name] for name in each.nodes) for each in tests]
    inside = [(a, b) for a, b in pairs if cluster.switch[a] == cluster.switch[b]] or pairs
    return inside[int(cluster.rng.integers(len(inside)))]


@dataclass(frozen=True)
class Outcome:
    """``right``: all that was planted is found, as what it is. ``innocent``: something is accused
    that was not planted."""

    right: bool
    innocent: bool


def outcome(verdict: ClusterVerdict, expected: Expected) -> Outcome:
    found = {
        (each.kind, frozenset(each.nodes))
        for each in verdict.findings
        if each.kind in ("slow node", "slow group", "slow pair")
    }
    guilty = {name for _, names in expected for name in names}
    accused = set(verdict.of("slow")) | {
        name for kind, names in found if kind == "slow pair" for name in names
    }
    return Outcome(expected <= found, bool(accused - guilty))


@dataclass(frozen=True)
class Network:
    """What is below the nodes, and what is known about it."""

    name: str
    uplinks: int = 0
    knows_groups: bool = False
    uplink_pairs: int = 0
    shuffled: bool = False


NETWORKS = (
    Network("no limit"),
    Network("no limit, groups", knows_groups=True),
    Network("1:1", uplinks=16),
    Network("1:1, groups", uplinks=16, knows_groups=True),
    Network("2:1", uplinks=8),
    Network("2:1, groups", uplinks=8, knows_groups=True),
    Network("2:1, groups, 4 pairs", uplinks=8, knows_groups=True, uplink_pairs=4),
    Network("2:1, shuffled", uplinks=8, shuffled=True),
)


def simulated(network: Network, nodes: int, seed: int, noise: float = 0.015) -> SimulatedCluster:
    rng = np.random.default_rng([seed, nodes])
    return SimulatedCluster(
        nodes, rng, noise=noise, uplinks=network.uplinks, shuffled=network.shuffled
    )
