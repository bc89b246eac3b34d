"""Which nodes are below one switch: from the plan, or from the times of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from waywiser.analysis.cluster.levels import one_sided_scale, quantile
from waywiser.analysis.cluster.pair_tests import Floats, Ints, PairTests, node_rows
from waywiser.words import ClusterPlan

LEAST_STEP = 0.01
"""The least logarithm by which tests across a cut are slower than tests inside."""

SLOW_SCALES = 2.0
"""The scales of the levels above which a node is slow to everyone."""

SURE = 4.0
"""The standard errors by which they are."""

LEAST_ACROSS = 3
"""Fewer tests across a cut show nothing."""

LEAST_NODES = 2
"""One node is no group: what it is slower by, it is slower by to everyone."""

DISTANCE = 4
"""Nodes are tested with those up to so many places before and after them, by which cuts between
groups are seen, if nodes of one switch have names that follow one another."""


def given_groups(names: Sequence[str], plan: ClusterPlan) -> Ints | None:
    """Returns the number of the group of each node; those of no group are one group together."""
    if not plan.groups:
        return None
    by_name = {
        node: number for number, members in enumerate(plan.groups.values()) for node in members
    }
    return np.array([by_name.get(each, len(plan.groups)) for each in names], dtype=np.int64)


def discovered_groups(tests: PairTests, nodes: int) -> Ints:
    """Cuts the row of nodes, in the order of names, where tests across are slower than others.

    A cut between two places is crossed by several tests of different nodes. What a node is slower
    than usual to everyone is subtracted before.
    """
    group_of = np.zeros(nodes, dtype=np.int64)
    near = tests.where(np.abs(tests.a - tests.b) <= DISTANCE)
    if nodes <= 2 * DISTANCE or not len(near):
        return group_of
    value = _of_test(near, nodes)
    across = _across_cuts(near, value, nodes)
    usual = float(quantile(value, 0.25))
    spread = max(usual - float(quantile(value, 0.05)), 1e-3)
    counts = np.sum(~np.isnan(across), axis=1)
    step = quantile(across, 0.25, axis=1) - usual
    is_cut = (counts >= LEAST_ACROSS) & (
        step > np.maximum(LEAST_STEP, SURE * spread / np.sqrt(np.maximum(counts, 1)))
    )
    cuts = _separate([(int(cut), float(step[cut])) for cut in np.flatnonzero(is_cut)])
    low, high = np.minimum(near.a, near.b), np.maximum(near.a, near.b)
    beside: Floats = np.asarray(value - usual)
    return _numbered(sorted(_placed(cut, size, low, high, beside) for cut, size in cuts), nodes)


def _placed(cut: int, step: float, low: Ints, high: Ints, value: Floats) -> int:
    """Moves a cut to the place beside it that explains the tests around it best."""
    around = (low < cut + DISTANCE) & (high >= cut - DISTANCE) & ~np.isnan(value)
    low, high, value = low[around], high[around], value[around]

    def cost(place: int) -> float:
        expected = np.where((low < place) & (high >= place), step, 0.0)
        return float(np.sum(np.minimum(np.abs(value - expected), 2 * step)))

    places = range(max(1, cut - DISTANCE + 1), cut + DISTANCE)
    return min(places, key=lambda place: (cost(place), abs(place - cut)))


def _across_cuts(tests: PairTests, value: Floats, nodes: int) -> Floats:
    """Returns the values of the tests that cross each cut, which is before the node of a row."""
    low, high = np.minimum(tests.a, tests.b), np.maximum(tests.a, tests.b)
    by_place = np.full((DISTANCE + 1, nodes + DISTANCE), np.nan)
    by_place[high - low, low] = value
    cuts = np.arange(nodes)
    columns = [
        np.where(cuts > offset, by_place[distance, cuts - 1 - offset], np.nan)
        for distance in range(1, DISTANCE + 1)
        for offset in range(distance)
    ]
    return np.asarray(np.stack(columns, axis=1))


def _of_test(tests: PairTests, nodes: int) -> Floats:
    """Returns one value of each test: the mean of its rails and directions, without that by which
    the slower of its nodes is slow to everyone."""
    rails = np.where(np.isnan(tests.y), 0.0, tests.y).sum(axis=(1, 2))
    mean = rails / np.maximum(1, np.sum(~np.isnan(tests.y), axis=(1, 2)))
    same = np.broadcast_to(mean[:, None, None], (len(tests), 1, 2))
    # The lower quantile is that of tests inside the group.
    level = node_rows(tests.replaced(same), nodes).quantile(0.25, lower=True)[:, 0, 0]
    excess = np.nan_to_num(level - quantile(level, 0.5))
    excess = np.where(excess > SLOW_SCALES * one_sided_scale(level), excess, 0.0)
    return np.asarray(mean - np.maximum(excess[tests.a], excess[tests.b]))


def _separate(cuts: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Keeps the highest of cuts that are beside one another: their tests are in part the same."""
    kept: list[tuple[int, float]] = []
    for cut, step in cuts:
        if kept and cut - kept[-1][0] < DISTANCE:
            if step > kept[-1][1]:
                kept[-1] = (cut, step)
        else:
            kept.append((cut, step))
    return kept


def _numbered(cuts: Sequence[int], nodes: int) -> Ints:
    group_of = np.zeros(nodes, dtype=np.int64)
    begin = 0
    for cut in cuts:
        if min(cut - begin, nodes - cut) >= LEAST_NODES:
            group_of[cut:] += 1
            begin = cut
    return group_of
