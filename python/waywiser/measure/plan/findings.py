"""What the visits of a survey have shown so far: whether a rate has saturated, whether curves that
should be equal are, how long an execution takes, and how far processes differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple

from waywiser.machine import native
from waywiser.stats.running_variance import RunningVariance
from waywiser.words import VOID, Visit, Workload, format_bytes

SATURATED = 0.01
"""Rates within it are the same rate: it is what the interval of a series is wanted to be."""

SATURATED_AT_MOST = 0.05
"""Rates of noisy series are the same where their intervals allow it, up to this."""

AGREEING_SIZES = 3
"""Consecutive sizes that must agree: two can by chance, or on a step of a protocol."""

EQUAL_RATE = 0.05
"""Equal curves differ by no more where a rate is stated: what links of one kind do, a worse slot, a
narrower link or another socket's memory do not."""

EQUAL_LATENCY = 0.20
"""The same below: between two sockets of one machine, small copies differ by a tenth."""

PROPORTIONAL_BYTES = 2**20
"""Size from which on the time is about proportional to the bytes."""

ENOUGH_FREEDOM = 4
"""Degrees of freedom from which on the deviation between processes is known well enough."""


class VisitMedian(NamedTuple):
    """The median of one visit, in seconds, with its 95 % interval."""

    size: int
    median: float
    low: float
    high: float

    @property
    def rate(self) -> float:
        return self.size / self.median

    @property
    def within(self) -> float:
        """Half-width of the interval, as a fraction; 0 if there is none."""
        within = (self.high - self.low) / 2 / self.median
        return 0.0 if math.isnan(within) else within

    def differs(self, other: VisitMedian) -> bool:
        """Whether two medians differ by more than equal curves do, and beyond both intervals."""
        margin = EQUAL_RATE if self.size >= PROPORTIONAL_BYTES else EQUAL_LATENCY
        apart = abs(self.median - other.median) > margin * min(self.median, other.median)
        # An interval that is missing (not a number) holds everything.
        return apart and (self.high < other.low or other.high < self.low)


class Findings:
    """The findings of all visits of a survey, per curve, block and size of the first transfer."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], dict[int, VisitMedian]] = {}
        self._any: dict[str, dict[int, VisitMedian]] = {}
        """The latest of each size of a curve, in whatever block."""
        self._similar: defaultdict[Hashable, RunningVariance] = defaultdict(RunningVariance)
        """The variance of the logarithms of the medians of similar series, by curve."""

    def add(self, visit: Visit) -> None:
        """Takes note of a visit; one without samples has nothing to say."""
        spans = [
            span
            for span, flags in zip(visit.samples.span, visit.samples.flags, strict=True)
            if not flags & VOID
        ]
        if not spans:
            return
        workload = visit.workload
        curve, found = (
            workload.curve,
            VisitMedian(workload.bytes, *native.load().median_interval(spans)),
        )
        size = workload.size
        if workload.bytes:
            self._found.setdefault((curve, visit.block), {})[size] = found
            self._any.setdefault(curve, {})[size] = found
        if found.median > 0:
            self._similar[_similarity(workload)].add(curve, size, math.log(found.median))

    def deviation(self, workload: Workload) -> float | None:
        """The deviation between processes, of the logarithm of a median: pooled over series by the
        same executors between the same kinds of memory, without the workload's own curve. A rule
        that depended on a path's own result would bias it. None if too few processes have shown
        it."""
        variance = self._similar[_similarity(workload)].without(workload.curve)
        return variance.deviation if variance.freedom >= ENOUGH_FREEDOM else None

    def expected_seconds(self, curve: str, size: int) -> float | None:
        """Seconds of one execution, by the nearest size up to this one; None if there is none."""
        known = max((known for known in self._any.get(curve, {}) if known <= size), default=None)
        if known is None:
            return None
        return self._any[curve][known].median * max(1.0, size / max(known, PROPORTIONAL_BYTES))

    def saturated(self, curve: str, block: int, size: int) -> str:
        """How the rates below a size agree, or nothing while they still differ."""
        found = {**self._any.get(curve, {}), **self._found.get((curve, block), {})}
        below = sorted(known for known in found if known < size)[-AGREEING_SIZES:]
        last = [found[known].rate for known in below]
        within = max((found[known].within for known in below), default=0.0)
        same = min(max(SATURATED, within), SATURATED_AT_MOST)
        if len(last) < AGREEING_SIZES or max(last) - min(last) > same * max(last):
            return ""
        rates = ", ".join(f"{rate / 1e9:.4g}" for rate in last)
        sizes = ", ".join(map(format_bytes, below))
        return f"the bandwidth has saturated: {rates} GB/s at {sizes}"

    def differ(self, curve: str, like: str, block: int) -> bool:
        """Whether two curves differ, in this block or one before, at any size that both have."""
        return any(
            one.differs(other)
            for number in range(block + 1)
            for one, other in self._pairs(curve, like, number)
        )

    def compared(self, curve: str, like: str, block: int) -> tuple[int, ...]:
        """The sizes at which a block has both."""
        return tuple(sorted(one.size for one, _ in self._pairs(curve, like, block)))

    def _pairs(self, curve: str, like: str, block: int) -> list[tuple[VisitMedian, VisitMedian]]:
        one = self._found.get((curve, block), {})
        other = self._found.get((like, block), {})
        return [(one[size], other[size]) for size in one.keys() & other.keys()]


def _similarity(workload: Workload) -> Hashable:
    """Equal for workloads whose processes are expected to have the same variance."""
    if workload.kind == "operation":
        return workload.methods
    return (
        workload.methods,
        frozenset(memory.kind for t in workload.transfers for memory in t.path.ends),
        workload.cache,
        min(len(workload.transfers), 3),
        workload.bytes >= PROPORTIONAL_BYTES,
    )
