"""All that a profile says of its strategies: which is the fastest, and where they cross."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

from waywiser.model.crossover import (
    Axis,
    Disagreement,
    FastestRange,
    StrategyComparison,
    comparison,
    disagreements,
    fastest_ranges,
)
from waywiser.model.falling_times import LEAST_FALL
from waywiser.model.message_strategies import MessageStrategies
from waywiser.model.strategies import StrategyTime, StrategyTimes
from waywiser.words import Value

Basis = Literal["measured", "modelled"]
"""Whether times of steps are medians of jobs, or predictions."""


class FastestOfCount(Value, frozen=True):
    """Which strategy is the fastest for one number of messages, by their size."""

    count: int
    ranges: tuple[FastestRange, ...]


class StrategyFall(Value, frozen=True):
    """A strategy that takes less for larger messages."""

    name: str
    count: int
    bytes: int
    seconds: float
    than_bytes: int
    """The smaller size that takes longest."""
    than_seconds: float

    @property
    def share(self) -> float:
        """What it takes less, of the longer time."""
        return 1 - self.seconds / self.than_seconds


class BasisTable(Value, frozen=True):
    """The strategies on one basis."""

    basis: Basis
    strategies: tuple[str, ...]
    fastest: tuple[FastestOfCount, ...]
    comparisons: tuple[StrategyComparison, ...]
    """All pairs: over numbers for each size, and over sizes for each number."""
    times: tuple[StrategyTime, ...]
    """Those that are known."""

    def comparison(
        self, first: str, second: str, axis: Axis, fixed: int
    ) -> StrategyComparison | None:
        """Returns None if one of them is not known at all."""
        key = first, second, axis, fixed
        for each in self.comparisons:
            if (each.first, each.second, each.axis, each.fixed) == key:
                return each
        return None


class StrategyTable(Value, frozen=True):
    """The strategies as measured and as modelled, at the same numbers and sizes."""

    counts: tuple[int, ...]
    sizes: tuple[int, ...]
    bases: tuple[BasisTable, ...]
    """As measured, and as modelled."""
    compared: int
    """Points at which two strategies or more are measured and modelled."""
    disagreements: tuple[Disagreement, ...]
    falls: tuple[StrategyFall, ...]
    """The largest fall of each strategy whose modelled time falls with the size."""
    subject: str
    unit: str
    """What the numbers are of."""


def strategy_table(found: MessageStrategies) -> StrategyTable:
    """The whole table."""
    points = [(count, size) for count in found.counts for size in found.sizes]
    measured, modelled = StrategyTimes(found.measured), StrategyTimes(found.modelled)
    compared, wrong = disagreements(modelled, measured, points)
    return StrategyTable(
        found.counts,
        found.sizes,
        (_basis("measured", measured, found), _basis("modelled", modelled, found)),
        compared,
        tuple(wrong),
        tuple(fall for name in modelled.names if (fall := _fall(modelled, name, found))),
        found.subject,
        found.unit,
    )


def _basis(basis: Basis, times: StrategyTimes, found: MessageStrategies) -> BasisTable:
    counts, sizes = found.counts, found.sizes
    axes: tuple[tuple[Axis, tuple[int, ...], tuple[int, ...]], ...] = (
        ("messages", sizes, counts),
        ("bytes", counts, sizes),
    )
    comparisons = [
        comparison(times, first, second, axis, fixed, values)
        for first, second in combinations(times.names, 2)
        for axis, fixes, values in axes
        for fixed in fixes
    ]
    return BasisTable(
        basis,
        times.names,
        tuple(
            FastestOfCount(n, fastest_ranges(times, "bytes", n, sizes, found.rivals))
            for n in counts
        ),
        tuple(comparisons),
        tuple(each for count in counts for size in sizes for each in times.at(count, size)),
    )


def _fall(times: StrategyTimes, name: str, found: MessageStrategies) -> StrategyFall | None:
    """Returns None if no time falls by `LEAST_FALL` of one."""
    falls = []
    for number in found.counts:
        longest: StrategyTime | None = None
        for size in found.sizes:
            own = times.of(name, number, size)
            if own is None:
                continue
            if longest is None or own.seconds >= longest.seconds:
                longest = own
                continue
            than = longest.bytes, longest.seconds
            falls.append(StrategyFall(name, number, size, own.seconds, *than))
    most = max(falls, key=lambda each: each.share, default=None)
    return most if most is not None and most.share >= LEAST_FALL else None
