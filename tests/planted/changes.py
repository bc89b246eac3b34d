"""Surveys of one machine with known noise at three levels, before and after a known change.

The deviations are those measured on H200 machines between processes (logarithm of the median); a
survey deviates by half of what its processes do.
"""

from __future__ import annotations

import math
import random

from analysis.comparison import nodes
from waywiser.curves.headline import group_of
from waywiser.curves.subject import Subject
from waywiser.words import Workload

PROCESS = {
    "H2D": 0.002,
    "D2H": 0.007,
    "P2P": 0.001,
    "bidirectional": 0.03,
    "host-to-all": 0.03,
    "all-to-host": 0.045,
}
"""Deviation between processes by group of headline paths."""

SURVEY = 0.5
"""Deviation between surveys over that between processes."""

PROCESSES = 8
"""That `--preset check` measures on two GPUs."""

SAMPLES = 0.001
"""Half the width of the interval of a median within a process."""


def survey(
    seed: int, slow: nodes.Slow = lambda _: 1.0, *, gpus: int = 2, processes: int = PROCESSES
) -> Subject:
    """A survey of the machine; ``slow`` gives the factor by which a workload takes longer."""
    rng = random.Random(f"changes {seed}")
    digests = []
    for what, seconds in nodes.workloads(gpus):
        deviation = PROCESS[group_of(what) or "H2D"]
        level = math.log(seconds * slow(what)) + rng.gauss(0, SURVEY * deviation)
        medians = [math.exp(level + rng.gauss(0, deviation)) for _ in range(processes)]
        digests.append(nodes.digest(what, medians, SAMPLES))
    return Subject("node0", nodes.machine(gpus=gpus), tuple(digests), f"{seed}.wwp",
                f"2026-11-20T03:00:00.{seed % 1000:03}+00:00", "check",
                links={gpu: nodes.LoadedLink(5, 16) for gpu in range(gpus)})  # fmt: skip


def slow_path(curve: str, factor: float) -> nodes.Slow:
    return lambda what: factor if what.curve == curve else 1.0


def slow_group(group: str, factor: float) -> nodes.Slow:
    def slow(what: Workload) -> float:
        return factor if group_of(what) == group else 1.0

    return slow
