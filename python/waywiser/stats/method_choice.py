"""Which of several methods of doing the same is faster, over size.

**Two methods.** At a size one is faster if its interval lies below the other's and it is so by more
than the `THRESHOLD` of all decisions; if one has no interval, by more than `UNKNOWN`; else the two
are even there. Sizes with the same winner are one range; an even size between two that the same one
wins belongs to them, since noise hides what both its neighbours show. A size whose neighbours both
say something else is won only by more than `UNKNOWN`: intervals within processes say nothing of
what differs from process to process. The decision of all pairs (`waywiser.stats.decision`) would
decide next to nothing here: most sizes are measured in one process.

**A policy** is the shortest table that says which method to use at which size, and loses little at
any. At each size some methods are within `TOLERANCE` of the fastest, or not known to be slower, as
if blocks disagree and the loss is below `UNKNOWN`. Of all assignments of one such method to each
size, the table has the one with the fewest changes, and among these the one that loses least:
dynamic programming over sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from waywiser.stats.decision import THRESHOLD
from waywiser.stats.order import Interval
from waywiser.words import Value

UNKNOWN = 0.25
"""Times without an interval that differ by less are equal: means of other tools, and paths
of the host, were seen to vary by so much."""
TOLERANCE = 0.05
"""Share of the fastest time: a table that loses no more is worth being short."""
CHANGE = 1e3
"""What a change costs: more than all losses together, so that there are as few as can be."""

Winner = Literal["first", "second", "neither"]


class Timed(NamedTuple):
    """Seconds of one size, with the interval if there is one."""

    seconds: float
    interval: Interval | None
    blocks: tuple[float, ...] = ()
    """Medians of its blocks, if they are known."""


class WinnerRange(Value, frozen=True):
    """Adjacent sizes with one winner."""

    winner: Winner
    low: int
    high: int
    """Bytes, both included."""
    least: float
    most: float
    """How much longer the loser takes: 0.5 is half as long again. Of neither, how they differ."""


def winner(first: Timed, second: Timed) -> Winner:
    """The faster one at a size."""
    ratio = second.seconds / first.seconds
    known = first.interval is not None and second.interval is not None
    if _margin(ratio) <= (THRESHOLD if known else UNKNOWN):
        return "neither"
    if first.interval and second.interval and first.interval.overlaps(second.interval):
        return "neither"
    return "first" if ratio > 1 else "second"


def duel(
    sizes: Sequence[int], first: Sequence[Timed], second: Sequence[Timed]
) -> list[WinnerRange]:
    """Ranges of ``sizes``, ascending, with one winner each, from the times of both at each size."""
    winners = [winner(a, b) for a, b in zip(first, second, strict=True)]
    ratios = [b.seconds / a.seconds for a, b in zip(first, second, strict=True)]
    winners = [
        "neither" if _stands_alone(n, winners) and _margin(ratios[n]) <= UNKNOWN else who
        for n, who in enumerate(winners)
    ]
    for n in range(1, len(winners) - 1):
        if winners[n] == "neither" and winners[n - 1] == winners[n + 1]:
            winners[n] = winners[n - 1]
    found: list[WinnerRange] = []
    for who, group in groupby(range(len(sizes)), key=winners.__getitem__):
        members = list(group)
        found.append(_winner_range(who, [sizes[n] for n in members], [ratios[n] for n in members]))
    return found


def _stands_alone(n: int, winners: Sequence[Winner]) -> bool:
    """Whether there are sizes beside the n-th, and none has its winner."""
    beside = [winners[m] for m in (n - 1, n + 1) if 0 <= m < len(winners)]
    return bool(beside) and winners[n] not in beside


def _margin(ratio: float) -> float:
    return max(ratio, 1 / ratio) - 1


def _winner_range(who: Winner, sizes: Sequence[int], ratios: Sequence[float]) -> WinnerRange:
    if who == "neither":
        margins = [_margin(ratio) for ratio in ratios]
    else:
        margins = [(ratio if who == "first" else 1 / ratio) - 1 for ratio in ratios]
    return WinnerRange(who, sizes[0], sizes[-1], min(margins), max(margins))


class MethodRange(Value, frozen=True):
    """Sizes at which one method is used, as positions, both included."""

    method: int
    first: int
    last: int


def policy(times: Sequence[Sequence[Timed | None]]) -> list[MethodRange]:
    """``times[method][size]``, None if a method has no time, the preferred method first. Sizes that
    no method has are skipped."""
    methods = range(len(times))
    known = [n for n, at in enumerate(zip(*times, strict=True)) if any(at)]
    if not known:
        return []
    costs = [0.0] * len(times)
    before: list[list[int]] = []
    for n in known:
        losses = _losses([row[n] for row in times])
        cheapest = min(methods, key=costs.__getitem__)
        changed = costs[cheapest] + CHANGE
        before.append([cheapest if changed < costs[own] else own for own in methods])
        costs = [min(changed, costs[own]) + losses[own] for own in methods]
    chosen = [min(methods, key=costs.__getitem__)]
    for previous in reversed(before[1:]):
        chosen.append(previous[chosen[-1]])
    found = []
    for method, group in groupby(zip(reversed(chosen), known, strict=True), key=lambda at: at[0]):
        sizes = [n for _, n in group]
        found.append(MethodRange(method, sizes[0], sizes[-1]))
    return found


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
