"""Whether two things take equally long, longer, or whether that cannot be told.

That no difference was found does not make two paths equal: equality is tested for, within a stated
margin, by two one-sided tests (Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and
the Power Approach ...", J. Pharmacokinetics and Biopharmaceutics 15, 1987). All is done on
logarithms of the medians of blocks, so that a ratio and its inverse are judged alike.

    6 and more blocks on both sides   ratio after Hodges & Lehmann; tests and interval by rank, or,
                                      where more series tell the scatter of blocks, Student's t with
                                      that of most blocks: by rank one odd block of twelve hides
                                      what the others show
    2 and more on both sides          Student's t with the scatter between blocks pooled over series
                                      that ought to scatter alike (`waywiser.stats.between`); to
                                      differ, every block of one side must differ from every block
                                      of the other, their intervals included
    else                              the hull of the intervals within blocks, and for that block of
                                      twice the range of its middle half to either side: no test
    other tools' summaries            medians alone: nothing is told
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from waywiser.stats import ranks
from waywiser.stats.between import Between, Scatter, middling, pooled, variance_of_median
from waywiser.stats.block import BlockEstimate
from waywiser.stats.estimate import Estimate
from waywiser.stats.order import Interval, median, ratio_of, ratios_of
from waywiser.words import Value

MARGIN = 0.025
"""Ratios within it are equal, those beyond it differ. It is half of the smallest effect that is to
be found, 5 %, so that calling such an effect nothing and calling nothing an effect are as far; it
is more than links of one kind were seen to differ by (0.8 % among the peer links of an H200, 1.3 %
among its memories), and more than the 2 % within which a series' median is known when it is said to
have converged."""

SIGNIFICANT = 0.05
"""Of the two one-sided tests, as their 90 % interval has it by custom."""

MANY = 6
"""Blocks on both sides from which on ranks are tested: fewer have no 95 % interval of a median."""

AGAINST = 0.10
"""Ranks speak against a verdict above this p-value: of six blocks a side where more than seven
pairs of thirty-six say the opposite, which one odd block makes six of."""

SHIFT_VARIANCE = 1.1
"""Of the shift after Hodges & Lehmann between two groups of six to twelve normal values, over that
of their means."""

Verdict = Literal["equal", "more", "less", "unclear"]

How = Literal["ranks of blocks", "pooled blocks", "within blocks", "medians alone"]


class Comparison(Value, frozen=True):
    """Two medians in relation."""

    ratio: float
    """Of the first to the second: 1.05 where the first takes 5 % longer."""
    interval: Interval | None
    """95 %, of the ratio; None where there are medians alone."""
    how: How
    """What the interval and the verdict stand on."""
    verdict: Verdict
    """``more`` where the first takes longer by more than the margin."""
    p_differ: float | None
    """That any of as many as were asked together would differ by so much by chance; None where no
    test is possible."""
    p_equal: float | None
    """That they would be as near by chance though a margin apart."""

    @property
    def effect(self) -> float:
        """By how much the first takes longer (or, negative, less), relative to the second."""
        return self.ratio - 1.0

    @property
    def effect_interval(self) -> Interval | None:
        if self.interval is None:
            return None
        return Interval(self.interval.low - 1.0, self.interval.high - 1.0)


def compare(
    a: Estimate,
    b: Estimate,
    margin: float = MARGIN,
    between: Scatter | None = None,
    among: int = 1,
) -> Comparison:
    """The times of ``a`` in relation to those of ``b``.

    ``between`` is the scatter of blocks, by `scatter_of` or `waywiser.stats.clustered`, where more
    than these two series tell it. ``among`` so many tests a difference would be told.
    """
    ratio = a.median / b.median
    if a.summary or b.summary:
        return Comparison(ratio, None, "medians alone", "unclear", None, None)
    logs_a, logs_b = _logs(a.blocks), _logs(b.blocks)
    fewest = min(len(logs_a), len(logs_b))
    if fewest >= MANY:
        if between is not None:
            return _shifted(logs_a, logs_b, margin, between, among)
        return _by_ranks(logs_a, logs_b, margin, among)
    between = between or pooled([logs_a, logs_b])
    if fewest >= 2 and between is not None:
        hull = _hull(reach(a), reach(b))
        return _pooled(logs_a, logs_b, margin, between, hull, among)
    hull = _hull(_far_reach(a), _far_reach(b))
    how: How = "within blocks" if hull else "medians alone"
    return Comparison(ratio, hull, how, judged(hull, margin), None, None)


def scatter_of(series: Iterable[Sequence[float]], least: float = 0.0) -> Between | None:
    """Of blocks of ``series`` that ought to scatter alike, for `compare`: of most of them where
    each has `MANY`, of all where there are fewer; never told as less than ``least``."""
    known = [values for values in series if values]
    many = bool(known) and min(map(len, known)) >= MANY
    return middling(known, least) if many else pooled(known, least)


def judged(interval: Interval | None, margin: float = MARGIN) -> Verdict:
    """What an interval of a ratio says: equal where it lies within the margin, more or less where
    it lies wholly beyond."""
    if interval is None:
        return "unclear"
    if interval.low > 1 + margin:
        return "more"
    if interval.high < 1 / (1 + margin):
        return "less"
    within = interval.low >= 1 / (1 + margin) and interval.high <= 1 + margin
    return "equal" if within else "unclear"


def tost(a: Sequence[float], b: Sequence[float], margin: float) -> float:
    """p-value of equivalence by rank: the larger of two one-sided tests, that ``a`` does not lie
    above ``b`` by the margin and that it does not lie below.

    Values are logarithms; ``margin`` is of the ratio.
    """
    limit = math.log1p(margin)
    not_above = ranks.p_above([y + limit for y in b], a)
    not_below = ranks.p_above(a, [y - limit for y in b])
    return max(not_above, not_below)


def _by_ranks(a: list[float], b: list[float], margin: float, among: int) -> Comparison:
    ratio = ratio_of(ranks.shift(a, b))
    interval = _exp(ranks.shift_interval(a, b))
    p_equal = tost(a, b, margin)
    verdict = judged(interval, margin)
    if p_equal <= SIGNIFICANT and verdict == "unclear":
        verdict = "equal"
    p_differ = min(1.0, ranks.p_apart(a, b) * among)
    return Comparison(ratio, interval, "ranks of blocks", verdict, p_differ, p_equal)


def _shifted(
    a: list[float], b: list[float], margin: float, between: Scatter, among: int
) -> Comparison:
    shift = ranks.shift(a, b)
    variance = SHIFT_VARIANCE * (1 / len(a) + 1 / len(b))
    interval = _exp(between.around(shift, variance))
    beyond = math.log1p(margin) - abs(shift)
    p_equal = between.p_value(beyond, variance) / 2 if beyond > 0 else 1.0
    p_differ = between.p_value(shift, variance, among)
    verdict = judged(interval, margin)
    if verdict != "unclear":
        ranked = tost(a, b, margin) if verdict == "equal" else ranks.p_apart(a, b)
        verdict = verdict if ranked <= AGAINST else "unclear"
    return Comparison(ratio_of(shift), interval, "pooled blocks", verdict, p_differ, p_equal)


def _pooled(
    a: list[float],
    b: list[float],
    margin: float,
    between: Scatter,
    hull: Interval | None,
    among: int,
) -> Comparison:
    difference = median(a) - median(b)
    variance = variance_of_median(len(a)) + variance_of_median(len(b))
    interval = _exp(between.around(difference, variance))
    limit = math.log1p(margin)
    beyond = limit - abs(difference)
    p_equal = between.p_value(beyond, variance) / 2 if beyond > 0 else 1.0
    verdict = judged(interval, margin)
    if verdict in ("more", "less") and hull is not None and judged(hull, margin) != verdict:
        verdict = "unclear"
    p_differ = between.p_value(difference, variance, among)
    return Comparison(ratio_of(difference), interval, "pooled blocks", verdict, p_differ, p_equal)


def _logs(blocks: Sequence[BlockEstimate]) -> list[float]:
    return [math.log(block.median) for block in blocks if block.median > 0]


def _hull(a: Interval | None, b: Interval | None) -> Interval | None:
    """Of the ratio of anything within ``a`` to anything within ``b``."""
    if a is None or b is None or min(a.low, b.low) <= 0:
        return None
    return Interval(a.low / b.high, a.high / b.low)


def _far_reach(estimate: Estimate) -> Interval | None:
    """Of a single block: how far another one would be is not known, so that only an effect beyond
    all but the odd sample is told (2.7 deviations of a normal scatter)."""
    span = reach(estimate)
    if span is None or len(estimate.blocks) > 1:
        return span
    away = 2 * estimate.blocks[0].spread
    low, high = estimate.median * max(0.0, 1 - away), estimate.median * (1 + away)
    return Interval(min(span.low, low), max(span.high, high))


def reach(estimate: Estimate) -> Interval | None:
    """Seconds within which the medians of all its blocks may lie: the hull of their intervals.

    Of a block with too few samples for an interval, as far to either side as the farthest of them
    is: extremes hold the median with 94 % where there are five. None where nothing but one median
    is known.
    """
    lows, highs = [], []
    for block in estimate.blocks:
        if block.interval is not None:
            lows.append(block.interval.low)
            highs.append(block.interval.high)
        elif block.count > 1 and not block.summary:
            lows.append(block.median * max(0.0, 1 - block.farthest))
            highs.append(block.median * (1 + block.farthest))
        else:
            lows.append(block.median)
            highs.append(block.median)
    if len(estimate.blocks) == 1 and lows == highs and estimate.blocks[0].interval is None:
        return None
    return Interval(min(lows), max(highs))


def _exp(logs: Interval | None) -> Interval | None:
    return None if logs is None else ratios_of(logs)
