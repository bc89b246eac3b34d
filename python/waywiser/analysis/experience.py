"""What other machines' blocks did: for comparisons in which there are too few blocks to tell.

From H200 surveys (``docs/results`` and their like): how far the medians of two fresh processes lay
apart. Steady paths (`waywiser.analysis.unit.Habit`) from 16 MiB up differed by 0.1 % in the middle
and by 0.5 % at most, 2 % where the machine was busy; below 16 MiB by up to 6 %, below 64 KiB by up
to 13 %. Ordinary ones, whose memory may be on either side of a machine, differed up to fourfold,
and fickle ones four hundredfold: one block of them says next to nothing, or nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from waywiser.analysis.unit import Habit, Kin, Regime


class Usual(NamedTuple):
    deviation: float
    """Standard deviation of a block's logarithm."""
    jump: float
    """The most that two blocks of one path differed by, over sizes, rounded up."""
    size_jump: float
    """The same of one size alone."""


_STEADY: dict[Regime, Usual] = {
    "rate": Usual(0.003, 0.025, 0.04),
    "between": Usual(0.02, 0.07, 0.1),
    "latency": Usual(0.05, 0.17, 0.25),
}
_OTHER: dict[Habit, Usual] = {
    "ordinary": Usual(0.2, 2.0, 2.0),
    "fickle": Usual(0.2, math.inf, math.inf),
}

FREEDOM = 4
"""Degrees of freedom that experience counts for: another machine may well be noisier."""

MOST_BEYOND = 5.0
"""Times experience: what others show beyond it is not noise but that most of them differ."""

FOREIGN = 2.0
"""Times experience, for what another tool measured: nothing tells whether its machine was at rest.
On one that was not, nine in ten medians of two processes (timed by devices, from 1 MiB up) differed
by less than 1.4 % (``docs/results/2026-11-20-h200/busy-host``); the deviation at rest makes that
0.7 %."""

SPREAD = 2.0
"""A block's median is never taken to be surer than so many deviations of single samples."""


def usual(kin: Kin) -> Usual:
    return _STEADY[kin.regime] if kin.habit == "steady" else _OTHER[kin.habit]
