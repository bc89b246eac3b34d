"""Two methods of doing the same, over size: which is faster where, and by how much.

At a size one is faster if its interval lies below the other's and it is so by more than the
`THRESHOLD` of all decisions; if one has no interval, by more than `UNKNOWN`; else the two are even
there. Sizes with the same winner are one stretch; an even size between two that the same one wins
belongs to them, since noise hides what both its neighbours show. A size whose neighbours both say
something else is won only by more than `UNKNOWN`: intervals within processes say nothing of what
differs from process to process.

The decision of all pairs (`waywiser.stats.decision`) would decide next to nothing here: most sizes
are measured in one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from waywiser.stats.decision import THRESHOLD
from waywiser.stats.order import Interval
from waywiser.words import Value

UNKNOWN = 0.25
"""Times without an interval that differ by less are equal: means of other tools, and paths
of the host, were seen to vary by so much."""

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
        found.append(_stretch(who, [sizes[n] for n in members], [ratios[n] for n in members]))
    return found


def _stands_alone(n: int, winners: Sequence[Winner]) -> bool:
    """Whether there are sizes beside the n-th, and none has its winner."""
    beside = [winners[m] for m in (n - 1, n + 1) if 0 <= m < len(winners)]
    return bool(beside) and winners[n] not in beside


def _margin(ratio: float) -> float:
    return max(ratio, 1 / ratio) - 1


def _stretch(who: Winner, sizes: Sequence[int], ratios: Sequence[float]) -> WinnerRange:
    if who == "neither":
        margins = [_margin(ratio) for ratio in ratios]
    else:
        margins = [(ratio if who == "first" else 1 / ratio) - 1 for ratio in ratios]
    return WinnerRange(who, sizes[0], sizes[-1], min(margins), max(margins))
