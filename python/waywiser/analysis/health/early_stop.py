"""Which paths of a check need no further process: those that are decided.

After each round of processes a path is settled if the interval of its time

- is narrow: further processes would hardly move the verdict,
- lies wholly on the good side of the threshold beside its baseline, or
- lies wholly on the bad side.

A path without a baseline is also settled once the other references have nothing against it: it is
equivalent to its equal parts and normal beside other machines, or nothing looks at it. These
references never accuse early: a path that they suspect is measured until the end, so that looking
several times accuses no more often than looking once.

The intervals of a path at all looks together err at most as often as one
(`waywiser.stats.error_spending`), but for noise between surveys, which no further process lessens.
The variance between processes is that of the path, and that of all paths as further degrees of
freedom: the more, the more alike the paths are (`usual_noise`). This decides only when to stop. The
verdict is that of `waywiser.analysis.comparison.checkup` on all that was measured.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from waywiser.analysis.health.check import References, read_references
from waywiser.analysis.questions.peer_groups import peer_groups
from waywiser.curves import NormalValue, Point, Subject, normal_paths_of, shipped_values, subject_of
from waywiser.curves.normal import MARGIN
from waywiser.machine import Machine
from waywiser.profile import Profile
from waywiser.stats import (
    CONFIDENCE,
    LEAST_VARIANCE,
    error_spending,
    median,
    student_quantile,
    without_outliers,
)

FEWEST_PROCESSES = 3
"""Processes before the first look."""

NARROW = 0.3
"""Half the width of an interval, in thresholds, from which on a path is settled."""

PRIOR_FREEDOM = 4.0
"""Degrees of freedom of what all paths show of the noise of one, at most: half of those of eight
processes."""

LEAST_FREEDOM, MOST_FREEDOM = 0.02, 1e6
"""Between them are the degrees of freedom of paths that differ in noise."""


class BaselineTime(NamedTuple):
    """The logarithm of the seconds of a series in its baselines."""

    middle: float
    variance: float | None
    """That of the middle, by the processes of the baselines; None if each has one process. Noise
    between surveys is not in it: no further process lessens that."""
    share: float = 1.0
    """The variance of the middle over that of one process."""


class OtherReferences(NamedTuple):
    """What references other than a baseline say of the paths of a profile."""

    unequal: frozenset[str]
    """The curves that are not shown to be equivalent to their equal parts."""
    room: Mapping[str, float]
    """By how much the logarithm of the seconds of a series may grow until it is below the range of
    other machines; only series that have such a range."""

    def clear(self, path: ProcessTimes, width: float) -> bool:
        """Whether they have nothing against a path whose time is known within ``width``."""
        return path.curve not in self.unequal and width <= self.room.get(path.series, math.inf)


class ProcessTimes(NamedTuple):
    """The times of a path at one size: logarithms of the median seconds of each process."""

    curve: str
    now: Sequence[float]
    before: BaselineTime | None
    """None without a baseline."""
    series: str = ""
    failures: int = 0
    """Processes in which it failed."""


def path_times(
    points: Iterable[Point], baseline: Mapping[str, BaselineTime] | None = None
) -> list[ProcessTimes]:
    """The times of each series that was visited; ``baseline`` has those of baselines by series."""
    known = baseline or {}
    return [
        ProcessTimes(
            point.curve,
            without_outliers([math.log(block.median) for block in point.blocks]),
            known.get(point.text),
            point.text,
            sum(failure.kind != "skipped" for failure in point.failures),
        )
        for point in points
        if point.blocks or point.failures
    ]


def baseline_times(points: Iterable[Iterable[Point]]) -> dict[str, BaselineTime]:
    """The time of each series over several baselines: the mean of their medians."""
    found: dict[str, list[Sequence[float]]] = {}
    for profile in points:
        for point in profile:
            if point.blocks:
                times = without_outliers([math.log(block.median) for block in point.blocks])
                found.setdefault(point.text, []).append(times)
    return {series: _baseline_time(surveys) for series, surveys in found.items()}


def _baseline_time(surveys: Sequence[Sequence[float]]) -> BaselineTime:
    freedom = sum(len(each) - 1 for each in surveys)
    share = sum(1 / len(each) for each in surveys) / len(surveys) ** 2
    variance = share * sum(map(_squares, surveys)) / freedom if freedom else None
    return BaselineTime(fmean(map(median, map(list, surveys))), variance, share)


def settled(
    times: Sequence[ProcessTimes],
    look: int,
    looks: int,
    threshold: float,
    others: OtherReferences | None = None,
) -> dict[str, str]:
    """The paths that are settled at look number ``look`` of ``looks``, each with the reason; a path
    of several sizes only if all are. ``others`` is what other references than the baseline say;
    None if none is looked at."""
    usual = usual_noise(times)
    reasons: dict[str, list[str]] = {}
    for path in times:
        why = _why(path, usual, look, looks, threshold, others)
        reasons.setdefault(path.curve, []).append(why)
    return {curve: own[0] for curve, own in reasons.items() if all(own)}


class UsualNoise(NamedTuple):
    """What all paths show of the variance of one process."""

    variance: float
    freedom: float
    """The degrees of freedom that this is worth for a single path."""


def usual_noise(times: Sequence[ProcessTimes]) -> UsualNoise:
    """What all paths show of the noise of one. If their variances differ by more than chance
    explains, it is worth fewer degrees of freedom, down to 0: quiet paths do not wait for noisy
    ones. Both are estimated by the moments of the logarithms of the variances (Smyth, Statistical
    Applications in Genetics and Molecular Biology 3, 2004, section 6.2)."""
    several = [path.now for path in times if len(path.now) > 1]
    if len(several) < 2:  # one path shows nothing but its own noise
        return UsualNoise(LEAST_VARIANCE, 0.0)
    from scipy.special import digamma, polygamma

    logs, by_chance = [], []
    for now in several:
        half = (len(now) - 1) / 2
        variance = max(_squares(now) / (len(now) - 1), LEAST_VARIANCE)
        logs.append(math.log(variance) - float(digamma(half)) + math.log(half))
        by_chance.append(float(polygamma(1, half)))
    beyond = _squares(logs) / max(len(logs) - 1, 1) - fmean(by_chance)
    freedom = _freedom_of(beyond)
    shift = digamma(freedom / 2) - math.log(freedom / 2) if freedom < MOST_FREEDOM else 0.0
    return UsualNoise(math.exp(fmean(logs) + shift), min(freedom, PRIOR_FREEDOM))


def _freedom_of(trigamma: float) -> float:
    """The degrees of freedom, from `LEAST_FREEDOM` to `MOST_FREEDOM`, half of which have this
    trigamma."""
    from scipy.optimize import brentq
    from scipy.special import polygamma

    def beyond(freedom: float) -> float:
        return float(polygamma(1, freedom / 2)) - trigamma

    if beyond(MOST_FREEDOM) >= 0:
        return MOST_FREEDOM
    return LEAST_FREEDOM if beyond(LEAST_FREEDOM) <= 0 else brentq(
        beyond, LEAST_FREEDOM, MOST_FREEDOM)  # fmt: skip


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _why(
    path: ProcessTimes,
    usual: UsualNoise,
    look: int,
    looks: int,
    threshold: float,
    others: OtherReferences | None,
) -> str:
    """Why a path is settled by its own time; empty if it is not."""
    processes = len(path.now)
    if not processes and path.failures >= FEWEST_PROCESSES:
        return f"settled after {path.failures} processes: it fails in all"
    if processes < FEWEST_PROCESSES:
        return ""
    freedom = processes - 1 + usual.freedom
    if freedom <= 0:
        return ""
    variance = max((_squares(path.now) + usual.freedom * usual.variance) / freedom, LEAST_VARIANCE)
    own, limit = variance / processes, math.log1p(threshold)

    def half(spending: error_spending.Spending, variance: float) -> float:
        spent = error_spending.level(spending, 1 - CONFIDENCE, look, looks)
        quantile = student_quantile(freedom, 1 - spent / 2) if spent > 0 else math.inf
        return quantile * math.sqrt(variance)

    if (width := half(error_spending.to_clear, own)) <= NARROW * limit:
        return f"settled after {processes} processes: its time is known within {width:.1%}"
    if path.before is None:
        is_cleared = others is not None and others.clear(path, width)
        said = f"settled after {processes} processes: no reference has anything against it"
        return said if is_cleared else ""
    former = path.before.variance
    if former is None:  # one process shows no noise: it is taken to be that of now
        former = variance * path.before.share
    change, both = fmean(path.now) - path.before.middle, own + former
    if change + half(error_spending.to_clear, both) <= limit:
        return f"settled after {processes} processes: at most {threshold:.3g} slower than before"
    if change - half(error_spending.to_accuse, both) > limit:
        return f"settled after {processes} processes: slower than before"
    return ""


class EarlyStop:
    """Looks at a profile that is being measured, after each round of processes."""

    def __init__(
        self,
        file: Path,
        machine: Machine,
        references: References,
        looks: int,
        *,
        series: Mapping[str, int] = {},
        is_kept: bool = False,
    ) -> None:
        """``looks`` are the rounds that are planned, and ``series`` how many series each curve has
        in the plan: a curve is not settled before all were visited. A profile that ``is_kept`` as
        a baseline needs each of its times, whatever other references say. Raises as
        `waywiser.analysis.health.check.read_references`."""
        before, _ = read_references(machine, references)
        self._file = file
        self._before = baseline_times(each.points for each in before)
        self._values = (*shipped_values(), *references.values)
        self._threshold = references.threshold
        self._looks = looks
        self._series = series
        self._is_kept = is_kept

    @property
    def first_look(self) -> int:
        """The rounds before which nothing is settled."""
        return FEWEST_PROCESSES

    def __call__(self, rounds: int) -> Mapping[str, str]:
        if rounds < self.first_look:
            return {}
        with Profile.open(self._file) as profile:
            points = subject_of(profile).points
            others = None if self._is_kept else other_references(profile, self._values)
        times = path_times(points, self._before)
        visited = Counter(path.curve for path in times)
        found = settled(times, rounds, self._looks, self._threshold, others)
        return {
            curve: why
            for curve, why in found.items()
            if visited[curve] >= self._series.get(curve, 0)
        }


def other_references(profile: Profile, values: Sequence[NormalValue]) -> OtherReferences:
    """What the equal parts of the machine and other people's machines say of a profile."""
    room = {
        path.workload: math.log(path.gb_per_s / (path.range.whole.low * (1 - MARGIN)))
        for path in normal_paths_of(profile, values)
        if path.range is not None and path.range.decides
    }
    return OtherReferences(unequal_parts(Subject.of(profile)), room)


def unequal_parts(read: Subject) -> frozenset[str]:
    """The curves that are not shown to be equivalent to their equal parts; ``read`` has curves."""
    peers = (peer for group in peer_groups(read) for peer in group)
    return frozenset(peer.curve.text for peer in peers if peer.outcome != "equivalent")
