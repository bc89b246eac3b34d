"""Synthetic machines with or without hidden sides: seeded, realistic in shape, not measured.

Copies of 8 bytes take 5.7 to 5.9 us to near GPUs and 6.3 to 6.5 us to far ones, by GPU, with the
jitter of rounds and now and then an interruption; loads take 113 to 128 ns and 215 to 228 ns.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from waywiser.words.records import BlockLatencies, Locality

ROUNDS, SWEEPS = 8, 4
START = datetime(2026, 11, 20, 12, tzinfo=UTC)


def records(
    seed: int,
    *,
    sockets: int = 2,
    gpus: int = 8,
    blocks: int = 6,
    workers: int = 1,
    one_side: bool = False,
    cores: Literal["stable", "drifting"] = "stable",
) -> list[Locality]:
    """What workers find; GPUs of the lower half are on side 0."""
    rng = np.random.default_rng(seed)
    near = rng.uniform(5.7e-6, 5.9e-6, gpus)
    far = rng.uniform(6.3e-6, 6.5e-6, gpus)
    gpu_sides = np.arange(gpus) >= gpus // 2
    core_sides = rng.integers(0, 2, 8)
    found = []
    for worker in range(1, workers + 1):
        sides = rng.integers(0, 2, blocks) if sockets == 2 else np.zeros(blocks, dtype=int)
        if one_side:
            sides[:] = rng.integers(0, 2)
        latencies = []
        moving = [core_sides.copy()]
        for _ in range(1, SWEEPS):
            moved = rng.random(8) < (0.2 if cores == "drifting" else 0.0)
            moving.append(np.where(moved, 1 - moving[-1], moving[-1]))
        for side in sides:
            there = gpu_sides != side if sockets == 2 else np.zeros(gpus, dtype=bool)
            typical = np.where(there, far, near)
            copies = typical + rng.normal(0, 0.03e-6, (ROUNDS, gpus))
            copies += (rng.random((ROUNDS, gpus)) < 0.03) * rng.exponential(3e-6, (ROUNDS, gpus))
            reads = [
                np.where((now != side) & (sockets == 2), rng.uniform(215e-9, 228e-9, 8), 0)
                + np.where((now != side) & (sockets == 2), 0, rng.uniform(113e-9, 128e-9, 8))
                + (rng.random(8) < 0.02) * rng.exponential(300e-9, 8)
                for now in moving
            ]
            latencies.append(
                BlockLatencies(
                    "unverified",
                    tuple(tuple(map(float, row)) for row in copies),
                    tuple(tuple(map(float, row)) for row in reads),
                )
            )
        core_sides = moving[-1]
        found.append(
            Locality(
                worker=worker,
                started=(START + timedelta(seconds=20 * worker)).isoformat(),
                memory="pinned@numa:0",
                gpus=tuple(range(gpus)),
                cpus=tuple(range(8)),
                sweeps=tuple(0.05 * n for n in range(SWEEPS)),
                blocks=tuple(latencies),
                seconds=0.3,
            )
        )
    return found
