"""What a comparison compares: one curve's sizes of one regime, before and after.

All sizes of a curve that one process measures share its memory. So each process is one replicate of
a part: the median over sizes of the logarithms of its medians, so that a drop at one size is that
size's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import NamedTuple

from waywiser.analysis.regimes import Regime, regime_of
from waywiser.series.series_summary import SeriesSummary
from waywiser.stats.noise_model import (
    ENOUGH_FREEDOM,
    Noise,
    Surveys,
    Variance,
    averaged,
    pooled,
    process_variance,
    shared,
    survey_variance,
    without_outliers,
)
from waywiser.stats.order import median
from waywiser.words import Workload

Key = tuple[str, Regime]

Process = tuple[int, int]
"""The file of a side, and the process in it."""

Medians = Mapping[Process, float]
"""Logarithms of the medians of one series on one side."""

Summaries = Mapping[str, Sequence[tuple[int, SeriesSummary]]]
"""What one side has measured, by identity: each file's number, and the series in it."""


class SizePair(NamedTuple):
    """One series before and now, or on one of these sides alone."""

    workload: Workload
    text: str
    medians: tuple[Medians, ...]
    variances: tuple[tuple[float, ...], ...]
    """Variance of the median of each process by its samples, by side."""
    sides: tuple[Surveys, ...]
    """``medians`` by survey."""

    def on_side(self, side: int) -> SizePair:
        """The series before (0) or now (1) alone."""
        return self._replace(
            medians=(self.medians[side],),
            variances=(self.variances[side],),
            sides=(self.sides[side],),
        )

    @property
    def within(self) -> float:
        """The mean of `variances` over the processes of all sides."""
        return fmean(chain.from_iterable(self.variances))

    @property
    def seconds(self) -> tuple[float, float]:
        """The times before and now as every other view shows them: the median of the medians of
        processes without outliers, and of several surveys the median of these."""
        before, now = map(_median_seconds, self.sides)
        return before, now


class Part:
    """The sizes of one curve in one regime, the smallest first."""

    def __init__(self, curve: str, regime: Regime, sizes: Sequence[SizePair]) -> None:
        self.curve = curve
        self.regime = regime
        self.sizes = sizes

    @cached_property
    def peers(self) -> Key:
        """What equivalent paths have in common: the curve without the numbers of its places."""
        return equivalence_class(self.curve), self.regime

    @cached_property
    def similar(self) -> Key:
        """The same without the executor's parameters."""
        return _PARAMETERS.sub(r"\1", self.peers[0]), self.regime

    @cached_property
    def replicated(self) -> tuple[SizePair, ...]:
        """The sizes that most surveys have measured, and of these most processes of both sides;
        the first of them alone if a survey has no process that measured all of them, so that both
        sides are of the same sizes."""
        counts = [
            (
                sum(len(side.replicates) for side in size.sides),
                min(map(len, size.medians)),
            )
            for size in self.sizes
        ]
        found = tuple(s for s, n in zip(self.sizes, counts, strict=True) if n == max(counts))
        by_side = zip(*(size.medians for size in found), strict=True)
        return found if all(map(_has_every_survey, by_side)) else found[:1]

    @cached_property
    def sides(self) -> tuple[Surveys, ...]:
        """The surveys before and now; a replicate is the median over the sizes in `replicated`."""
        return tuple(map(_surveys, self.medians))

    @cached_property
    def medians(self) -> tuple[Medians, ...]:
        """The median over the sizes in `replicated` of each process before and now, of outliers
        too."""
        by_side = zip(*(size.medians for size in self.replicated), strict=True)
        return tuple(map(_median_over_sizes, by_side))

    def outliers(self, side: int) -> dict[Process, float]:
        """The bandwidth of each process of a side that is an outlier, over that of the median
        process of its survey."""
        surveys = _by_survey(self.medians[side])
        kept = dict(zip(surveys, self.sides[side].replicates, strict=True))
        return {
            process: math.exp(median(surveys[process[0]]) - value)
            for process, value in self.medians[side].items()
            if value not in kept[process[0]]
        }

    def ratio_with_outliers(self) -> float:
        """The bandwidth now, outliers too, over that before, without outliers."""
        surveys = _by_survey(self.medians[1]).values()
        return math.exp(self.sides[0].mean - fmean(map(fmean, surveys)))

    def on_side(self, side: int) -> Part:
        """The part before (0) or now (1) alone."""
        return Part(self.curve, self.regime, [size.on_side(side) for size in self.sizes])

    @cached_property
    def noise(self) -> PartNoise:
        """The noise by the processes and surveys that measured this part."""
        within = sum(size.within for size in self.replicated) / len(self.replicated) ** 2
        whole = Noise(process_variance(self.sides, within), survey_variance(self.sides))
        processes = [process_variance(size.sides, size.within) for size in self.replicated]
        surveys = [survey_variance(size.sides) for size in self.replicated]
        highest = Variance(max(each.value for each in processes), 0.0)
        size = Noise(averaged(processes) or highest, averaged([each for each in surveys if each]))
        return PartNoise(whole, size)


class PartNoise(NamedTuple):
    """The noise that a part is held against, the median over sizes, and each of its sizes."""

    whole: Noise
    size: Noise


