"""Which paths of a check need no further process: those that are decided.

After each round of processes a path is settled if the interval of its time

- is narrow: further processes would hardly move the verdict,
- lies wholly on the good side of the threshold beside its baseline, or
- lies wholly on the bad side.

The intervals of a path at all looks together err at most as often as one
(`waywiser.stats.error_spending`), but for noise between surveys, which no further process lessens.
The variance between processes is that of the path, and the median of all paths as if it were
`PRIOR_FREEDOM` further degrees of freedom (Smyth, Statistical Applications in Genetics and
Molecular Biology 3, 2004). This decides only when to stop. The verdict is that of
`waywiser.analysis.comparison.checkup` on all that was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from waywiser.analysis.health.check import References, read_references
from waywiser.curves.curve import Point
from waywiser.curves.subject import subject_of
from waywiser.machine.machine import Machine
from waywiser.profile import Profile
from waywiser.stats import error_spending
from waywiser.stats.distributions import student_quantile
from waywiser.stats.noise_model import LEAST_VARIANCE, without_outliers
from waywiser.stats.order import CONFIDENCE, median

FEWEST_PROCESSES = 3
"""Processes before the first look."""

NARROW = 0.3
"""Half the width of an interval, in thresholds, from which on a path is settled."""

PRIOR_FREEDOM = 4.0
"""Degrees of freedom of what all paths show of the noise of one: half of those of eight
processes."""


class BaselineTime(NamedTuple):
    """The logarithm of the seconds of a series in its baselines."""

    middle: float
    variance: float
    """That of the middle, by the processes of the baselines. Noise between surveys is not in it: no
    further process lessens that."""


class ProcessTimes(NamedTuple):
    """The times of a path at one size: logarithms of the median seconds of each process."""

    curve: str
    now: Sequence[float]
    before: BaselineTime | None
    """None without a baseline."""


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
    process = sum(map(_squares, surveys)) / freedom if freedom else 0.0
    shares = (1 / len(each) for each in surveys)
    variance = process * sum(shares) / len(surveys) ** 2
    return BaselineTime(fmean(map(median, map(list, surveys))), variance)


def settled(
    times: Sequence[ProcessTimes], look: int, looks: int, threshold: float
) -> dict[str, str]:
    """The paths that are settled at look number ``look`` of ``looks``, each with the reason; a path
    of several sizes only if all are."""
    usual = _usual_variance(times)
    reasons: dict[str, list[str]] = {}
    for path in times:
        reasons.setdefault(path.curve, []).append(_why(path, usual, look, looks, threshold))
    return {curve: own[0] for curve, own in reasons.items() if all(own)}


def _usual_variance(times: Sequence[ProcessTimes]) -> float:
    """The median variance of one process over all paths: a few noisy paths do not move it."""
    found = [_squares(path.now) / (len(path.now) - 1) for path in times if len(path.now) > 1]
    return max(median(found), LEAST_VARIANCE) if found else LEAST_VARIANCE


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def _why(path: ProcessTimes, usual: float, look: int, looks: int, threshold: float) -> str:
    """Why a path is settled; empty if it is not."""
    processes = len(path.now)
    if not processes and look >= FEWEST_PROCESSES:
        return f"settled after {look} processes: it fails in all"
    if processes < FEWEST_PROCESSES:
        return ""
    freedom = processes - 1 + PRIOR_FREEDOM
    variance = (_squares(path.now) + PRIOR_FREEDOM * usual) / freedom
    own, limit = variance / processes, math.log1p(threshold)

    def half(spending: error_spending.Spending, variance: float) -> float:
        spent = error_spending.level(spending, 1 - CONFIDENCE, look, looks)
        quantile = student_quantile(freedom, 1 - spent / 2) if spent > 0 else math.inf
        return quantile * math.sqrt(variance)

    if (width := half(error_spending.to_clear, own)) <= NARROW * limit:
        return f"settled after {processes} processes: its time is known within {width:.1%}"
    if path.before is None:
        return ""
    change, both = fmean(path.now) - path.before.middle, own + path.before.variance
    if change + half(error_spending.to_clear, both) <= limit:
        return f"settled after {processes} processes: at most {threshold:.3g} slower than before"
    if change - half(error_spending.to_accuse, both) > limit:
        return f"settled after {processes} processes: slower than before"
    return ""


class EarlyStop:
    """Looks at a profile that is being measured, after each round of processes."""

    def __init__(self, file: Path, machine: Machine, references: References, looks: int) -> None:
        """``looks`` are the rounds that are planned. Raises as
        `waywiser.analysis.health.check.read_references`."""
        before, _ = read_references(machine, references)
        self._file = file
        self._before = baseline_times(each.points for each in before)
        self._threshold = references.threshold
        self._looks = looks

    def __call__(self, rounds: int) -> Mapping[str, str]:
        with Profile.open(self._file) as profile:
            points = subject_of(profile).points
        return settled(path_times(points, self._before), rounds, self._looks, self._threshold)
