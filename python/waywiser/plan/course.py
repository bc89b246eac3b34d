"""The orders of a plan, one at a time, in a seeded order that learns from the visits so far.

Within a process and block, sizes up to `waywiser.plan.sizes.GROWING` come first, shuffled, so that
drift does not look like a difference between paths. Larger sizes follow in ascending waves, each
shuffled over the curves; a curve whose rate has saturated is skipped there, and the skipping is a
visit of its own with the reason, never silence. Last come the sizes that are conditional (see
`waywiser.plan.classes`), in the same order: visited where a curve of the class was found to differ
from its first, and else skipped likewise. Where many differ they do not take the time of the blocks
to come: what is certain there comes before them.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby

from waywiser.plan.findings import EQUAL_LATENCY, EQUAL_RATE, Findings
from waywiser.plan.plan import Plan
from waywiser.plan.point import Point
from waywiser.records import Failure, Order, Process, Visit
from waywiser.words import format_bytes

EQUAL = "equal to"
"""How a reason begins where another curve of the class was measured instead."""

OVER = "were over"
"""How a reason ends where the preset's time was; in older profiles also where what was left of it
was kept."""

KEPT = "only what later blocks need was left of"
"""How a reason begins where what was left of the preset's time was kept for the blocks to come."""

Key = tuple[str, int]


class Course:
    """Iterate over it for the orders; tell it of every visit with `record`.

    ``finished`` are visits of an earlier run: they are not ordered again, but what they found
    counts. ``on_skip`` receives a visit for each size that is not measured: the rate has saturated,
    an equal path tells it, or the preset's time is over.
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
        self._kept_seconds = 0.0
        self._finished: set[Key] = set()
        self._findings = Findings()
        self._names: dict[str, str] = {}
        self._classes: dict[str, set[str]] = {}
        for point in plan.points:
            self._names[point.curve.text] = point.curve.name
            if point.like:
                self._classes.setdefault(point.like, set()).add(point.curve.text)
        self._different: dict[Key, str] = {}
        for visit in finished:
            self._finished.add((visit.workload.identity, visit.block))
            self.record(visit)

    def record(self, visit: Visit) -> None:
        """Takes note of what a visit found."""
        self._findings.add(visit)

    def __iter__(self) -> Iterator[Order]:
        if self._plan.deadline_seconds:
            self._deadline = self._clock() + self._plan.deadline_seconds
        rounds = [
            (process, block, points)
            for process, points in self._plan.by_process()
            for block in self._blocks(process)
        ]
        self._kept_seconds = sum(self._certain_seconds(*each) for each in rounds)
        for process, block, points in rounds:
            self._kept_seconds -= self._certain_seconds(process, block, points)
            yield from self._block(process, block, points)

    def _blocks(self, process: Process) -> Iterable[int]:
        preset = self._plan.preset
        return (process.block,) if preset.fresh_processes else range(preset.blocks)

    def _certain_seconds(self, process: Process, block: int, points: list[Point]) -> float:
        """Expected for what a block visits in any case, and its worker."""
        certain = (p for p in points if not p.conditional and self._is_due(p, block))
        worker = self._plan.worker_seconds if self._plan.preset.fresh_processes else 0.0
        return worker + sum(point.expected_seconds for point in certain)

    def _is_due(self, point: Point, block: int) -> bool:
        return (point.workload.identity, block) not in self._finished

    def _block(self, process: Process, block: int, points: list[Point]) -> Iterator[Order]:
        shuffler = random.Random(f"{self._plan.request.seed}:{process.peer_access}:{block}")
        due = [p for p in points if self._is_due(p, block)]
        for conditional in (False, True):
            stage = [p for p in due if p.conditional == conditional]
            first = [p for p in stage if not p.growing]
            growing = sorted((p for p in stage if p.growing), key=lambda p: p.size)
            waves = [first, *(list(wave) for _, wave in groupby(growing, key=lambda p: p.size))]
            for wave in waves:
                shuffler.shuffle(wave)
                for point in wave:
                    yield from self._order_or_skip(point, process, block)

    def _order_or_skip(self, point: Point, process: Process, block: int) -> Iterator[Order]:
        if reason := self._reason_to_skip(point, block):
            self._on_skip(_skipped(point, block, reason))
        else:
            yield self._order(point, process, block)

    def _reason_to_skip(self, point: Point, block: int) -> str:
        whole = f"the {self._plan.deadline_seconds:g} s of {self._plan.preset.name}"
        if self._clock() > self._deadline:
            return f"{whole} {OVER}"
        if point.conditional:
            if reason := self._equal(point, block):
                return reason
            if self._clock() > self._deadline - self._kept_seconds:
                return f"{KEPT} {whole}"
        if point.growing and not point.always:
            return self._findings.saturated(point.workload.curve, block, point.size)
        return ""

    def _equal(self, point: Point, block: int) -> str:
        """Why the first of the class speaks for the point, or nothing where a curve of the class
        is not like the first."""
        if (point.like, block) not in self._different:
            members = sorted(self._classes[point.like])
            differing = (m for m in members if self._findings.differ(m, point.like, block))
            self._different[point.like, block] = next(differing, "")
        if self._different[point.like, block]:
            return ""
        compared = self._findings.compared(point.curve.text, point.like, block)
        if not compared:
            return f"not compared: nothing was measured of it and of {self._names[point.like]}"
        sizes = ", ".join(map(format_bytes, compared))
        return (
            f"{EQUAL} {self._names[point.like]} at {sizes}, within {EQUAL_RATE * 100:.0f} % "
            f"(under 1 MiB {EQUAL_LATENCY * 100:.0f} %)"
        )

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
            evidence=block == 0 and identity in self._plan.watched,
        )


def is_for_time(reason: str) -> bool:
    """Whether it is for the preset's time that a size was skipped."""
    return reason.endswith(OVER) or reason.startswith(KEPT)


def _skipped(point: Point, block: int, reason: str) -> Visit:
    return Visit(
        workload=point.workload,
        block=block,
        stop="skipped",
        started=datetime.now(UTC).isoformat(),
        failure=Failure("skipped", reason),
    )
