"""A recorded grid (``waywiser tune --grid``) in place of a machine, and how good a search on it is.

Half of the recorded processes stand for the machine; the search sees nothing else. The grid's best
is chosen on this half as well, and both are compared on the other half: the maximum of a grid is
biased.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from waywiser.machine.catalogue import Parameter
from waywiser.machine.machine import Machine
from waywiser.measure.plan.points import PlannedPoint
from waywiser.measure.tune.run import TuneNote
from waywiser.measure.tune.search import Configuration
from waywiser.measure.tune.targets import Target, find_targets
from waywiser.measure.tune.tuner import Tuner, timing_of
from waywiser.profile import Profile
from waywiser.profile.planned import TUNING
from waywiser.stats.order import median
from waywiser.words import Transfer
from waywiser.words.records import Failure, Order, Visit


@dataclass(frozen=True)
class RecordedGrid:
    """All configurations of one path and size."""

    machine: Machine
    target: Target
    points: dict[Configuration, PlannedPoint]
    visits: dict[str, list[Visit]]
    """By series, in block order."""

    @property
    def name(self) -> str:
        return str(self.target.transfer)

    def has(self, transfer: Transfer) -> bool:
        """Whether a configuration was recorded: a grid that had too little time lacks some."""
        return any(point.workload.transfers == (transfer,) for point in self.points.values())

    def halves(self, identity: str) -> tuple[list[Visit], list[Visit]]:
        """Even and odd blocks."""
        found = self.visits[identity]
        return found[::2], found[1::2]

    @property
    def samples(self) -> int:
        """All samples of the grid, without those of the plain copy."""
        own = (point.identity for point in self.points.values())
        return sum(len(v.samples) for identity in own for v in self.visits[identity])

    @property
    def best(self) -> Configuration:
        """The configuration whose median is least in the first half."""
        return min(self.points, key=lambda c: _median(self.halves(self.points[c].identity)[0]))

    def held_out_seconds(self, identity: str) -> float:
        """The median of a configuration in the second half."""
        return _median(self.halves(identity)[1])


@dataclass(frozen=True)
class GridResult:
    """How good a winner is, and what it took to find it."""

    winner: Transfer
    best: Transfer
    share: float
    """The winner's bandwidth over that of the grid's best, both in the second half."""
    samples: float
    """The share of the grid's samples that the search took."""
    gain: float
    """The winner's bandwidth over that of the defaults, in the second half."""


@dataclass(frozen=True)
class RecordedConfigurator:
    """The points of recorded configurations, whatever the registry has now."""

    points: dict[Configuration, PlannedPoint]

    def point(self, target: Target, configuration: Configuration) -> PlannedPoint:
        return self.points[configuration]

    def is_possible(self, target: Target, configuration: Configuration) -> bool:
        return configuration in self.points


def recorded_grids(file: Path) -> Iterator[RecordedGrid]:
    """The grids of a profile. Their parameters are those that the recording had."""
    with Profile.open(file) as profile:
        machine = profile.machine
        notes = [e[TUNING] for _, e in sorted(profile.environments.items()) if TUNING in e]
        recorded = [n for n in (msgspec.convert(e, TuneNote) for e in notes) if n.grids]
        if not recorded:
            raise ValueError(f"{file} has no grid: record one with `waywiser tune --grid N`")
        note = recorded[-1]
        visits: dict[str, list[Visit]] = {}
        for series in profile.iter_series():
            visits[series.workload.identity] = list(series.visits)
    targets = {t.point.identity: t for t in find_targets(machine, note.request).targets}
    for grid in note.grids:
        points: dict[Configuration, PlannedPoint] = {}
        found = targets[grid.default]
        parameters = tuple(Parameter(a.name, "", a.kind, a.values) for a in grid.axes)
        target = replace(found, parameters=parameters)
        for identity, configuration in grid.configurations.items():
            if identity in visits:
                workload = visits[identity][0].workload
                curve = replace(target.point.curve, transfers=workload.transfers)
                points[configuration] = replace(target.point, curve=curve, workload=workload)
        if points:
            yield RecordedGrid(machine, target, points, visits)


def replay(grid: RecordedGrid, seed: int = 1) -> GridResult:
    """Plays a tuning on the first half of a grid, the processes in an order that the seed gives."""
    configurator = RecordedConfigurator(grid.points)
    tuner = Tuner([grid.target], configurator, grid.machine, seed=seed)
    identity = grid.target.point.identity
    processes = list(range(len(grid.halves(identity)[0])))
    random.Random(seed).shuffle(processes)
    samples = 0
    for order in tuner:
        visit = _answer(grid, order, processes)
        if grid.target.plain is None or order.workload != grid.target.plain.workload:
            samples += len(visit.samples)
        tuner.record(visit)
    (tuned,) = tuner.results()
    assert tuned.winner is not None, tuned.reason
    return result_on_grid(grid, tuned.winner, samples)


def result_on_grid(grid: RecordedGrid, winner: Transfer, samples: int) -> GridResult:
    """The result of a winner, by the second half."""
    by_text = {str(point.workload): point for point in grid.points.values()}
    own, best = by_text[str(winner)], grid.points[grid.best]
    seconds = grid.held_out_seconds(own.identity)
    return GridResult(
        winner,
        best.workload.transfers[0],
        grid.held_out_seconds(best.identity) / seconds,
        samples / grid.samples,
        grid.held_out_seconds(grid.target.point.identity) / seconds,
    )


def _answer(grid: RecordedGrid, order: Order, processes: list[int]) -> Visit:
    recorded = grid.visits.get(order.workload.identity)
    if recorded is None:
        failure = Failure("not-supported", "it is not in the grid")
        return Visit(order.workload, order.block, "failed", "", failure=failure)
    half = recorded[::2]
    visit = half[processes[order.block % len(processes)] % len(half)]
    return msgspec.structs.replace(visit, block=order.block)


def _median(visits: list[Visit]) -> float:
    found = [timing.seconds for timing in map(timing_of, visits) if timing is not None]
    return median(found) if found else float("inf")
