"""One decision for every measured difference: significance, threshold, and what could be missed.

An effect is the logarithm of a ratio of times with its variance. It is ``different`` if its
interval, corrected for all that is asked together, excludes no change, and the estimate exceeds
the threshold. It is ``equivalent`` if its 90 % interval lies within the threshold (two one-sided
tests: Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987). Everything else is ``no
change found``. Each decision states the detectable effect: the smallest true effect that would be
found with a power of 80 % at the effect's own 5 %, threshold included; beside a larger effect that
has no verdict, at the level at which it was tested among all others. So no effect without a verdict
is larger than what its decision says would be found.

Headline effects are corrected after Holm (Scandinavian Journal of Statistics 6, 1979): the chance
of any false difference among them is at most `SIGNIFICANT`. All others are corrected after
Benjamini & Hochberg (J. Royal Statistical Society B 57, 1995): of the differences found among them,
at most `SIGNIFICANT` are false on average.

A loss is ``suspected`` if it exceeds the threshold and is significant by itself but not among all
headline effects, or if nothing replicates it and it exceeds the lower limit of the noise by far. It
should be measured again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from waywiser.stats.distributions import student_quantile, student_tail
from waywiser.stats.noise_model import Variance
from waywiser.stats.order import CONFIDENCE, Interval, ratio_of
from waywiser.words import Value

THRESHOLD = 0.03
"""Relative changes up to this one are no finding, however sure they are."""

SIGNIFICANT = 0.025
"""The level of each of the two families, so that a comparison in which nothing has changed shows
any difference in at most 5 % of cases."""

FALSE_LOSSES = 1 / 300
"""The chance, at most, that paths of which nothing has changed show a regression, and that equal
links of a machine show a slow one."""

POWER = 0.80

SUSPECT_DEVIATIONS = 3.0
"""Deviations of a lower limit of the noise beyond which a difference is suspected."""

TestOutcome = Literal["different", "equivalent", "no change found"]


class Effect(NamedTuple):
    """A change of time."""

    log_ratio: float
    """Now over before: above 0 is slower."""
    variance: Variance
    """The variance of ``log_ratio``."""
    headline: bool = False
    threshold: float = THRESHOLD
    """The relative change that matters: a smaller one is no finding."""
    tests: int = 1
    """The number of tests of which this one shows most (Bonferroni)."""

    @property
    def limit(self) -> float:
        """The threshold as a logarithm of a ratio."""
        return math.log1p(self.threshold)

    @property
    def p(self) -> float | None:
        """Chance of such an effect without a change, on both sides, by Student's t; None without
        degrees of freedom."""
        if self.variance.freedom <= 0:
            return None
        tail = student_tail(self.variance.freedom, self.log_ratio / self.variance.deviation)
        return min(1.0, 2 * self.tests * tail)

    def detectable(self, level: float = 1 - CONFIDENCE) -> float | None:
        """The smallest relative loss that is found with `POWER` by a test at ``level``; None
        without degrees of freedom."""
        freedom, error = self.variance.freedom, self.variance.deviation
        if freedom <= 0:
            return None
        least = max(self.limit, student_quantile(freedom, 1 - level / 2 / self.tests) * error)
        return 1 - math.exp(-(least + student_quantile(freedom, POWER) * error))


class Decision(Value, frozen=True):
    """What a measured change means."""

    outcome: TestOutcome = msgspec.field(name="verdict")
    ratio: float
    """The ratio of bandwidths (of inverse times), now over before: 0.95 is 5 % slower."""
    interval: Interval | None
    """95 % of the ratio, for this effect alone; None if nothing replicates it."""
    p: float | None
    """Chance of such a difference without a change, for this effect alone."""
    p_corrected: float | None
    """The same among all that was asked together."""
    detectable: float | None
    """Smallest relative loss that would have been found; None if the noise is not known."""
    deviation: float
    """Standard error of the logarithm of the ratio; a lower limit without replicates."""
    freedom: float
    suspected: bool = False
    """A loss that should be measured again before it counts."""

    @property
    def slower(self) -> bool:
        return self.ratio < 1

    def is_different_alone(self, threshold: float) -> bool:
        """Whether it exceeds the threshold and its own interval excludes no change, but it is not
        significant among all that was asked together."""
        if self.outcome == "different" or self.suspected or self.interval is None:
            return False
        beyond = abs(math.log(self.ratio)) > math.log1p(threshold)
        return beyond and not self.interval.low <= 1 <= self.interval.high


def decide(
    effects: Sequence[Effect], significant: float = SIGNIFICANT, among: int = 0
) -> list[Decision]:
    """Decides about all effects that are asked together, in their order.

    Effects without degrees of freedom are not tested. ``among`` is the number of headline effects
    if only those with the largest differences are given.
    """
    tested = [(n, p) for n, each in enumerate(effects) if (p := each.p) is not None]
    corrected: dict[int, float] = {}
    for headline, correct in ((True, holm), (False, benjamini_hochberg)):
        known = {n: p for n, p in tested if effects[n].headline is headline}
        others = [1.0] * max(0, among - len(known)) if headline else []
        corrected.update(zip(known, correct([*known.values(), *others]), strict=False))
    return [_decision(each, corrected.get(n), significant) for n, each in enumerate(effects)]


def holm(p_values: Sequence[float]) -> list[float]:
    """The adjusted p-values, in the order given.

    The k-th smallest of m is multiplied by m - k + 1; none is then below a smaller one's, or above
    1. Rejecting where the adjusted value is at most 5 % rejects any true null hypothesis at all in
    at most 5 % of families.
    """
    import numpy as np

    values = np.array(p_values, float)
    ascending = np.argsort(values, kind="stable")
    raised = values[ascending] * np.arange(len(values), 0, -1)
    values[ascending] = np.minimum(1.0, np.maximum.accumulate(raised))
    return list(map(float, values))


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The adjusted p-values, in the order given.

    The k-th smallest of m is multiplied by m / k; none is then above a larger one's. Rejecting
    where the adjusted value is at most 5 % makes at most 5 % of the rejections false on average.
    """
    import numpy as np

    values = np.array(p_values, float)
    descending = np.argsort(-values, kind="stable")
    raised = values[descending] * len(values) / np.arange(len(values), 0, -1)
    values[descending] = np.minimum(1.0, np.minimum.accumulate(raised))
    return list(map(float, values))


