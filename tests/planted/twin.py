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

from planted.model import LARGE, Model, between, down, up, workload
from planted.noise import Donor, Pool, class_of
from waywiser.analysis.node import Link, Node, gpus_of, renumbered
from waywiser.profile.digest import BlockDigest, Digest
from waywiser.words import Workload


@dataclass(frozen=True)
class Wanted:
    """What a survey of a model visits, with the true seconds of each."""

    model: Model
    workloads: tuple[Workload, ...]
    digests: tuple[Digest, ...] = field(init=False)
    seconds: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        truth = tuple(max(self.model.seconds(each)) for each in self.workloads)
        object.__setattr__(self, "seconds", truth)
        object.__setattr__(self, "digests", tuple(Digest.of(each) for each in self.workloads))


def checked(model: Model, sizes: Sequence[int] = (LARGE,)) -> Wanted:
    """As ``--preset check`` visits: every link alone and all of them at once, at ``sizes``."""
    gpus = range(model.count)
    paths: list[tuple[str, ...]] = []
    for gpu in gpus:
        there, back = up(gpu, model.node_of(gpu)), down(gpu, model.node_of(gpu))
        paths += [(there,), (back,), (there, back)]
        paths += [(between(gpu, other),) for other in gpus if other != gpu]
    paths += [tuple(way(gpu, model.node_of(gpu)) for gpu in gpus) for way in (up, down)]
    return Wanted(model, tuple(workload(each, size) for each in paths for size in sizes))


def surveyed(
    wanted: Wanted,
    rng: np.random.Generator,
    pool: Pool,
    blocks: int,
    *,
    host: str = "planted",
    created: str = "2026-11-20T03:00:00.000+00:00",
    links: Mapping[int, Link] | None = None,
) -> Node:
    """A fresh survey, of as many blocks as recorded ones have at most."""
    lent = pool.surveys[int(rng.integers(len(pool.surveys)))]
    digests = []
    for bare, truth in zip(wanted.digests, wanted.seconds, strict=True):
        kind = class_of(bare.workload, "device")
        donors = lent[kind][int(rng.integers(len(lent[kind])))]
        first = int(rng.integers(len(donors) - blocks + 1))
        taken = tuple(
            _block(number, truth, donor)
            for number, donor in enumerate(donors[first : first + blocks])
        )
        digests.append(msgspec.structs.replace(bare, blocks=taken))
    machine = msgspec.structs.replace(wanted.model.machine, hostname=host)
    seen = {gpu.index: Link(5, 16) for gpu in machine.gpus}
    return Node(host, machine, tuple(digests), f"{host}.wwp", created, "planted",
                links={**seen, **(links or {})})  # fmt: skip


def _block(number: int, seconds: float, donor: Donor) -> BlockDigest:
    median = seconds * float(np.exp(donor.between))
    low, high = donor.reach or (None, None)
    return BlockDigest(
        number,
        median,
        median * low if low else None,
        median * high if high else None,
        len(donor.within),
        donor.stop,
    )


def without(node: Node, gpu: int) -> Node:
    """A GPU has gone: those after it have moved up, and nothing was measured of it."""
    numbers = {old: old - (old > gpu) for old in range(len(node.machine.gpus)) if old != gpu}
    replace = msgspec.structs.replace
    gpus = tuple(
        replace(each, index=numbers[each.index]) for each in node.machine.gpus if each.index != gpu
    )
    digests = []
    for digest in node.digests:
        if gpu not in gpus_of(digest.workload):
            moved = Digest.of(renumbered(digest.workload, numbers))
            digests.append(replace(moved, blocks=digest.blocks))
    return replace(
        node,
        machine=replace(node.machine, gpus=gpus),
        digests=tuple(digests),
        links={numbers[old]: link for old, link in node.links.items() if old != gpu},
    )
