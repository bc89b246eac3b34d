"""The orders of a plan, one at a time, in a seeded order that learns from the visits so far.

Within a process and block, sizes up to `waywiser.plan.sizes.GROWING` come first, shuffled, so that
drift does not look like a difference between paths. Larger sizes follow in ascending waves, each
shuffled over the curves; a curve whose rate has saturated is skipped there, and the skipping is a
visit of its own with the reason, never silence.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from waywiser import native
from waywiser.plan.plan import Plan
from waywiser.plan.point import Point
from waywiser.records import Failure, Order, Process, Visit
from waywiser.words import format_bytes

SATURATED = 0.01
"""Rates within it are the same rate: it is what the interval of a series is wanted to be."""

SATURATED_AT_MOST = 0.05
"""Rates of noisy series are the same where their intervals allow it, up to this."""

AGREEING_SIZES = 3
"""Consecutive sizes that must agree: two can by chance, or on a step of a protocol."""

_VOID = 1
"""The bit of a sample's flags that says its gate was opened by the watchdog."""

Key = tuple[str, int]


class _Rate(NamedTuple):
    bytes_per_second: float
    within: float
    """Half-width of its interval, as a fraction."""


class Course:
    """Iterate over it for the orders; tell it of every visit with `record`.

    ``finished`` are visits of an earlier run: they are not ordered again, but their rates count.
    ``on_skip`` receives a visit for each size that is not measured, because the rate has saturated
    or because the preset's time is over.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        finished: Iterable[Visit] = (),
        on_skip: Callable[[Visit], None] = lambda visit: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._on_skip = on_skip
        self._clock = clock
        self._deadline = math.inf
        self._finished: set[Key] = set()
        self._rates: dict[Key, dict[int, _Rate]] = {}
        for visit in finished:
            self._finished.add((visit.workload.identity, visit.block))
            self.record(visit)

    def record(self, visit: Visit) -> None:
        """Takes note of a visit's rate; a visit without samples has none."""
        spans = [
            span
            for span, flags in zip(visit.samples.span, visit.samples.flags, strict=True)
            if not flags & _VOID
        ]
        if spans and visit.workload.bytes:
            rates = self._rates.setdefault((visit.workload.curve, visit.block), {})
            median, low, high = native.load().median_interval(spans)
            within = (high - low) / 2 / median
            rate = _Rate(visit.workload.bytes / median, 0.0 if math.isnan(within) else within)
            rates[visit.workload.transfers[0].bytes] = rate

    def __iter__(self) -> Iterator[Order]:
        limit = self._plan.preset.deadline_seconds
        if limit and not self._plan.request.sizes:
            self._deadline = self._clock() + limit
        for process, points in self._plan.by_process():
            for block in self._blocks(process):
                yield from self._block(process, block, points)

    def _blocks(self, process: Process) -> Iterable[int]:
        preset = self._plan.preset
        return (process.block,) if preset.fresh_processes else range(preset.blocks)

    def _block(self, process: Process, block: int, points: list[Point]) -> Iterator[Order]:
        shuffler = random.Random(f"{self._plan.request.seed}:{process.peer_access}:{block}")
        due = [p for p in points if (p.workload.identity, block) not in self._finished]
        first = [p for p in due if not p.growing]
        shuffler.shuffle(first)
        for point in first:
            yield from self._order_or_skip(point, process, block)
        growing = sorted((p for p in due if p.growing), key=lambda p: p.size)
        for _, wave in groupby(growing, key=lambda p: p.size):
            curves = list(wave)
            shuffler.shuffle(curves)
            for point in curves:
                yield from self._order_or_skip(point, process, block)

    def _order_or_skip(self, point: Point, process: Process, block: int) -> Iterator[Order]:
        if reason := self._reason_to_skip(point, block):
            self._on_skip(_skipped(point, block, reason))
        else:
            yield self._order(point, process, block)

    def _reason_to_skip(self, point: Point, block: int) -> str:
        if self._clock() > self._deadline:
            preset = self._plan.preset
            return f"the {preset.deadline_seconds:g} s of {preset.name} were over"
        return self._saturated(point, block) if point.growing and not point.always else ""

    def _saturated(self, point: Point, block: int) -> str:
        """How the rates below agree, or nothing while they still differ."""
        rates = self._rates.get((point.workload.curve, block), {})
        below = sorted(size for size in rates if size < point.size)[-AGREEING_SIZES:]
        last = [rates[size].bytes_per_second for size in below]
        within = max((rates[size].within for size in below), default=0.0)
        same = min(max(SATURATED, within), SATURATED_AT_MOST)
        if len(last) < AGREEING_SIZES or max(last) - min(last) > same * max(last):
            return ""
        told = ", ".join(f"{rate / 1e9:.4g}" for rate in last)
        sizes = ", ".join(map(format_bytes, below))
        return f"the rate has saturated: {told} GB/s at {sizes}"

    def _order(self, point: Point, process: Process, block: int) -> Order:
        identity = point.workload.identity
        seed = random.Random(f"{self._plan.request.seed}:{identity}:{block}").getrandbits(53)
        return Order(
            workload=point.workload,
            block=block,
            process=process,
            rule=self._plan.preset.rule,
            seed=seed,
            buffer_bytes=point.buffer_bytes,
            expected_seconds=point.seconds,
            timeout_seconds=point.timeout_seconds,
        )


def _skipped(point: Point, block: int, reason: str) -> Visit:
    return Visit(
        workload=point.workload,
        block=block,
        stop="skipped",
        started=datetime.now(UTC).isoformat(),
        failure=Failure("skipped", reason),
    )
