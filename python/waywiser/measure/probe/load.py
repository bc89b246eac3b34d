"""Readings of the GPUs' state while they are under load.

Clocks, throttle reasons and the PCIe link of an idle GPU say nothing of the measurement, so they
are read while a visit samples: once when it says that it does, then at intervals. Small transfers
are not read for a while: most are done by then, and are read as soon as their result is there,
for clocks fall in tenths of a second and an answer arrives in tenths of a millisecond.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from waywiser.machine import GpuTelemetry
from waywiser.words import GpuState

LARGE_BYTES = 16 * 2**20
"""Size of a large workload: from here on its time is that of a link, which no answer of a driver
disturbs."""

PEACE_SECONDS = 0.1
"""Seconds from the first sample of a smaller workload to a reading."""


class LoadReadings:
    """The readings of one visit, for the GPUs that take part in it; the first comes
    ``patience_seconds`` after the first sample."""

    def __init__(
        self,
        telemetry: GpuTelemetry,
        gpus: Sequence[int],
        interval_seconds: float,
        patience_seconds: float = 0.0,
    ) -> None:
        self._patience_seconds = patience_seconds
        self._telemetry = telemetry
        self._gpus = gpus
        self._interval_seconds = interval_seconds
        self._due = time.monotonic() + interval_seconds
        self._seen_load = False
        self.taken: tuple[GpuState, ...] = ()

    def under_load(self) -> None:
        """Sampling has begun: the first reading is due as soon as patience allows."""
        if not self._seen_load:
            self._seen_load = True
            self._due = time.monotonic() + self._patience_seconds

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
