"""Findings about slow nodes, groups and pairs, with their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from waywiser.analysis.cluster.confirmed import (
    Channel,
    confirmed,
    shared_of_channel,
    slow_groups,
    slow_pairs,
)
from waywiser.analysis.cluster.levels import SCALES, below_interval, one_sided_scale, quantile
from waywiser.analysis.cluster.pair_tests import Bools, Floats, PairTests
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.verdict_values import (
    ClusterFinding,
    FindingKind,
    NodeGroup,
    RailDirection,
)
from waywiser.curves.texts import percent

WHOLE = -1
"""All rails of a node."""

MOST_NAMES = 4

LEAST_SLOW_PAIRS = 4
"""Fewer slow pairs are listed one by one."""

LEAST_OF_TWO = 0.1
"""The least logarithm by which a rail of two nodes differs from the fastest."""


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


def slow_findings(state: ClusterState) -> list[ClusterFinding]:
    """Returns groups first, then nodes, then pairs."""
    findings = [*_group_findings(state)]
    findings += _shared_findings(state)
    findings += _node_findings(state)
    findings += _pair_findings(state)
    if len(state.names) == 2:
        findings += _two_nodes(state)
    return findings


def _node_findings(state: ClusterState) -> Iterator[ClusterFinding]:
    slow = confirmed(state).copy()
    for (rail, way), sets in shared_of_channel(state).items():
        for members in sets:
            slow[members, rail, way] = False
    tests = _evidence_tests(state, "alone")
    for n in np.flatnonzero(slow.any(axis=(1, 2))).tolist():
        channels = [(int(rail), int(way)) for rail, way in np.argwhere(slow[n])]
        for rail, direction, chosen in _merged(channels, len(state.nodes[n].rails) or 1):
            values = _values_of_node(tests, {n}, chosen)
            ratio, low, high = interval(values)
            text = (
                f"{state.names[n]} is {percent(ratio - 1)} slow to every node"
                f"{_where(state, n, rail, direction)}"
            )
            yield _finding(
                "slow node", (state.names[n],), text, state, n, rail, direction,
                (ratio, low, high), _count(tests, {n}),
            )  # fmt: skip


def _shared_findings(state: ClusterState) -> Iterator[ClusterFinding]:
    by_members: dict[tuple[int, ...], list[Channel]] = defaultdict(list)
    for channel, sets in shared_of_channel(state).items():
        for members in sets:
            by_members[tuple(members)].append(channel)
    tests = _evidence_tests(state, "alone")
    for each, channels in by_members.items():
        yield from _of_group(state, list(each), channels, tests)


def _group_findings(state: ClusterState) -> Iterator[ClusterFinding]:
    tests = state.beside_usual(state.all_tests.of("alone"), with_groups=True)
    crosses = state.group_of[tests.a] != state.group_of[tests.b]
    for group, channels in slow_groups(state).items():
        members = np.flatnonzero(state.group_of == group).tolist()
        yield from _of_group(state, members, channels, tests.where(crosses))


def _of_group(
    state: ClusterState, members: list[int], channels: Sequence[Channel], tests: PairTests
) -> Iterator[ClusterFinding]:
    names = tuple(state.names[n] for n in members)
    inside = np.zeros(len(state.names), dtype=bool)
    inside[members] = True
    outward = tests.where(inside[tests.a] != inside[tests.b])
    rails = len(state.nodes[members[0]].rails) or 1
    for rail, direction, chosen in _merged(channels, rails):
        ratio, low, high = interval(_values_of_node(outward, set(members), chosen))
        text = (
            f"{span_text(state, names)} share something slow: {percent(ratio - 1)} slow to all "
            f"others{_where(state, members[0], rail, direction)}, and fast among themselves"
        )
        yield _finding(
            "slow group", names, text, state, members[0], rail, direction,
            (ratio, low, high), len(outward),
        )  # fmt: skip


def _pair_findings(state: ClusterState) -> Iterator[ClusterFinding]:
    tests = _evidence_tests(state, "pair")
    pairs = slow_pairs(state)
    if halves := _two_halves(state, set(pairs)):
        yield _between_halves(state, halves, pairs, tests)
        return
    for (a, b), slow in pairs.items():
        same = ((tests.a == a) & (tests.b == b)) | ((tests.a == b) & (tests.b == a))
        of_pair = tests.where(same)
        channels = [(int(rail), int(way)) for rail, way in np.argwhere(slow)]
        for rail, direction, chosen in _merged(channels, len(state.nodes[a].rails) or 1):
            ratio, low, high = interval(_values_of_node(of_pair, {a}, chosen))
            first, second = (b, a) if direction == "receiving" else (a, b)
            arrow = "<->" if direction == "both" else "->"
            text = (
                f"{state.names[first]} {arrow} {state.names[second]} is {percent(ratio - 1)} slow"
                f"{_where(state, first, rail, 'both')}; both nodes are as fast as usual with others"
            )
            yield _finding(
                "slow pair", (state.names[first], state.names[second]), text, state, first, rail,
                "both" if direction == "both" else "sending",
                (ratio, low, high), len(of_pair),
            )  # fmt: skip


def _two_halves(state: ClusterState, slow: set[Pair]) -> tuple[list[int], list[int]] | None:
    """Returns two sets of nodes if each is fast inside and every tested pair between them is slow;
    of such sets, neither can be blamed."""
    if len(slow) < LEAST_SLOW_PAIRS:
        return None
    nodes = {node for pair in slow for node in pair}
    fast = {pair for pair in state.pair_tests.pairs if nodes.issuperset(pair)} - slow
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
) -> ClusterFinding:
    slow = np.any(np.stack(list(pairs.values())), axis=0)
    channels = [(int(rail), int(way)) for rail, way in np.argwhere(slow)]
    values = _values_of_node(tests, set(halves[0]), channels)
    ratio, low, high = interval(values)
    first, second = (span_text(state, [state.names[n] for n in half]) for half in halves)
    text = (
        f"{first} and {second} are each fast among themselves, and {percent(ratio - 1)} slow to "
        f"one another: neither can be blamed"
    )
    names = tuple(state.names[n] for half in halves for n in half)
    return _finding(
        "slow pair", names, text, state, halves[0][0], WHOLE, "both", (ratio, low, high), len(tests)
    )


def _two_nodes(state: ClusterState) -> Iterator[ClusterFinding]:
    """Compares the rails and directions of the only pair with the fastest of them."""
    tests = state.undisturbed
    y = np.where((tests.a > tests.b)[:, None, None], tests.y[:, :, ::-1], tests.y)
    if not len(y):
        return
    usual = quantile(y, 0.5, axis=0)
    fastest = float(np.nanmin(usual))
    noise = float(np.nanmax(one_sided_scale(y, axis=0)))
    for rail, way in np.argwhere(usual - fastest > max(LEAST_OF_TWO, SCALES * noise)).tolist():
        values = y[:, rail, way]
        ratio, low, high = interval(values[~np.isnan(values)] - fastest)
        names = (state.names[way], state.names[1 - way])
        where = _where(state, way, rail if y.shape[1] > 1 else WHOLE, "both")
        text = (
            f"{names[0]} -> {names[1]} is {percent(ratio - 1)} slower{where} than the fastest rail "
            f"and direction of the two nodes: neither can be blamed"
        )
        yield _finding(
            "slow pair", names, text, state, way, rail, "sending", (ratio, low, high), len(y)
        )


def _finding(
    kind: FindingKind,
    nodes: tuple[str, ...],
    text: str,
    state: ClusterState,
    node: int,
    rail: int,
    direction: RailDirection,
    ratio: tuple[float, float, float],
    tests: int,
) -> ClusterFinding:
    return ClusterFinding(
        kind=kind,
        nodes=nodes,
        text=text,
        rail=rail,
        interface=interface_of(state, node, rail),
        direction=direction,
        ratio=ratio[0],
        low=ratio[1],
        high=ratio[2],
        tests=tests,
        evidence=(
            f"{tests} tests: {percent(ratio[0] - 1)} slower, "
            f"95 % interval {_signed(ratio[1])} to {_signed(ratio[2])}",
        ),
    )


def _signed(ratio: float) -> str:
    """``-1.2 %``: faster than usual."""
    return f"{'-' if ratio < 1 else ''}{percent(ratio - 1)}"


def interface_of(state: ClusterState, node: int, rail: int) -> str:
    """Returns the interface of a rail of a node; empty if it is unknown, or for all rails."""
    for each in state.nodes[node].rails:
        if each.index == rail and each.interface is not None:
            return each.interface.name
    return ""


def _where(state: ClusterState, node: int, rail: int, direction: RailDirection) -> str:
    """``, sending, on rail 2 (mlx5_2)``."""
    way = "" if direction == "both" else f", {direction}"
    if rail == WHOLE:
        return way
    interface = interface_of(state, node, rail)
    return f"{way}, on rail {rail}" + (f" ({interface})" if interface else "")


def _evidence_tests(state: ClusterState, phase: str) -> PairTests:
    return state.beside_usual(state.all_tests.of(phase))


def _merged(
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


def _values_of_node(tests: PairTests, nodes: set[int], channels: Sequence[Channel]) -> Floats:
    """Returns one value of each test: the mean of the chosen rails and directions of the nodes."""
    first = np.isin(tests.a, list(nodes))
    second = np.isin(tests.b, list(nodes))
    y = np.where((~first & second)[:, None, None], tests.y[:, :, ::-1], tests.y)
    chosen = np.stack([y[:, rail, way] for rail, way in channels], axis=1)
    kept = chosen[(first | second) & ~np.isnan(chosen).all(axis=1)]
    return np.asarray(np.nanmean(kept, axis=1)) if len(kept) else np.empty(0)


def _count(tests: PairTests, nodes: set[int]) -> int:
    return int(np.sum(np.isin(tests.a, list(nodes)) | np.isin(tests.b, list(nodes))))


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


def group_list(state: ClusterState) -> tuple[NodeGroup, ...]:
    """Returns the groups, with what tests to other groups cost."""
    if not state.has_groups:
        return ()
    kept = state.undisturbed
    crosses = state.group_of[kept.a] != state.group_of[kept.b]
    usual = np.nanmedian(kept.y[~crosses]) if np.any(~crosses) else np.nan
    names = list(state.plan.groups)
    result = []
    for number in np.unique(state.group_of).tolist():
        members = tuple(state.names[n] for n in np.flatnonzero(state.group_of == number))
        mine = (state.group_of[kept.a] == number) | (state.group_of[kept.b] == number)
        across = kept.y[crosses & mine]
        ratio = float(np.exp(np.nanmedian(across) - usual)) if across.size else np.nan
        name = names[number] if number < len(names) else f"group {number + 1}"
        result.append(NodeGroup(name, members, ratio if np.isfinite(ratio) else 0.0))
    return tuple(result)
