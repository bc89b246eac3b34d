"""The noise of a series at three levels: survey > process > sample.

The samples of one process share its memory, its pages and its moment. So a process counts as one
replicate, however many samples it took. Surveys differ too, and only several surveys show by how
much. Values are logarithms of medians: a deviation of 0.01 is 1 %.

- A side of a comparison is the middle over surveys of the median over processes (`Surveys`): of up
  to `MEAN_OF_SURVEYS` their geometric mean, which scatters less than their median.
- No view uses a process that differs very much from the others of its survey
  (`without_outliers`): other users of a shared machine halve the bandwidth of single processes at
  times, and that says nothing about the machine. Of fewer than five processes none is an outlier.
- Variance between processes: squares around the mean of each survey, pooled over both sides, over
  the sizes of a curve and over equivalent paths.
- Variance between surveys: what the processes show of it (`share_beside_surveys`), and what all
  paths of the machine do (`noise_between_surveys`). From three surveys on a side,
  their medians show another one, and it is used if it cannot be that.
- A level that shifts within a series and returns adds the square of its size
  (`waywiser.stats.level_shift`): processes that agree during it are no replicates of each other.
- A series with one process on each side has no replicate. The scatter of its samples is a lower
  limit of its noise.

One path of one survey does not show by how much it differs in the next one. All paths of a machine
do: most of them have not changed. Each gives contrasts: how the surveys of one side differ, and how
both sides differ beside the path in the middle. What processes add to a contrast is known
(`share_beside_surveys`), and the rest is the noise between surveys.

That estimate is that of normal values without those beyond `FAR` deviations, which are faults. It
starts at the quiet quarter of all contrasts, so that large faults of nearly half of all paths do
not widen it (shortest half: Rousseeuw & Leroy, "Robust Regression and Outlier Detection", 1987).
Contrasts weigh as much as they show (iterated moments: Paule & Mandel, J. Research NBS 87, 1982).
If they are few, `ASSUMED` counts beside them as `ASSUMED_PATHS` contrasts (conjugate prior: Smyth,
Statistical Applications in Genetics 3, 2004); without any it is all that is known.

Degrees of freedom of sums and of pooled variances: Satterthwaite, "An Approximate Distribution of
Estimates of Variance Components", Biometrics Bulletin 2 (1946). Outliers by the median absolute
deviation: Hampel, "The Influence Curve and Its Role in Robust Estimation", JASA 69 (1974).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from statistics import fmean, stdev
from typing import NamedTuple

from waywiser.stats.distributions import f_tail
from waywiser.stats.order import NORMAL_SCALE, median
from waywiser.words import Value

SURVEY_SHARE = 0.5
"""Deviation between surveys over that between processes, beside that of the machine."""

SURVEYS_FOR_VARIANCE = 3
"""Surveys on a side from which on their own variance is used."""

MEAN_OF_SURVEYS = 4
"""Most surveys of a side of which the mean counts. Of more the median does, which one odd survey
does not move."""

LEAST_VARIANCE = 1e-8
"""Least variance of a logarithm: a deviation of 0.01 %. Clocks and timers do not agree better."""

OUTLIER = 5.0
"""Deviations from the median of its survey from which on a process is an outlier. The deviation is
that of a normal distribution with the same median absolute deviation."""

LEAST_OUTLIER = 0.03
"""Least distance of an outlier from the median: 3 %, which is the threshold of a change."""

MOST_OUTLIERS = 0.25
"""Largest share of a survey's processes that can be outliers. More of them are its noise."""

LEAST_WITH_OUTLIERS = 5
"""Fewest processes of which one can be an outlier."""

UNLIKE = 0.01
"""Chance below which a path's own variance is too large to be that of its equivalent paths."""

ENOUGH_FREEDOM = 6
"""Degrees of freedom of four processes on each side: with fewer, processes may agree by chance."""

MOST_FREEDOM = 1e6


class Variance(Value, frozen=True):
    """A variance of one replicate with the degrees of freedom of its estimate."""

    value: float
    freedom: float
    """0: nothing replicates it, and the value is a lower limit."""

    @property
    def deviation(self) -> float:
        return math.sqrt(self.value)


