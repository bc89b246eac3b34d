"""Readings of the GPUs' state while they are under load.

Clocks, throttle reasons and the PCIe link of an idle GPU say nothing of the measurement, so they
are read while a visit samples: once when the first estimate arrives, then at intervals. A visit
that is over before its first estimate is read as soon as its result is there: clocks fall in tenths
of a second, an answer arrives in tenths of a millisecond.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from waywiser.records import GpuState
from waywiser.topology.telemetry import GpuTelemetry


class LoadReadings:
    """The readings of one visit, for the GPUs that take part in it."""

    def __init__(
        self, telemetry: GpuTelemetry, gpus: Sequence[int], interval_seconds: float
    ) -> None:
        self._telemetry = telemetry
        self._gpus = gpus
        self._interval_seconds = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._seen_load = False
        self.taken: tuple[GpuState, ...] = ()

    def under_load(self) -> None:
        """Sampling has begun: the next reading is due at once, if it is the first."""
        if not self._seen_load:
            self._seen_load = True
            self._due = time.monotonic()

    def at_end(self) -> None:
        """The visit is over: one reading, if there was none."""
        if not self.taken:
            self.taken += self._telemetry.read(self._gpus)

    def take(self) -> float:
        """Takes the reading that is due, if one is; seconds until the next."""
        if time.monotonic() >= self._due:
            self.taken += self._telemetry.read(self._gpus)
            self._due = time.monotonic() + self._interval_seconds
        return max(0.0, self._due - time.monotonic())
