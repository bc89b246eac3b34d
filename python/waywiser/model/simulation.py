"""A simulated machine: what a survey of it measures, from the model of a profile and its noise.

A workload that the profile has keeps its measured time, multiplied by what the model says that the
changes make of it. Any other workload takes the time of the model. Operations are those of the
profile, or of an equivalent place: no change concerns them. Noise is that of the profile
(`waywiser.model.recorded_noise`). Everything follows from the seed.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.model.capacity import CapacityModel, CapacityModelReader
from waywiser.model.errors import ModelError
from waywiser.model.recorded_noise import (
    RecordedNoise,
    RecordedSeries,
    drawn,
    middle_of,
    own_medians,
)
from waywiser.profile import Profile
from waywiser.words import Locality, Process, Samples, Value, Visit, Workload

NOT_IN_MODEL = "not in the model"


class Simulation(Value, frozen=True):
    """What a simulated machine is made from."""

    profile: str
    """The path of the recorded profile."""
    measured: CapacityModel
    """The model of the profile."""
    changed: CapacityModel
    """The model of the simulated machine: the same, or with changes."""
    seed: int = 1


class SimulatedTimes(Value, frozen=True):
    """Seconds of a workload without noise."""

    span: float
    transfers: tuple[float, ...] = ()
    """The seconds of each transfer from its own start."""

    def scaled(self, base: SimulatedTimes, other: SimulatedTimes) -> SimulatedTimes:
        """These times as much longer as ``other`` is than ``base``."""
        pairs = zip(self.transfers, base.transfers, other.transfers, strict=True)
        own = tuple(mine * (after / before) for mine, before, after in pairs)
        return SimulatedTimes(self.span * other.span / base.span, own)


class SimulatedNight(NamedTuple):
    """One night of a machine that is surveyed every night."""

    number: int
    """The number of the night, from 1."""
    noise: float
    """Relative standard deviation of a path from night to night, without that of processes."""


class SimulatedMachine:
    """Answers what workers measure on a simulated machine. What has no noise is found once for each
    workload, so one machine is for all nights."""

    def __init__(self, simulation: Simulation) -> None:
        """Raises `waywiser.profile.ProfileError` if the profile cannot be read."""
        self._seed = simulation.seed
        self._profile = Profile.open(Path(simulation.profile))
        self._machine = simulation.changed.machine
        self._changed = CapacityModelReader(simulation.changed)
        self._measured = CapacityModelReader(simulation.measured)
        self._noise = RecordedNoise(self._profile, self._machine)
        self._times: dict[str, SimulatedTimes] = {}
        self._notes: dict[str, tuple[str, ...]] = {}
        before, now = self._profile.machine.gpus, self._machine.gpus
        self._has_same_gpus = [(gpu.index, gpu.pci) for gpu in before] == [
            (gpu.index, gpu.pci) for gpu in now
        ]

    def times(self, workload: Workload) -> SimulatedTimes:
        """Its seconds without noise. Raises `ModelError` for a workload that is not in the
        model."""
        identity = workload.identity
        if identity not in self._times:
            self._times[identity] = self._found_times(workload)
        return self._times[identity]

    def _found_times(self, workload: Workload) -> SimulatedTimes:
        """Raises as `times`."""
        if workload.kind == "operation":
            return SimulatedTimes(self._lender(workload).seconds)
        try:
            changed = _predicted(self._changed, workload)
        except ModelError as error:
            known = all(self._changed.alone.of(each) for each in workload.transfers)
            why = error.what if known else "no such transfer was measured alone"
            raise ModelError(f"{NOT_IN_MODEL}: {why}") from error
        recorded = self._noise.recorded(workload)
        if recorded is None:
            return changed
        own = recorded.transfer_seconds or changed.transfers
        measured = SimulatedTimes(recorded.seconds, own)
        return measured.scaled(_predicted(self._measured, workload), changed)

    def visit(
        self, workload: Workload, process: Process, night: SimulatedNight | None = None
    ) -> Visit:
        """What a worker measures, as the visit of a recorded profile. Raises `ModelError`."""
        order = f"{self._seed} {night.number}" if night else self._seed
        times = self.times(workload)
        lender = self._lender(workload)
        of_process = random.Random(f"{order} {process.block} {process.peer_access}")
        rng = random.Random(f"{order} {process.block} {workload.identity}")
        factor = self._noise.process_factor(workload, of_process)
        if night and night.noise:
            of_night = random.Random(f"{order} {workload.curve}")
            factor *= math.exp(of_night.gauss(0.0, night.noise))
        lent = lender.visits[rng.randrange(len(lender.visits))]
        is_same = self._has_same_gpus and lent.workload.identity == workload.identity
        return msgspec.structs.replace(
            lent,
            workload=workload,
            samples=_with_noise(times, factor, lent.samples, rng),
            buffers=lent.buffers if is_same else (),
            evidence=lent.evidence if is_same else None,
            notes=(*(lent.notes if is_same else ()), *self._unknown_limits(workload)),
            gpu_states=(),
        )

    def _unknown_limits(self, workload: Workload) -> tuple[str, ...]:
        """A note for each resource that may limit a set more than the model knows."""
        if workload.kind != "set" or self._noise.recorded(workload) is not None:
            return ()
        identity = workload.identity
        if identity not in self._notes:
            self._notes[identity] = tuple(
                f"the limit of {resource} was not measured: the time may be longer"
                for resource in self._changed.unknown_limits(workload)
            )
        return self._notes[identity]

    def _lender(self, workload: Workload) -> RecordedSeries:
        """The series that lends its noise, and to an operation its time. Raises `ModelError`."""
        found = self._noise.nearest(workload)
        if found is None:
            raise ModelError(f"{NOT_IN_MODEL}: it was not measured")
        return found

    def locality(self, memory: str, block: int) -> Locality:
        """What a recorded worker found about the memory. Raises `ModelError`."""
        known = [each for each in self._profile.localities() if each.memory == memory]
        if not (known and self._has_same_gpus):
            raise ModelError(NOT_IN_MODEL)
        return known[(self._seed + block) % len(known)]


def _predicted(reader: CapacityModelReader, workload: Workload) -> SimulatedTimes:
    """The times of the model. Transfers of a queue start when the one before has ended."""
    filled = reader.filled(workload)
    return SimulatedTimes(filled.span, filled.own_seconds)


def _with_noise(times: SimulatedTimes, factor: float, lent: Samples, rng: random.Random) -> Samples:
    """The times with the deviations of recorded samples from their medians. What the median of few
    samples deviates by is in the differences between processes already."""
    samples = drawn(lent, rng)
    longer = factor * times.span / (middle_of(samples) or middle_of(lent))
    transfers: tuple[tuple[float, ...], ...] = ()
    if samples.transfers:
        medians = own_medians(samples)
        if len(medians) == len(times.transfers) and min(medians) > 0:
            each = [factor * t / m for t, m in zip(times.transfers, medians, strict=True)]
            transfers = tuple(
                tuple(s * f for s, f in zip(row, each, strict=True)) for row in samples.transfers
            )
        else:
            ratios = [span * longer / times.span for span in samples.span]
            transfers = tuple(tuple(t * ratio for t in times.transfers) for ratio in ratios)
    return msgspec.structs.replace(
        samples,
        span=tuple(seconds * longer for seconds in samples.span),
        host=tuple(seconds * longer for seconds in samples.host),
        transfers=transfers,
    )
