"""One measured size, as figures draw it."""

from __future__ import annotations

from waywiser.curves import Point
from waywiser.stats import Interval
from waywiser.words import Value, bytes_of_each, format_bytes, size_of


class DrawnPoint(Value, frozen=True):
    """The time and the bandwidth of one size."""

    bytes: int
    """Bytes of one transfer if several equal ones start together."""
    seconds: float
    seconds_interval: Interval | None = None
    rate: float = 0.0
    """GB/s; 0 without a bandwidth."""
    rate_interval: Interval | None = None
    relative: float | None = None
    """What is written after ±; None if it is not known."""
    bound: float = 0.0
    """GB/s; 0 without a bound."""
    of_bound: float | None = None
    """The bandwidth over the bound; None without one."""
    is_concurrent: bool = False
    several: str = ""
    """The size of transfers that start together, ``2 × 64 MiB``; empty for one."""

    @property
    def size(self) -> str:
        """The size as people read it: ``64 MiB``, ``2 × 64 MiB``."""
        return self.several or format_bytes(self.bytes)

    @classmethod
    def of(cls, line: Point) -> DrawnPoint:
        """A series; of one without an estimate nothing is drawn."""
        found, rate = line.estimate, line.estimate.rate if line.estimate else None
        known = rate.interval if rate else None
        return cls(
            bytes=bytes_of_each(line.text),
            seconds=found.median if found else 0.0,
            seconds_interval=found.interval if found else None,
            rate=rate.value / 1e9 if rate else 0.0,
            rate_interval=Interval(known.low / 1e9, known.high / 1e9) if known else None,
            relative=found.relative if found else None,
            bound=line.bound.bytes_per_second / 1e9 if line.bound else 0.0,
            of_bound=line.of_bound,
            is_concurrent=len(line.workload.transfers) > 1,
            several=size_of(line.text) if len(line.workload.transfers) > 1 else "",
        )
