"""Counters of links read around executions: which ways the bytes of a workload really took.

A reading before, one after, and one more when as much time has passed again without work: what
moves by itself is then known too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from waywiser.machine import LinkCounters, Requirements
from waywiser.machine.counters import Reading
from waywiser.words import GpuTraffic, LinkEvidence, Workload

SETTLE_SECONDS = 0.002
"""Seconds from the end of the work to the reading: what is on its way through a switch is counted
then."""


class Watch:
    """Reads counters: call it with 0 before executions, and with their number after. ``gpus`` are
    those whose links are read, as `gpus_of` gives them."""

    def __init__(
        self,
        counters: LinkCounters,
        gpus: Iterable[int],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.found: LinkEvidence | None = None
        self._counters = counters
        self._gpus = tuple(gpus)
        self._clock = clock
        self._sleep = sleep
        self._began = 0.0
        self._before: dict[int, Reading] = {}

    def __call__(self, executions: int) -> None:
        if executions == 0:
            self._before = self._counters.read(self._gpus)
            self._began = self._clock()
        else:
            self._after(executions)

    def _after(self, executions: int) -> None:
        self._sleep(SETTLE_SECONDS)
        ended = self._clock()
        after = self._counters.read(self._gpus)
        rest = self._clock()
        self._sleep(ended - self._began)
        idle_seconds = self._clock() - rest
        later = self._counters.read(self._gpus)
        self.found = LinkEvidence(
            executions,
            ended - self._began,
            idle_seconds,
            tuple(self._traffic(index, after, later) for index in self._gpus),
        )

    def _traffic(
        self, index: int, after: dict[int, Reading], later: dict[int, Reading]
    ) -> GpuTraffic:
        between = self._counters.between
        before = self._before.get(index, {})
        return GpuTraffic(
            index,
            work=between(index, before, after.get(index, {})),
            idle=between(index, after.get(index, {}), later.get(index, {})),
            reasons=self._counters.reasons(index),
        )


def gpus_of(workload: Workload, needs: Iterable[Requirements] = ()) -> tuple[int, ...]:
    """The GPUs whose memory, engines or links the workload uses, by index. ``needs`` are those of
    its transfers: relays are in no path."""
    at_an_end = {place.index for place in workload.places if place.kind == "gpu"}
    return tuple(sorted(at_an_end.union(*(each.gpus for each in needs))))
