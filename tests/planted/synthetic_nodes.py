"""Synthetic nodes for comparisons and fleets: what a survey of a model says, without its samples.

A fresh survey borrows from one recorded survey of a machine that was surveyed again: for each
series the blocks of a recorded series, as they deviate from what all surveys of that machine say.
So what a survey had in common, and what a series kept to in one survey and not in the next, stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from planted.noise import Donor, Pool
from planted.planted_model import LARGE, Model, between, down, up, workload
from waywiser.curves.curve import Point
from waywiser.curves.gpu_numbers import gpus_of, renumbered
from waywiser.curves.subject import LoadedLink, Subject
from waywiser.profile.block import BlockSummary, standard_error
from waywiser.stats.order import Interval
from waywiser.words import Workload


@dataclass(frozen=True)
class PlannedSeries:
    """What a survey of a model visits, with the true seconds of each."""

    model: Model
    workloads: tuple[Workload, ...]
    series: tuple[Point, ...] = field(init=False)
    seconds: tuple[float, ...] = field(init=False)
    curves: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = field(init=False)
    """(sizes, which of the workloads) of each curve."""

    def __post_init__(self) -> None:
        truth = tuple(max(self.model.seconds(each)) for each in self.workloads)
        object.__setattr__(self, "seconds", truth)
        curves: dict[str, list[int]] = {}
        for number, each in enumerate(self.workloads):
            curves.setdefault(each.curve, []).append(number)
        found = tuple(
            (tuple(self.workloads[n].transfers[0].bytes for n in members), tuple(members))
            for members in curves.values()
        )
        object.__setattr__(self, "curves", found)
        object.__setattr__(self, "series", tuple(Point.of(each) for each in self.workloads))


def checked(model: Model, sizes: Sequence[int] = (LARGE,)) -> PlannedSeries:
    """Visits as in ``--preset check``: every link alone at ``sizes``, and at the largest of them
    both ways and all at once."""
    gpus = range(model.count)
    alone = [(between(a, b),) for a in gpus for b in gpus if a != b]
    together: list[tuple[str, ...]] = []
    for gpu in gpus:
        there, back = up(gpu, model.node_of(gpu)), down(gpu, model.node_of(gpu))
        alone += [(there,), (back,)]
        together.append((there, back))
    together += [tuple(way(gpu, model.node_of(gpu)) for gpu in gpus) for way in (up, down)]
    visited = [workload(each, size) for each in alone for size in sizes]
    visited += [workload(each, max(sizes)) for each in together]
    return PlannedSeries(model, tuple(visited))


def surveyed(
    planned: PlannedSeries,
    rng: np.random.Generator,
    pool: Pool,
    blocks: int,
    *,
    host: str = "planted",
    created: str = "2026-11-20T03:00:00.000+00:00",
    links: Mapping[int, LoadedLink] | None = None,
) -> Subject:
    """A fresh survey. Each recorded series lends its blocks; further ones are of another series."""
    lot, first = pool.survey(rng), int(rng.integers(2))
    digests = []
    for curve, members in planned.curves:
        together = len(planned.workloads[members[0]].transfers) > 1
        lenders = [lot.draw(rng, together, curve)]
        fewest = min(len(lenders[0].near(size)) for size in curve)
        lenders += [lot.draw(rng, together, curve) for _ in range(fewest, blocks, fewest)]
        for number, size in zip(members, curve, strict=True):
            donors = [
                donor
                for lender in lenders
                for donor in _from(first, lender.near(size))[: min(fewest, blocks)]
            ]
            taken = tuple(
                _block(block, planned.seconds[number], donors[block % len(donors)])
                for block in range(blocks)
            )
            digests.append(msgspec.structs.replace(planned.series[number], blocks=taken))
    machine = msgspec.structs.replace(planned.model.machine, hostname=host)
    seen = {gpu.index: LoadedLink(5, 16) for gpu in machine.gpus}
    return Subject(host, machine, tuple(digests), f"{host}.wwp", created, "planted",
                links={**seen, **(links or {})})  # fmt: skip


def _from(first: int, donors: Sequence[Donor]) -> list[Donor]:
    """The donors, beginning with another one."""
    at = first % len(donors)
    return [*donors[at:], *donors[:at]]


def _block(number: int, seconds: float, donor: Donor) -> BlockSummary:
    median = seconds * float(np.exp(donor.between))
    error = standard_error(1.0, Interval(*donor.reach), 0.0, 0) if donor.reach else 0.0
    return BlockSummary(number, median, error, len(donor.within), donor.reach is not None)


def without(node: Subject, gpu: int) -> Subject:
    """A GPU has gone: those after it have moved up, and nothing was measured of it."""
    numbers = {old: old - (old > gpu) for old in range(len(node.machine.gpus)) if old != gpu}
    replace = msgspec.structs.replace
    gpus = tuple(
        replace(each, index=numbers[each.index]) for each in node.machine.gpus if each.index != gpu
    )
    digests = []
    for digest in node.points:
        if gpu not in gpus_of(digest.workload):
            moved = renumbered(digest.workload, numbers)
            digests.append(Point.of(moved, digest.blocks))
    return replace(
        node,
        machine=replace(node.machine, gpus=gpus),
        points=tuple(digests),
        links={numbers[old]: link for old, link in node.links.items() if old != gpu},
    )
