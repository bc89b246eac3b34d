"""The noise between surveys of one machine, by what all of its paths show together.

One path of one survey does not show by how much it differs in the next one. All paths of a machine
do: most of them have not changed. Each gives contrasts: how the surveys of one side differ, and how
both sides differ beside the path in the middle. What processes add to a contrast is known
(`waywiser.stats.noise_model.share_beside_surveys`), and the rest is the noise between surveys.

The estimate is that of normal values without those beyond `FAR` deviations, which are faults. It
starts at the quiet quarter of all contrasts, so that large faults of nearly half of all paths do
not widen it (shortest half: Rousseeuw & Leroy, "Robust Regression and Outlier Detection", 1987).
Contrasts weigh as much as they show (iterated moments: Paule & Mandel, J. Research NBS 87, 1982).
If they are few, `ASSUMED` counts beside them as `ASSUMED_PATHS` contrasts (conjugate prior: Smyth,
Statistical Applications in Genetics 3, 2004); without any it is all that is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from waywiser.stats.distributions import f_tail
from waywiser.stats.noise_model import LEAST_VARIANCE, Surveys, Variance
from waywiser.stats.order import median

ASSUMED = 0.01
"""Deviation between surveys if no path shows it: 1 %."""

ASSUMED_PATHS = 4
"""Contrasts as which `ASSUMED` counts, beside fewer than `ENOUGH`."""

ASSUMED_SIZES = (0.157, 0.489, 0.887, 1.534)
"""The sizes of these contrasts, over `ASSUMED`: of normal values, each in the middle of a
quarter."""

ENOUGH = 10
"""Contrasts from which on nothing is assumed."""

FEWEST_PATHS = 5
"""Paths from which on the changes of all of them show the noise between surveys. Of fewer, half may
have a fault."""

FAR = 3.0
"""Deviations from which on a contrast is none of the noise."""

NOT_OF_MACHINE = 0.001
"""Chance below which the variance between surveys is too large, or too small, to be that of the
machine."""

OF_REST = 0.973
"""Variance of normal values without those beyond `FAR` deviations, over that of all."""

QUARTER = 0.3186
"""The size that a quarter of normal values is below, over their deviation."""

LEAST_FREEDOM = 1.0
"""Degrees of freedom of a noise between surveys that is small beside what processes add."""

ROUNDS = 20
"""Rounds of the estimate. It changes by less than a thousandth in the last ones."""


class Contrast(NamedTuple):
    """A difference between surveys that a path without a fault does not have on average."""

    value: float
    """A difference of logarithms; of several contrasts the root of their mean square."""
    share: float
    """The noise of one survey in its variance, over the noise of one survey."""
    added: float
    """What processes add to its variance."""
    number: int = 1
    """How many contrasts it stands for."""


class BetweenSurveys(NamedTuple):
    """The noise of one survey beside that of its processes."""

    variance: Variance
    contrasts: int
    """How many show it; 0 if it is assumed."""

    def without(self, own: Sequence[Contrast]) -> Variance:
        """The same as the other contrasts show it, without its ``own``."""
        value, freedom = self.variance.value, self.variance.freedom
        weighed = [_weighed(each, value) for each in own]
        left = max(freedom - sum(weight for weight, _ in weighed), LEAST_FREEDOM)
        total = freedom * value - sum(weight * square for weight, square in weighed)
        return Variance(max(total / left, LEAST_VARIANCE), left)


def within_side(side: Surveys, added: float) -> Iterator[Contrast]:
    """How the surveys of one side differ: one contrast less than surveys. ``added`` is the variance
    that its processes add to a survey."""
    logs = list(map(math.log, side.medians))
    if len(logs) > 1:
        yield Contrast(stdev(logs), 1.0, added, len(logs) - 1)


def between_sides(changes: Sequence[Contrast]) -> Iterator[Contrast]:
    """How the changes of all paths differ from the middle one; none of fewer than
    `FEWEST_PATHS`."""
    if len(changes) >= FEWEST_PATHS:
        left = 1 - 1 / len(changes)  # the middle follows each of them a little
        for value, share, added, _ in beside_most(changes):
            yield Contrast(value, share * left, added * left)


def beside_most(values: Sequence[Contrast]) -> Iterator[Contrast]:
    """How values differ from the mean of those that are not far from the half that lies closest
    together."""
    ordered = sorted(each.value for each in values)
    half = max(1, len(ordered) // 2)
    starts = range(len(ordered) - half + 1)
    first = min(starts, key=lambda at: ordered[at + half - 1] - ordered[at])
    middle = median(ordered[first : first + half])
    apart = sorted(abs(each - middle) for each in ordered)
    quiet = apart[(len(apart) - 1) // 4] / QUARTER
    share = median([each.share for each in values])
    most = FAR * max(quiet, ASSUMED * math.sqrt(share))
    mean = fmean([each for each in ordered if abs(each - middle) <= most])
    for each in values:
        yield each._replace(value=each.value - mean)


def noise_between_surveys(contrasts: Sequence[Contrast]) -> BetweenSurveys:
    """The noise of one survey beside that of its processes, by all contrasts of a machine."""
    number = sum(each.number for each in contrasts)
    value, assumed = ASSUMED**2, 0 if number >= ENOUGH else ASSUMED_PATHS
    freedom = float(assumed)
    if contrasts:
        rest = [max(0.0, each.value**2 - each.added) / each.share for each in contrasts]
        rest = sorted([*rest, *((ASSUMED * size) ** 2 for size in ASSUMED_SIZES[:assumed])])
        quiet = math.sqrt(rest[(len(rest) - 1) // 4]) / QUARTER
        value = max(quiet, ASSUMED) ** 2
    for _ in range(ROUNDS if contrasts else 0):
        weighed = [_weighed(each, value) for each in contrasts]
        freedom = max(assumed + sum(weight for weight, _ in weighed), LEAST_FREEDOM)
        total = assumed * ASSUMED**2 + sum(weight * square for weight, square in weighed)
        value = max(total / freedom, LEAST_VARIANCE)
    return BetweenSurveys(Variance(value, freedom), number)


def survey_noise_of(own: Variance | None, expected: Variance) -> Variance | None:
    """The variance between surveys that a path or equivalent ones show, if it is too large or too
    small to be the ``expected`` one (F-tests at `NOT_OF_MACHINE`; or `FAR` deviations), or if
    nothing else is known; else None."""
    if own is None or own.freedom <= 0:
        return None
    if expected.freedom <= 0 or own.value > FAR**2 * expected.value:
        return own
    larger = f_tail(own.freedom, expected.freedom, own.value / expected.value)
    smaller = f_tail(expected.freedom, own.freedom, expected.value / own.value)
    return own if min(larger, smaller) < NOT_OF_MACHINE else None


def _weighed(contrast: Contrast, variance: float) -> tuple[float, float]:
    """How much a contrast shows of the noise of a ``variance``, and which variance it shows;
    nothing if it is far off."""
    value, share, added, number = contrast
    expected = share * variance + added
    if value**2 > FAR**2 * expected:
        return 0.0, 0.0
    of_rest = OF_REST if number == 1 else 1.0
    return number * (share * variance / expected) ** 2, (value**2 / of_rest - added) / share
