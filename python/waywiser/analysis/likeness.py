"""What units that are alike tell of one another: how far their blocks scatter, and jump.

Scatter makes an interval. A jump is something else: a path that is at one time here and at another
there, as one does whose memory lies on either side of a machine. Two blocks may agree by chance and
then differ from two others that agree; no variance of theirs tells. So where blocks are few, a
difference must be larger than any that was seen between two blocks of one side, on all that is
alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from waywiser.analysis import experience
from waywiser.analysis.unit import Kin, Unit, correlation_of
from waywiser.stats.between import Between, variance_of_median
from waywiser.stats.noise import NOTHING, Prior, fit_prior, of_differences

How = Literal["blocks", "others", "spread", "experience", "foreign"]
"""Where the noise comes from that a difference is held against: from the blocks of the series and
of those alike; with one block a side, from how the differences of those alike scatter; with too few
of these, from the spread of its own samples, or, where that is less, from what blocks of other
machines did, and from more than that for another tool's results."""

MANY_JUMPS = 20
"""Sides with two blocks or more, below which the largest jump may not have been seen yet."""


JUMP_MARGIN = 1.5
"""Times the largest jump that was seen: the next one may be larger."""


class Likeness(NamedTuple):
    """What units of one kin have in common."""

    correlation: float
    """Between sizes, of what a block does."""
    scatter: Prior
    differences: Prior
    """Of units that have one block a side."""
    jump: float
    """What a unit as a whole does not jump by."""
    size_jump: float
    """What no size jumps by."""

    def noise(self, unit: Unit) -> tuple[Between, How]:
        if unit.replicated:
            return self.scatter.lend(unit.variance, unit.freedom(self.correlation)), "blocks"
        known = experience.usual(unit.kin).deviation
        if unit.foreign:
            known *= experience.FOREIGN
        own = experience.SPREAD * unit.sampled
        least, freedom = max(known, own), experience.FREEDOM
        how: How = "spread" if own > known else "foreign" if unit.foreign else "experience"
        if self.differences == NOTHING:
            return Between(least, freedom), how
        variance = sum(map(variance_of_median, unit.blocks))
        shown = math.sqrt(self.differences.variance / variance)
        shown = min(shown, experience.MOST_BEYOND * known)
        return (
            Between(max(least, shown), freedom + math.floor(self.differences.freedom)),
            "others" if shown > least else how,
        )

    def share(self, unit: Unit) -> float:
        """Of the variance of one size, what is left in the unit."""
        return unit.share(self.correlation) if unit.replicated else 1.0


def likenesses(units: Sequence[Unit]) -> dict[Kin, Likeness]:
    """Of all kins."""
    alike: dict[Kin, list[Unit]] = {}
    for unit in units:
        alike.setdefault(unit.kin, []).append(unit)
    return {
        kin: _likeness(kin, members, [unit for unit in units if _jump_alike(unit.kin, kin)])
        for kin, members in alike.items()
    }


def _jump_alike(one: Kin, other: Kin) -> bool:
    """What is not steady has many reasons to jump, and the largest jump of one kin may be next that
    of another; a steady one's kin is all that jumps like it."""
    return one == other if one.habit == "steady" else one.habit == other.habit


def _likeness(kin: Kin, units: Sequence[Unit], jumpy: Sequence[Unit]) -> Likeness:
    """``jumpy`` are those whose jumps it may have to expect."""
    correlation = correlation_of(units)
    replicated = [unit for unit in units if unit.replicated]
    scatter = fit_prior(
        [unit.variance for unit in replicated], [unit.freedom(correlation) for unit in replicated]
    )
    differences = of_differences([unit.difference for unit in units if not unit.replicated])
    return Likeness(correlation, scatter, differences, *_jumps(kin, jumpy))


def _jumps(kin: Kin, units: Sequence[Unit]) -> tuple[float, float]:
    """What a unit, and what a size, does not jump by."""
    jumps = [jump for unit in units for jump in unit.jumps]
    sizes = [jump for unit in units for jump in unit.size_jumps]
    whole = JUMP_MARGIN * max(jumps, default=0.0)
    single = JUMP_MARGIN * max(sizes, default=0.0)
    if len(jumps) < MANY_JUMPS:
        known = experience.usual(kin)
        whole, single = max(whole, known.jump), max(single, known.size_jump)
    return whole, max(whole, single)
