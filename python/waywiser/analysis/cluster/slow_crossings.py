"""Links between groups that tests alone have confirmed to be slow."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.controls import beside_controls
from waywiser.analysis.cluster.crossing_levels import THRESHOLD
from waywiser.analysis.cluster.levels import below_interval
from waywiser.analysis.cluster.pair_tests import Bools, PairTests
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.state import ClusterState

REPEATS = 8
"""Tests alone across groups, of all pairs of groups that stand out together."""

MOST_ROUNDS = 40
"""Rounds in which they are tried: a test that failed is no test."""


def suspected_crossings(state: ClusterState) -> list[Pair]:
    """Returns the pairs of groups between which tests take much longer than inside."""
    levels = state.rounds.crossing_levels
    chosen = np.flatnonzero(levels.stands_out.any(axis=(1, 2)))
    return list(zip(levels.first[chosen].tolist(), levels.second[chosen].tolist(), strict=True))


def open_crossings(state: ClusterState) -> list[Pair]:
    """Returns those of them that need tests alone."""
    suspected = suspected_crossings(state)
    if not suspected or len(np.unique(state.attempts.of("alone").round)) >= MOST_ROUNDS:
        return []
    return suspected if len(crossing_tests(state)) < REPEATS else []


@lru_cache(maxsize=1)
def crossing_tests(state: ClusterState) -> PairTests:
    """Returns the tests alone between groups that stand out, of nodes that do not, beside the usual
    time inside groups; the lower group first."""
    rounds = state.rounds
    of, usual = rounds.switch_of, ~rounds.is_suspect
    tests, _ = beside_controls(state, "alone", with_groups=True)
    low, high = np.minimum(of[tests.a], of[tests.b]), np.maximum(of[tests.a], of[tests.b])
    keys = [first * len(of) + second for first, second in suspected_crossings(state)]
    chosen: Bools = np.isin(low * len(of) + high, keys) & usual[tests.a] & usual[tests.b]
    tests = tests.where(chosen & (low != high))
    turned = of[tests.a] > of[tests.b]
    a, b = np.where(turned, tests.b, tests.a), np.where(turned, tests.a, tests.b)
    y = np.where(turned[:, None, None], tests.y[:, :, ::-1], tests.y)
    y = y + np.nan_to_num(rounds.crossing_levels.cost)[None, :, None]
    return PairTests(a, b, y, tests.phase, tests.round)


def slow_crossings(state: ClusterState) -> dict[Pair, Bools]:
    """Returns the pairs of groups with slow links between them: rail, direction from the lower
    group."""
    if not suspected_crossings(state) or len(tests := crossing_tests(state)) < REPEATS:
        return {}
    y = tests.y
    times = np.sum(~np.isnan(y), axis=0)
    fast = np.sum(y <= THRESHOLD, axis=0)
    confirmed = (times >= REPEATS // 2) & (fast <= below_interval(times))
    levels = state.rounds.crossing_levels
    out = levels.stands_out & confirmed[None]
    return {
        (int(levels.first[n]), int(levels.second[n])): out[n]
        for n in np.flatnonzero(out.any(axis=(1, 2))).tolist()
    }
