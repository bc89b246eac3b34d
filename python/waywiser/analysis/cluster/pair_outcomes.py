"""Which pairs are slow or fail while their nodes do not."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.confirmed import LEAST_TIMES, is_unblamed
from waywiser.analysis.cluster.controls import (
    beside_controls,
    lacks_controls,
    pair_confirm_limit,
)
from waywiser.analysis.cluster.cover_rounds import enough_tests, is_cut_short, is_vain
from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.state import ClusterState

BESIDE_OTHERS = 2
"""The first tests of a pair that stands out are beside others, as in the rounds."""

PAIR_REPEATS, PAIR_FAST = 5, 1
"""Then it is tested alone, and so many of the tests may be fast."""

FAILED_PAIR_REPEATS = 2

MOST_CANDIDATES = 32
"""The most pairs that are tested again; more of them are no single pairs."""

MANY, MANY_SHARE = 8, 0.02
"""More slow pairs than these, and than this share of the pairs, are no single pairs where tests may
cross switches that the run does not know."""


def _places(state: ClusterState, *, all_of_them: bool = False) -> Ints:
    """Returns the places of known pairs of unblamed nodes that no test has shown to be fast,
    although there were enough tests of them; without the time for these, of those that stand out in
    the rounds. ``all_of_them``: however few tests there were."""
    known, unblamed, size = known_pairs(state), is_unblamed(state), len(state.names)
    low, high = np.divmod(known.keys, max(size, 1))
    is_one = known.over.any(axis=(1, 2)) & unblamed[low] & unblamed[high]
    enough = enough_tests(state, known.keys)
    if is_cut_short(state):
        enough |= np.isin(known.keys, state.rounds.undisturbed.keys(size))
    return np.flatnonzero(is_one if all_of_them else is_one & enough)


def crosses_unseen(state: ClusterState) -> int:
    """Returns how many pairs stand out if so many do that they cross something slow which the run
    does not know, and most of those that were tested again are slow; else 0."""
    tried = len(_pair_candidates(state)) - len(_pair_outcomes(state)[0])
    if not state.rounds.may_cross_unseen or 2 * len(slow_pairs(state)) <= tried:
        return 0
    count = len(_places(state, all_of_them=is_vain(state)))
    return count if count > max(MANY, MANY_SHARE * len(known_pairs(state).keys)) else 0


def _pair_candidates(state: ClusterState) -> dict[Pair, Bools]:
    """Returns the pairs to test again, of too many the slowest: rail, direction from the lower
    index first."""
    known, places, size = known_pairs(state), _places(state), len(state.names)
    low, high = np.divmod(known.keys, max(size, 1))
    worst = np.nanmax(known.best[places], axis=(1, 2), initial=-np.inf)
    kept = places[np.argsort(-worst, kind="stable")[:MOST_CANDIDATES]]
    return {(int(low[n]), int(high[n])): known.over[n] for n in sorted(kept.tolist())}


def _pair_rows(state: ClusterState) -> dict[Pair, list[Floats]]:
    tests, _ = beside_controls(state, "pair")
    rows: dict[Pair, list[Floats]] = {}
    for n, (a, b) in enumerate(zip(tests.a.tolist(), tests.b.tolist(), strict=True)):
        y = tests.y[n] if a < b else tests.y[n][:, ::-1]
        rows.setdefault((min(a, b), max(a, b)), []).append(y)
    return rows


def pair_attempts(state: ClusterState) -> Counter[Pair]:
    """Counts the repeated tests of pairs, failed ones included."""
    return Counter(state.attempts.of("pair").pairs)


@lru_cache(maxsize=1)
def _pair_outcomes(state: ClusterState) -> tuple[list[Pair], dict[Pair, Bools]]:
    """Returns the pairs that need more tests, and those that are slow: in each of the first tests,
    which are side by side, and in all but one of the tests alone."""
    rows, tried = _pair_rows(state), pair_attempts(state)
    limit = pair_confirm_limit(state)[None, :, None]
    few = lacks_controls(state, "pair")
    open_, slow = [], {}
    for pair, stands_out in sorted(_pair_candidates(state).items()):
        y = np.array(rows.get(pair, np.empty((0, *stands_out.shape))))
        fast = y < limit
        remaining = stands_out & ~fast[:BESIDE_OTHERS].any(axis=0)
        remaining &= np.sum(fast[BESIDE_OTHERS:], axis=0) <= PAIR_FAST
        if remaining.any():
            if tried[pair] < BESIDE_OTHERS + PAIR_REPEATS or few:
                open_.append(pair)
            elif len(y) >= BESIDE_OTHERS + LEAST_TIMES:
                slow[pair] = remaining
    return open_, slow


def slow_pairs(state: ClusterState) -> dict[Pair, Bools]:
    """Returns the pairs that are slow while their nodes are not: rail, direction from the lower
    index first."""
    return _pair_outcomes(state)[1]


def failed_pairs(state: ClusterState) -> list[Pair]:
    """Returns pairs that failed each time, while none of the two nodes can be blamed."""
    passed = set(_pair_rows(state))
    return sorted(
        pair
        for pair in state.losses.of_pair
        if pair not in passed and (pair_attempts(state)[pair] or len(state.members) == 2)
    )


def open_pairs(state: ClusterState) -> list[Pair]:
    """Returns the pairs to test again: those that stand out, and those that failed."""
    tried, passed = pair_attempts(state), set(_pair_rows(state))
    failed = [
        pair
        for pair in sorted(state.losses.of_pair)
        if pair not in passed
        and tried[pair] < FAILED_PAIR_REPEATS
        and state.testable[list(pair)].all()
    ]
    return [*failed, *_pair_outcomes(state)[0]]
