"""One series of a plan: how often it is measured, and what comes first if time is short."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from waywiser.plan.curves import Curve
from waywiser.plan.sizes import BANDWIDTH_SIZE, LATENCY_BELOW
from waywiser.words import Workload

GRACE_SECONDS = 30.0
SLOWEST_RATE = 10e6
"""A worker is given up after the seconds that a gate's watchdog and the start of a slow driver
take, and the buffers at so many bytes per second."""


class Priority(IntEnum):
    """What a schedule measures first if time is short."""

    HEADLINE = 0
    """Representative sizes of paths that people ask for, and concurrent sets."""
    REPRESENTATIVE = 1
    """Representative sizes of all other curves."""
    REST = 2
    """All other sizes."""
    CONDITIONAL = 3
    """Sizes that are measured only if a curve of the class differs from the first."""


@dataclass(frozen=True)
class Point:
    """One size of a curve."""

    curve: Curve
    size: int
    workload: Workload
    buffer_bytes: int
    """Of all its buffers together, and of what stages bytes between them."""
    host_bytes: int = 0
    """Of its buffers in memory of the host and in files, which CPUs fill and compare."""
    processes: int = 1
    """Processes that measure it."""
    priority: Priority = Priority.REST
    growing: bool = False
    """Visited in the waves above `waywiser.plan.sizes.GROWING`, and skipped once the rate has
    saturated..."""
    always: bool = False
    """... unless it is the size that is visited in any case."""
    like: str = ""
    """The curve that this one should equal: the first of its class; empty where it is first."""
    gpus: frozenset[int] = frozenset()
    """Whose memory or links the workload uses."""
    longest_seconds: float = math.inf
    """Skipped if one execution is expected to take longer, by what smaller sizes took."""

    @cached_property
    def identity(self) -> str:
        """Of its series."""
        return self.workload.identity

    @property
    def conditional(self) -> bool:
        return self.priority is Priority.CONDITIONAL

    @property
    def timeout_seconds(self) -> float:
        return GRACE_SECONDS + self.buffer_bytes / SLOWEST_RATE


def representative_sizes(sizes: Iterable[int], bandwidth: int = BANDWIDTH_SIZE) -> frozenset[int]:
    """The size nearest to ``bandwidth``, the smaller one of two, and the smallest one if it shows
    the latency."""
    known = sorted(sizes)
    if not known:
        return frozenset()
    distance = {size: abs(math.log2(max(size, 1) / bandwidth)) for size in known}
    nearest = min(known, key=lambda size: distance[size])
    return frozenset((nearest, known[0] if known[0] < LATENCY_BELOW else nearest))


def coverage_order(sizes: Iterable[int], measured: Iterable[int]) -> list[int]:
    """``sizes`` in the order in which they add most to those that are measured anyway: always the
    one furthest (in octaves) from those before, the smaller one of two."""
    left = {size: math.log2(max(size, 1)) for size in sizes}
    taken = [math.log2(max(size, 1)) for size in measured]
    found: list[int] = []
    while left:
        size = max(left, key=lambda s: (min((abs(left[s] - t) for t in taken), default=0.0), -s))
        taken.append(left.pop(size))
        found.append(size)
    return found
