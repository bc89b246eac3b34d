"""Values as a report writes them."""

from __future__ import annotations

from waywiser.curves import Point
from waywiser.curves.answer import Unit
from waywiser.curves.texts import MANY_TIMES
from waywiser.profile import Estimate
from waywiser.stats import Interval, relative
from waywiser.words import (
    RATE_BYTES,
    count,
    format_number,
    format_rate,
    format_relative,
    format_time,
)


def figure(point: Point) -> tuple[str, str]:
    """A series in a table: its rate in GB/s, or its time if that is what it shows; and ±."""
    found = point.estimate
    if found is None:
        return "", ""
    return quantity(found, point.bytes), spread_or_processes(found, found.relative)


def quantity(found: Estimate, size: int) -> str:
    """A time with its unit below 64 KiB and of operations, else a rate in GB/s without."""
    if found.rate is None or size < RATE_BYTES:
        return format_time(found.median, found.relative)
    return format_rate(found.rate.value, found.relative)


def spread_or_processes(found: Estimate, sure: float | None, *, column: bool = False) -> str:
    """``±0.6 %``; ``1 proc.``, ``4 proc.`` if samples of a process depend on each other too much
    for an interval; empty if there is none for another reason. In a ``column`` of its own ``one
    process``, ``4 processes``, and a dash."""
    processes = len(found.used)
    if not found.is_dependent:
        return format_relative(sure) if column else spread(sure)
    if not column:
        return f"{processes} proc."
    return "one process" if processes == 1 else count(processes, "process")


def spread(relative: float | None) -> str:
    """``±0.6 %``, ``±<0.1 %``; empty if there is no interval."""
    return "" if relative is None else f"±{format_relative(relative).removeprefix('±')}"


def value(number: float, unit: Unit, interval: Interval | None) -> str:
    """``55.42 GB/s ±0.1 %``, with as many digits as the interval allows."""
    sure = relative(number, interval, of_rate=unit == "B/s")
    after = f" {spread(sure)}" if sure is not None else ""
    if unit == "B/s":
        return f"{format_rate(number, sure)} GB/s{after}"
    if unit == "s":
        return f"{format_time(number, sure)}{after}"
    if unit == "B":
        return f"{_size(number)}{after}"
    return f"{format_number(number, sure or 0.005)}{after}"


def _size(number: float) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if number >= factor:
            return f"{format_number(number / factor, 0.05)} {unit}"
    return f"{number:.0f} B"


def percent(part: float, interval: Interval | None = None) -> str:
    """``+5.2 %``, ``−31 %``, ``×38``, with the interval if there is one that digits show."""
    own = _signed(part)
    span = (_signed(interval.low), _signed(interval.high)) if interval is not None else ()
    return f"{own} ({' to '.join(span)})" if len(set(span)) > 1 else own


def _signed(part: float) -> str:
    if part >= MANY_TIMES:
        return f"×{1 + part:.0f}"
    digits = 1 if abs(part) < 0.0995 else 0
    text = f"{part * 100:+.{digits}f} %"
    return "0.0 %" if text in ("-0.0 %", "+0.0 %") else text.replace("-", "−")
