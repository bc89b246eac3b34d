"""What visits cost in time: measured, and before anything has been measured a line over bytes.

A visit of a series that an earlier process measured is expected to take as long again. A new size
of a curve is expected to exceed the line as its other sizes do, a new curve as the curves by the
same executors, and the first one not at all. So the first visits of a survey are the pilot of all
others, and nothing has to be known of an executor or of a machine.
"""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.measure.plan.points import PlannedPoint
from waywiser.words import Process


class Costs:
    """Expected seconds of visits and of workers."""

    def __init__(self, worker: float) -> None:
        self.worker_seconds = worker
        self._started: set[Process] = set()
        self._start_seconds = 0.0
        self._series: dict[str, float] = {}
        self._groups: dict[str, tuple[float, float]] = {}
        """Seconds that visits took, and those that were expected unmeasured."""

    def visit_seconds(self, point: PlannedPoint) -> float:
        """Expected of one visit."""
        if point.identity in self._series:
            return self._series[point.identity]
        for group in point.cost_groups:
            if group in self._groups:
                taken, before = self._groups[group]
                return point.unmeasured_seconds * taken / before
        return point.unmeasured_seconds

    def start(self, processes: Iterable[Process]) -> None:
        """Takes note of processes that start together: the first of them waits for all."""
        self._started.update(processes)

    def started(self, process: Process, seconds: float) -> None:
        """Takes note of how long the first visit of a process waited for it."""
        self.start([process])
        self._start_seconds += seconds
        self.worker_seconds = self._start_seconds / len(self._started)

    def took(self, point: PlannedPoint, seconds: float) -> None:
        """Takes note of what a visit took."""
        self._series[point.identity] = seconds
        for group in point.cost_groups:
            taken, before = self._groups.get(group, (0.0, 0.0))
            self._groups[group] = (taken + seconds, before + point.unmeasured_seconds)
