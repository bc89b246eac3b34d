"""Strategies: several ways to bring the same messages to their destination, each a sequence of
steps, and their times.

Steps follow one another, so their times add. The intervals of steps are independent, so squares of
their half widths add. A time whose interval is not known has none, and so has a sum with such a
time. A method that was measured whole is a strategy of one step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from waywiser.model.curve import CurveModel
from waywiser.model.rate import CountModel
from waywiser.stats import Interval
from waywiser.words import Value


class StepTime(NamedTuple):
    """What one step takes."""

    seconds: float
    interval: Interval | None
    """95 %, for a single time; None if nothing shows how far another time may be."""
    has_scatter: bool
    """The interval includes the scatter between jobs."""
    is_measured: bool = False
    """It was measured at this number and size; else a model has it."""


StepCost = Callable[[int, int], StepTime | None]
"""The time of a step for a number of messages and the bytes of each; None if it is not known."""


class StrategyStep(NamedTuple):
    name: str
    cost: StepCost


class Strategy(NamedTuple):
    """One way: its steps, one after the other."""

    name: str
    steps: tuple[StrategyStep, ...]


class StrategyTime(Value, frozen=True):
    """The time of a strategy."""

    name: str
    count: int
    """Messages."""
    bytes: int
    """Bytes of each."""
    seconds: float
    interval: Interval | None
    """95 %; None if that of a step is not known."""
    has_scatter: bool
    """The interval includes the scatter between jobs."""
    is_measured: bool
    """Each step was measured at this number and size."""
    steps: dict[str, float]
    """Seconds of each step."""

    @property
    def sure_interval(self) -> Interval | None:
        """None without the scatter between jobs: then no difference from another time is sure."""
        return self.interval if self.has_scatter else None


def of_curve(curve: CurveModel, bytes: int) -> StepTime | None:
    """Returns None for a size that is too far beyond the measured ones."""
    found = curve.predict(bytes)
    return StepTime(found.seconds, found.interval, bool(curve.scatter)) if found else None


def of_counts(model: CountModel, count: int, bytes: int) -> StepTime | None:
    """Returns None beyond the measured counts and sizes."""
    found = model.predict(count, bytes)
    return StepTime(found.seconds, found.interval, model.jobs > 1) if found else None


def time_of(strategy: Strategy, count: int, bytes: int) -> StrategyTime | None:
    """Returns None if one of its steps is not known."""
    found: list[StepTime] = []
    steps: dict[str, float] = {}
    for step in strategy.steps:
        one = step.cost(count, bytes)
        if one is None:
            return None
        steps[step.name] = steps.get(step.name, 0.0) + one.seconds
        found.append(one)
    has_scatter = all(each.has_scatter for each in found)
    total, around = added(found)
    is_measured = all(each.is_measured for each in found)
    return StrategyTime(strategy.name, count, bytes, total, around, has_scatter, is_measured, steps)


def added(steps: Sequence[StepTime]) -> tuple[float, Interval | None]:
    """(seconds, interval) of all steps."""
    total = sum(each.seconds for each in steps)
    below = above = 0.0
    for each in steps:
        if each.interval is None:
            return total, None
        below += (each.seconds - each.interval.low) ** 2
        above += (each.interval.high - each.seconds) ** 2
    return total, Interval(max(total - math.sqrt(below), 0.0), total + math.sqrt(above))


class StrategyTimes:
    """The times of strategies of one basis, each computed once."""

    def __init__(self, strategies: Iterable[Strategy]) -> None:
        self._strategies = {each.name: each for each in strategies}
        self._known: dict[tuple[str, int, int], StrategyTime | None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._strategies)

    def of(self, name: str, count: int, bytes: int) -> StrategyTime | None:
        """Returns None if it is not known."""
        key = name, count, bytes
        if key not in self._known:
            own = self._strategies.get(name)
            self._known[key] = time_of(own, count, bytes) if own is not None else None
        return self._known[key]

    def at(self, count: int, bytes: int) -> list[StrategyTime]:
        """Those that are known, the fastest first."""
        found = [self.of(name, count, bytes) for name in self._strategies]
        return sorted((each for each in found if each is not None), key=lambda x: x.seconds)
