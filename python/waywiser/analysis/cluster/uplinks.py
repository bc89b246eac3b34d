"""How many pairs at once the up-links of a group carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from waywiser.analysis.cluster.levels import (
    THRESHOLD,
    lower_levels,
    one_sided_scale,
    quantile,
    residuals,
)
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints, PairTests
from waywiser.analysis.cluster.schedule import UNLIMITED

MOST_DISTURBED = 0.2
CHANCE = 1.5
"""Chance may make so many tests, and this share of all, slow; more of them mean that tests of a
round disturb one another."""

MUCH_SLOWER = 0.15
MANY_SLOW = 0.25
"""Fewer tests are tried at once if a larger share of tests takes so much longer, as a logarithm,
than the fastest."""

LEAST_TESTS = 8
"""Tests across groups before a number of pairs is tried that is twice as large."""


@dataclass(frozen=True)
class Uplinks:
    """How many tests may run at once in the next round."""

    pairs: int
    """Across the up-links of one group."""
    most: int
    """In a round, where no groups are known."""
    disturbed_rounds: Ints
    """Rounds whose tests disturbed one another; they are no evidence."""
    rounds_across: int = 0
    """Undisturbed rounds with tests across groups."""


def find_uplinks(tests: PairTests, group_of: Ints, given: int) -> Uplinks:
    """Derives the limits of the next round from the rounds before."""
    crosses: Bools = np.asarray(group_of[tests.a] != group_of[tests.b])
    if not len(tests):
        return Uplinks(given or 1, UNLIMITED, np.empty(0, dtype=np.int64))
    if np.all(group_of == group_of[0]):
        return _limit_of_round(tests.round, quantile(tests.y, 0.5, axis=(1, 2)))
    if not crosses.any():
        return Uplinks(given or 1, UNLIMITED, np.empty(0, dtype=np.int64))
    excess = _excess(tests, group_of)
    return _limit_of_group(tests.round[crosses], excess[crosses], given)


def _limit_of_round(rounds: Ints, time: Floats) -> Uplinks:
    """Where many tests take much longer than the fastest, fewer run at once, first a quarter, then
    halves. If as many of these are slow, it is not because of one another, and the limit before
    remains."""
    most, bad = UNLIMITED, np.empty(0, dtype=np.int64)
    since, trial = 0, 0
    for number in np.unique(rounds).tolist():
        mine = rounds == number
        now = time[(rounds >= since) & (rounds <= number)]
        if not trial:
            if len(now) >= 2 * LEAST_TESTS and most > 1 and _slow_share(now, now) > MANY_SLOW:
                trial = number + 1
                fewer = max(1, min(most, int(mine.sum())) // (4 if most == UNLIMITED else 2))
            continue
        before = time[(rounds >= since) & (rounds < trial)]
        after = time[(rounds >= trial) & (rounds <= number)]
        if len(after) < LEAST_TESTS:
            continue
        if _slow_share(after, now) > 0.6 * _slow_share(before, now):
            return Uplinks(1, most, bad)
        bad = np.unique(rounds[rounds < trial])
        most, since, trial = fewer, trial, 0
    return Uplinks(1, fewer if trial else most, bad)


def _slow_share(time: Floats, everything: Floats) -> float:
    return float(np.mean(time > quantile(everything, 0.05) + MUCH_SLOWER))


def _limit_of_group(rounds: Ints, excess: Floats, given: int) -> Uplinks:
    """Starts with the given number and halves it after a disturbed round; or, if none is given,
    starts with one pair, and doubles the number until a round is disturbed."""
    pairs, rising = (given, False) if given else (1, True)
    bad: list[int] = []
    numbers, place = np.unique(rounds, return_inverse=True)
    sizes = np.bincount(place).tolist()
    slow = np.bincount(place, weights=excess > 0).tolist()
    same: list[int] = []
    tests, late = 0, 0.0
    for number, size, more in zip(numbers.tolist(), sizes, slow, strict=True):
        if not same:
            tests, late = 0, 0.0
        same.append(number)
        tests, late = tests + size, late + more
        if tests < LEAST_TESTS:
            continue
        if late > MOST_DISTURBED * tests + CHANCE and pairs > 1:
            bad += same
            pairs, rising, same = pairs // 2, False, []
        elif rising:
            pairs, same = pairs * 2, []
        else:
            same = []
    return Uplinks(pairs, UNLIMITED, np.array(bad, dtype=np.int64), len(numbers) - len(bad))


def _excess(tests: PairTests, group_of: Ints) -> Floats:
    """Returns by how much a test is slower than its two nodes and noise explain."""
    plain = residuals(tests, group_of)
    level = lower_levels(plain, len(group_of))
    slow = np.nan_to_num(np.where(level > 0, level, 0.0))
    first = np.maximum(slow[tests.a, :, 0], slow[tests.b, :, 1])
    second = np.maximum(slow[tests.b, :, 0], slow[tests.a, :, 1])
    rest = plain.y - np.stack([first, second], axis=2)
    inside = group_of[tests.a] == group_of[tests.b]
    scale = one_sided_scale(rest[inside] if inside.any() else rest, axis=(0, 2))
    limit = np.maximum(THRESHOLD, 4 * np.nan_to_num(scale))
    over = rest - quantile(rest, 0.25, axis=(0, 2))[None, :, None] - limit[None, :, None]
    return np.asarray(np.nanmax(over, axis=(1, 2)))