class Surveys:
    """One side of a comparison: of each survey, the median seconds of its processes."""

    def __init__(self, seconds: Sequence[Sequence[float]]) -> None:
        self.seconds = seconds

    @cached_property
    def replicates(self) -> list[tuple[float, ...]]:
        """The logarithms of each survey, without outliers."""
        return [without_outliers([math.log(each) for each in survey]) for survey in self.seconds]

    @cached_property
    def medians(self) -> list[float]:
        """The median seconds of each survey, without outliers."""
        return list(map(_median_seconds, self.replicates))

    @cached_property
    def median(self) -> float:
        """The median of `medians`."""
        return median(self.medians)

    @cached_property
    def middle(self) -> float:
        """The seconds of the side: of up to `MEAN_OF_SURVEYS` surveys their geometric mean, else
        their median."""
        if len(self.medians) > MEAN_OF_SURVEYS:
            return self.median
        return math.exp(fmean(map(math.log, self.medians)))

    @property
    def share_of_middle(self) -> float:
        """Variance of the logarithm of `middle` over that of the median of one survey."""
        count = len(self.medians)
        return 1 / count if count <= MEAN_OF_SURVEYS else median_share(count)

    @cached_property
    def share_of_survey(self) -> float:
        """Variance of the median of one survey over that between processes, the mean over
        surveys."""
        return fmean([median_share(len(each)) for each in self.replicates])


@lru_cache(maxsize=1024)
def survey_median(seconds: tuple[float, ...]) -> float:
    """The median of the seconds of the processes of one survey, without outliers."""
    return _median_seconds(without_outliers(list(map(math.log, seconds))))


def _median_seconds(logarithms: Sequence[float]) -> float:
    return median(list(map(math.exp, logarithms)))


NO_VARIANCE = Variance(0.0, MOST_FREEDOM)


class Noise(NamedTuple):
    """What the difference of two sides is held against."""

    process: Variance
    survey: Variance | None
    """Variance of the median of one survey, as surveys of the path or of equivalent ones show it;
    None if it is that of processes and of the machine."""
    machine: Variance = NO_VARIANCE
    """What the paths of the machine show of the variance of one survey, without its processes."""

    def of_survey(self, share_of_survey: float) -> Variance:
        """The variance of the median of one survey by that of processes and of the machine;
        ``share_of_survey`` as in `Surveys`."""
        weight = share_beside_surveys(share_of_survey)
        return combined([(1.0, self.machine), (weight, self.process)])


def share_beside_surveys(share_of_survey: float) -> float:
    """The variance of the median of one survey beside those of others, over that between its
    processes, as these show it: how far the median of so many deviates (``share_of_survey``, 1 for
    one process), and what makes surveys differ as it makes processes differ. What all paths of a
    machine show beyond it is `noise_between_surveys`."""
    return share_of_survey + SURVEY_SHARE**2


def median_share(count: int) -> float:
    """Variance of the median of ``count`` normal values over that of one value, within 3 %: exact
    for one and two, and π / (2 count) for many."""
    return math.pi / (2 * count + (math.pi - 2 if count % 2 else 2 * math.pi - 4))


def without_outliers(replicates: Sequence[float]) -> tuple[float, ...]:
    """The processes of one survey that are no outliers, in their order."""
    are_out = are_outliers(replicates)
    if not any(are_out):
        return tuple(replicates)
    return tuple([value for value, is_out in zip(replicates, are_out, strict=True) if not is_out])


def are_outliers(replicates: Sequence[float]) -> tuple[bool, ...]:
    """Whether each process of one survey is an outlier; the values are logarithms of medians.

    An outlier is more than `OUTLIER` deviations and more than `LEAST_OUTLIER` from the median. At
    most `MOST_OUTLIERS` of the processes are, those with the largest distance, and none of fewer
    than `LEAST_WITH_OUTLIERS`.
    """
    count = len(replicates)
    if count < LEAST_WITH_OUTLIERS:
        return (False,) * count
    center = median(replicates)
    distances = [abs(value - center) for value in replicates]
    ordered = sorted(distances)
    limit = max(OUTLIER * NORMAL_SCALE * median(ordered), LEAST_OUTLIER)
    if ordered[-1] <= limit:
        return (False,) * count
    limit = max(limit, ordered[-1 - int(MOST_OUTLIERS * count)])
    return tuple([distance > limit for distance in distances])


def process_variance(surveys: Iterable[Sequence[float]], within: float) -> Variance:
    """The variance between the processes of one series, each survey around its own mean.

    ``within`` is the variance of a process' median by its samples. It is a lower limit.
    """
    squares = freedom = 0.0
    for replicates in surveys:
        mean = fmean(replicates)
        squares += sum([(value - mean) ** 2 for value in replicates])
        freedom += len(replicates) - 1
    return variance_of(squares, freedom, within)


def variance_of(squares: float, freedom: float, within: float = 0.0) -> Variance:
    """The variance of squares around means; ``within`` is a lower limit of it."""
    least = max(within, LEAST_VARIANCE)
    return Variance(max(squares / freedom, least) if freedom else least, freedom)


