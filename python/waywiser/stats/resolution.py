"""No interval is narrower than a tick of the clock that made it."""

from __future__ import annotations

from waywiser.stats.order import Interval

HOST_TICK_SECONDS = 1e-9
"""The unit of ``clock_gettime``."""

EVENT_TICK_SECONDS = 0.5e-6
"""Resolution that the CUDA runtime's documentation gives for the time between two events; used
where samples that are all equal do not show the device's own tick."""

SAME_SECONDS = 1e-9
"""Times of one tick count differ by less than this after division by the batch and rounding to
the 32-bit milliseconds of the event clock."""


def at_least(interval: Interval, median: float, width: float) -> Interval:
    """``interval`` widened around ``median`` to ``width`` where it is narrower; not below 0."""
    if interval.width >= width:
        return interval
    low = min(interval.low, median - width / 2)
    return Interval(max(0.0, low), max(interval.high, median + width / 2))
