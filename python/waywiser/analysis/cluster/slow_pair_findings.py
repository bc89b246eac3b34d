"""Findings about slow pairs, of which neither node can be blamed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from waywiser.analysis.cluster.confirmed import LEAST_MEMBERS
from waywiser.analysis.cluster.controls import beside_controls
from waywiser.analysis.cluster.finding_parts import (
    WHOLE,
    channel_text,
    interval,
    merged,
    span_text,
    timed_finding,
    values_of_node,
)
from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.levels import SCALES, one_sided_scale, quantile
from waywiser.analysis.cluster.pair_outcomes import crosses_unseen, slow_pairs
from waywiser.analysis.cluster.pair_tests import Bools, PairTests
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.curves import Finding, percent
from waywiser.words import count

LEAST_SLOW_PAIRS = 4
"""Fewer slow pairs are listed one by one."""

LEAST_OF_TWO = 0.1
"""The least logarithm by which a rail of two nodes differs from the fastest."""


def pair_findings(state: ClusterState) -> Iterator[Finding]:
    """Yields slow pairs, together where they are all between two halves; or of only two nodes their
    slow rails and directions."""
    if len(nodes := np.flatnonzero(state.rounds.tested).tolist()) == 2:
        yield from _two_nodes(state, nodes)
        return
    tests, _ = beside_controls(state, "pair")
    pairs = slow_pairs(state)
    if halves := _two_halves(state, set(pairs)):
        yield _between_halves(state, halves, pairs, tests)
        return
    if pairs and (count_of_pairs := crosses_unseen(state)):
        yield _unseen_crossing(state, count_of_pairs, pairs, tests)
        return
    nodes_of_pairs = _nodes_of_most_pairs(state, pairs)
    for node, (partners, tested) in nodes_of_pairs.items():
        yield _slow_to_most(state, node, partners, tested, pairs, tests)
    for (a, b), slow in pairs.items():
        if {a, b} & nodes_of_pairs.keys():
            continue
        same = ((tests.a == a) & (tests.b == b)) | ((tests.a == b) & (tests.b == a))
        of_pair = tests.where(same)
        channels = [(int(rail), int(way)) for rail, way in np.argwhere(slow)]
        for rail, direction, chosen in merged(channels, len(state.nodes[a].rails) or 1):
            ratio, low, high = interval(values_of_node(of_pair, {a}, chosen))
            first, second = (b, a) if direction == "receiving" else (a, b)
            arrow = "<->" if direction == "both" else "->"
            text = (
                f"{state.names[first]} {arrow} {state.names[second]} is {percent(ratio - 1)} slow"
                f"{channel_text(state, first, rail, 'both')}; both nodes are fast with others"
            )
            yield timed_finding(
                "slow pair", (state.names[first], state.names[second]), text, state, first, rail,
                "both" if direction == "both" else "sending",
                (ratio, low, high), len(of_pair),
            )  # fmt: skip


def _unseen_crossing(
    state: ClusterState, number: int, pairs: dict[Pair, Bools], tests: PairTests
) -> Finding:
    size = len(state.names)
    own = tests.where(np.isin(tests.keys(size), [a * size + b for a, b in pairs]))
    worst = np.nanmax(own.y, axis=(1, 2))
    ratio, low, high = interval(worst)
    text = (
        f"crossing is slow: {number:,} of {len(known_pairs(state).keys):,} pairs are about "
        f"{percent(ratio - 1)} slow, while their nodes are fast with others; --groups would show "
        "between which groups"
    )
    return cluster_finding("slow crossing", (), text, (ratio, low, high), len(own))


def _nodes_of_most_pairs(
    state: ClusterState, pairs: dict[Pair, Bools]
) -> dict[int, tuple[list[int], int]]:
    """Returns the nodes that are slow to more than half of the nodes they were tested with, or to
    several that are slow to no other: these, and how many were tested."""
    tested: dict[int, set[int]] = defaultdict(set)
    slow: dict[int, set[int]] = defaultdict(set)
    both: tuple[tuple[dict[int, set[int]], Iterable[Pair]], ...] = (
        (tested, state.all_tests.of("pairs", "cover").pairs),
        (slow, pairs),
    )
    for found, these in both:
        for a, b in these:
            found[a].add(b)
            found[b].add(a)
    return {
        node: (sorted(partners), len(tested[node]))
        for node, partners in slow.items()
        if (len(partners) > 1 and 2 * len(partners) > len(tested[node]))
        or (len(partners) >= LEAST_MEMBERS and all(len(slow[n]) == 1 for n in partners))
    }


def _slow_to_most(
    state: ClusterState,
    node: int,
    partners: list[int],
    tested: int,
    pairs: dict[Pair, Bools],
    tests: PairTests,
) -> Finding:
    ways = np.any(
        [pairs[a, b] if a == node else pairs[a, b][:, ::-1] for a, b in pairs if node in (a, b)],
        axis=0,
    )
    channels = [(int(rail), int(way)) for rail, way in np.argwhere(ways)]
    other = np.where(tests.a == node, tests.b, tests.a)
    own = tests.where(((tests.a == node) | (tests.b == node)) & np.isin(other, partners))
    rail, direction, chosen = next(merged(channels, len(state.nodes[node].rails) or 1))
    ratio = interval(values_of_node(own, {node}, chosen))
    text = (
        f"{state.names[node]} is {percent(ratio[0] - 1)} slow to {len(partners)} of "
        f"{count(tested, 'node')}{channel_text(state, node, rail, direction)}"
    )
    return timed_finding(
        "slow node", (state.names[node],), text, state, node, rail, direction, ratio, len(own)
    )


def _two_halves(state: ClusterState, slow: set[Pair]) -> tuple[list[int], list[int]] | None:
    """Returns two sets of nodes if each is fast inside and every tested pair between them is slow;
    of such sets, neither can be blamed."""
    if len(slow) < LEAST_SLOW_PAIRS:
        return None
    nodes = {node for pair in slow for node in pair}
    low, high = np.divmod(known_pairs(state).fast, len(state.names))
    known = zip(low.tolist(), high.tolist(), strict=True)
    fast = {pair for pair in known if nodes.issuperset(pair)} - slow
    first = {min(nodes)}
    while more := {n for pair in fast if first & set(pair) for n in pair} - first:
        first |= more
    second = nodes - first
    is_split = all((a in first) != (b in first) for a, b in slow)
    is_inside = all((a in first) == (b in first) for a, b in fast)
    sizes = min(len(first), len(second))
    return (sorted(first), sorted(second)) if is_split and is_inside and sizes > 1 else None


def _between_halves(
    state: ClusterState,
    halves: tuple[list[int], list[int]],
    pairs: dict[Pair, Bools],
    tests: PairTests,
) -> Finding:
    slow = np.any(np.stack(list(pairs.values())), axis=0)
    channels = [(int(rail), int(way)) for rail, way in np.argwhere(slow)]
    values = values_of_node(tests, set(halves[0]), channels)
    ratio, low, high = interval(values)
    first, second = (span_text(state, [state.names[n] for n in half]) for half in halves)
    text = (
        f"crossing is slow, and neither can be blamed: {first} and {second} are each fast among "
        f"themselves, and {percent(ratio - 1)} slow to one another"
    )
    names = tuple(state.names[n] for half in halves for n in half)
    return timed_finding(
        "slow crossing", names, text, state, halves[0][0], WHOLE, "both", (ratio, low, high),
        len(tests),
    )  # fmt: skip


def _two_nodes(state: ClusterState, nodes: list[int]) -> Iterator[Finding]:
    """Compares the rails and directions of the only pair with the fastest of them."""
    tests = state.rounds.undisturbed
    y = np.where((tests.a > tests.b)[:, None, None], tests.y[:, :, ::-1], tests.y)
    if not len(y):
        return
    usual = quantile(y, 0.5, axis=0)
    fastest = float(np.nanmin(usual))
    noise = float(np.nanmax(one_sided_scale(y, axis=0)))
    for rail, way in np.argwhere(usual - fastest > max(LEAST_OF_TWO, SCALES * noise)).tolist():
        values = y[:, rail, way]
        ratio, low, high = interval(values[~np.isnan(values)] - fastest)
        names = (state.names[nodes[way]], state.names[nodes[1 - way]])
        where = channel_text(state, nodes[way], rail if y.shape[1] > 1 else WHOLE, "both")
        text = (
            f"{names[0]} -> {names[1]} is {percent(ratio - 1)} slower{where} than the fastest rail "
            f"and direction of the two nodes: neither can be blamed"
        )
        yield timed_finding(
            "slow pair", names, text, state, nodes[way], rail, "sending", (ratio, low, high), len(y)
        )
