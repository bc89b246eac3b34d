"""Two ways of doing the same, over size: which is faster where, and by how much.

At a size one is faster where its interval lies below the other's and it is so by more than `EVEN`;
where one has no interval, by more than `UNKNOWN`; else the two are even there. Sizes with the same
winner are one stretch; an even size between two that the same one wins belongs to them, since noise
hides what both its neighbours show. One that wins a single size among near ones, none of which
agrees, wins it by more than `UNKNOWN` or not at all: intervals within processes say nothing of what
differs from process to process.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from waywiser.stats.order import Interval
from waywiser.words import Value

EVEN = 0.02
"""Times that differ by less are not told apart: the target of a survey's intervals."""
UNKNOWN = 0.25
"""Times without an interval that differ by less are not told apart: means of other tools, and paths
of the host, were seen to vary by so much."""

NEAR = 4
"""Times as large is still a neighbour that ought to agree."""

Winner = Literal["first", "second", "neither"]


class Timed(NamedTuple):
    """Seconds of one size, with the interval where there is one."""

    seconds: float
    interval: Interval | None


class Stretch(Value, frozen=True):
    """Adjacent sizes with one winner."""

    winner: Winner
    low: int
    high: int
    """Bytes, both included."""
    least: float
    most: float
    """How much longer the loser takes: 0.5 is half as long again. Of neither, how they differ."""


def winner(first: Timed, second: Timed) -> Winner:
    ratio = second.seconds / first.seconds
    known = first.interval is not None and second.interval is not None
    if _margin(ratio) <= (EVEN if known else UNKNOWN):
        return "neither"
    if first.interval and second.interval and first.interval.overlaps(second.interval):
        return "neither"
    return "first" if ratio > 1 else "second"


def duel(sizes: Sequence[int], first: Sequence[Timed], second: Sequence[Timed]) -> list[Stretch]:
    """Of each of ``sizes``, ascending, the times of both."""
    winners = [winner(a, b) for a, b in zip(first, second, strict=True)]
    for n in range(1, len(winners) - 1):
        if winners[n] == "neither" and winners[n - 1] == winners[n + 1]:
            winners[n] = winners[n - 1]
    ratios = [b.seconds / a.seconds for a, b in zip(first, second, strict=True)]
    winners = [
        "neither" if _stands_alone(n, sizes, winners) and _margin(ratios[n]) <= UNKNOWN else who
        for n, who in enumerate(winners)
    ]
    found: list[Stretch] = []
    for who, group in groupby(range(len(sizes)), key=winners.__getitem__):
        members = list(group)
        found.append(_stretch(who, [sizes[n] for n in members], [ratios[n] for n in members]))
    return found


def _stands_alone(n: int, sizes: Sequence[int], winners: Sequence[Winner]) -> bool:
    """Whether there are sizes near the n-th, and none has its winner."""
    near = [
        m
        for m in (n - 1, n + 1)
        if 0 <= m < len(sizes) and max(sizes[m], sizes[n]) <= NEAR * min(sizes[m], sizes[n])
    ]
    return bool(near) and all(winners[m] != winners[n] for m in near)


def _margin(ratio: float) -> float:
    return max(ratio, 1 / ratio) - 1


def _stretch(who: Winner, sizes: Sequence[int], ratios: Sequence[float]) -> Stretch:
    if who == "neither":
        margins = [_margin(ratio) for ratio in ratios]
    else:
        margins = [(ratio if who == "first" else 1 / ratio) - 1 for ratio in ratios]
    return Stretch(who, sizes[0], sizes[-1], min(margins), max(margins))
