"""What a plan is expected to come to."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.schedule import Schedule, is_for_time
from waywiser.words import Order, Process, Samples, Value, Visit

PLAYED_SECONDS = 900.0
"""A schedule is played up to here, and further until a process repeats one before it. Those that
follow until the deadline are counted."""


class Outlook(Value, frozen=True):
    """What a plan is expected to come to, if visits take what is expected of them unmeasured."""

    seconds: float
    processes: int
    visits: int
    """That are measured."""
    skipped: dict[str, int] = msgspec.field(name="left_out")
    """Visits that have no time, by the name of their priority."""


def outlook(plan: Plan) -> Outlook:
    """Plays the schedule of a plan. All rates saturate, and equal paths are equal."""
    return _Play(plan).outlook


class _Reached(NamedTuple):
    """How far a survey is."""

    seconds: float = 0.0
    processes: int = 0
    visits: int = 0

    def later(self, other: _Reached, times: int = 1) -> _Reached:
        """What is reached after ``other`` was added so many times."""
        pairs = zip(self, other, strict=True)
        return _Reached._make(own + times * more for own, more in pairs)


class _Play:
    """A survey whose visits take what is expected of them unmeasured."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._points = {point.identity: point for point in plan.points}
        self._played = _Reached()
        self._counted = _Reached()
        """What was counted and not played."""
        self._skipped: Counter[str] = Counter()
        self._schedule = Schedule(plan, on_skip=self._skip, clock=lambda: self._played.seconds)

    @property
    def outlook(self) -> Outlook:
        process: Process | None = None
        begun = _Reached()
        for order in self._schedule:
            if process is None or order.block != process.block:
                self._count(process, begun)
                begun = self._played
            seconds = self._points[order.workload.identity].unmeasured_seconds
            starting = self._plan.worker_seconds if order.process != process else 0.0
            visit = _Reached(seconds + starting, int(order.process != process), 1)
            self._played = self._played.later(visit)
            process = order.process
            self._schedule.record(_imagined(order, seconds))
        return Outlook(*self._played.later(self._counted), dict(self._skipped))

    def _count(self, last: Process | None, begun: _Reached) -> None:
        """Counts the processes like the last one that fit before the deadline, but for two of them:
        how the survey ends is played."""
        is_repeated = last is not None and last.block >= self._plan.preset.processes
        if self._counted.visits or not is_repeated or self._played.seconds < PLAYED_SECONDS:
            return
        once = self._played.later(begun, -1)
        left = self._plan.deadline_seconds - self._played.seconds
        times = max(int(left / once.seconds) - 2, 0)
        self._counted = _Reached().later(once, times)
        self._schedule.shorten(self._counted.seconds)

    def _skip(self, visit: Visit) -> None:
        if visit.failure is not None and is_for_time(visit.failure.reason):
            priority = self._points[visit.workload.identity].priority
            self._skipped[priority.name.lower()] += 1


_RATE = 50e9


def _imagined(order: Order, seconds: float) -> Visit:
    """A visit whose rate has saturated."""
    span, n = max(order.workload.bytes, 1) / _RATE, order.rule.minimum
    samples = Samples(*(((span,) * n,) * 3), repetitions=(1,) * n, flags=(0,) * n)
    return Visit(
        order.workload, order.block, "converged", "", samples=samples, elapsed_seconds=seconds
    )
