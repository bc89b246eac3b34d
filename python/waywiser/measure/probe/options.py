"""How workers are started and watched."""

from __future__ import annotations

import sys

from waywiser.words import Memory, Value

MEASURE = (sys.executable, "-m", "waywiser.measure.probe.worker")
"""The command of a worker that measures this machine."""


class ProbeOptions(Value, frozen=True):
    """Settings of one run of `waywiser.measure.probe.supervisor.run_orders`."""

    memory_bytes: int = 4 << 30
    """Size of all buffers of a workload together, host and device."""
    watchdog_seconds: float = 10.0
    """A gate that stays closed for longer is opened, and its path timed by the host from then."""
    command: tuple[str, ...] = MEASURE
    """What to run as a worker; `waywiser.measure.probe.simulate.command` makes one for a
    simulation."""
    size: int = 1
    """Workers in the group that share every workload."""
    together: int = 1
    """So many groups are started side by side at most, and wait for their turn."""
    gpus: tuple[int, ...] = ()
    """Those on which each worker makes a context before it is ready."""
    startup_seconds: float = 60.0
    """Seconds for a worker to say that it is ready, and again for its first preparation: drivers
    take seconds to wake many GPUs, and a cold disk to load a runtime."""
    startup_attempts: int = 5
    """So many workers in a row that do not get ready, and the survey gives up."""
    ending_seconds: float = 3.0
    """Seconds for a worker that was asked to stop, before it is killed."""
    telemetry_seconds: float = 0.25
    """Seconds between two readings of the GPUs' state while a visit runs."""
    sides: bool = False
    """Each worker begins by looking where blocks of `located` memories are, and reports every
    page-locked buffer how far GPUs have it."""
    located: tuple[Memory, ...] = ()
    located_cpus: tuple[int, ...] = ()
    """Those that read the blocks."""
    locating_seconds: float = 30.0
    """Seconds for that, per memory, before a worker is given up."""
    observing_seconds: float = 60.0
    """Seconds for observing who makes the copies of a GPU, its first context included, before a
    worker is given up."""
    first_worker: int = 1
    """Number of the first worker, so that a resumed survey goes on counting."""
