"""The shortest table that says which method to use at which size, and loses little at any.

At each size some methods are within `TOLERANCE` of the fastest, or not known to be slower, as if
blocks disagree and the loss is below `waywiser.stats.duel.UNKNOWN`. Of all assignments of one such
method to each size, the table has the one with the fewest changes, and among these the one that
loses least: dynamic programming over sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from waywiser.stats.decision import THRESHOLD
from waywiser.stats.duel import UNKNOWN, Timed
from waywiser.words import Value

TOLERANCE = 0.05
"""Share of the fastest time: a table that loses no more is worth being short."""
CHANGE = 1e3
"""What a change costs: more than all losses together, so that there are as few as can be."""


class Range(Value, frozen=True):
    """Sizes at which one way is used, as positions, both included."""

    way: int
    first: int
    last: int


def ranges(times: Sequence[Sequence[Timed | None]]) -> list[Range]:
    """``times[way][size]``, None if a way has no time, the preferred way first. Sizes that no
    way has are left out."""
    counts = len(times[0]) if times else 0
    known = [n for n in range(counts) if any(row[n] is not None for row in times)]
    costs: list[tuple[float, ...]] = [(0.0,) * len(times)]
    before: list[list[int]] = []
    for n in known:
        losses = _losses([row[n] for row in times])
        step = [_cheapest(costs[-1], way, first=not before) for way in range(len(times))]
        costs.append(tuple(cost + loss for (cost, _), loss in zip(step, losses, strict=True)))
        before.append([previous for _, previous in step])
    if not known:
        return []
    chosen = [min(range(len(times)), key=costs[-1].__getitem__)]
    for previous in reversed(before[1:]):
        chosen.append(previous[chosen[-1]])
    chosen.reverse()
    found, start = [], 0
    for way, group in groupby(chosen):
        length = len(list(group))
        found.append(Range(way, known[start], known[start + length - 1]))
        start += length
    return found


def _cheapest(costs: Sequence[float], way: int, *, first: bool) -> tuple[float, int]:
    """(cost so far, the way before) of using ``way`` next."""
    if first:
        return 0.0, way
    other = min(range(len(costs)), key=costs.__getitem__)
    if costs[other] + CHANGE < costs[way]:
        return costs[other] + CHANGE, other
    return costs[way], way


def _losses(times: Sequence[Timed | None]) -> list[float]:
    best = min((each for each in times if each is not None), key=lambda each: each.seconds)
    return [_loss(each, best) for each in times]


def _loss(mine: Timed | None, best: Timed) -> float:
    """The loss over the fastest time; 0 if it is not known to be any, infinite if it is too
    much."""
    if mine is None:
        return math.inf
    loss = mine.seconds / best.seconds - 1
    overlap = mine.interval and best.interval and mine.interval.overlaps(best.interval)
    if loss <= THRESHOLD or overlap:
        return 0.0
    uncertain = loss <= UNKNOWN and _disagree(mine, best)
    return loss if loss <= TOLERANCE or uncertain else math.inf


def _disagree(one: Timed, other: Timed) -> bool:
    """Whether the blocks of two, if each has several, lie no further apart than among each
    other."""
    sides = [[math.log(block) for block in each.blocks] for each in (one, other)]
    low, high = sorted(sides, key=lambda side: min(side, default=0.0))
    if min(map(len, sides)) < 2:
        return False
    return min(high) - max(low) <= max(max(side) - min(side) for side in sides)
