"""Two groups of values compared by rank: no distribution is assumed, small groups are exact.

Sources: Mann & Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger
than the Other", Annals of Mathematical Statistics 18 (1947), for the test and the recurrence of its
distribution; Hodges & Lehmann, "Estimates of Location Based on Rank Tests", ibid. 34 (1963), for
the shift and, after Lehmann, its interval from the ordered differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from waywiser.stats.order import CONFIDENCE, Interval, median

EXACT = 400
"""Up to so many pairs the distribution is counted; beyond, the normal one is within 1e-3 of it."""


def shift(a: Sequence[float], b: Sequence[float]) -> float:
    """By how much ``a`` lies above ``b``: the median of all differences.

    Raises ValueError where one of them is empty.
    """
    return median([x - y for x in a for y in b])


def shift_interval(
    a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Of `shift`, with at least ``confidence``; None where the groups are too small for any (at
    95 %: 4 and 4, 3 and 5, 2 and 8 are the smallest that have one)."""
    allowed = (1.0 - confidence) / 2.0
    tail = _tail(len(a), len(b))
    outside = sum(chance <= allowed for chance in tail)
    if not outside:
        return None
    differences = sorted(x - y for x in a for y in b)
    return Interval(differences[outside - 1], differences[-outside])


def p_above(a: Sequence[float], b: Sequence[float]) -> float:
    """How often ``a`` would lie as far above ``b`` where both come from one distribution.

    A tie counts as half a pair, rounded to the side of no difference.
    """
    wins = sum((x > y) + (x == y) / 2 for x in a for y in b)
    losses = math.ceil(len(a) * len(b) - wins)
    return min(1.0, _tail(len(a), len(b))[losses])


def p_apart(a: Sequence[float], b: Sequence[float]) -> float:
    """The same to either side."""
    return min(1.0, 2 * min(p_above(a, b), p_above(b, a)))


@lru_cache(maxsize=1024)
def _tail(m: int, n: int) -> tuple[float, ...]:
    """P(U <= u) for u from 0 to m n."""
    if m * n > EXACT:
        middle, deviation = m * n / 2, math.sqrt(m * n * (m + n + 1) / 12)
        return tuple(
            0.5 * math.erfc(-(u + 0.5 - middle) / deviation / math.sqrt(2))
            for u in range(m * n + 1)
        )
    ways = _ways(m, n)
    total, so_far, tail = sum(ways), 0, []
    for count in ways:
        so_far += count
        tail.append(so_far / total)
    return tuple(tail)


@lru_cache(maxsize=4096)
def _ways(m: int, n: int) -> tuple[int, ...]:
    """In how many orders of m and n values there are u pairs in which the first is greater."""
    if m == 0 or n == 0:
        return (1,)
    greatest_of_first, greatest_of_second = _ways(m - 1, n), _ways(m, n - 1)
    found = [0] * (m * n + 1)
    for u, count in enumerate(greatest_of_first):
        found[u + n] += count
    for u, count in enumerate(greatest_of_second):
        found[u] += count
    return tuple(found)
