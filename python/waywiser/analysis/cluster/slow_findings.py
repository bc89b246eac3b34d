"""Findings about slow groups, nodes and pairs, with their intervals.

Tests may cross switches that the run does not know (`RoundResults.may_cross_unseen`). No node is
blamed for that, by what is known:

- how much: a set of nodes that is slower to all others by no more than an unknown switch may cost
  is no finding (`is_a_crossing`);
- how many: a set that is slower than that, and so large that the others may be one too, is a slow
  crossing, if no groups were found (`may_be_one_of_two`);
- what else is slow: where a slow crossing is a finding, nodes and sets that are not slower than it
  are evidence of it (`_without_crossed`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from waywiser.analysis.cluster.confirmed import (
    Channel,
    confirmed,
    has_fast_partners,
    is_a_crossing,
    may_be_one_of_two,
    shared_of_channel,
    slow_groups,
)
from waywiser.analysis.cluster.controls import beside_controls, confirm_limit
from waywiser.analysis.cluster.finding_parts import (
    channel_text,
    group_name,
    interval,
    merged,
    span_text,
    timed_finding,
    values_of_node,
)
from waywiser.analysis.cluster.pair_tests import PairTests
from waywiser.analysis.cluster.slow_pair_findings import pair_findings
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.texts import REMEDIES, SEVERITIES, ratio_of
from waywiser.analysis.cluster.verdict_values import NodeGroup
from waywiser.curves import Finding, percent
from waywiser.words import compress_hosts, count

CROSSED = 1.25
"""A node that is slower than this many times what crossing costs, as logarithms, is slow itself."""


def slow_findings(state: ClusterState) -> list[Finding]:
    """Returns groups first, then nodes, then pairs."""
    groups = list(_group_findings(state))
    others = [*_shared_findings(state), *_node_findings(state), *pair_findings(state)]
    return groups + (_without_crossed(others) if state.rounds.may_cross_unseen else others)


def _without_crossed(findings: list[Finding]) -> list[Finding]:
    """Returns the findings without nodes and sets of nodes that are not slower than crossing
    between groups that the run does not know: the crossing names them instead."""
    crossings = [each for each in findings if each.id == "slow crossing"]
    if not crossings:
        return findings
    limit = max(map(ratio_of, crossings)) ** CROSSED
    blamed = ("slow node", "slow group")
    crossed = [each for each in findings if each.id in blamed and ratio_of(each) <= limit]
    names = sorted({name for each in crossed for name in each.nodes})
    if not names:
        return findings
    are = "is" if len(names) == 1 else "are"
    line = f"{compress_hosts(names)} {are} slow to most others, by this crossing or by themselves"
    first = crossings[0]
    named = replace(first, evidence=(*first.evidence, line))
    return [named if each is first else each for each in findings if each not in crossed]


def _node_findings(state: ClusterState) -> Iterator[Finding]:
    slow = confirmed(state).copy()
    for (rail, way), sets in shared_of_channel(state).items():
        for members in sets:
            slow[members, rail, way] = False
    slow &= ~has_fast_partners(state)
    tests = beside_controls(state, "alone")[0]
    for n in np.flatnonzero(slow.any(axis=(1, 2))).tolist():
        channels = [(int(rail), int(way)) for rail, way in np.argwhere(slow[n])]
        for rail, direction, chosen in merged(channels, len(state.nodes[n].rails) or 1):
            values = values_of_node(tests, {n}, chosen)
            ratio, low, high = interval(values)
            text = (
                f"{state.names[n]} is {percent(ratio - 1)} slow to "
                f"{_partners_text(state, n, tests, chosen)}"
                f"{channel_text(state, n, rail, direction)}"
            )
            yield timed_finding(
                "slow node", (state.names[n],), text, state, n, rail, direction,
                (ratio, low, high), len(values),
            )  # fmt: skip


def _partners_text(
    state: ClusterState, node: int, alone: PairTests, channels: Sequence[Channel]
) -> str:
    """``every node``, or ``2 of 3 nodes``: those that it is not fast to, by all of its tests."""
    rounds = state.rounds.pair_tests
    rounds = rounds.replaced(rounds.y - state.rounds.base[None, :, None])
    found: dict[int, list[float]] = defaultdict(list)
    for tests in (rounds, alone):
        own = tests.where((tests.a == node) | (tests.b == node))
        other = np.where(own.a == node, own.b, own.a)
        for partner in np.unique(other).tolist():
            values = values_of_node(own.where(other == partner), {node}, channels)
            found[partner] += values.tolist()
    usual = [partner for partner, values in found.items() if values]
    middle = float(np.median(np.concatenate([found[each] for each in usual])))
    rails = [rail for rail, _ in channels]
    limit = min(float(confirm_limit(state)[rails].min()), middle / 2)
    slow = [each for each in usual if float(np.median(found[each])) > limit]
    if len(slow) == len(usual):
        return "every node"
    return f"{len(slow)} of {count(len(usual), 'node')}"


def _shared_findings(state: ClusterState) -> Iterator[Finding]:
    by_members: dict[tuple[int, ...], list[Channel]] = defaultdict(list)
    for channel, sets in shared_of_channel(state).items():
        for members in sets:
            if not is_a_crossing(state, members, channel):
                by_members[tuple(members)].append(channel)
    tests = beside_controls(state, "alone")[0]
    for each, channels in by_members.items():
        found = _of_group(state, list(each), channels, tests)
        yield from map(_of_two, found) if may_be_one_of_two(state, each) else found


def _of_two(finding: Finding) -> Finding:
    """Returns the finding about a group as one that blames no node."""
    text = f"crossing is slow, and neither of two groups can be blamed: {finding.text}"
    kind = "slow crossing"
    return replace(
        finding,
        id=kind,
        severity=SEVERITIES[kind],
        remedy=REMEDIES[kind],
        statement=text,
    )


def _group_findings(state: ClusterState) -> Iterator[Finding]:
    tests, _ = beside_controls(state, "alone", with_groups=True)
    group_of = state.rounds.switch_of
    crosses = group_of[tests.a] != group_of[tests.b]
    for group, channels in slow_groups(state).items():
        members = np.flatnonzero(group_of == group).tolist()
        yield from _of_group(state, members, channels, tests.where(crosses))


def _of_group(
    state: ClusterState, members: list[int], channels: Sequence[Channel], tests: PairTests
) -> Iterator[Finding]:
    names = tuple(state.names[n] for n in members)
    inside = np.zeros(len(state.names), dtype=bool)
    inside[members] = True
    outward = tests.where(inside[tests.a] != inside[tests.b])
    rails = len(state.nodes[members[0]].rails) or 1
    for rail, direction, chosen in merged(channels, rails):
        ratio, low, high = interval(values_of_node(outward, set(members), chosen))
        text = (
            f"{span_text(state, names)} share something slow: {percent(ratio - 1)} slow to all "
            f"others{channel_text(state, members[0], rail, direction)}, and fast among themselves"
        )
        yield timed_finding(
            "slow group", names, text, state, members[0], rail, direction,
            (ratio, low, high), len(outward),
        )  # fmt: skip


def group_list(state: ClusterState) -> tuple[NodeGroup, ...]:
    """Returns the groups, with what tests to other groups cost."""
    if not state.rounds.has_groups:
        return ()
    kept = state.rounds.undisturbed
    crosses = state.rounds.group_of[kept.a] != state.rounds.group_of[kept.b]
    usual = np.nanmedian(kept.y[~crosses]) if np.any(~crosses) else np.nan
    result = []
    for number in np.unique(state.rounds.group_of).tolist():
        members = tuple(state.names[n] for n in np.flatnonzero(state.rounds.group_of == number))
        mine = (state.rounds.group_of[kept.a] == number) | (state.rounds.group_of[kept.b] == number)
        across = kept.y[crosses & mine]
        ratio = float(np.exp(np.nanmedian(across) - usual)) if across.size else np.nan
        result.append(
            NodeGroup(group_name(state, number), members, ratio if np.isfinite(ratio) else 0.0)
        )
    return tuple(result)
