"""Strategies: several ways to bring the same messages to their destination, each a sequence of
steps, and the crossovers of their times.

Bienz et al. (HPEC 2021) compare three for messages between GPUs of two nodes: *direct*, each GPU's
memory to the other's; *3-step*, a copy to the host, messages between the hosts, a copy to the other
GPU; and *all cores*, where the messages of the second step are shared among processes. Steps follow
one another, so their times add. The intervals of steps are independent, so squares of their half
widths add, as logarithms of the time.

A crossover is a range, not a number: from the first count or size at which the other strategy may
be faster to the first from which on it surely is. Where the fastest by the model is not the fastest
as measured, that is a disagreement, with what it costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from waywiser.model.curve import CurveModel, CurvePrediction
from waywiser.model.messages import Locality
from waywiser.model.published import PublishedModel
from waywiser.model.rate import CountModel, CountPrediction
from waywiser.stats.order import Interval
from waywiser.words import Value


class StepTime(NamedTuple):
    """What one step takes."""

    seconds: float
    interval: Interval
    """95 %; of what was measured, or has no interval, the time itself."""


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
    seconds: float
    interval: Interval
    steps: dict[str, float]
    """Seconds of each step."""


class StrategyCrossover(Value, frozen=True):
    """Where one strategy becomes faster than another, over counts or over sizes."""

    faster: str
    """The strategy that is faster from there on."""
    slower: str
    at: int | None
    """The first count, or size in bytes, from which on it is faster; None if there is none."""
    may_be_from: int | None
    """The first at which it may be faster, by the intervals."""
    surely_from: int | None
    """The first from which on it is surely faster; None if it never is."""


class Disagreement(Value, frozen=True):
    """The fastest strategy by the model, where another was measured to be faster."""

    count: int
    bytes: int
    predicted: str
    measured: str
    cost: float
    """What the predicted one takes more, as a fraction."""
    is_within_interval: bool
    """The intervals of the two overlap: the model does not claim that they differ."""


def copy_step(name: str, curve: CurveModel) -> StrategyStep:
    """One copy of the bytes of all messages."""
    return StrategyStep(name, lambda count, bytes: _step_time(curve.predict(count * bytes)))


def message_step(name: str, model: CountModel) -> StrategyStep:
    """All messages from one process."""
    return StrategyStep(name, lambda count, bytes: _step_time(model.predict(count, bytes)))


def shared_step(name: str, model: CountModel, processes: int) -> StrategyStep:
    """The bytes of all messages in equal shares of so many processes, each in one message."""

    def cost(count: int, bytes: int) -> StepTime | None:
        return _step_time(model.predict(processes, max(1, count * bytes // processes)))

    return StrategyStep(name, cost)


def _step_time(found: CurvePrediction | CountPrediction | None) -> StepTime | None:
    return StepTime(found.seconds, found.interval) if found is not None else None


def published_step(
    name: str, model: PublishedModel, source: str, destination: str, locality: Locality
) -> StrategyStep:
    """By the published model: each message costs its latency, and each byte its inverse rate; a
    copy is one message of all bytes."""

    def cost(count: int, bytes: int) -> StepTime | None:
        one = source != destination
        size, number = (count * bytes, 1) if one else (bytes, count)
        line = model.line(source, destination, locality, size)
        if line is None:
            return None
        seconds = number * line.latency + line.inverse_rate * number * size
        return StepTime(seconds, Interval(seconds, seconds))

    return StrategyStep(name, cost)


def measured_step(name: str, seconds: Callable[[int, int], float | None]) -> StrategyStep:
    """What was measured."""

    def cost(count: int, bytes: int) -> StepTime | None:
        found = seconds(count, bytes)
        return None if found is None else StepTime(found, Interval(found, found))

    return StrategyStep(name, cost)


def time_of(strategy: Strategy, count: int, bytes: int) -> StrategyTime | None:
    """Returns None if one of its steps is not known."""
    steps: dict[str, float] = {}
    below = above = 0.0
    for step in strategy.steps:
        found = step.cost(count, bytes)
        if found is None:
            return None
        steps[step.name] = steps.get(step.name, 0.0) + found.seconds
        below += (found.seconds - found.interval.low) ** 2
        above += (found.interval.high - found.seconds) ** 2
    total = sum(steps.values())
    low = max(total - math.sqrt(below), 0.0)
    return StrategyTime(strategy.name, total, Interval(low, total + math.sqrt(above)), steps)


def fastest(strategies: Iterable[Strategy], count: int, bytes: int) -> StrategyTime | None:
    """The fastest of those whose time is known; None if none is."""
    times = [found for each in strategies if (found := time_of(each, count, bytes)) is not None]
    return min(times, key=lambda each: each.seconds, default=None)


def crossover_over_counts(
    slower: Strategy, faster: Strategy, counts: Sequence[int], bytes: int
) -> StrategyCrossover:
    """From how many messages of so many bytes on ``faster`` is faster."""
    return _crossover(slower, faster, [(count, bytes, count) for count in counts])


def crossover_over_sizes(
    slower: Strategy, faster: Strategy, count: int, sizes: Sequence[int]
) -> StrategyCrossover:
    """From which bytes of each of ``count`` messages on ``faster`` is faster."""
    return _crossover(slower, faster, [(count, size, size) for size in sizes])


def _crossover(
    slower: Strategy, faster: Strategy, points: Sequence[tuple[int, int, int]]
) -> StrategyCrossover:
    at = surely = may_be = None
    for count, bytes, value in points:
        one, other = time_of(slower, count, bytes), time_of(faster, count, bytes)
        if one is None or other is None:
            continue
        at = (at or value) if other.seconds < one.seconds else None
        surely = (surely or value) if other.interval.high < one.interval.low else None
        if may_be is None and other.interval.low < one.interval.high:
            may_be = value
    return StrategyCrossover(faster.name, slower.name, at, may_be, surely)


def disagreements(
    modelled: Sequence[Strategy],
    measured: Sequence[Strategy],
    points: Iterable[tuple[int, int]],
) -> list[Disagreement]:
    """Where the fastest differs; strategies of both have the same names. ``points`` are counts and
    bytes. A point that one of the two does not know is passed over."""
    found = []
    known = {each.name: each for each in measured}
    for count, bytes in points:
        best = fastest(modelled, count, bytes)
        true = fastest(measured, count, bytes)
        if best is None or true is None or best.name == true.name:
            continue
        chosen = time_of(known[best.name], count, bytes) if best.name in known else None
        rival = next((each for each in modelled if each.name == true.name), None)
        other = time_of(rival, count, bytes) if rival is not None else None
        if chosen is not None and other is not None:
            cost = chosen.seconds / true.seconds - 1
            is_within = best.interval.overlaps(other.interval)
            found.append(Disagreement(count, bytes, best.name, true.name, cost, is_within))
    return found
