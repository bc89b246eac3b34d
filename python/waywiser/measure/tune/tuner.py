"""The orders of a tuning, one at a time: the searches of all targets, round by round, and then the
measurements that are reported.

Each round is a fresh process, which serves all targets one after the other, so a few processes
are enough for any number of them. The first round climbs, in ascending order of sizes: the climb
of a size begins at the best settings of the next smaller one. Then come the rounds of the race, and
then `REPORTED` further processes, which measure the winner, the defaults and the plain copy of each
target. Only these are reported, since the value of the best of many is biased.

The search depends on nothing but what was measured. So a tuning that was interrupted goes on with
the visits that are there: the same steps, without measuring them again.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from waywiser.machine import Machine
from waywiser.measure.plan.costs import Costs
from waywiser.measure.plan.plan import GPU_SECONDS, WORKER_SECONDS
from waywiser.measure.plan.points import PlannedPoint
from waywiser.measure.tune.search import (
    Configuration,
    Ratio,
    Search,
    Timing,
    configurations,
    most_visits,
    ratio,
)
from waywiser.measure.tune.targets import Target
from waywiser.profile import standard_error
from waywiser.profile.block import counted
from waywiser.stats import median, median_interval
from waywiser.words import Order, Process, Rule, Transfer, Value, Visit

ROUNDS = 6
"""Processes of the search."""

CLIMBING = 3
"""Rounds that also climb: what the last one found would have been measured once."""

REPORTED = 4
"""Processes of the measurements that are reported."""

RULE = Rule(minimum=6, minimum_seconds=0.002, soft_seconds=0.01, hard_seconds=0.03)
"""That of the standard survey: further processes show more than further samples of one."""

SAMPLING_SECONDS = 0.03
"""Expected of a visit beside what a survey expects of one."""

NO_GAIN = 0.01
"""A winner that is faster than the defaults by no more is not worth a setting."""


class Tuned(Value, frozen=True):
    """What a tuning found for one path at one size."""

    default: Transfer
    """The transfer with default settings."""
    winner: Transfer | None = None
    """None if the defaults were not measured."""
    seconds: float | None = None
    """The median time of the winner in the reported processes, from call to completion."""
    over_default: Ratio | None = None
    """How many times as fast as the defaults; None if the defaults won."""
    over_plain: Ratio | None = None
    plain: str = ""
    """The call of the plain copy; empty if there is none beside the defaults."""
    measured: int = 0
    """Configurations that were measured."""
    configurations: int = 0
    """Those of the full grid."""
    reason: str = ""
    """Why there is no winner, or why its value is preliminary."""

    @property
    def bandwidth(self) -> float | None:
        return self.default.bytes / self.seconds if self.seconds else None


class PointMaker(Protocol):
    """Makes the points of configurations."""

    def point(self, target: Target, configuration: Configuration) -> PlannedPoint:
        """The point of a target with these settings."""

    def is_possible(self, target: Target, configuration: Configuration) -> bool:
        """Whether the machine supports it."""


def grid_points(target: Target, maker: PointMaker) -> dict[Configuration, PlannedPoint]:
    """The points of all configurations of a target that the machine supports."""
    return {
        configuration: maker.point(target, configuration)
        for configuration in configurations(target.axes)
        if maker.is_possible(target, configuration)
    }


class Tuner:
    """Iterate over it for the orders; report every visit with `record`.

    ``finished`` are finished visits of the profile, of which those of an earlier run of the same
    tuning count. ``first_block`` is the number of its first process. ``budget_seconds`` is for what
    is measured now.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        configurator: PointMaker,
        machine: Machine,
        *,
        first_block: int = 0,
        budget_seconds: float = math.inf,
        seed: int = 1,
        grid: int = 0,
        finished: Iterable[Visit] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # One worker after the other: those that need peer access off come last.
        self.targets = tuple(sorted(targets, key=lambda target: not target.point.peer_access))
        self._configurator = configurator
        self._first = first_block
        self._budget = budget_seconds
        self._seed = seed
        self._grid = grid
        self._clock = clock
        self._deadline = math.inf
        self._costs = Costs(WORKER_SECONDS + GPU_SECONDS * len(machine.gpus))
        self._process: Process | None = None
        self._found: dict[tuple[str, int], Timing | None] = {}
        self._searches: dict[str, Search] = {}
        self._cut = False
        """Whether anything was not measured for want of time."""
        for visit in finished:
            if visit.block >= first_block:
                self.record(visit)

    def record(self, visit: Visit) -> None:
        """Takes note of what a visit measured."""
        self._found[visit.workload.identity, visit.block] = timing_of(visit)

    @property
    def is_complete(self) -> bool:
        """Whether the last iteration measured all that was planned."""
        return not self._cut

    # What it takes.

    def expected_visits(self, target: Target) -> int:
        """About how many visits a target takes."""
        if self._grid:
            return self._grid * target.configurations
        others = [axis for axis in target.axes if axis.kind != "choice"]
        choices = sum(len(axis.values) - 1 for axis in target.axes if axis.kind == "choice")
        if self._smaller(target):
            choices = 0  # the search begins at the winner of a smaller size alone
        near = 1 + sum(min(len(axis.all_values) - 1, 4) for axis in others)
        first = min(near * (1 + choices), target.configurations)
        climbing = min(first // 2 + 4, most_visits(target.configurations, climb=True))
        racing = min(4, most_visits(target.configurations, climb=False))
        search = first + (CLIMBING - 1) * climbing + (ROUNDS - CLIMBING) * racing
        return search + REPORTED * (2 if target.plain is None else 3)

    def expected_seconds(self, target: Target) -> float:
        """About how long a target takes, without the start of processes."""
        each = self._costs.visit_seconds(target.point) + SAMPLING_SECONDS
        return self.expected_visits(target) * each

    @property
    def processes_seconds(self) -> float:
        """About how long it takes to start all processes."""
        kinds = len({target.point.peer_access for target in self.targets})
        processes = self._grid or ROUNDS + REPORTED
        return kinds * processes * self._costs.worker_seconds

    # The orders.

    def __iter__(self) -> Iterator[Order]:
        self._deadline = self._clock() + self._budget
        self._cut = False
        if self._grid:
            yield from self._grid_orders()
            return
        for number in range(ROUNDS):
            for position, target in enumerate(self.targets):
                search = self._search(target)
                if search.failed or (number and search.is_decided):
                    continue
                end = self._end_of_search(position) if number == 0 else self._search_deadline
                yield from self._round(target, search, number, end)
        for number in range(ROUNDS, ROUNDS + REPORTED):
            for target in self.targets:
                points = self._reported(target)
                random.Random(f"{self._seed}:{target.point.identity}:{number}").shuffle(points)
                for point in points:
                    yield from self._visit(point, number, self._deadline)

    def coming(self) -> Sequence[Process]:
        """None: which process comes next depends on what is found."""
        return ()

    def _grid_orders(self) -> Iterator[Order]:
        every = [
            point
            for target in self.targets
            for point in grid_points(target, self._configurator).values()
        ]
        every += [target.plain for target in self.targets if target.plain is not None]
        for number in range(self._grid):
            random.Random(f"{self._seed}:{number}").shuffle(every)
            for point in every:
                yield from self._visit(point, number, self._deadline)

    def _round(
        self, target: Target, search: Search, number: int, end: float
    ) -> Generator[Order, None, None]:
        steps = search.round(number, climb=number < CLIMBING)
        try:
            configuration = next(steps)
            while True:
                point = self._configurator.point(target, configuration)
                if not (yield from self._visit(point, number, end)):
                    steps.close()
                    return
                configuration = steps.send(self._timing(point, number))
        except StopIteration:
            return

    def _visit(self, point: PlannedPoint, number: int, end: float) -> Generator[Order, None, bool]:
        """Whether the visit is there: measured now or before."""
        block = self._first + number
        if (point.identity, block) in self._found:
            return True
        process = Process(point.peer_access, block, point.curve.loads)
        starting = self._costs.worker_seconds if process != self._process else 0.0
        now = self._clock()
        if now + starting + self._costs.visit_seconds(point) > end:
            self._cut = True
            return False
        seconds = self._costs.visit_seconds(point)
        yield point.order(process, RULE, seed=self._seed, seconds=seconds)
        taken = self._clock() - now
        if process != self._process:
            self._process = process
            taken = max(taken - starting, taken / 2)
        self._costs.took(point, taken)
        return (point.identity, block) in self._found

    def _smaller(self, target: Target) -> list[Target]:
        """The smaller sizes of the same path that search the same settings."""
        return [
            other
            for other in self.targets
            if other.point.curve.text == target.point.curve.text
            and other.point.size < target.point.size
            and other.axes == target.axes
        ]

    def _search(self, target: Target) -> Search:
        """The search of a target; it begins at the best settings of the next smaller size."""
        identity = target.point.identity
        if identity not in self._searches:
            smaller = [t for t in self._smaller(target) if t.point.identity in self._searches]
            nearest = max(smaller, key=lambda other: other.point.size, default=None)
            self._searches[identity] = Search(
                target.axes,
                start=self._searches[nearest.point.identity].winner if nearest else None,
                possible=lambda c: self._configurator.is_possible(target, c),
                seed=f"{self._seed}:{identity}",
            )
        return self._searches[identity]

    # Time.

    def _reported(self, target: Target) -> list[PlannedPoint]:
        """What is measured again: the winner, the defaults and the plain copy."""
        search = self._search(target)
        if search.failed or not search.measured:
            return []
        chosen = dict.fromkeys((search.winner, search.default))
        points = [self._configurator.point(target, configuration) for configuration in chosen]
        return [*points, target.plain] if target.plain is not None else points

    def _reserved_seconds(self, targets: Iterable[Target]) -> float:
        """What the reported measurements of targets take."""
        return REPORTED * math.fsum(
            self._costs.visit_seconds(point)
            for target in targets
            for point in (self._reported(target) or [target.point] * 3)
        )

    @property
    def _search_deadline(self) -> float:
        """The time at which the search has to end, so that the reported measurements have time."""
        measured = [t for t in self.targets if self._search(t).measured]
        share = self.processes_seconds * REPORTED / (ROUNDS + REPORTED)
        return self._deadline - share - self._reserved_seconds(measured)

    def _end_of_search(self, position: int) -> float:
        """The time at which the first round of the target at this position has to end: its share
        of the time that is left, by what it is expected to take."""
        left = self.targets[position:]
        now = self._clock()
        reserved = self._reserved_seconds(self.targets)
        available = self._deadline - now - self.processes_seconds - reserved
        expected = [self.expected_seconds(target) for target in left]
        share = expected[0] / math.fsum(expected) if math.fsum(expected) else 1.0
        least = 2 * self._costs.visit_seconds(left[0].point) + self._costs.worker_seconds
        return now + max(available * share, min(least, available))

    # What was found.

    def _timing(self, point: PlannedPoint, number: int) -> Timing | None:
        return self._found.get((point.identity, self._first + number))

    def _timings(self, point: PlannedPoint) -> dict[int, Timing]:
        found = {number: self._timing(point, number) for number in range(ROUNDS + REPORTED)}
        return {number: timing for number, timing in found.items() if timing is not None}

    def _reported_timings(self, point: PlannedPoint) -> dict[int, Timing]:
        return {number: t for number, t in self._timings(point).items() if number >= ROUNDS}

    def _gains_nothing(self, winner: PlannedPoint, default: PlannedPoint) -> bool:
        """Whether the winner is not faster, by the median of all processes that measured both."""
        own, usual = self._timings(winner), self._timings(default)
        gains = [usual[number].seconds / own[number].seconds for number in own.keys() & usual]
        return bool(gains) and median(gains) <= 1 + NO_GAIN

    def results(self) -> list[Tuned]:
        """What was found for each target."""
        return [self._result(target) for target in self.targets]

    def _result(self, target: Target) -> Tuned:
        search = self._search(target)
        default = self._configurator.point(target, search.default)
        found = Tuned(
            msgspec.structs.replace(target.transfer, bytes=target.point.size),
            plain=target.plain_text if target.plain is not None else "",
            measured=search.measured,
            configurations=target.configurations,
        )
        if search.failed:
            return msgspec.structs.replace(found, reason="the defaults cannot be measured here")
        if not search.measured:
            return msgspec.structs.replace(found, reason="no time was left: more --budget")
        winner = self._configurator.point(target, search.winner)
        own, usual = self._reported_timings(winner), self._reported_timings(default)
        gain = ratio(usual, own)
        if winner.identity == default.identity or self._gains_nothing(winner, default):
            winner, own, gain = default, usual, None
        if not own:
            reason = "its search is not finished: the same command goes on"
            return msgspec.structs.replace(found, reason=reason)
        plain = self._reported_timings(target.plain) if target.plain is not None else {}
        return msgspec.structs.replace(
            found,
            winner=winner.workload.transfer,
            seconds=median([timing.seconds for timing in own.values()]),
            over_default=gain,
            over_plain=ratio(plain, own),
        )


def timing_of(visit: Visit) -> Timing | None:
    """The median of a visit from call to completion, as an application sees it; None if nothing
    was measured."""
    rows = counted(visit.samples)
    if visit.failure is not None or not rows:
        return None
    columns = [visit.samples.span]
    if all(map(math.isfinite, visit.samples.host)) and visit.samples.host:
        columns.append(visit.samples.host)
    times = max(([column[row] for row in rows] for column in columns), key=median)
    middle = median(times)
    if not middle > 0:
        return None
    ordered = sorted(times)
    spread = (ordered[3 * len(rows) // 4] - ordered[len(rows) // 4]) / middle
    error = standard_error(middle, median_interval(times), spread, len(rows))
    return Timing(middle, error)
