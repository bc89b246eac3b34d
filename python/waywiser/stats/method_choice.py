"""Which of several methods of doing the same is faster, over size.

**Two methods.** At a size one is faster if its interval lies below the other's and it is so by more
than the `THRESHOLD` of all decisions; if one has no interval, by more than `UNKNOWN`; else the two
are even there. Sizes with the same winner are one range; an even size between two that the same one
wins belongs to them, since noise hides what both its neighbours show. A size whose neighbours both
say something else is won only by more than `UNKNOWN`: intervals within processes say nothing of
what differs from process to process. The decision of all pairs (`waywiser.stats.decision`) would
decide next to nothing here: most sizes are measured in one process.

**A policy** is a table that says which method to use at which size; methods are given in order, the
simplest first. A method is good at a size if it is not known to be slower than the fastest one, nor
than a simpler one; so the noise decides whether a method replaces a simpler one. At each size the
simplest good method is used, unless the table gets shorter with another good one that loses no more
than `TOLERANCE`: `choices` takes the assignment of methods to sizes that costs least, where a
change of method costs `CHANGE`, and a size at which a simpler method is good costs 1; of these the
one that loses least (dynamic programming over sizes). A single size between two of one method never
has a slower method than that one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from waywiser.stats.decision import THRESHOLD
from waywiser.stats.order import Interval
from waywiser.words import Value

UNKNOWN = 0.25
"""Times without an interval that differ by less are equal: means of other tools, and paths
of the host, were seen to vary by so much."""
TOLERANCE = 0.05
"""Share of a time or a rate that makes no difference, if no interval says how sure it is."""
CHANGE = 1.5
"""What a change of method costs: less than two sizes at which a simpler method is good, and more
than one."""

Winner = Literal["first", "second", "neither"]


class Timed(NamedTuple):
    """Seconds of one size, with the interval if there is one."""

    seconds: float
    interval: Interval | None
    blocks: tuple[float, ...] = ()
    """Medians of its blocks, if they are known."""


class FastestRange(Value, frozen=True):
    """Neighbouring sizes, or numbers of messages, at which the same is known of the fastest."""

    low: int
    high: int
    """Both included."""
    fastest: str
    """The fastest of those that are known, of equal times the first; empty if none is known, or
    none is faster."""
    perhaps: tuple[str, ...]
    """Others whose intervals overlap with its own."""
    is_sure: bool | None
    """Whether no other may be faster and none is unknown; None without intervals."""
    unknown: tuple[str, ...]
    """Those that are not known here and may be faster."""
    second: str = ""
    least: float = 0.0
    most: float = 0.0
    """How much longer the second takes: 0.5 is half as long again. If none is faster, how the two
    differ."""
    interpolated: bool = False
    """Between the next smaller and the next larger measured size; sure if both have the same
    fastest, surely."""


def winner(first: Timed, second: Timed) -> Winner:
    """The faster one at a size."""
    ratio = second.seconds / first.seconds
    known = first.interval is not None and second.interval is not None
    if _margin(ratio) <= (THRESHOLD if known else UNKNOWN):
        return "neither"
    if first.interval and second.interval and first.interval.overlaps(second.interval):
        return "neither"
    return "first" if ratio > 1 else "second"


def fastest_ranges(
    sizes: Sequence[int], first: Sequence[Timed], second: Sequence[Timed]
) -> list[FastestRange]:
    """Ranges of ``sizes``, ascending, from the times of both at each size; the fastest is
    ``first``, ``second`` or none."""
    winners = [winner(a, b) for a, b in zip(first, second, strict=True)]
    ratios = [b.seconds / a.seconds for a, b in zip(first, second, strict=True)]
    winners = [
        "neither" if _stands_alone(n, winners) and _margin(ratios[n]) <= UNKNOWN else who
        for n, who in enumerate(winners)
    ]
    for n in range(1, len(winners) - 1):
        if winners[n] == "neither" and winners[n - 1] == winners[n + 1]:
            winners[n] = winners[n - 1]
    return [
        _winner_range(who, {sizes[n]: ratios[n] for n in members})
        for who, members in groupby(range(len(sizes)), key=winners.__getitem__)
    ]


def _stands_alone(n: int, winners: Sequence[Winner]) -> bool:
    """Whether there are sizes beside the n-th, and none has its winner."""
    beside = [winners[m] for m in (n - 1, n + 1) if 0 <= m < len(winners)]
    return bool(beside) and winners[n] not in beside


def _margin(ratio: float) -> float:
    return max(ratio, 1 / ratio) - 1


def _winner_range(who: Winner, ratios: Mapping[int, float]) -> FastestRange:
    """The range of these sizes, from how much longer the second takes than the first at each."""
    if who == "neither":
        margins = [_margin(ratio) for ratio in ratios.values()]
    else:
        margins = [(ratio if who == "first" else 1 / ratio) - 1 for ratio in ratios.values()]
    name = "" if who == "neither" else who
    ends = min(ratios), max(ratios)
    return FastestRange(*ends, name, (), None, (), least=min(margins), most=max(margins))


def choices(times: Sequence[Sequence[Timed | None]]) -> list[int]:
    """The method of each size. ``times[method][size]`` is None if a method has no time. The
    simplest method is first, and each size has one."""
    methods = range(len(times))
    costs = [(0.0, 0.0)] * len(times)
    before: list[list[int]] = []
    for at in zip(*times, strict=True):
        own = _costs(at)
        cheapest = min(methods, key=costs.__getitem__)
        changed = costs[cheapest][0] + CHANGE, costs[cheapest][1]
        before.append([cheapest if changed < costs[each] else each for each in methods])
        costs = [
            (min(changed, costs[each])[0] + cost, min(changed, costs[each])[1] + loss)
            for each, (cost, loss) in zip(methods, own, strict=True)
        ]
    if not before:
        return []
    chosen = [min(methods, key=costs.__getitem__)]
    for previous in reversed(before[1:]):
        chosen.append(previous[chosen[-1]])
    return _without_islands(chosen[::-1], times)


def _without_islands(chosen: list[int], times: Sequence[Sequence[Timed | None]]) -> list[int]:
    """A size between two sizes of one method uses it too if it is good there, and faster than the
    simpler one that was chosen. It loses more than `TOLERANCE`, but the chosen one loses more."""
    for n in range(1, len(chosen) - 1):
        around, own = chosen[n - 1], chosen[n]
        at = [row[n] for row in times]
        is_island = own != around == chosen[n + 1]
        if is_island and around in good(at) and _seconds(at[around]) <= _seconds(at[own]):
            chosen[n] = around
    return chosen


def good(times: Sequence[Timed | None]) -> list[int]:
    """The methods at one size that are good, the simplest first."""
    known = [n for n, each in enumerate(times) if each is not None]
    best = min(known, key=lambda n: _seconds(times[n]))
    return [
        n
        for n in known
        if n == best or not any(_is_slower(times[n], times[m]) for m in known if m < n or m == best)
    ]


def _costs(times: Sequence[Timed | None]) -> list[tuple[float, float]]:
    """(cost, loss) of each method at one size; infinite if it is not used there. Beside the
    simplest good method only those are that lose no more than `TOLERANCE`."""
    found = good(times)
    least = min(_seconds(times[n]) for n in found)
    losses = {n: _seconds(times[n]) / least - 1 for n in found}
    used = {n for n, loss in losses.items() if n == found[0] or loss <= TOLERANCE}
    return [
        (float(n != found[0]), losses[n]) if n in used else (math.inf, 0.0)
        for n in range(len(times))
    ]


def _seconds(timed: Timed | None) -> float:
    return timed.seconds if timed is not None else math.inf


def _is_slower(mine: Timed | None, other: Timed | None) -> bool:
    """Whether it is known to be slower than the other one. Without intervals any loss beyond
    `TOLERANCE` is one: a table has to say something."""
    if mine is None or other is None:
        return False
    loss = mine.seconds / other.seconds - 1
    known = mine.interval is not None and other.interval is not None
    apart = winner(other, mine) == "first" if known else loss > TOLERANCE
    return apart and (loss > UNKNOWN or not _disagree(mine, other))


def _disagree(one: Timed, other: Timed) -> bool:
    """Whether the blocks of two, if each has several, lie no further apart than among each
    other."""
    sides = [[math.log(block) for block in each.blocks] for each in (one, other)]
    low, high = sorted(sides, key=lambda side: min(side, default=0.0))
    if min(map(len, sides)) < 2:
        return False
    return min(high) - max(low) <= max(max(side) - min(side) for side in sides)
