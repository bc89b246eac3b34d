"""Rounds that test the pairs of good nodes which no test has shown to be fast yet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.confirmed import is_unblamed
from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints
from waywiser.analysis.cluster.schedule import UNLIMITED, Pair, matchings, next_tests
from waywiser.analysis.cluster.state import ClusterState

ALL_PAIRS = 256
"""Up to so many nodes every pair is tested: n - 1 rounds of n/2 pairs have each pair once."""

PART_ROUNDS = 32
"""Rounds for more nodes: each is tested with so many others, and no pair twice."""

MOST_ROUNDS = 750
"""Rounds of a run after which no more pairs are covered, if few tests can run at once."""

MOST_SCANNED = 4096
"""The tests of a round are taken from so many pairs."""

FEW_FAST, MANY_FAST = 0.3, 0.6
"""Half as many tests run at once if fewer are fast, twice as many if more are. Of tests that take
one of several up-links by chance most become fast in each round if 37 % of them are (as of slotted
ALOHA: Roberts, 1975)."""

LEAST_TESTS = 16
"""Tests by which the number at once is decided."""

MISSED = 0.003
"""The chance that a fast pair has no fast test, among others, after which it is tested alone."""

FEWEST_TRIES, MOST_TRIES = 3, 10

FIRST_TRIES = 5
"""Later tests are of pairs that may be slow by themselves, and decide nothing about the others."""


def cover_pairs(state: ClusterState, number: int) -> list[Pair]:
    """Returns the pairs of the next round: first those that were tested least. Empty if all are
    known to be fast or were tested often enough, or if there is no time for more."""
    load = _load(state)
    left, done = _left(state, number), len(np.unique(state.attempts.of("cover").round))
    is_over = len(state.members) > ALL_PAIRS and done >= 2 * PART_ROUNDS
    is_over |= number >= MOST_ROUNDS or load.is_vain or is_cut_short(state)
    if is_over or not len(left):
        return []
    low, high = np.divmod(left[:MOST_SCANNED], len(state.names))
    pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    groups = state.rounds.group_of.tolist()
    if _has_given_groups(state):
        return next_tests(pairs, groups, load.at_once)
    return next_tests(pairs, groups, UNLIMITED, load.at_once)


def is_cut_short(state: ClusterState) -> bool:
    """Returns whether there was no time for all rounds."""
    return any(
        each.test.phase == "cover" and each.failed and each.failed.failure.kind == "skipped"
        for each in state.records.failed
    )


def is_vain(state: ClusterState) -> bool:
    """Returns whether few tests are fast although hardly any run at once."""
    return _load(state).is_vain


def enough_tests(state: ClusterState, keys: Ints) -> Bools:
    """Returns which pairs were tested so often that a fast one would hardly have no fast test."""
    tries = _counts(state.attempts.of("pairs", "cover").keys(len(state.names)), keys)
    low, high = np.divmod(keys, max(len(state.names), 1))
    group_of = state.rounds.group_of
    # Tests below one switch share nothing.
    is_inside = (group_of[low] == group_of[high]) & (not state.rounds.may_cross_unseen)
    enough = np.where(is_inside, FEWEST_TRIES, _load(state).tries)
    return np.asarray(tries >= enough)


def _left(state: ClusterState, number: int) -> Ints:
    """Returns the pairs to test, those with fewest tests first: untested ones in the order of full
    rounds, others at random, so that others share its up-links then."""
    planned, unblamed, size = _planned(state), is_unblamed(state), len(state.names)
    low, high = np.divmod(planned, max(size, 1))
    attempts = state.attempts
    failed = attempts.where(~attempts.has_times).of("pairs", "cover", "pair").keys(size)
    kept = unblamed[low] & unblamed[high] & ~np.isin(planned, known_pairs(state).fast)
    kept &= ~np.isin(planned, failed)
    left = planned[kept]
    left = left[~enough_tests(state, left)]
    tries = _counts(attempts.of("cover").keys(size), left)
    rng = np.random.default_rng([state.plan.seed, 10, number])
    place = np.where(tries > 0, rng.permutation(len(left)), np.arange(len(left)))
    return left[np.lexsort((place, tries))]


def _counts(tested: Ints, keys: Ints) -> Ints:
    """Returns how many of the tested pairs are each of the keys."""
    tested, order = np.sort(tested), np.argsort(keys, kind="stable")
    ordered = keys[order]  # in order they are found much faster
    found = np.empty(len(keys), dtype=np.int64)
    found[order] = np.searchsorted(tested, ordered, "right") - np.searchsorted(tested, ordered)
    return found


def _planned(state: ClusterState) -> Ints:
    return _matched(state.plan.seed, tuple(state.members), len(state.names))


@lru_cache(maxsize=2)
def _matched(seed: int, members: tuple[int, ...], size: int) -> Ints:
    """Returns the pairs, round by round."""
    count = len(members) if len(members) <= ALL_PAIRS else PART_ROUNDS
    rounds = matchings(members, count, np.random.default_rng([seed, 9]))
    pairs = np.array([pair for each in rounds for pair in each], dtype=np.int64).reshape(-1, 2)
    return np.asarray(pairs.min(axis=1) * size + pairs.max(axis=1))


@dataclass(frozen=True)
class _Load:
    at_once: int
    """Tests at once: across the up-links of a group if groups are given, else of a round."""
    tries: int
    """Tests after which a pair that shares up-links hardly has no fast one."""
    is_vain: bool = False
    """Few tests are fast although hardly any run at once."""


def _has_given_groups(state: ClusterState) -> bool:
    """Returns whether tests across groups are known: cuts that were found may be wrong."""
    return bool(state.plan.groups) and state.rounds.has_groups


@lru_cache(maxsize=1)
def _load(state: ClusterState) -> _Load:
    """Returns how many tests may run at once: by how many of the first tests of pairs were fast,
    those across groups if there are any."""
    rounds, size = state.rounds, len(state.names)
    tests = state.all_tests.of("cover")
    first = _place(tests.keys(size)) < FIRST_TRIES
    if _has_given_groups(state):
        at_once = max(1, rounds.uplinks.pairs)
        first &= rounds.group_of[tests.a] != rounds.group_of[tests.b]
    else:
        at_once = max(1, min(rounds.uplinks.most, len(state.members) // 2))
    tests = tests.where(first)
    y = rounds.beside_usual(tests).y
    fast: Floats = np.sum(y < rounds.pair_limit[None, :, None], axis=(1, 2))
    times: Floats = np.sum(~np.isnan(y), axis=(1, 2))
    starts = np.flatnonzero(np.diff(tests.round, prepend=-1)).tolist()
    begin, rises, least, vain = 0, True, 1.0 if len(tests) else 0.5, 0
    for end in [*starts[1:], len(tests)] if starts else []:
        if end - begin < LEAST_TESTS:
            continue
        share = float(fast[begin:end].sum() / max(times[begin:end].sum(), 1))
        begin, least = end, min(least, share)
        vain = vain + 1 if share < FEW_FAST and at_once == 1 else 0
        if share < FEW_FAST:
            at_once, rises = max(1, at_once // 2), False
        elif share > MANY_FAST and rises:
            at_once = min(2 * at_once, max(1, len(state.members)))
    if vain > 1:
        return _Load(at_once, FEWEST_TRIES, True)
    slow = min(max(1 - least, 0.01), 0.99)
    tries = int(np.clip(np.ceil(np.log(MISSED) / np.log(slow)), FEWEST_TRIES, MOST_TRIES))
    return _Load(at_once, tries)


def _place(keys: Ints) -> Ints:
    """Returns how many equal keys are before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    place = np.empty(len(keys), dtype=np.int64)
    place[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return place
