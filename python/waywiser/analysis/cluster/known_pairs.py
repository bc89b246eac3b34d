"""What tests show of each pair of nodes, before it is tested again because it stands out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints
from waywiser.analysis.cluster.state import ClusterState

_PHASES = ("pairs", "alone", "among", "cover")
"""The phases with messages of the size that is compared: the first may have another."""


@dataclass(frozen=True)
class KnownPairs:
    """The pairs with a test that has times, in ascending order of their keys
    (`waywiser.analysis.cluster.pair_tests.PairTests.keys`).

    Other tests, noise and other traffic only make a test slower. So one fast test shows that a pair
    is fast, however many others ran at the same time.
    """

    keys: Ints
    best: Floats
    """The least logarithm of the ratio to the usual time: pair, rail, direction from the lower
    index first."""
    limit: Floats
    """From this logarithm on a pair stands out: by rail."""

    @cached_property
    def over(self) -> Bools:
        """Returns where no test is fast: pair, rail, direction."""
        return np.asarray(self.best >= self.limit[None, :, None])

    @property
    def outstanding(self) -> Ints:
        """Returns the pairs that are not fast on all rails, in both directions."""
        return self.keys[self.over.any(axis=(1, 2))]

    @cached_property
    def fast(self) -> Ints:
        """Returns the pairs that are fast on all rails, in both directions."""
        return self.keys[~self.over.any(axis=(1, 2))]


@lru_cache(maxsize=1)
def known_pairs(state: ClusterState) -> KnownPairs:
    """Returns what is known of each pair."""
    limit = state.rounds.pair_limit
    tests = state.all_tests.of(*_PHASES)
    if not len(tests):
        return KnownPairs(np.empty(0, dtype=np.int64), np.empty((0, state.rails, 2)), limit)
    keys = tests.keys(len(state.names))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    beside = state.rounds.beside_usual(tests).from_lower[order]
    best = np.fmin.reduceat(beside, starts, axis=0)
    return KnownPairs(ordered[starts], np.asarray(best), limit)
