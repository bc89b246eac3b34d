"""What visits cost in time: measured, and before anything has been measured a line over bytes.

A visit of a series that an earlier process measured is expected to take as long again. A new size
of a curve is expected to exceed the line as its other sizes do, a new curve as the curves by the
same executors, and the first one not at all. So the first visits of a survey are the pilot of all
others, and nothing has to be known of an executor or of a machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.plan.point import Point

VISIT_SECONDS = 0.02
"""Of a visit of a few bytes: order, set-up, samples, answer, and a commit that reaches the disk."""

BYTE_SECONDS = 0.8e-9
"""More, per byte of buffers of the host, which CPUs fill and compare. GPUs do it in no time."""

WORKER_SECONDS = 0.5
"""Of starting a worker process and ending it."""

GPU_SECONDS = 0.3
"""More, per GPU: a driver makes a context, and clocks have to rise."""


def unmeasured_seconds(point: Point) -> float:
    """Expected of one visit if nothing has been measured."""
    return VISIT_SECONDS + BYTE_SECONDS * point.host_bytes


def worker_seconds(gpus: int) -> float:
    """Expected of one worker process on a machine with so many GPUs."""
    return WORKER_SECONDS + GPU_SECONDS * gpus


class Costs:
    """Expected seconds of visits and of workers."""

    def __init__(self, worker: float) -> None:
        self.worker_seconds = worker
        self._series: dict[str, float] = {}
        self._groups: dict[str, tuple[float, float]] = {}
        """Seconds that visits took, and those that were expected unmeasured."""

    def visit_seconds(self, point: Point) -> float:
        """Expected of one visit."""
        known = self._series.get(point.identity)
        if known is not None:
            return known
        expected = unmeasured_seconds(point)
        for group in _groups(point):
            if group in self._groups:
                taken, before = self._groups[group]
                return expected * taken / before
        return expected

    def took(self, point: Point, seconds: float) -> None:
        """Takes note of what a visit took."""
        self._series[point.identity] = seconds
        for group in _groups(point):
            taken, before = self._groups.get(group, (0.0, 0.0))
            self._groups[group] = (taken + seconds, before + unmeasured_seconds(point))


def _groups(point: Point) -> Iterator[str]:
    """What the cost of a point is estimated from, the nearest first."""
    yield point.curve.text
    operation = point.workload.operation
    yield operation.name if operation else " ".join(sorted(_executors(point)))
    yield ""


def _executors(point: Point) -> set[str]:
    return {transfer.path.executor for transfer in point.workload.transfers}
