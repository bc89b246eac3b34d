"""Findings about what no node can be blamed for: links between groups, and rails of all nodes.

No other node is the reference here, but tests inside groups and the other rails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from waywiser.analysis.cluster.finding_parts import (
    WHOLE,
    group_name,
    interval,
    spread_text,
)
from waywiser.analysis.cluster.levels import one_sided_scale, quantile
from waywiser.analysis.cluster.pair_tests import Bools, Floats, node_rows
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.slow_crossings import crossing_tests, slow_crossings
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.curves import Finding, percent
from waywiser.words import count

RAIL_THRESHOLD = float(np.log(1.05))
"""Rails of a node have equal interfaces, and differ by less than this."""

LEAST_RAIL_TESTS = 6
LEAST_NODES = 0.9
"""The share of nodes on which a rail is slow that is slow on every node."""

SURE = 3.0
"""Standard errors."""

MOST_NAMED = 2
"""Pairs of groups that are named."""


def shared_findings(state: ClusterState) -> Iterator[Finding]:
    """Yields slow links between groups, then slow rails."""
    yield from _crossings(state)
    yield from _rails(state)


def _crossings(state: ClusterState) -> Iterator[Finding]:
    slow = slow_crossings(state)
    if not slow:
        return
    channels: Bools = np.asarray(np.any(np.stack(list(slow.values())), axis=0))
    y = crossing_tests(state).y
    values = _mean(np.where(channels[None], y, np.nan).reshape(len(y), -1))
    spread = interval(values[~np.isnan(values)])
    rails = np.flatnonzero(channels.any(axis=1)).tolist()
    is_whole = len(rails) == channels.shape[0]
    rail = WHOLE if is_whole or len(rails) > 1 else rails[0]
    on = "" if is_whole else f" on {'rail' if len(rails) == 1 else 'rails'} "
    on += "" if is_whole else ", ".join(map(str, rails))
    text = (
        f"crossing is slow: tests {_between(state, slow, channels)} take {percent(spread[0] - 1)} "
        f"longer than tests inside groups{on}; no group can be blamed"
    )
    evidence = f"{len(values)} tests alone: {spread_text(spread, 'longer')}"
    yield _finding("slow crossing", text, rail, spread, len(values), evidence)


def _finding(
    kind: str,
    text: str,
    rail: int,
    spread: tuple[float, float, float],
    tests: int,
    evidence: str,
) -> Finding:
    """Returns a finding that names no node; ``spread`` is its ratio with the 95 % interval."""
    return cluster_finding(kind, (), text, spread, tests, (evidence,), rail=rail)


def _between(state: ClusterState, slow: Mapping[Pair, Bools], channels: Bools) -> str:
    groups = np.unique(state.rounds.switch_of)
    every = len(groups) * (len(groups) - 1) // 2
    if len(slow) == 1:
        ((first, second),) = slow
        names = group_name(state, first), group_name(state, second)
        forth, back = bool(channels[:, 0].any()), bool(channels[:, 1].any())
        if forth and back:
            return f"between {names[0]} and {names[1]}"
        return f"from {names[0]} to {names[1]}" if forth else f"from {names[1]} to {names[0]}"
    if len(slow) == every:
        return f"between all {len(groups)} groups"
    named = [
        f"{group_name(state, first)} and {group_name(state, second)}"
        for first, second in list(slow)[:MOST_NAMED]
    ]
    more = len(slow) - len(named)
    rest = f", and {count(more, 'more pair')} of groups" if more > 0 else ""
    return f"between {', '.join(named)}{rest}"


def _rails(state: ClusterState) -> Iterator[Finding]:
    """Compares each rail with the fastest half of the rails, in each test."""
    tests, nodes = state.rounds.undisturbed, len(state.names)
    rails = tests.y.shape[1]
    if rails < 2 or len(tests) < LEAST_RAIL_TESTS or int(state.rounds.tested.sum()) < 3:
        return
    time = _mean(tests.y)
    usual = quantile(time, 0.5, axis=0)
    fast = np.argsort(usual, kind="stable")[: max(1, rails // 2)]
    beside = time - _mean(time[:, fast])[:, None]
    for rail in range(rails):
        values = beside[:, rail][~np.isnan(beside[:, rail])]
        if rail in fast or len(values) < LEAST_RAIL_TESTS:
            continue
        error = SURE * float(one_sided_scale(values)) / np.sqrt(len(values))
        if float(np.median(values)) - error <= RAIL_THRESHOLD:
            continue
        # A slow rail of one node is slow in the tests of that node alone.
        of_node = node_rows(tests.replaced(beside[:, [rail], None].repeat(2, axis=2)), nodes)
        lower = of_node.quantile(0.25, lower=True)[state.rounds.tested, 0, 0]
        if float(np.mean(lower > RAIL_THRESHOLD)) < LEAST_NODES:
            continue
        spread = interval(values)
        others = f"rail {fast[0]}" if len(fast) == 1 else "the faster half of the rails"
        text = (
            f"rail {rail}{_interfaces(state, rail)} is {percent(spread[0] - 1)} slower "
            f"than {others} on every node{_rates(state, rail, fast.tolist())}"
        )
        evidence = f"{len(values)} tests: {spread_text(spread, 'slower')}"
        yield _finding("slow rail", text, rail, spread, len(values), evidence)


def _mean(values: Floats) -> Floats:
    """Returns the mean over the last index of what is not NaN; NaN if there is nothing."""
    counts = np.sum(~np.isnan(values), axis=-1)
    return np.where(counts > 0, np.nansum(values, axis=-1) / np.maximum(counts, 1), np.nan)


def _of_rail(state: ClusterState, rail: int) -> tuple[set[str], set[float]]:
    """Returns the names and the rates of the interfaces of a rail."""
    found = [
        each.interface
        for node in state.nodes
        for each in node.rails
        if each.index == rail and each.interface is not None
    ]
    return {each.name for each in found}, {each.bytes_per_second for each in found}


def _interfaces(state: ClusterState, rail: int) -> str:
    names, _ = _of_rail(state, rail)
    return f" ({next(iter(names))})" if len(names) == 1 else ""


def _rates(state: ClusterState, rail: int, others: list[int]) -> str:
    """Says it if the interfaces of a rail have less than those of the others."""
    own = max(_of_rail(state, rail)[1], default=0.0)
    fastest = max((rate for each in others for rate in _of_rail(state, each)[1]), default=0.0)
    if not 0 < own < fastest:
        return ""
    return f": its interfaces have {own / 1e9:.1f} GB/s, the others {fastest / 1e9:.1f} GB/s"
