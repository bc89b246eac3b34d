"""One series of a plan, with what it is expected to cost."""

from __future__ import annotations

from dataclasses import dataclass

from waywiser.plan.curves import Curve
from waywiser.words import Workload

TIMEOUT_FACTOR = 10.0
TIMEOUT_FLOOR_SECONDS = 30.0
"""A worker is given up after ten times what was expected, and never before a gate's watchdog and
the start of a slow driver have had their time."""


@dataclass(frozen=True)
class Point:
    """One size of a curve."""

    curve: Curve
    size: int
    workload: Workload
    buffer_bytes: int
    """Of all its buffers together, and of what stages bytes between them."""
    seconds: float
    """Expected of one visit that is measured."""
    share: float = 1.0
    """Of its visits, how many are expected to be measured and not skipped."""
    growing: bool = False
    """Visited in the waves above `waywiser.plan.sizes.GROWING`, and skipped once the rate has
    saturated..."""
    always: bool = False
    """... unless it is the size that is visited in any case."""
    like: str = ""
    """The curve that this one ought to equal: the first of its class; empty where it is first."""
    gpus: frozenset[int] = frozenset()
    """Whose memory or links the workload uses."""
    conditional: bool = False
    """Visited last, and only where a curve of the class turned out to differ from the first."""

    @property
    def expected_seconds(self) -> float:
        """Of one visit, skipped ones counted."""
        return self.seconds * self.share

    @property
    def timeout_seconds(self) -> float:
        return max(TIMEOUT_FLOOR_SECONDS, TIMEOUT_FACTOR * self.seconds)
