"""Rates come from bytes over the median time; they are never averaged (Hoefler & Belli, rule 3)."""

from __future__ import annotations

from waywiser.stats.order import Interval
from waywiser.words import Value


class Rate(Value, frozen=True):
    """Bytes per second at the median time, with the interval where the time has one."""

    value: float
    interval: Interval | None = None


def rate(bytes: int, seconds: float, interval: Interval | None = None) -> Rate | None:
    """The rate of ``bytes`` in ``seconds``; the longest time gives the low end and the reverse.

    None where nothing is moved or the time is not above 0. An interval that reaches 0 seconds
    bounds no rate, so the rate then has none.
    """
    if bytes <= 0 or seconds <= 0:
        return None
    if interval is None or interval.low <= 0:
        return Rate(bytes / seconds)
    return Rate(bytes / seconds, Interval(bytes / interval.high, bytes / interval.low))
