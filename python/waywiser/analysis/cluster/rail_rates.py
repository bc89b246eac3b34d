"""What each rail reaches beside the rate of its interface, and what interfaces counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.levels import THRESHOLD
from waywiser.analysis.cluster.pair_tests import Bools, Floats, PairTests, node_rows
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.texts import cluster_finding
from waywiser.analysis.cluster.verdict_values import RailRate
from waywiser.curves import Finding
from waywiser.words import compress_hosts

LEAST_SHARE = 0.7
"""A smaller share of the rate of the interface is a finding."""

LEAST_CROSSED = 0.7
"""A smaller share of the bytes that crossed the interface means that they took another path."""

EVERY = "every node"

LEAST_TESTS = 3
"""Tests of a node that show its rate: something else may have disturbed fewer."""

LEAST_ALONE = 6
"""Tests alone that show what rounds add."""

BEST = 0.25
"""The quantile of the times of a rail that counts: other nodes and noise make tests slower."""


@lru_cache(maxsize=1)
def rail_rates(state: ClusterState) -> tuple[RailRate, ...]:
    """Returns the rate of each rail that was tested: the better of its directions, in the rounds or
    alone. If tests of a round slow each other down, rates are those of tests alone, and other rails
    have none."""
    size = _message_bytes(state)
    together = state.rounds.undisturbed
    if not len(together) or size <= 0:
        return ()
    times = _best_times(state, state.all_tests.of("alone"))
    if not _share_links(state):
        times = np.fmin(times, _best_times(state, together))
    result = []
    for n, node in enumerate(state.nodes):
        for rail in node.rails:
            seconds = times[n, rail.index] if rail.index < times.shape[1] else np.array([np.nan])
            if np.isnan(seconds).all():
                continue
            rate = size / float(np.exp(np.nanmin(seconds)))
            limit = rail.interface.bytes_per_second if rail.interface else 0.0
            name = rail.interface.name if rail.interface else ""
            share = rate / limit if limit > 0 else 0.0
            result.append(RailRate(node.name, rail.index, name, rate, limit, share))
    return tuple(result)


def _best_times(state: ClusterState, tests: PairTests) -> Floats:
    """Returns node, rail, sending or receiving: NaN for fewer than `LEAST_TESTS`."""
    rows = node_rows(tests, len(state.names))
    few = rows.lengths[:, None, None] < LEAST_TESTS
    return np.asarray(np.where(few, np.nan, rows.quantile(BEST)))


@lru_cache(maxsize=1)
def _share_links(state: ClusterState) -> bool:
    """Returns whether the tests of a round share links: nodes that are not suspects are faster
    alone than in rounds, in most tests."""
    alone, usual = state.all_tests.of("alone"), ~state.rounds.is_suspect
    alone = alone.where(usual[alone.a] & usual[alone.b])
    together = state.rounds.undisturbed
    if len(alone) < LEAST_ALONE or not len(together):
        return False
    return float(np.nanmedian(together.y) - np.nanmedian(alone.y)) > THRESHOLD


def _below_themselves(state: ClusterState, below: list[RailRate]) -> list[RailRate]:
    """Returns those of the nodes below their rate that no test of which reached it, and that
    `LEAST_TESTS` tests with nodes show which are not below theirs: a test is as fast as the slower
    of its nodes. Tests alone count, where others may share links that the run does not know."""
    alone, together = state.all_tests.of("alone"), state.rounds.undisturbed
    counted = [alone] if state.rounds.may_cross_unseen else [alone, together]
    a, b = (np.concatenate([getattr(each, end) for each in counted]) for end in "ab")
    rail, size = below[0].rail, _message_bytes(state)
    times = np.fmin.reduce(np.concatenate([each.y[:, rail] for each in counted]), axis=1)
    places = {state.index[each.node]: each for each in below}
    tests_of: dict[int, Bools] = {}
    for n, each in places.items():
        own: Bools = np.asarray(((a == n) | (b == n)) & ~np.isnan(times))
        limit = np.log(size / (LEAST_SHARE * each.interface_bytes_per_second))
        if not np.any(times[own] <= limit):
            tests_of[n] = own
    is_below = np.zeros(len(state.names), dtype=bool)
    is_below[list(tests_of)] = True
    with_others: Bools = np.asarray(~(is_below[a] & is_below[b]))
    return [places[n] for n, own in tests_of.items() if np.sum(own & with_others) >= LEAST_TESTS]


def _message_bytes(state: ClusterState) -> int:
    return max((each.bytes for each in state.finished if each.test.phase == "pairs"), default=0)


def interface_findings(state: ClusterState) -> Iterator[Finding]:
    """Yields rails below the rate of their interface, and bytes that did not cross it."""
    yield from _below_rate(state)
    yield from _not_over_interface(state)


def _below_rate(state: ClusterState) -> Iterator[Finding]:
    """One finding for a rail: that of all nodes if all are below, else those that are."""
    rates = [each for each in rail_rates(state) if each.interface_bytes_per_second > 0]
    of_tested = " that was tested alone" if _share_links(state) else ""
    for rail in sorted({each.rail for each in rates}):
        of_rail = [each for each in rates if each.rail == rail]
        below = [each for each in of_rail if each.share < LEAST_SHARE]
        if 0 < len(below) < len(of_rail):
            below = _below_themselves(state, below)
        if not below:
            continue
        share = float(np.median([each.share for each in below]))
        who = _who([each.node for each in below], len(of_rail))
        who += of_tested if who == EVERY else ""
        interfaces = sorted({each.interface for each in below})
        name = interfaces[0] if len(interfaces) == 1 else ""
        text = (
            f"rail {rail}{f' ({name})' if name else ''} of {who} reaches {share:.0%} of the rate "
            f"of its interface"
        )
        yield cluster_finding(
            "below interface rate",
            tuple(each.node for each in below),
            text,
            (share, 0.0, 0.0),
            rail=rail,
            interface=name,
        )


def _not_over_interface(state: ClusterState) -> Iterator[Finding]:
    """One finding of all rails. Between nodes of one host no byte has to cross an interface."""
    hosts = {node.name: node.address for node in state.nodes}
    shares: dict[int, dict[str, list[float]]] = {}
    for each in state.finished:
        addresses = {hosts.get(name, "") for name in each.test.nodes}
        if len(addresses) == 1 and addresses != {""}:
            continue
        for time in each.times:
            if time.crossed is not None and time.sender:
                shares.setdefault(time.rail, {}).setdefault(time.sender, []).append(time.crossed)
    least = {
        rail: below
        for rail, of_rail in sorted(shares.items())
        if (below := {node: min(own) for node, own in of_rail.items() if min(own) < LEAST_CROSSED})
    }
    if not least:
        return
    nodes = sorted({node for below in least.values() for node in below})
    low, high = (pick(min(below.values()) for below in least.values()) for pick in (min, max))
    share = f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low:.0%} to {high:.0%}"
    who = _who(nodes, len({node for of_rail in shares.values() for node in of_rail}))
    rail = next(iter(least)) if len(least) == 1 else -1
    where = f"rail {rail} crossed the interface" if rail >= 0 else "their rails crossed interfaces"
    yield cluster_finding(
        "not over interface",
        tuple(nodes),
        f"{share} of the bytes that {who} sent on {where}: the rest took another path",
        (low, 0.0, 0.0),
        tests=sum(
            v < LEAST_CROSSED for rail in least for n in least[rail] for v in shares[rail][n]
        ),
        evidence=tuple(
            f"rail {rail}: {min(below.values()):.0%} of the bytes of {compress_hosts(list(below))}"
            for rail, below in least.items()
            if len(least) > 1
        ),
        rail=rail,
        direction="sending",
    )


def _who(nodes: Sequence[str], known: int) -> str:
    if len(nodes) == 1:
        return nodes[0]
    return EVERY if len(nodes) == known else compress_hosts(nodes)
