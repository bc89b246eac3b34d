"""Sets with a collective whose slowdowns are planted, for tests of what is made of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
from tests import profiles

from waywiser.words import Workload
from waywiser.words.records import Series

ALLREDUCE = "device@gpu:0-1 -> device@gpu:0-1 by nccl[collective=allreduce] of 256MiB"
PINNED = "device@gpu:0 -> pinned@numa:0 by copy-engine of 1GiB"
PAGEABLE = "device@gpu:0 -> pageable@numa:0 by copy-engine of 1GiB"
STAGED = "device@gpu:0 -> pageable@numa:0 by staged of 1GiB"
PRODUCT = "device@gpu:0 -> device@gpu:0 by matrix-product of 64MiB"


def sustained(
    members: Sequence[str],
    slowdowns: Sequence[float],
    *,
    blocks: int = 2,
    noise: float = 1e-3,
    alone: Sequence[float] = (),
) -> list[Series]:
    """A set whose members take ``alone`` seconds without the others, and so many times as long
    together with them. A drift of all times is in both, as samples are taken in turn."""
    work = Workload.parse("; ".join(members))
    alone = alone or [1e-3 * (n + 1) for n in range(len(members))]
    rng = random.Random(len(members))
    visits = []
    for block in range(blocks):
        taken = profiles.samples(rng, 1e-3, 12, transfers=len(members))
        rows, others = [], []
        for n in range(len(taken)):
            drift = 1 + 0.05 * n
            around = [drift * seconds * (1 + rng.gauss(0, noise)) for seconds in alone]
            rows.append(tuple(t * s for t, s in zip(around, slowdowns, strict=True)))
            others.append(tuple(around))
        taken = msgspec.structs.replace(
            taken, span=tuple(map(max, rows)), transfers=tuple(rows), alone=tuple(others)
        )
        visits.append(profiles.visit(work, block, taken, mode="host"))
    return [Series(work, tuple(visits))]
