"""Parts of findings about slow nodes, groups and pairs: ratios with intervals, places, names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from waywiser.analysis.cluster.confirmed import Channel
from waywiser.analysis.cluster.levels import below_interval
from waywiser.analysis.cluster.pair_tests import Floats, PairTests
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.curves import Finding, percent
from waywiser.words import RailDirection

WHOLE = -1
"""All rails of a node."""

MOST_NAMES = 4


def span_text(state: ClusterState, nodes: Sequence[str]) -> str:
    """``n16–n31, n40``: nodes that follow one another in the run as the first and the last."""
    places = sorted(state.index[name] for name in nodes)
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    names = state.names
    texts = [
        names[run[0]] if len(run) == 1 else f"{names[run[0]]}–{names[run[-1]]}" for run in runs
    ]
    more = len(texts) - MOST_NAMES
    return ", ".join(texts[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def group_name(state: ClusterState, number: int) -> str:
    """Returns the name that the run gives to a group, or its place in the row of names."""
    names = list(state.plan.groups)
    return names[number] if number < len(names) else f"group {number + 1}"


def timed_finding(
    kind: str,
    nodes: tuple[str, ...],
    text: str,
    state: ClusterState,
    node: int,
    rail: int,
    direction: RailDirection,
    ratio: tuple[float, float, float],
    tests: int,
) -> Finding:
    return cluster_finding(
        kind,
        nodes,
        text,
        ratio,
        tests,
        (f"{tests} tests: {spread_text(ratio, 'slower')}",),
        rail=rail,
        interface=interface_of(state, node, rail),
        direction=direction,
    )


def spread_text(ratio: tuple[float, float, float], word: str) -> str:
    """``20.0 % slower, 95 % interval 18.0 % to 22.0 %``: of a ratio with its interval."""
    return (
        f"{percent(ratio[0] - 1)} {word}, "
        f"95 % interval {signed_percent(ratio[1])} to {signed_percent(ratio[2])}"
    )


def signed_percent(ratio: float) -> str:
    """``-1.2 %``: faster than usual."""
    return f"{'-' if ratio < 1 else ''}{percent(ratio - 1)}"


def interface_of(state: ClusterState, node: int, rail: int) -> str:
    """Returns the interface of a rail of a node; empty if it is unknown, or for all rails."""
    for each in state.nodes[node].rails:
        if each.index == rail and each.interface is not None:
            return each.interface.name
    return ""


def channel_text(state: ClusterState, node: int, rail: int, direction: RailDirection) -> str:
    """``, sending, on rail 2 (mlx5_2)``."""
    way = "" if direction == "both" else f", {direction}"
    if rail == WHOLE:
        return way
    interface = interface_of(state, node, rail)
    return f"{way}, on rail {rail}" + (f" ({interface})" if interface else "")


def merged(
    channels: Sequence[Channel], rails: int
) -> Iterator[tuple[int, RailDirection, list[Channel]]]:
    """Yields the fewest findings that say which rails and directions are slow."""
    by_rail: dict[int, set[int]] = defaultdict(set)
    for rail, way in channels:
        by_rail[rail].add(way)
    kinds = {frozenset(each) for each in by_rail.values()}
    if len(by_rail) == rails and len(kinds) == 1:
        yield WHOLE, _direction(next(iter(kinds))), list(channels)
        return
    for rail, both in sorted(by_rail.items()):
        yield rail, _direction(both), [(rail, way) for way in both]


def _direction(both: set[int] | frozenset[int]) -> RailDirection:
    if len(both) == 2:
        return "both"
    return "receiving" if 1 in both else "sending"


def values_of_node(tests: PairTests, nodes: set[int], channels: Sequence[Channel]) -> Floats:
    """Returns one value of each test: the mean of the chosen rails and directions of the nodes."""
    first = np.isin(tests.a, list(nodes))
    second = np.isin(tests.b, list(nodes))
    y = np.where((~first & second)[:, None, None], tests.y[:, :, ::-1], tests.y)
    chosen = np.stack([y[:, rail, way] for rail, way in channels], axis=1)
    kept = chosen[(first | second) & ~np.isnan(chosen).all(axis=1)]
    return np.asarray(np.nanmean(kept, axis=1)) if len(kept) else np.empty(0)


def interval(values: Floats) -> tuple[float, float, float]:
    """Returns the median of logarithms as a ratio, with the 95 % interval of order statistics; of
    fewer than six values the interval is their range."""
    if not len(values):
        return 1.0, 1.0, 1.0
    ordered = np.sort(values)
    size = len(ordered)
    cut = int(below_interval(np.array(size)))
    middle, low, high = np.median(ordered), ordered[cut], ordered[size - 1 - cut]
    return float(np.exp(middle)), float(np.exp(low)), float(np.exp(high))
