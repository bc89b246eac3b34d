"""What other machines' blocks did: for comparisons in which there are too few blocks to tell.

From H200 surveys (``docs/results`` and their like): how far the medians of two fresh processes lay
apart. Plain paths (`waywiser.analysis.unit.Kin`) from 16 MiB up differed by 0.1 % in the middle and
by 0.5 % at most, 2 % where the machine was busy; below 16 MiB by up to 6 %, below 64 KiB by up to
13 %. What depends on where pages are (managed and pageable memory, files, threads) has a process of
its own kind now and then, and was seen to differ threefold: one block of it says next to nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from waywiser.analysis.unit import Kin, Regime


class Usual(NamedTuple):
    deviation: float
    """Standard deviation of a block's logarithm."""
    jump: float
    """The most that two blocks of one path differed by, over sizes, rounded up."""
    size_jump: float
    """The same of one size alone."""


_PLAIN: dict[Regime, Usual] = {
    "rate": Usual(0.003, 0.025, 0.04),
    "between": Usual(0.02, 0.07, 0.1),
    "latency": Usual(0.05, 0.17, 0.25),
}
_OTHER = Usual(0.2, 2.0, 2.0)

FREEDOM = 4
"""Degrees of freedom that experience counts for: another machine may well be noisier."""

MOST_BEYOND = 5.0
"""Times experience: what others show beyond it is not noise but that most of them differ."""

SPREAD = 2.0
"""A block's median is never taken to be surer than so many deviations of single samples."""


def usual(kin: Kin) -> Usual:
    return _PLAIN.get(kin.regime, _OTHER) if kin.plain else _OTHER
