"""Faults planted in simulated clusters, and what a verdict makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.cluster.simulated_clusters import SimulatedCluster, failure
from waywiser.analysis.cluster.verdict_values import ClusterVerdict
from waywiser.words.cluster import FailedTest

Expected = set[tuple[str, frozenset[str]]]


NO_NODES: frozenset[str] = frozenset()


def plant(cluster: SimulatedCluster, kind: str, amount: float) -> Expected:
    """Plants a fault, and returns the findings that are right.

    ``node``; ``nodes``: a share of them, 10 to 100 % slow; ``all`` nodes, which the rates of their
    interfaces show; ``switch``: all that leaves or enters one; ``pair``; ``rail`` of a node,
    ``sending`` of it in one direction; ``rails``: one rail of all nodes; ``crossing``: all links
    between switches; ``hang``, ``flaky``: a node whose tests, or half of them, time out;
    ``broken``: a pair of which they do; ``healthy``: nothing.
    """
    rng, names = cluster.rng, cluster.names
    if kind == "healthy":
        return set()
    if kind == "all":
        cluster.level += np.log1p(amount)
        return {("below interface rate", frozenset(names))}
    if kind in ("switch", "crossing") and len(cluster.groups) == 1:
        return set()  # no test crosses
    if kind == "nodes":
        nodes = rng.choice(cluster.nodes, int(amount * cluster.nodes), replace=False)
        for node in nodes.tolist():
            cluster.make_slow(node, float(rng.uniform(0.1, 1.0)))
        return {("slow node", frozenset([names[node]])) for node in nodes.tolist()}
    if kind == "switch":
        groups = list(cluster.groups.values())
        group = int(rng.integers(len(groups)))
        cluster.slow_groups[group] = amount
        # Of two groups neither can be blamed.
        is_one = len(groups) > 2
        return {("slow group", frozenset(groups[group])) if is_one else ("slow crossing", NO_NODES)}
    if kind == "crossing":
        cluster.crossing += float(np.log1p(amount))
        return {("slow crossing", NO_NODES)}
    if kind == "rails":
        cluster.level[:, int(rng.integers(cluster.rails))] += np.log1p(amount)
        return {("slow rail", NO_NODES)}
    a, b = rng.choice(cluster.nodes, 2, replace=False).tolist()
    if kind == "pair":
        cluster.slow_pairs[a, b] = amount
        return {("slow pair", frozenset([names[a], names[b]]))}
    if kind == "broken":
        both = {names[a], names[b]}
        cluster.fail = lambda test: _timeout(len(test.nodes) == 2 and both == set(test.nodes))
        return {("failed pair", frozenset(both))}
    if kind in ("hang", "flaky"):
        share = 0.5 if kind == "flaky" else 1.0
        cluster.fail = lambda test: _timeout(names[a] in test.nodes and rng.random() < share)
        return {("failed node", frozenset([names[a]]))}
    assert kind in ("node", "rail", "sending"), kind
    rails = slice(None) if kind == "node" else int(rng.integers(cluster.rails))
    ways = int(rng.integers(2)) if kind == "sending" else slice(None)
    cluster.level[a, rails, ways] += np.log1p(amount)
    return {("slow node", frozenset([names[a]]))}


def _timeout(fails: bool) -> FailedTest | None:
    return failure("timeout") if fails else None


@dataclass(frozen=True)
class Outcome:
    """``right``: all that was planted is found, as what it is. ``innocent``: something is accused
    that was not planted. ``stated``: if it is not right, the verdict says that this may be missed:
    pairs were not tested, only what is slower is found, or the run does not know the switches."""

    right: bool
    innocent: bool
    stated: bool


PAIRS = ("slow pair", "failed pair")
SHARED = ("slow crossing", "slow rail")
"""Findings that blame no node, also if they name some."""

OF_NODES = ("slow node", "slow group", "failed node", "below interface rate")
ACCUSING = (*OF_NODES, *SHARED, *PAIRS)


def outcome(verdict: ClusterVerdict, expected: Expected, amount: float = 0.0) -> Outcome:
    found = {
        (each.id, NO_NODES if each.id in SHARED else frozenset(each.nodes))
        for each in verdict.findings
        if each.id in ACCUSING
    }
    guilty = {name for _, names in expected for name in names}
    accused = {*verdict.of("slow"), *verdict.of("failed")}
    accused |= {name for _, names in found for name in names}
    planted = {kind for kind, _ in expected}
    # A slow group makes crossing slow.
    planted |= {"slow crossing"} if "slow group" in planted else set()
    kinds = {kind for kind, _ in found if kind in SHARED} - planted
    of_pair = any(kind in PAIRS for kind, _ in expected)
    least = verdict.coverage.ratio if of_pair else verdict.smallest_found
    stated = (of_pair and verdict.coverage.share < 1) or least == 0 or least - 1 > amount > 0
    of_switches = any(kind in ("slow group", "slow crossing") for kind, _ in expected)
    stated |= of_switches and verdict.coverage.may_cross_unseen
    right = expected <= found
    return Outcome(right, bool(accused - guilty) or bool(kinds), right or stated)


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


HEAVY = 0.03
"""The least noise with which twice as many tests are disturbed."""


def simulated(
    network: Network, nodes: int, seed: int, noise: float = 0.015, rails: int = 1
) -> SimulatedCluster:
    return SimulatedCluster(
        nodes,
        np.random.default_rng([seed, nodes]),
        noise=noise,
        disturbed=0.1 if noise >= HEAVY else 0.05,
        uplinks=network.uplinks,
        shuffled=network.shuffled,
        rails=rails,
        shows_interfaces=True,
    )