def survey_variance(sides: Iterable[Surveys]) -> Variance | None:
    """The variance between the medians of surveys, of the sides that have enough of them; None if
    none has."""
    known = [side.medians for side in sides if len(side.medians) >= SURVEYS_FOR_VARIANCE]
    return process_variance([[*map(math.log, each)] for each in known], 0.0) if known else None


def pooled(variances: Iterable[Variance]) -> Variance | None:
    """The mean of variances, weighted by their degrees of freedom; None if none has any."""
    known = [each for each in variances if each.freedom > 0]
    total = sum(each.freedom for each in known)
    return combined([(each.freedom / total, each) for each in known]) if known else None


def averaged(variances: Sequence[Variance]) -> Variance | None:
    """The mean of the variances of sizes of one curve; None if none has degrees of freedom.

    Processes move all sizes of a curve together, so that sizes do not add degrees of freedom.
    """
    known = [each for each in variances if each.freedom > 0]
    if not known:
        return None
    return Variance(fmean([v.value for v in known]), fmean([v.freedom for v in known]))


def combined(terms: Sequence[tuple[float, Variance]]) -> Variance:
    """The sum of weighted variances, with Satterthwaite's degrees of freedom."""
    total = sum(weight * each.value for weight, each in terms)
    if any(each.freedom <= 0 for weight, each in terms if weight > 0):
        return Variance(total, 0.0)
    error = sum((weight * each.value) ** 2 / each.freedom for weight, each in terms if weight > 0)
    return Variance(total, min(total**2 / error, MOST_FREEDOM) if error > 0 else MOST_FREEDOM)


def shared(own: Variance, peers: Variance | None) -> Variance:
    """The variance to use for a path: that of its equivalent paths, unless its own is too large to
    be theirs (F-test at `UNLIKE`), or they show none."""
    if peers is None:
        return own
    if own.freedom <= 0:
        return Variance(max(own.value, peers.value), peers.freedom)
    chance = f_tail(own.freedom, peers.freedom, own.value / peers.value)
    return own if chance < UNLIKE else peers


def with_shift(variance: Variance, shift: float) -> Variance:
    """The variance of a value whose level shifted by ``shift`` and returned."""
    return combined([(1.0, variance), (shift**2, Variance(1.0, variance.freedom))])


def of_difference(before: Surveys, after: Surveys, noise: Noise, shift: float = 0.0) -> Variance:
    """Variance of the difference between the logarithms of the middles of two sides, of which one
    has a level that shifted by ``shift`` and returned."""
    if shift:
        share = (before.share_of_middle + after.share_of_middle) / 2
        return with_shift(of_difference(before, after, noise), shift * math.sqrt(share))
    sides = [(side.share_of_middle, side.share_of_survey) for side in (before, after)]
    surveys = sum(share for share, _ in sides)
    if noise.survey is None:
        weight = sum(share * share_beside_surveys(of_survey) for share, of_survey in sides)
        return combined([(surveys, noise.machine), (weight, noise.process)])
    # The variance of a survey's median holds what its processes add. A side whose surveys have
    # fewer processes than those that show it adds more.
    known = [s for s in (before, after) if len(s.medians) >= SURVEYS_FOR_VARIANCE]
    typical = min((side.share_of_survey for side in known), default=0.0)
    extra = sum(share * max(0.0, of_survey - typical) for share, of_survey in sides)
    return combined([(surveys, noise.survey), (extra, noise.process)])


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


def between_sides(
    changes: Sequence[float], shares: Sequence[float], added: Sequence[float]
) -> Iterator[Contrast]:
    """How the changes of all paths differ from the middle one; none of fewer than
    `FEWEST_PATHS`. ``shares`` and ``added`` as in `Contrast`."""
    if len(changes) >= FEWEST_PATHS:
        left = 1 - 1 / len(changes)  # the middle follows each of them a little
        for value, share, more in zip(beside_most(changes, shares), shares, added, strict=True):
            yield Contrast(value, share * left, more * left)


def beside_most(values: Sequence[float], shares: Sequence[float]) -> list[float]:
    """How values differ from the mean of those that are not far from the half that lies closest
    together; ``shares`` as in `Contrast`."""
    ordered = sorted(values)
    half = max(1, len(ordered) // 2)
    starts = range(len(ordered) - half + 1)
    first = min(starts, key=lambda at: ordered[at + half - 1] - ordered[at])
    middle = median(ordered[first : first + half])
    apart = sorted(abs(each - middle) for each in ordered)
    quiet = apart[(len(apart) - 1) // 4] / QUARTER
    most = FAR * max(quiet, ASSUMED * math.sqrt(median(shares)))
    mean = fmean([each for each in ordered if abs(each - middle) <= most])
    return [each - mean for each in values]


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
