"""What the visits of a survey have shown so far: whether a rate has saturated, and whether curves
that ought to be equal are."""

from __future__ import annotations

import math
from typing import NamedTuple

from waywiser import native
from waywiser.records import VOID, Visit
from waywiser.words import format_bytes

SATURATED = 0.01
"""Rates within it are the same rate: it is what the interval of a series is wanted to be."""

SATURATED_AT_MOST = 0.05
"""Rates of noisy series are the same where their intervals allow it, up to this."""

AGREEING_SIZES = 3
"""Consecutive sizes that must agree: two can by chance, or on a step of a protocol."""

EQUAL_RATE = 0.05
"""Equal curves differ by no more where a rate is told: what links of one kind do, a worse slot, a
narrower link or another socket's memory do not."""

EQUAL_LATENCY = 0.20
"""The same below: between two sockets of one machine, small copies differ by a tenth."""

RATE_BYTES = 2**20
"""From here on a size tells of a rate."""


class Found(NamedTuple):
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
        """Half-width of the interval, as a fraction; 0 where there is none."""
        within = (self.high - self.low) / 2 / self.median
        return 0.0 if math.isnan(within) else within

    def differs(self, other: Found) -> bool:
        """By more than equal curves do, and beyond both intervals."""
        margin = EQUAL_RATE if self.size >= RATE_BYTES else EQUAL_LATENCY
        apart = abs(self.median - other.median) > margin * min(self.median, other.median)
        return apart and (_below(self, other) or _below(other, self))


def _below(one: Found, other: Found) -> bool:
    """An interval that is missing holds everything."""
    return one.high < other.low


class Findings:
    """Of all visits of a survey, per curve, block and size of the first transfer."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], dict[int, Found]] = {}

    def add(self, visit: Visit) -> None:
        """Takes note of a visit; one without samples has nothing to say."""
        spans = [
            span
            for span, flags in zip(visit.samples.span, visit.samples.flags, strict=True)
            if not flags & VOID
        ]
        if spans and visit.workload.bytes:
            found = Found(visit.workload.bytes, *native.load().median_interval(spans))
            curve = self._found.setdefault((visit.workload.curve, visit.block), {})
            curve[visit.workload.transfers[0].bytes] = found

    def saturated(self, curve: str, block: int, size: int) -> str:
        """How the rates below a size agree, or nothing while they still differ."""
        found = self._found.get((curve, block), {})
        below = sorted(known for known in found if known < size)[-AGREEING_SIZES:]
        last = [found[known].rate for known in below]
        within = max((found[known].within for known in below), default=0.0)
        same = min(max(SATURATED, within), SATURATED_AT_MOST)
        if len(last) < AGREEING_SIZES or max(last) - min(last) > same * max(last):
            return ""
        told = ", ".join(f"{rate / 1e9:.4g}" for rate in last)
        sizes = ", ".join(map(format_bytes, below))
        return f"the rate has saturated: {told} GB/s at {sizes}"

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

    def _pairs(self, curve: str, like: str, block: int) -> list[tuple[Found, Found]]:
        one = self._found.get((curve, block), {})
        other = self._found.get((like, block), {})
        return [(one[size], other[size]) for size in one.keys() & other.keys()]
