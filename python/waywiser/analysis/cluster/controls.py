"""Controls: tests of good nodes in the phases that decide about suspects and pairs.

Other work may begin to load the network after the rounds. Then the tests of a suspect are slow, and
so are the controls: a suspect is slow only beside them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.levels import THRESHOLD, quantile
from waywiser.analysis.cluster.pair_tests import (
    Bools,
    Floats,
    PairTests,
    node_rows,
)
from waywiser.analysis.cluster.ragged_rows import RaggedRows
from waywiser.analysis.cluster.round_results import RoundResults
from waywiser.analysis.cluster.state import ClusterState

LATE = 0.84
"""A test is slow if it takes longer than this share of the controls."""

MOST_TIMES = 2
"""A suspect that its tests alone neither confirm nor refute gets so many times as many."""

LEAST_CONTROLS = 3
"""With fewer controls nothing is confirmed."""


@lru_cache(maxsize=1)
def is_good(state: ClusterState) -> Bools:
    """Returns the nodes that are no suspects, or were fast in tests alone."""
    rounds = state.rounds
    tests = rounds.beside_usual(state.all_tests.of("alone"))
    rows = node_rows(tests, len(state.names))
    is_open = may_be_slow(rows, least_limit(rounds), rounds.repeats)
    return np.asarray(~(rounds.suspects & is_open).any(axis=(1, 2)))


def may_be_slow(rows: RaggedRows, limit: Floats, repeats: tuple[int, int]) -> Bools:
    """Returns where repeated tests do not show that a node is fast: no more of them are below the
    limit than may be, or at most half of them and twice as many as may be."""
    _, may_be_fast = repeats
    fast = rows.count(rows.y < limit[None, :, None])
    times = rows.count(~np.isnan(rows.y))
    is_undecided = (2 * fast <= times) & (fast <= MOST_TIMES * may_be_fast)
    return np.asarray((fast <= may_be_fast) | is_undecided)


def good_nodes(state: ClusterState) -> list[int]:
    """Returns those that may be tested: the fastest in the rounds first; where groups are given,
    the faster half."""
    rounds = state.rounds
    good = rounds.faster_half if state.plan.groups else rounds.usual_nodes
    cleared = rounds.is_suspect & is_good(state) & state.testable
    return [*good.tolist(), *np.flatnonzero(cleared).tolist()]


def is_control(state: ClusterState, tests: PairTests) -> Bools:
    """Returns which tests are of two good nodes, inside a group that does not stand out or between
    two of them; and of no pair that stands out."""
    rounds = state.rounds
    usual = is_good(state)
    slow = np.asarray(rounds.group_levels.stands_out.any(axis=(1, 2)))
    ga, gb = rounds.group_of[tests.a], rounds.group_of[tests.b]
    between = (ga == gb) | ~(slow[ga] | slow[gb])
    kept = usual[tests.a] & usual[tests.b] & between
    if kept.any():
        kept &= ~np.isin(tests.keys(len(state.names)), known_pairs(state).outstanding)
    return np.asarray(kept)


@lru_cache(maxsize=4)
def control_rounds(state: ClusterState, phase: str) -> tuple[int, int, int]:
    """Returns the rounds of a phase, those with a control, and the controls that were tried."""
    attempts = state.attempts.of(phase)
    controls = attempts.where(is_control(state, attempts))
    return len(np.unique(attempts.round)), len(np.unique(controls.round)), len(controls)


@lru_cache(maxsize=4)
def beside_controls(
    state: ClusterState, phase: str, *, with_groups: bool = False
) -> tuple[PairTests, PairTests]:
    """Returns the tests of a phase, and the controls among them, as logarithms of the ratio to the
    usual time; where three quarters of the controls are slower than in the rounds, to theirs."""
    tests = state.all_tests.of(phase)
    is_one = is_control(state, tests)
    ratios = state.rounds.beside_usual(tests, with_groups=with_groups)
    shift = np.fmax(quantile(ratios.y[is_one], 0.25, axis=(0, 2)), 0.0)
    ratios = ratios.replaced(ratios.y - shift[None, :, None])
    return ratios, ratios.where(is_one)


def confirm_limit(state: ClusterState) -> Floats:
    """From this logarithm of a ratio on a test alone counts as slow: by rail."""
    rounds = state.rounds
    limit = np.fmax(least_limit(rounds), _late(state, "alone"))
    return np.asarray(np.fmax(limit, rounds.late) if rounds.levels.are_few else limit)


def least_limit(rounds: RoundResults) -> Floats:
    """Returns the same without controls."""
    share = 0.85 if rounds.may_cross_unseen else 0.7
    return np.asarray(np.maximum(THRESHOLD * share, rounds.noise))


def pair_confirm_limit(state: ClusterState) -> Floats:
    """From this logarithm of a ratio on a repeated test of a pair counts as slow: by rail."""
    return np.asarray(np.fmax(state.rounds.pair_confirm_limit, _late(state, "pair")))


def _late(state: ClusterState, phase: str) -> Floats:
    """Returns what `LATE` of the controls do not exceed: by rail; NaN if there are too few, as one
    that was disturbed would make each test fast."""
    if lacks_controls(state, phase):
        return np.full(state.rails, np.nan)
    return quantile(beside_controls(state, phase)[1].y, LATE, axis=(0, 2), lower=True)


def lacks_controls(state: ClusterState, phase: str) -> bool:
    """Returns whether there were fewer controls than a suspect gets tests, or fewer with times than
    confirm anything."""
    tried = control_rounds(state, phase)[2]
    return tried < state.rounds.repeats[0] or has_few_controls(state, phase)


def has_few_controls(state: ClusterState, phase: str) -> bool:
    """Returns whether too few controls have times."""
    return len(beside_controls(state, phase)[1]) < LEAST_CONTROLS
