"""The orders of a plan, one at a time: as many processes and sizes as fit before the deadline.

Each process measures the representative sizes first, then its share of the sizes that one process
measures, whole curves at a time. So the replicates of a path are spread over the whole survey. What
fits is decided before each part of a process, by `waywiser.measure.plan.points.Priority` and by
what visits have taken so far (`waywiser.measure.plan.costs`). What does not fit is a visit of its
own with the reason, never silence. With a deadline of the user, further processes repeat the
representative sizes until then, those first whose processes differ most.

The first visit of a representative size shows how long one execution takes. If that is too long,
the next smaller size represents the curve in its place.

Within a part, sizes up to `waywiser.curves.sizes.GROWING` come first, shuffled with the seed, so
that drift does not look like a difference between paths. Larger sizes follow in ascending waves,
and are skipped once the rate of their curve has saturated. Conditional sizes come last in the last
process, if a curve of the class differs from its first (see `waywiser.curves.classes`)."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import NamedTuple, Protocol

import msgspec

from waywiser.measure.plan.costs import Costs
from waywiser.measure.plan.findings import EQUAL_LATENCY, EQUAL_RATE, PROPORTIONAL_BYTES, Findings
from waywiser.measure.plan.plan import Plan
from waywiser.measure.plan.points import PlannedPoint, Priority, ProcessKind
from waywiser.measure.plan.rounds import coverage_rounds
from waywiser.measure.survey_options import DEADLINE
from waywiser.words import KILLED, Failure, Order, Process, Rule, Visit, format_bytes, grouped

EQUAL = "equal to"
"""How a reason begins where another curve of the class was measured instead."""


class Settle(Protocol):
    """Ends the measurement of curves early."""

    @property
    def first_look(self) -> int:
        """The rounds of processes before which it settles nothing."""

    def __call__(self, rounds: int) -> Mapping[str, str]:
        """The curves that need no further process after so many rounds, each with the reason."""


class NeverSettled:
    """Every curve is measured by all planned processes."""

    first_look = 0

    def __call__(self, rounds: int) -> Mapping[str, str]:
        return {}


OVER = "were over"
"""How a reason ends if the time was over."""

MOST_DEVIATION = 0.1
"""Noisier processes than that still get an interval of so much."""


class _Work(NamedTuple):
    """A visit that is still to be made."""

    rank: tuple[float, ...]
    seconds: float
    point: PlannedPoint
    block: int
    """The number of the process; -1 for any that has time."""


class Schedule:
    """Iterate over it for the orders; report every visit with `record`.

    ``finished`` are visits of an earlier run: they are not ordered again, but what they found
    counts. ``on_skip`` receives a visit for each one that is planned and not made. ``settle`` is
    called after each round of processes: what it names is not measured again; the processes before
    its first look start together, without those that may not be needed. ``together`` is how many
    processes may be there at once.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        finished: Iterable[Visit] = (),
        on_skip: Callable[[Visit], None] = lambda visit: None,
        clock: Callable[[], float] = time.monotonic,
        settle: Settle | None = None,
        together: int = 1,
    ) -> None:
        self._plan = plan
        self._together = together
        self._planned = plan.preset.processes
        self._on_skip = on_skip
        self._clock = clock
        self._settle = settle or NeverSettled()
        self._settled: dict[str, str] = {}
        """Curves that need no further process, with the reason."""
        self._deadline = math.inf
        self._reserved = 0.0
        self._costs = Costs(plan.worker_seconds)
        self._findings = Findings()
        self._points = {point.identity: point for point in plan.points}
        self._kinds = _kinds_of(plan)
        self._names = {point.curve.text: point.curve.name for point in plan.points}
        self._rounds = coverage_rounds(plan.points)
        self._curves = grouped((point.curve.text, point) for point in plan.points)
        self._classes = grouped((point.like, point.curve.text) for point in plan.points)
        self._different: dict[tuple[str, int], bool] = {}
        """Whether a curve of a class differs from its first, in each block."""
        self._blocks: dict[str, set[int]] = {identity: set() for identity in self._points}
        self._killing: dict[str, int] = {}
        """The smallest size of a curve at which the kernel, out of memory, killed a worker."""
        self._process: Process | None = None
        self._next = Process()  # that of the orders that are given
        self._visit_seconds = 0.0
        self._spent = 0.0
        """Seconds of earlier runs."""
        self._go_on_after(finished)

    def _go_on_after(self, finished: Iterable[Visit]) -> None:
        """Takes note of the visits of an earlier run."""
        started: set[tuple[int, ProcessKind]] = set()
        for visit in finished:
            known = self._points.get(visit.workload.identity)
            if known is not None:
                self._of(known).add(visit.block)
                self._spent += visit.elapsed_seconds
                started.add((visit.block, known.process))
                if visit.elapsed_seconds:
                    self._costs.took(known, visit.elapsed_seconds)
            self.record(visit)
        self._spent += len(started) * self._plan.worker_seconds

    def record(self, visit: Visit) -> None:
        """Takes note of what a visit found."""
        self._findings.add(visit)
        point = self._points.get(visit.workload.identity)
        if point and visit.failure and visit.failure.kind == KILLED:
            known = self._killing.get(point.curve.text, point.size)
            self._killing[point.curve.text] = min(point.size, known)
        self._visit_seconds = visit.elapsed_seconds

    def shorten(self, seconds: float) -> None:
        """Moves the deadline to so much earlier, in the middle of the orders."""
        self._deadline -= seconds

    def coming(self) -> list[Process]:
        """The processes to start together: that of the last order, and those after it that have
        time. It is asked when one is started."""
        blocks = self._processes_left(self._next.block)
        if self._next.block < self._settle.first_look:  # more may not be needed
            blocks = min(blocks, self._settle.first_look - self._next.block)
        if self._next.block >= self._planned:
            left = self._deadline - self._clock()
            blocks = max(int(left / self._process_seconds(self._repeated)), 1)
        turn = ProcessKind.of(self._next).turn
        others = (
            Process(kind.peer_access, block, kind.loads)
            for block in range(self._next.block, self._next.block + blocks)
            for kind in self._kinds
            if (block, kind.turn) > (self._next.block, turn) and self._has_work(kind, block)
        )
        found = [self._next, *islice(others, self._together - 1)]
        self._costs.start(found)
        return found

    def _has_work(self, kind: ProcessKind, block: int) -> bool:
        """Whether a process measures something, if there is time."""
        return any(
            point.process == kind
            and (self._is_everywhere(point) or self._left_of(point) > 0)
            and block not in self._of(point)
            for point in self._open_points
        )

    def __iter__(self) -> Iterator[Order]:
        if self._plan.deadline_seconds:
            self._deadline = self._clock() + self._plan.deadline_seconds
        block = 0
        is_measured = True
        while self._open_points and (block < self._planned or (is_measured and self._another_fits)):
            is_measured = False
            for peer_access, loads in self._kinds:
                for order in self._in_process(Process(peer_access, block, loads)):
                    is_measured = True
                    yield order
            block += 1
            self._settled = {**self._settle(block), **self._settled}
        self._skip_rest()

    @property
    def _open_points(self) -> list[PlannedPoint]:
        """The points of curves that are not settled."""
        return [point for point in self._plan.points if point.curve.text not in self._settled]

    def _in_process(self, process: Process) -> Iterator[Order]:
        self._next = process
        block, last = process.block, process.block == self._planned - 1
        points = [p for p in self._open_points if p.process == ProcessKind.of(process)]
        everywhere = [p for p in points if self._is_everywhere(p) and block not in self._of(p)]
        kind = f"{process.peer_access}{process.loads}"
        shuffler = random.Random(f"{self._plan.request.seed}:{kind}:{block}")
        for priority in (Priority.HEADLINE, Priority.REPRESENTATIVE):
            first = [p for p in everywhere if p.priority is priority]
            slow = {p.identity: self._why_too_slow(p) for p in first}
            chosen = [self._quick_enough(p) for p in first]
            yield from self._part(chosen, process, shuffler)
            # Not before: a survey that is interrupted here finds the size to measure again.
            for point, other in zip(first, chosen, strict=True):
                if other.size != point.size and block < self._planned:
                    self._skip(point, block, slow[point.identity])
        rest = [p for p in everywhere if p.priority is Priority.REST and block < self._planned]
        rest += self._share(points, block, shuffler)
        yield from self._part(rest, process, shuffler)
        if block < self._planned:
            late = [p for p in points if p.conditional and (last or self._is_everywhere(p))]
            late = [p for p in late if block not in self._of(p)]
            yield from self._part(late, process, shuffler)

    def _quick_enough(self, point: PlannedPoint) -> PlannedPoint:
        """The point, or the next smaller size of its curve in its place, if an earlier visit found
        that one execution of the point takes too long."""
        chosen = point
        while self._why_too_slow(chosen):
            smaller = [p for p in self._curves[point.curve.text] if p.size < chosen.size]
            certain = [p for p in smaller if not p.conditional]
            if not certain:
                return point
            chosen = max(certain, key=lambda p: p.size)
        if chosen is point:
            return point
        return replace(chosen, processes=point.processes, priority=point.priority)

    def _why_too_slow(self, point: PlannedPoint) -> str:
        """The reason; empty if one execution is not expected to take too long."""
        seconds = self._findings.expected_seconds(point.curve.text, point.size)
        if seconds is None or seconds <= point.longest_seconds:
            return ""
        allowed = f"the {point.longest_seconds:.3g} s that {self._plan.preset.name} allows"
        return f"one execution takes longer than {allowed}"

    def _part(
        self, points: list[PlannedPoint], process: Process, shuffler: random.Random
    ) -> Iterator[Order]:
        first = [p for p in points if not p.growing]
        growing = sorted((p for p in points if p.growing), key=lambda p: p.size)
        waves = [first, *(list(wave) for _, wave in groupby(growing, key=lambda p: p.size))]
        for wave in waves:
            shuffler.shuffle(wave)
            left = len(wave) + 1
            # What seemed too long may fit now that others have been measured.
            while wave and len(wave) < left:
                left = len(wave)
                yield from self._wave(wave, points, process)
                wave = [p for p in wave if process.block not in self._of(p)]
        for point in points:
            everywhere = self._is_everywhere(point) and process.block < self._planned
            if everywhere and process.block not in self._of(point):
                self._skip(point, process.block, self._over)

    def _wave(
        self, wave: Sequence[PlannedPoint], points: Sequence[PlannedPoint], process: Process
    ) -> Iterator[Order]:
        permitted = self._permitted(
            [point for point in points if process.block not in self._of(point)], process
        )
        for point in wave:
            if process.block in self._of(point):
                continue  # it also replaces another size of its curve
            if reason := self._reason_to_skip(point, process.block):
                self._skip(point, process.block, reason)
            elif point.identity in permitted and self._has_time(point):
                yield from self._visit(point, process)

    def _visit(self, point: PlannedPoint, process: Process) -> Iterator[Order]:
        begun = self._clock()
        self._visit_seconds = 0.0
        order = point.order(
            process,
            self._rule(point),
            seed=self._plan.request.seed,
            seconds=self._costs.visit_seconds(point),
            evidence=point.identity in self._plan.watched and not self._of(point),
        )
        self._of(point).add(process.block)
        yield order
        taken = self._clock() - begun
        if process != self._process:
            self._process = process
            seconds = self._visit_seconds or min(taken, self._costs.visit_seconds(point))
            self._costs.started(process, max(taken - seconds, 0.0))
            taken = seconds
        self._costs.took(point, taken)

    def _of(self, point: PlannedPoint) -> set[int]:
        """The blocks that have visited it."""
        return self._blocks[point.identity]

    def _is_everywhere(self, point: PlannedPoint) -> bool:
        """Whether all processes measure it."""
        return point.processes >= self._planned

    def _share(
        self, points: Sequence[PlannedPoint], block: int, shuffler: random.Random
    ) -> list[PlannedPoint]:
        """What this process measures of all that few processes measure: whole curves, those first
        that most processes have still to measure, then those that no process has measured."""
        left = [p for p in points if self._left_of(p) and block not in self._of(p)]
        order = [list(curve) for _, curve in groupby(left, key=lambda p: p.curve.text)]
        shuffler.shuffle(order)
        order.sort(
            key=lambda curve: (
                -max(map(self._left_of, curve)),
                min(len(self._of(point)) for point in curve),
            )
        )
        share = self._missing_seconds(left) / self._processes_left(block)
        chosen: list[PlannedPoint] = []
        for curve in order:
            if share <= 0:
                break
            chosen += curve
            share -= sum(self._costs.visit_seconds(point) for point in curve)
        return chosen

    def _left_of(self, point: PlannedPoint) -> int:
        """Visits that are missing of a certain point that few processes measure."""
        if point.conditional or self._is_everywhere(point):
            return 0
        return max(point.processes - len(self._of(point)), 0)

    def _missing_seconds(self, points: Iterable[PlannedPoint]) -> float:
        """All missing visits of those of the points that few processes measure."""
        return math.fsum(self._left_of(p) * self._costs.visit_seconds(p) for p in points)

    def _process_seconds(self, points: Iterable[PlannedPoint]) -> float:
        """A new process that visits the points once."""
        return self._costs.worker_seconds + sum(map(self._costs.visit_seconds, points))

    def _processes_left(self, block: int) -> int:
        """Planned processes from this one on, as many as have time for the headlines."""
        planned = max(self._planned - block, 1)
        headline = [p for p in self._open_points if p.priority is Priority.HEADLINE]
        each = self._process_seconds(p for p in headline if self._is_everywhere(p))
        once = self._missing_seconds(headline)
        left = self._deadline - self._clock()
        return next((k for k in range(planned, 1, -1) if k * each + once <= left), 1)

    @property
    def _another_fits(self) -> bool:
        """Whether there is time for a process more than planned."""
        points = self._repeated
        if not self._plan.request.deadline_seconds or not points:
            return False
        first = [p for p in points if p.priority is Priority.HEADLINE] or points
        return self._clock() + self._process_seconds(first) <= self._deadline - self._spent

    @property
    def _repeated(self) -> list[PlannedPoint]:
        """What processes more than planned measure."""
        return [p for p in self._open_points if self._is_everywhere(p) and not p.conditional]

    def _permitted(self, points: Sequence[PlannedPoint], process: Process) -> set[str]:
        """Identities of the points that have time in this process, if everything of a higher
        priority, in this process and in later ones, is given its time first."""
        if math.isinf(self._deadline):
            return {point.identity for point in points}
        here = {point.identity for point in points}
        work = [self._work(point, process.block) for point in points]
        work += [each for each in self._later(process) if each.point.identity not in here]
        work += [
            self._work(point, block)
            for point in points
            if self._is_everywhere(point)
            for block in range(process.block + 1, self._planned)
            if block not in self._of(point)
        ]
        work.sort(key=lambda each: each.rank)
        left = self._deadline - self._clock()
        started = {(process.block, ProcessKind.of(process)), *((-1, kind) for kind in self._kinds)}
        permitted: set[str] = set()
        self._reserved = 0.0
        if process != self._process:
            left -= self._costs.worker_seconds
        for each in work:
            worker = (each.block, each.point.process)
            starting = 0.0 if worker in started else self._costs.worker_seconds
            seconds = each.seconds + starting
            if seconds > left:
                continue
            left -= seconds
            started.add(worker)
            if each.block == process.block and each.point.identity in here:
                permitted.add(each.point.identity)
            elif each.rank < (Priority.REST,):
                self._reserved += seconds
        return permitted

    def _later(self, process: Process) -> Iterator[_Work]:
        """Certain work of this process' other parts and of later processes."""
        turn = ProcessKind.of(process).turn
        for point in self._open_points:
            if point.conditional:
                continue
            if not self._is_everywhere(point):
                if left := self._left_of(point):
                    yield from [self._work(point, -1)] * left
                continue
            first = process.block + (point.process.turn <= turn)
            done = self._of(point)
            for block in range(first, self._planned):
                if block not in done:
                    yield self._work(point, block)

    def _work(self, point: PlannedPoint, block: int) -> _Work:
        seconds = self._costs.visit_seconds(point)
        if block >= self._planned:
            noise = self._findings.deviation(point.workload)
            least = -math.inf if noise is None else -noise
            return _Work((point.priority > Priority.HEADLINE, least), seconds, point, block)
        turn = self._planned if block < 0 else block
        if not (self._is_everywhere(point) or self._of(point)):
            turn = -1
        rank = (point.priority, turn, self._rounds[point.identity], seconds)
        return _Work(rank, seconds, point, block)

    def _has_time(self, point: PlannedPoint) -> bool:
        now = self._clock()
        if now > self._deadline:
            return False
        certain = point.priority <= Priority.REPRESENTATIVE
        return certain or now <= self._deadline - self._reserved

    def _reason_to_skip(self, point: PlannedPoint, block: int) -> str:
        killing = self._killing.get(point.curve.text)
        if killing is not None and point.size >= killing:
            at = format_bytes(killing)
            return f"not tried again: the kernel, out of memory, killed the worker at {at}"
        if point.conditional and (reason := self._equal(point, block)):
            return reason
        extra = point.priority > Priority.REPRESENTATIVE and not self._of(point)
        if extra and (reason := self._why_too_slow(point)):
            return reason
        if point.growing and not point.always:
            return self._findings.saturated(point.curve.text, block, point.size)
        return ""

    @property
    def _over(self) -> str:
        whose = DEADLINE if self._plan.request.deadline_seconds else self._plan.preset.name
        return f"the {self._plan.deadline_seconds:g} s of {whose} {OVER}"

    def _skip_rest(self) -> None:
        """Whatever is planned and was neither measured nor skipped."""
        for point in self._plan.points:
            free = (block for block in range(self._planned) if block not in self._of(point))
            why = self._settled.get(point.curve.text, self._over)
            for _ in range(point.processes - len(self._of(point))):
                self._skip(point, next(free), why)

    def _skip(self, point: PlannedPoint, block: int, reason: str) -> None:
        self._of(point).add(block)
        self._on_skip(
            Visit(
                workload=point.workload,
                block=block,
                stop="skipped",
                started=datetime.now(UTC).isoformat(),
                failure=Failure("skipped", reason),
            )
        )

    def _equal(self, point: PlannedPoint, block: int) -> str:
        """Why the first of the class stands for the point; empty if a curve of the class differs
        from the first."""
        if (point.like, block) not in self._different:
            members = dict.fromkeys(self._classes[point.like])
            differ = any(self._findings.differ(m, point.like, block) for m in members)
            self._different[point.like, block] = differ
        if self._different[point.like, block]:
            return ""
        compared = self._findings.compared(point.curve.text, point.like, block)
        if not compared:
            return f"not compared: no size was measured of both it and {self._names[point.like]}"
        sizes = ", ".join(map(format_bytes, compared))
        return (
            f"{EQUAL} {self._names[point.like]} at {sizes}, within {EQUAL_RATE * 100:.0f} % "
            f"(under {format_bytes(PROPORTIONAL_BYTES)} {EQUAL_LATENCY * 100:.0f} %)"
        )

    def _rule(self, point: PlannedPoint) -> Rule:
        """The preset's. Where processes differ more, the interval need not be narrower than their
        deviation: the standard error of the median is half of it."""
        rule = self._plan.preset.rule
        deviation = min(self._findings.deviation(point.workload) or 0.0, MOST_DEVIATION)
        target, wanted = max(rule.target, deviation), max(rule.wanted, deviation)
        return msgspec.structs.replace(rule, target=target, wanted=wanted)


def _kinds_of(plan: Plan) -> list[ProcessKind]:
    """The kinds of processes of each round, in their order."""
    found = {ProcessKind(True), ProcessKind(False), *(p.process for p in plan.points)}
    return sorted(found, key=lambda kind: kind.turn)


def is_for_time(reason: str) -> bool:
    """Whether it is for want of time that a size was skipped."""
    return reason.endswith(OVER)
