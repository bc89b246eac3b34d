"""Whether a unit got better or worse: an interval, a test and a threshold, and all must agree.

A difference counts where the 95 % interval of the ratio lies wholly beyond the threshold, where it
is no chance (Student's t with the noise that `waywiser.stats.noise` finds, corrected after Holm for
all that is compared), and where ranks do not speak against it; with too few blocks for ranks to
speak, where it is larger than jumps between blocks of one side (`waywiser.analysis.likeness`).
Equal is what lies wholly within the threshold; the rest is unclear, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from waywiser.analysis.likeness import How, Likeness, likenesses
from waywiser.analysis.unit import Pair, Unit
from waywiser.stats import ranks
from waywiser.stats.between import Between, variance_of_median
from waywiser.stats.multiplicity import holm
from waywiser.stats.order import Interval, median, ratio_of
from waywiser.words import Value

Verdict = Literal["worse", "missing", "better", "unclear", "new", "same"]

THRESHOLD = 0.03
"""Effects below matter to nobody, and are not reported, however sure they are."""

SIGNIFICANT = 0.05
"""Chance of any false difference in a whole comparison."""

FAMILIES = 4
"""That share the chance: steady paths and others, whole and single sizes."""

BLOCKS_FOR_RANKS = 4
"""A side, from which on a rank test can find a difference at all at 5 % (p = 0.029)."""


class Judged(Value, frozen=True):
    """A ratio and what it means."""

    verdict: Verdict
    ratio: float
    """Of rates, now to before: 0.95 is 5 % slower. Of operations the inverse ratio of times."""
    interval: Interval
    """95 %, of the ratio, for this one alone."""
    p: float
    """That chance makes such a difference anywhere in the whole comparison."""
    how: How
    blocks: tuple[int, int]
    """Before and now."""
    noise: float
    """Standard deviation of one block, relative, that the difference is held against."""


class _Measured(NamedTuple):
    difference: float
    """In logarithms of time."""
    noise: Between
    variance: float
    """Of the difference, over that of one block."""
    how: How
    blocks: tuple[int, int]
    jump: float
    """What a difference must exceed where blocks are few."""
    pairs: Sequence[Pair]

    @property
    def stands(self) -> bool:
        """Whether ranks speak for the difference, in the middle one of the sizes that have blocks
        enough for ranks to speak; where none has, whether no jump explains it."""
        enough = [
            pair
            for pair in self.pairs
            if min(len(pair.before), len(pair.after)) >= BLOCKS_FOR_RANKS
        ]
        if not enough:
            return abs(self.difference) > self.jump
        chances = [ranks.p_apart(pair.before, pair.after) for pair in enough]
        return median(chances) <= SIGNIFICANT


def judge_units(units: Sequence[Unit], threshold: float) -> list[tuple[Judged, tuple[Judged, ...]]]:
    """Of each unit as a whole, and of each of its sizes."""
    alike = likenesses(units)
    measured = [_of_unit(unit, alike[unit.kin]) for unit in units]
    single = [
        [_of_size(pair, whole, alike[unit.kin].size_jump) for pair in unit.pairs]
        if len(unit.pairs) > 1
        else []
        for unit, whole in zip(units, measured, strict=True)
    ]
    steady = [unit.kin.habit == "steady" for unit in units]
    wholes = iter(_judge_apart(measured, steady, threshold))
    sizes_steady = [each for each, sizes in zip(steady, single, strict=True) for _ in sizes]
    flat = iter(_judge_apart([s for sizes in single for s in sizes], sizes_steady, threshold))
    return [
        (whole, tuple(next(flat) for _ in sizes) or (whole,))
        for whole, sizes in zip(wholes, single, strict=True)
    ]


def _judge_apart(
    measured: Sequence[_Measured], steady: Sequence[bool], threshold: float
) -> list[Judged]:
    """Steady paths are a family of their own, so that hundreds of others, of which little can be
    told in any case, do not take their chances."""
    found = {
        each: iter(
            _judge([m for m, s in zip(measured, steady, strict=True) if s is each], threshold)
        )
        for each in (True, False)
    }
    return [next(found[each]) for each in steady]


def _of_unit(unit: Unit, alike: Likeness) -> _Measured:
    noise, how = alike.noise(unit)
    variance = alike.share(unit) * sum(map(variance_of_median, unit.blocks))
    return _Measured(unit.difference, noise, variance, how, unit.blocks, alike.jump, unit.pairs)


def _of_size(pair: Pair, whole: _Measured, jump: float) -> _Measured:
    """One size is not taken to scatter less than its curve does."""
    own = math.sqrt(pair.variance if pair.freedom > 0 else pair.within)
    noise = Between(max(own, whole.noise.deviation), whole.noise.freedom)
    blocks = (len(pair.before), len(pair.after))
    variance = sum(map(variance_of_median, blocks))
    return _Measured(pair.difference, noise, variance, whole.how, blocks, jump, [pair])


def _judge(measured: Sequence[_Measured], threshold: float) -> list[Judged]:
    raw = [each.noise.p_value(each.difference, each.variance) for each in measured]
    limit = math.log1p(threshold)
    found = []
    for each, adjusted in zip(measured, holm(raw), strict=True):
        p = min(1.0, FAMILIES * adjusted)
        around = each.noise.around(each.difference, each.variance)
        verdict: Verdict = "unclear"
        if around.low > limit or around.high < -limit:
            if p <= SIGNIFICANT and each.stands:
                verdict = "worse" if each.difference > 0 else "better"
        elif -limit <= around.low and around.high <= limit:
            verdict = "same"
        interval = Interval(ratio_of(-around.high), ratio_of(-around.low))
        ratio = ratio_of(-each.difference)
        noise = each.noise.deviation
        found.append(Judged(verdict, ratio, interval, p, each.how, each.blocks, noise))
    return found