def _decision(effect: Effect, p_corrected: float | None, significant: float) -> Decision:
    change, variance, limit = effect.log_ratio, effect.variance, effect.limit
    error, beyond = variance.deviation, abs(change) > limit
    outcome: TestOutcome = "no change found"
    interval = None
    if p_corrected is not None:
        half = student_quantile(variance.freedom, (1 + CONFIDENCE) / 2) * error
        interval = Interval(ratio_of(-change - half), ratio_of(-change + half))
        if p_corrected <= significant and beyond:
            outcome = "different"
        elif abs(change) + student_quantile(variance.freedom, CONFIDENCE) * error <= limit:
            outcome = "equivalent"
    return Decision(
        outcome=outcome,
        ratio=ratio_of(-change),
        interval=interval,
        p=effect.p,
        p_corrected=p_corrected,
        detectable=_detectable(effect, p_corrected, significant, outcome),
        deviation=error,
        freedom=variance.freedom,
        suspected=outcome != "different" and change > limit and _is_suspicious(effect),
    )


def _detectable(
    effect: Effect, p_corrected: float | None, significant: float, outcome: TestOutcome
) -> float | None:
    """The smallest loss that would have been found. If a larger effect without a verdict stands
    beside it, that is so because all effects are tested together: then at that level."""
    alone = effect.detectable()
    if alone is None or outcome == "different" or 1 - math.exp(-abs(effect.log_ratio)) <= alone:
        return alone
    return effect.detectable(_level(effect.p, p_corrected, significant))


def _level(p: float | None, p_corrected: float | None, significant: float) -> float:
    """The level at which an effect was tested by itself: that of all, less by as much as its
    p-value was raised; never a looser one than an interval's."""
    if not p or p_corrected is None:
        return 1 - CONFIDENCE
    return min(1 - CONFIDENCE, significant * p / p_corrected)


def _is_suspicious(effect: Effect) -> bool:
    if effect.p is None:
        return effect.log_ratio > effect.limit + SUSPECT_DEVIATIONS * effect.variance.deviation
    return effect.headline and effect.p <= 1 - CONFIDENCE
