"""Whether a unit got better or worse: an interval, a test and a threshold, and all must agree.

A difference counts where the 95 % interval of the ratio lies wholly beyond the threshold, where it
is no chance (Student's t with the noise that `waywiser.stats.noise` finds, corrected after Holm for
all that is compared), and where ranks do not speak against it, once there are blocks enough for
ranks to speak. Equal is what lies wholly within the threshold; the rest is unclear, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from waywiser.analysis.unit import Kin, Pair, Regime, Unit, correlation_of
from waywiser.stats import ranks
from waywiser.stats.between import Between, variance_of_median
from waywiser.stats.multiplicity import holm
from waywiser.stats.noise import NOTHING, Prior, fit_prior, of_differences
from waywiser.stats.order import Interval, median
from waywiser.words import Value

Verdict = Literal["worse", "missing", "better", "unclear", "new", "same"]

How = Literal["blocks", "others", "experience"]
"""Where the noise comes from that a difference is held against: from the blocks of the series and
of those alike; with one block a side, from how the differences of those alike scatter; with too few
of these, from what blocks of other machines did."""

THRESHOLD = 0.03
"""Effects below matter to nobody, and are not reported, however sure they are."""

SIGNIFICANT = 0.05
"""Chance of any false difference in a whole comparison: half of it for paths, half for sizes."""

BLOCKS_FOR_RANKS = 4
"""A side, from which on a rank test can find a difference at all at 5 % (p = 0.029)."""

EXPERIENCE: dict[tuple[bool, Regime], float] = {
    (True, "rate"): 0.003,
    (True, "between"): 0.02,
    (True, "latency"): 0.05,
    (False, "rate"): 0.2,
    (False, "between"): 0.2,
    (False, "latency"): 0.2,
    (False, "operation"): 0.2,
    (True, "operation"): 0.2,
}
"""Standard deviation of a block's logarithm, of plain paths and others, by regime: between the
processes of the H200 surveys in ``docs/results``. What depends on where pages are (managed and
pageable memory, files, threads) has a process of its own kind now and then, so that one block of it
says next to nothing."""

EXPERIENCE_FREEDOM = 4
"""Degrees of freedom that experience counts for: another machine may well be noisier."""

MOST_BEYOND_EXPERIENCE = 5.0
"""Times experience: what others show beyond it is not noise but that most of them differ."""

EXPERIENCE_SPREAD = 2.0
"""A block's median is never taken to be surer than so many deviations of single samples."""


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


class _Measured(NamedTuple):
    difference: float
    """In logarithms of time."""
    noise: Between
    variance: float
    """Of the difference, over that of one block."""
    how: How
    blocks: tuple[int, int]
    p_of_ranks: float


def judge_units(units: Sequence[Unit], threshold: float) -> list[tuple[Judged, tuple[Judged, ...]]]:
    """Of each unit as a whole, and of each of its sizes."""
    measured = _measured(units)
    single = [
        [_of_size(pair, whole) for pair in unit.pairs]
        for unit, whole in zip(units, measured, strict=True)
    ]
    wholes = _judge(measured, threshold)
    flat = iter(_judge([each for sizes in single for each in sizes], threshold))
    judged = []
    for unit, whole, sizes in zip(units, wholes, single, strict=True):
        found = tuple(next(flat) for _ in sizes)
        judged.append((whole, found if len(unit.pairs) > 1 else (whole,)))
    return judged


def _measured(units: Sequence[Unit]) -> list[_Measured]:
    alike: dict[Kin, list[Unit]] = {}
    for unit in units:
        alike.setdefault(unit.kin, []).append(unit)
    found: dict[int, _Measured] = {}
    for members in alike.values():
        correlation = correlation_of(members)
        prior = _prior([unit for unit in members if unit.replicated], correlation)
        differences = [unit.difference for unit in members if not unit.replicated]
        single = of_differences(differences)
        for unit in members:
            if unit.replicated:
                noise = prior.lend(unit.variance, unit.freedom(correlation))
                found[id(unit)] = _whole(unit, noise, "blocks", unit.share(correlation))
            else:
                noise, how = _of_one_block(unit, single)
                found[id(unit)] = _whole(unit, noise, how, 1.0)
    return [found[id(unit)] for unit in units]


def _prior(units: Sequence[Unit], correlation: float) -> Prior:
    freedoms = [unit.freedom(correlation) for unit in units]
    return fit_prior([unit.variance for unit in units], freedoms)


def _whole(unit: Unit, noise: Between, how: How, share: float) -> _Measured:
    variance = share * sum(map(variance_of_median, unit.blocks))
    ranked = _p_of_ranks(unit.pairs)
    return _Measured(unit.difference, noise, variance, how, unit.blocks, ranked)


def _of_one_block(unit: Unit, others: Prior) -> tuple[Between, How]:
    """Where no side has two blocks: experience, or what the others show, if that is more."""
    variance = sum(map(variance_of_median, unit.blocks))
    usual = EXPERIENCE[unit.kin.plain, unit.kin.regime]
    least = max(usual, EXPERIENCE_SPREAD * unit.sampled)
    if others == NOTHING:
        return Between(least, EXPERIENCE_FREEDOM), "experience"
    shown = math.sqrt(others.variance / variance)
    deviation = max(least, min(shown, MOST_BEYOND_EXPERIENCE * usual))
    return Between(deviation, EXPERIENCE_FREEDOM + math.floor(others.freedom)), "others"


def _of_size(pair: Pair, whole: _Measured) -> _Measured:
    """One size is not taken to scatter less than its curve does."""
    own = math.sqrt(pair.variance if pair.freedom > 0 else pair.within)
    noise = Between(max(own, whole.noise.deviation), whole.noise.freedom)
    blocks = (len(pair.before), len(pair.after))
    variance = sum(map(variance_of_median, blocks))
    return _Measured(pair.difference, noise, variance, whole.how, blocks, _p_of_ranks([pair]))


def _p_of_ranks(pairs: Sequence[Pair]) -> float:
    """The middle one over sizes; 0 where there are too few blocks for ranks to speak."""
    enough = [pair for pair in pairs if min(len(pair.before), len(pair.after)) >= BLOCKS_FOR_RANKS]
    if len(enough) < len(pairs):
        return 0.0
    return median([ranks.p_apart(pair.before, pair.after) for pair in enough])


def _judge(measured: Sequence[_Measured], threshold: float) -> list[Judged]:
    raw = [each.noise.p_value(each.difference, each.variance) for each in measured]
    limit = math.log1p(threshold)
    found = []
    for each, p in zip(measured, holm(raw), strict=True):
        around = each.noise.around(each.difference, each.variance)
        verdict: Verdict = "unclear"
        sure = p <= SIGNIFICANT / 2 and each.p_of_ranks <= SIGNIFICANT
        if around.low > limit and sure:
            verdict = "worse"
        elif around.high < -limit and sure:
            verdict = "better"
        elif -limit <= around.low and around.high <= limit:
            verdict = "same"
        interval = Interval(math.exp(-around.high), math.exp(-around.low))
        ratio = math.exp(-each.difference)
        found.append(Judged(verdict, ratio, interval, p, each.how, each.blocks))
    return found
