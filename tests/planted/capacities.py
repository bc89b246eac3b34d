"""Synthetic machines with planted capacities, measured under the noise of real surveys.

The truth is a model (`waywiser.model.capacity.CapacityModel`): machines with four to eight GPUs,
one or two hidden sides, ports that GPUs share, limits of both directions and of host memory. Its
calibrating sets and single transfers are "measured": what the truth takes, in each process with the
deviations of one recorded block (`planted.noise`). Then capacities are fitted, and compared with
the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from planted.noise import Lot, Pool
from planted.planted_model import HOST_LATENCY, PEER_LATENCY, PEER_RATE, Model, down, up
from planted.planted_model import between as between_gpus
from waywiser.measure.plan.calibration import CALIBRATING_BYTES, calibrating_sets, random_sets
from waywiser.model.alone import SampledCurve
from waywiser.model.capacity import Capacity, CapacityModel, CapacityModelReader
from waywiser.model.capacity_fit import fit_capacities
from waywiser.model.resources import Groups, method_of
from waywiser.model.timed_sets import TimedSet
from waywiser.words import Path, Transfer, Workload

PROCESSES = 4
"""Those of `standard` for representative sizes and sets."""

LONG = tuple(2**n for n in range(3, 29))
"""Sizes of the first curve of each kind."""
SHORT = (8, 2**20, 2**26)
"""Sizes of the others."""

ACTIVE = 0.03
"""A planted capacity counts if without it a calibrating set would take so much less time."""

RANDOM_SETS = 20


@dataclass(frozen=True)
class PlantedCapacities:
    """A machine with its truth, and what was measured."""

    seed: int
    truth: CapacityModel
    sides: Groups
    singles: tuple[TimedSet, ...]
    sets: tuple[TimedSet, ...]

    def fitted(self) -> CapacityModel:
        """The model that the measurements give."""
        return fit_capacities(self.truth.machine, self.singles, self.sets, sides=self.sides)


@dataclass
class CapacityScore:
    """What was found of planted capacities, over several machines."""

    planted: int = 0
    found: int = 0
    covered: int = 0
    machines: int = 0
    exact_groups: int = 0
    false_groups: int = 0
    errors: list[float] = field(default_factory=list)
    """Predicted over true spans of random sets, minus 1."""

    def merge(self, other: CapacityScore) -> None:
        """Adds the machines of another score."""
        self.planted += other.planted
        self.found += other.found
        self.covered += other.covered
        self.machines += other.machines
        self.exact_groups += other.exact_groups
        self.false_groups += other.false_groups
        self.errors += other.errors

    def add(self, machine: PlantedCapacities) -> None:
        """Fits one machine, and compares."""
        model = machine.fitted()
        active = list(active_capacities(machine))
        known = {(each.resource, each.method): each for each in model.capacities}
        for each in active:
            own = known.get((each.resource, each.method))
            self.planted += 1
            if own is None or own.interval is None:
                continue
            self.found += 1
            self.covered += own.interval.low <= each.bytes_per_second <= own.interval.high
        planted_ports = {each.resource for each in active if each.resource.startswith("port")}
        found_ports = {c.resource for c in model.capacities if c.resource.startswith("port")}
        self.machines += 1
        self.exact_groups += planted_ports == found_ports
        self.false_groups += not found_ports <= planted_ports
        truth, reader = CapacityModelReader(machine.truth), CapacityModelReader(model)
        for workload in random_workloads(machine):
            self.errors.append(reader.filled(workload).span / truth.filled(workload).span - 1)


def planted_capacities(seed: int, pool: Pool, processes: int = PROCESSES) -> PlantedCapacities:
    """The machine of a seed, measured once."""
    rng = np.random.default_rng((seed, 7))
    count = int(rng.choice([4, 5, 6, 8]))
    has_sides = bool(rng.random() < 0.5)
    shape = Model(count=count, wiring="switch", sockets="hidden" if has_sides else "one")
    sides: Groups = ()
    if has_sides:
        sides = (tuple(range(count // 2)), tuple(range(count // 2, count)))
    truth = _truth(shape, sides, rng)
    lots = [pool.block(rng) for _ in range(processes)]
    reader = CapacityModelReader(truth)
    singles = [
        _measured(Workload((Transfer(Path.parse(path), size),)), reader, lots, rng)
        for path, sizes in _single_paths(count)
        for size in sizes
    ]
    sets = [_measured(workload, reader, lots, rng) for workload in calibrating_workloads(count)]
    return PlantedCapacities(seed, truth, sides, tuple(singles), tuple(sets))


def calibrating_workloads(count: int) -> Iterator[Workload]:
    """The sets that ``survey --model`` measures on a machine of so many GPUs."""
    host = [Path.parse(up(gpu)) for gpu in range(count)]
    peers = [Path.parse(between_gpus(a, b)) for a in range(count) for b in range(count) if a != b]
    for paths in calibrating_sets(host, peers, with_pairs=True):
        if len(paths) > 1:
            yield Workload(tuple(Transfer(path, CALIBRATING_BYTES) for path in paths))


def random_workloads(machine: PlantedCapacities) -> Iterator[Workload]:
    """Random sets of the machine, which are not fitted."""
    count = len(machine.truth.machine.gpus)
    paths = [Path.parse(path) for path, _ in _single_paths(count)]
    found = random_sets(paths, machine.seed)
    for _ in range(RANDOM_SETS):
        yield Workload(tuple(next(found)))


def active_capacities(machine: PlantedCapacities) -> Iterator[Capacity]:
    """The planted capacities that change what a calibrating set takes."""
    truth = CapacityModelReader(machine.truth)
    for each in machine.truth.capacities:
        if each.basis != "sets":
            continue
        without = {
            key: value
            for key, value in truth.known.items()
            if (key.resource, key.method) != (each.resource, each.method)
        }
        for timed in machine.sets:
            faster = truth.filled(timed.workload, without).span
            if truth.filled(timed.workload).span > faster * (1 + ACTIVE):
                yield each
                break


def _truth(shape: Model, sides: Groups, rng: np.random.Generator) -> CapacityModel:
    machine, count = shape.machine, shape.count
    to_gpu, from_gpu = (float(rng.uniform(50e9, 58e9)) for _ in range(2))
    peer = PEER_RATE["switch"] * float(rng.uniform(0.9, 1.0))
    curves: dict[str, SampledCurve] = {}
    for path, sizes in _single_paths(count):
        kinds = [place.kind for place in Path.parse(path).places]
        if kinds == ["gpu", "gpu"]:
            latency, rate = PEER_LATENCY, peer
        else:
            latency, rate = HOST_LATENCY, to_gpu if kinds[1] == "gpu" else from_gpu
        curves[path] = SampledCurve(sizes, tuple(latency + size / rate for size in sizes))
    host = method_of(Transfer.parse(up(0)), machine)
    gpus = method_of(Transfer.parse(between_gpus(0, 1)), machine)
    capacities = [
        Capacity("PCIe to gpu:*", host, to_gpu, None, "one transfer"),
        Capacity("PCIe from gpu:*", host, from_gpu, None, "one transfer"),
        Capacity("NVLink into gpu:*", gpus, peer, None, "one transfer"),
        Capacity("NVLink out of gpu:*", gpus, peer, None, "one transfer"),
    ]

    def plant(chance: float, resource: str, method: str, most: float, low: float) -> None:
        if rng.random() < chance:
            value = most * float(rng.uniform(low, 0.9))
            capacities.append(Capacity(resource, method, value, None, "sets"))

    plant(0.6, "PCIe of gpu:*, both directions", host, to_gpu + from_gpu, 0.65)
    plant(0.5, "NVLink of gpu:*, both directions", gpus, 2 * peer, 0.75)
    groups = [*sides] if rng.random() < 0.5 else [(0, 1)] if rng.random() < 0.5 else []
    for group in groups:
        name = f"gpu:{group[0]}-{group[-1]}" if len(group) > 2 else f"gpu:{group[0]}-{group[1]}"
        plant(0.6, f"port to {name}", host, len(group) * to_gpu, 0.55)
        plant(0.6, f"port from {name}", host, len(group) * from_gpu, 0.55)
    plant(0.4, "reads of numa:0", host, count * to_gpu, 0.5)
    plant(0.5, "writes of numa:0", host, count * from_gpu, 0.5)
    plant(0.5, "reads and writes of numa:0", host, count * (to_gpu + from_gpu), 0.3)
    return CapacityModel(machine, curves, tuple(capacities), groups=tuple(map(tuple, groups)))


def _single_paths(count: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The paths that are measured alone, with their sizes."""
    for gpu in range(count):
        yield up(gpu), LONG if gpu == 0 else SHORT
        yield down(gpu), LONG if gpu == 0 else SHORT
    for a in range(count):
        for b in range(count):
            if a != b:
                yield between_gpus(a, b), LONG if (a, b) == (0, 1) else SHORT


def _measured(
    workload: Workload, reader: CapacityModelReader, lots: Sequence[Lot], rng: np.random.Generator
) -> TimedSet:
    """What the truth takes, with the noise of each process."""
    filled = reader.filled(workload)
    size = workload.transfers[0].bytes
    together = len(workload.transfers) > 1
    spans, transfers = [], []
    for lot in lots:
        donors = lot.draw(rng, together, (size,)).near(size)
        factor = math.exp(donors[0].between)
        spans.append(filled.span * factor)
        transfers.append(tuple(seconds * factor for seconds in filled.seconds))
    blocks = tuple(range(len(lots)))
    return TimedSet(workload, tuple(spans), tuple(transfers) if together else (), blocks)
