"""How many pairs were tested, and how slow a pair has to be to be found."""

from __future__ import annotations

import numpy as np

from waywiser.analysis.cluster.confirmed import is_unblamed
from waywiser.analysis.cluster.controls import pair_confirm_limit
from waywiser.analysis.cluster.detectable import SURE
from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.pair_outcomes import (
    failed_pairs,
    open_pairs,
    pair_attempts,
    slow_pairs,
)
from waywiser.analysis.cluster.state import ClusterState
from waywiser.analysis.cluster.verdict_values import PairCoverage


def pair_coverage(state: ClusterState) -> PairCoverage:
    """Returns the coverage of the pairs of nodes that are neither slow nor failed. A pair counts as
    tested if a test has shown that it is fast, or if tests alone have decided about it. A pair
    whose tests were slow only beside others is not tested."""
    unblamed, size = is_unblamed(state), len(state.names)
    unblamed = unblamed & state.rounds.tested
    nodes = int(unblamed.sum())
    open_ = set(open_pairs(state))
    decided = {pair for pair in pair_attempts(state) if pair not in open_}
    decided |= {*slow_pairs(state), *failed_pairs(state)}
    keys = {min(pair) * size + max(pair) for pair in decided}
    keys.update(known_pairs(state).fast.tolist())
    low, high = np.divmod(np.array(sorted(keys), dtype=np.int64), max(size, 1))
    tested = int(np.sum(unblamed[low] & unblamed[high]))
    return PairCoverage(
        nodes=nodes,
        pairs=nodes * (nodes - 1) // 2,
        tested=tested,
        ratio=_smallest(state),
        may_cross_unseen=state.rounds.may_cross_unseen,
    )


def _smallest(state: ClusterState) -> float:
    """Returns the slowness of a tested pair, on its worst rail, that is found with 97.5 %."""
    rounds = state.rounds
    if not len(rounds.undisturbed):
        return 0.0
    limit = np.fmax(rounds.pair_limit, pair_confirm_limit(state))
    least = float(np.nanmax(limit + SURE * rounds.noise))
    return float(np.exp(least)) if np.isfinite(least) else 0.0