def noise_of(parts: Sequence[Part], enough: float = ENOUGH_FREEDOM) -> list[PartNoise]:
    """Returns the noise of each part: pooled over equivalent paths, borrowed within a curve.

    - Equivalent paths share their noise, unless a path's own is too large to be theirs.
    - With fewer degrees of freedom than ``enough``, processes may agree by chance. Then the noise
      is at least that of the paths that differ only in the executor's parameters.
    - A part that nothing replicates borrows from the other regimes of its curve, the noisiest one.
    """
    equivalent = _pooled_by([part.peers for part in parts], parts)
    similar = _pooled_by([part.similar for part in parts], parts)
    curves: dict[str, list[Part]] = {}
    for part in parts:
        curves.setdefault(part.curve, []).append(part)
    found = []
    for part in parts:
        known = equivalent[part.peers]
        if known.whole.process.freedom > 0:
            found.append(_at_least(_shared(part.noise, known), similar[part.similar], enough))
            continue
        near = [equivalent[other.peers] for other in curves[part.curve]]
        near = [each for each in near if each.whole.process.freedom > 0]
        known = max(near, key=lambda each: each.size.process.value, default=known)
        found.append(known._replace(whole=known.whole._replace(process=known.size.process)))
    return found


def _pooled_by(keys: Sequence[Key], parts: Sequence[Part]) -> dict[Key, PartNoise]:
    groups: dict[Key, list[PartNoise]] = {}
    for key, part in zip(keys, parts, strict=True):
        groups.setdefault(key, []).append(part.noise)
    return {
        key: PartNoise(_pooled([each.whole for each in own]), _pooled([each.size for each in own]))
        for key, own in groups.items()
    }


def _pooled(noises: Sequence[Noise]) -> Noise:
    processes = pooled([each.process for each in noises])
    surveys = [each.survey for each in noises if each.survey]
    return Noise(processes or noises[0].process, pooled(surveys))


def _shared(own: PartNoise, peers: PartNoise) -> PartNoise:
    return PartNoise(*(
        Noise(shared(mine.process, theirs.process), theirs.survey)
        for mine, theirs in zip(own, peers, strict=True)
    ))  # fmt: skip


def _at_least(noise: PartNoise, least: PartNoise, enough: float) -> PartNoise:
    if noise.whole.process.freedom >= enough:
        return noise
    return PartNoise(*(
        each._replace(process=max(each.process, other.process, key=lambda v: v.value))
        for each, other in zip(noise, least, strict=True)
    ))  # fmt: skip


def parts_of(before: Summaries, after: Summaries) -> list[Part]:
    """All series that both sides have measured, by curve and regime."""
    sizes: dict[tuple[str, Regime], list[SizePair]] = {}
    for identity, old in before.items():
        new = after.get(identity, ())
        pair = _size_pair(old, new)
        if all(pair.medians):
            series = old[0][1]
            sizes.setdefault((series.curve, regime_of(series.workload)), []).append(pair)
    return [
        Part(curve, regime, sorted(found, key=lambda size: size.workload.bytes))
        for (curve, regime), found in sizes.items()
    ]


_PARAMETERS = re.compile(r"(?<= by )([a-z-]+)\[[^\]]*\]")
_NUMBERED = re.compile(r"\b(numa|gpu):([0-9]+)")


def equivalence_class(curve: str) -> str:
    """The text of a curve with its places numbered as they occur: ``gpu:3`` becomes ``gpu:#1``."""
    seen: dict[str, str] = {}

    def ordinal(match: re.Match[str]) -> str:
        kinds = sum(known.startswith(match[1]) for known in seen)
        return seen.setdefault(match[0], f"{match[1]}:#{kinds + 1}")

    return _NUMBERED.sub(ordinal, curve)


def _size_pair(
    old: Sequence[tuple[int, SeriesSummary]], new: Sequence[tuple[int, SeriesSummary]]
) -> SizePair:
    variances = tuple(
        tuple(block.standard_error**2 for _, series in side for block in series.blocks)
        for side in (old, new)
    )
    series = old[0][1]
    medians = _medians(old), _medians(new)
    return SizePair(series.workload, series.text, medians, variances, tuple(map(_surveys, medians)))


def _medians(side: Sequence[tuple[int, SeriesSummary]]) -> Medians:
    return {
        (file, block.block): math.log(block.median)
        for file, series in side
        for block in series.blocks
    }


def _by_survey(medians: Medians) -> dict[int, list[float]]:
    by_file: dict[int, list[float]] = {}
    for (file, _), value in medians.items():
        by_file.setdefault(file, []).append(value)
    return by_file


def _surveys(medians: Medians) -> Surveys:
    return Surveys(tuple(map(without_outliers, _by_survey(medians).values())))


def _median_seconds(side: Surveys) -> float:
    return median([median(list(map(math.exp, each))) for each in side.replicates])


def _has_every_survey(sizes: Sequence[Medians]) -> bool:
    """Whether each survey has a process that measured all of the sizes."""
    surveys = {file for size in sizes for file, _ in size}
    return surveys == {file for file, _ in set(sizes[0]).intersection(*sizes[1:])}


def _median_over_sizes(sizes: Sequence[Medians]) -> Medians:
    """The median over sizes of the processes that have measured all of them."""
    common = set(sizes[0]).intersection(*sizes[1:])
    return {
        process: median([size[process] for size in sizes])
        for process in sizes[0]
        if process in common
    }
