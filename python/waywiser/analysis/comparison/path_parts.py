"""What a comparison compares, one curve's sizes of one regime, before and after; and what it
decides about them.

All sizes of a curve that one process measures share its memory, and change together. So a part has
changed as its typical size has: the one whose change is the median over sizes, so that a drop at
one size is that size's own.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from statistics import fmean
from typing import NamedTuple

import msgspec

from waywiser.analysis.comparison.path_change import (
    REGIMES,
    OtherSize,
    PartChange,
    PathChange,
    SideNoise,
    SizeChange,
    one_value_text,
    verdict_of,
)
from waywiser.curves.curve import Point
from waywiser.curves.gpu_numbers import Devices, devices_on
from waywiser.curves.headline import Group
from waywiser.curves.name import name_of
from waywiser.curves.regimes import Regime, regime_of
from waywiser.profile.block import BlockSummary
from waywiser.stats.decision import THRESHOLD, Decision, Effect, decide
from waywiser.stats.level_shift import may_return, returned
from waywiser.stats.noise_model import (
    ENOUGH_FREEDOM,
    BetweenSurveys,
    Contrast,
    Noise,
    Surveys,
    Variance,
    averaged,
    between_sides,
    noise_between_surveys,
    of_difference,
    pooled,
    process_variance,
    share_beside_surveys,
    shared,
    survey_noise_of,
    survey_variance,
    variance_of,
    within_side,
)
from waywiser.words import Reason, Workload, grouped
from waywiser.words.sizes_in_text import size_of

Key = tuple[str, Regime]

Process = tuple[int, int]
"""The file of a side, and the process in it."""

Medians = Mapping[Process, float]
"""The median seconds of one series on one side."""

Summaries = Mapping[str, Sequence[tuple[int, Point]]]
"""What one side has measured, by identity: each file's number, and the series in it."""


FEWEST_SIZES = 5
"""Sizes that show how far they scatter around a line."""


class SizePair(NamedTuple):
    """One series before and now, or on one of these sides alone."""

    workload: Workload
    text: str
    medians: tuple[Medians, ...]
    blocks: tuple[tuple[BlockSummary, ...], ...]
    """What each process measured, by side."""
    sides: tuple[Surveys, ...]
    """``medians`` by survey."""
    is_in_order: bool | None = None
    """Whether the first side was measured before the second; None if that is not known."""
    other_size: OtherSize | None = None
    """The sizes that were measured, if they differ."""
    is_only: bool = False
    """Whether both sides have no other size of its part."""

    @property
    def is_one_value(self) -> bool:
        """Whether one value stands beside the plateau of another size, or one figure of another
        tool, at one size, beside processes with samples."""
        before, now = self.medians
        if self.other_size is not None:
            return len(now if self.other_size.plateau == "before" else before) == 1
        have_samples = [_have_samples(blocks) for blocks in self.blocks]
        return self.is_only and any(
            len(medians) == 1 and not own and other
            for medians, own, other in (
                (before, have_samples[0], have_samples[1]),
                (now, have_samples[1], have_samples[0]),
            )
        )

    def on_side(self, side: int) -> SizePair:
        """The series before (0) or now (1) alone."""
        return self._replace(
            medians=(self.medians[side],),
            blocks=(self.blocks[side],),
            sides=(self.sides[side],),
        )

    @property
    def process_variance(self) -> Variance:
        """The variance between processes, at least that of a process by its samples, of the side
        where it is larger. Processes of one survey show themselves how much their samples depend on
        each other: then the least is that of independent samples."""
        replicates = [*chain(*(side.replicates for side in self.sides))]
        are_several = any(len(survey) > 1 for survey in replicates)
        within = [
            sorted([(b.independent_error if are_several else b.standard_error) ** 2 for b in of])
            for of in self.blocks
        ]
        return process_variance(replicates, max([each[len(each) // 2] for each in within]))

    @property
    def shift(self) -> float:
        """The size of a level that shifted within a survey and returned, in it or in the later one
        of the other side."""
        seconds = [side.seconds for side in self.sides]
        times = [each for side in seconds for survey in side for each in survey]
        if not may_return(times):
            return 0.0
        orders = {True: (1,), False: (-1,), None: (1, -1)}[self.is_in_order]
        return min(max(map(_returned, product(*seconds[::order]))) for order in orders)

    @property
    def log_ratio(self) -> float:
        """The logarithm of the time now over that before."""
        before, now = self.sides
        return math.log(now.middle / before.middle)

    def outliers(self, side: int) -> dict[Process, float]:
        """The bandwidth of each process of a side that is an outlier, over that of the median
        process of its survey."""
        surveys = self.sides[side]
        numbers = list(_by_survey(self.medians[side]))
        kept = dict(zip(numbers, surveys.replicates, strict=True))
        middle = dict(zip(numbers, surveys.medians, strict=True))
        return {
            process: middle[process[0]] / seconds
            for process, seconds in self.medians[side].items()
            if math.log(seconds) not in kept[process[0]]
        }

    def ratio_with_outliers(self) -> float:
        """The mean bandwidth of all processes now, outliers too, over the bandwidth before."""
        before, now = self.sides
        mean = fmean(fmean(map(math.log, survey)) for survey in now.seconds)
        return before.middle / math.exp(mean)


@dataclass(eq=False)
class Part:
    """The sizes of one curve in one regime, the smallest first."""

    curve: str
    regime: Regime
    sizes: Sequence[SizePair]
    threshold: float = THRESHOLD
    """The relative change of the path that matters."""

    @property
    def key(self) -> Key:
        return self.curve, self.regime

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
        """The sizes that most surveys have measured, and of these most processes of both sides."""
        counts = [
            (
                sum(len(side.replicates) for side in size.sides),
                min(map(len, size.medians)),
            )
            for size in self.sizes
        ]
        return tuple(s for s, n in zip(self.sizes, counts, strict=True) if n == max(counts))

    @cached_property
    def typical(self) -> SizePair:
        """The size in `replicated` whose change is the median; the smaller change of two."""
        ordered = sorted(self.replicated, key=lambda size: size.log_ratio)
        middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
        return min(middle, key=lambda size: abs(size.log_ratio))

    def on_side(self, side: int) -> Part:
        """The part before (0) or now (1) alone."""
        return dataclasses.replace(self, sizes=[size.on_side(side) for size in self.sizes])

    @cached_property
    def noise(self) -> Noise:
        """The noise of a size by the processes and surveys that measured this part; of single
        numbers by its sizes (`size_variance`)."""
        processes = [size.process_variance for size in self.replicated]
        surveys = [survey_variance(size.sides) for size in self.replicated]
        highest = Variance(max(each.value for each in processes), 0.0)
        known = averaged(processes) or size_variance(self.sizes) or highest
        return Noise(known, averaged([each for each in surveys if each]))


def size_variance(sizes: Sequence[SizePair]) -> Variance | None:
    """The variance of sizes of which each is one number, around a line over all sizes of a part,
    each side by itself; None for fewer than `FEWEST_SIZES`, and if samples say how they scatter."""
    import numpy as np

    from waywiser.stats.postal import robust_lines

    if len(sizes) < FEWEST_SIZES or any(_have_samples(of) for size in sizes for of in size.blocks):
        return None
    bytes_ = np.array([[size.workload.bytes for size in sizes]] * len(sizes[0].sides), float)
    seconds = np.array(
        [[s.median for s in of] for of in zip(*(z.sides for z in sizes), strict=True)]
    )
    lines, _ = robust_lines(bytes_, seconds, np.ones_like(seconds))
    off = np.log(seconds / (lines[:, :1] + lines[:, 1:] * bytes_))
    return variance_of(float((off**2).sum()), off.size - lines.size)


class MachineNoise:
    """What the paths of a machine show of the noise between surveys, by the typical size of each
    part of both sides."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._own: dict[Key, list[Contrast]] = {}
        changes: dict[Regime, dict[Key, Contrast]] = {}
        for part, process in zip(parts, _process_noise(parts), strict=True):
            own = self._own.setdefault(part.key, [])
            of_sides = []
            for side in part.typical.sides:
                noise = process.value if process.freedom > 0 else 0.0
                added = noise * share_beside_surveys(side.share_of_survey)
                own += within_side(side, added)
                of_sides.append((side.share_of_middle, side.share_of_middle * added))
            share, added = map(sum, zip(*of_sides, strict=True))
            change = Contrast(part.typical.log_ratio, share, added)
            changes.setdefault(part.regime, {})[part.key] = change
        self.regimes: dict[Regime, BetweenSurveys] = {}
        """The noise of one survey, by regime."""
        for regime, known in changes.items():
            for key, contrast in zip(known, between_sides(list(known.values())), strict=False):
                self._own[key].append(contrast)
            everything = chain.from_iterable(self._own[key] for key in known)
            self.regimes[regime] = noise_between_surveys(list(everything))

    def without(self, parts: Sequence[Part]) -> Variance:
        """The value of the regime of ``parts``, as all other parts show it."""
        own = [each for part in parts for each in self._own[part.key]]
        return self.regimes[parts[0].regime].without(own)


def noise_of(
    parts: Sequence[Part], machine: MachineNoise, enough: float = ENOUGH_FREEDOM
) -> list[Noise]:
    """Returns the noise of each part: pooled over equivalent paths, borrowed within a curve.

    - Equivalent paths share their noise, unless a path's own is too large to be theirs.
    - With fewer degrees of freedom than ``enough``, processes may agree by chance. Then the noise
      is at least that of the paths that differ only in the executor's parameters.
    - A part that nothing replicates has the noise of its sizes around a line. With fewer than
      `FEWEST_SIZES` it borrows from the other regimes of its curve, the noisiest one.
    - Between surveys each has that of the other paths of the ``machine``, unless the surveys of
      equivalent paths or its own show another noise.
    """
    peers = grouped((part.peers, part) for part in parts)
    between = {
        key: pooled([p.noise.survey for p in own if p.noise.survey]) for key, own in peers.items()
    }
    found = []
    for part, process in zip(parts, _process_noise(parts, enough), strict=True):
        noise = Noise(process, None, machine.without([part]))
        of_survey = fmean(side.share_of_survey for side in part.replicated[0].sides)
        own = None
        for surveys, others in (
            (between[part.peers], peers[part.peers]),
            (part.noise.survey, [part]),
        ):
            if own is None and surveys is not None:
                expected = noise._replace(machine=machine.without(others)).of_survey(of_survey)
                own = survey_noise_of(surveys, expected)
        found.append(noise._replace(survey=own))
    return found


def _process_noise(parts: Sequence[Part], enough: float = ENOUGH_FREEDOM) -> list[Variance]:
    """The variance between the processes of each part, as `noise_of` has it."""
    equivalent = _pooled_by((part.peers, part.noise) for part in parts)
    similar = _pooled_by((part.similar, part.noise) for part in parts)
    curves = grouped((part.curve, part) for part in parts)
    found = []
    for part in parts:
        known = equivalent[part.peers].process
        if known.freedom > 0:
            process = shared(part.noise.process, known)
            if process.freedom < enough:
                process = max(process, similar[part.similar].process, key=lambda v: v.value)
            found.append(process)
            continue
        near = [equivalent[other.peers].process for other in curves[part.curve]]
        near = [each for each in near if each.freedom > 0]
        noisiest = max(near, key=lambda each: each.value, default=part.noise.process)
        found.append(shared(part.noise.process, noisiest))
    return found


def _pooled_by(noises: Iterable[tuple[Key, Noise]]) -> dict[Key, Noise]:
    return {key: _pooled(own) for key, own in grouped(noises).items()}


def _pooled(noises: Sequence[Noise]) -> Noise:
    processes = pooled([each.process for each in noises])
    surveys = [each.survey for each in noises if each.survey]
    return Noise(processes or noises[0].process, pooled(surveys))


def parts_of(
    before: Summaries,
    after: Summaries,
    threshold: float = THRESHOLD,
    is_in_order: bool | None = None,
    moved: Mapping[str, OtherSize] | None = None,
) -> list[Part]:
    """All series that both sides have measured, by curve and regime. ``threshold`` is the relative
    change that matters; ``is_in_order`` says whether ``before`` was measured first; ``moved`` are
    those that were measured at other sizes, by identity."""
    pairs = (
        _size_pair(old, after.get(identity, ()))._replace(
            is_in_order=is_in_order, other_size=(moved or {}).get(identity)
        )
        for identity, old in before.items()
    )
    measured = (pair for pair in pairs if all(pair.medians))
    sizes = grouped(((p.workload.curve, regime_of(p.workload)), p) for p in measured)
    return [
        Part(
            curve,
            regime,
            [
                each._replace(is_only=len(found) == 1)
                for each in sorted(found, key=lambda size: size.workload.bytes)
            ],
            threshold,
        )
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


def _size_pair(old: Sequence[tuple[int, Point]], new: Sequence[tuple[int, Point]]) -> SizePair:
    blocks = tuple(
        tuple([block for _, series in side for block in series.blocks]) for side in (old, new)
    )
    series = old[0][1]
    medians = _medians(old), _medians(new)
    surveys = tuple(Surveys(list(_by_survey(side).values())) for side in medians)
    return SizePair(series.workload, series.text, medians, blocks, surveys)


def _have_samples(blocks: Iterable[BlockSummary]) -> bool:
    """Whether samples say how the medians of these processes scatter."""
    return any(block.standard_error for block in blocks)


def _returned(surveys: Iterable[Sequence[float]]) -> float:
    return returned([math.log(each) for each in chain.from_iterable(surveys)])


def _medians(side: Sequence[tuple[int, Point]]) -> Medians:
    return {(file, block.block): block.median for file, series in side for block in series.blocks}


def _by_survey(medians: Medians) -> dict[int, list[float]]:
    return grouped((file, value) for (file, _), value in medians.items())


SIDES = 2
"""Sides of a comparison: both show the noise, so that one alone has half of the freedom."""


def path_changes(
    parts: Sequence[Part], groups: Mapping[str, Group], devices: Devices
) -> Iterator[PathChange]:
    """Decides about all parts of all paths together. ``groups`` are the headline paths by curve."""
    machine = MachineNoise(parts)
    noises = noise_of(parts, machine)
    effects = [
        _effects(part, noise, is_headline=part.curve in groups)
        for part, noise in zip(parts, noises, strict=True)
    ]
    decisions = iter(decide(list(chain.from_iterable(effects))))
    alone = [
        noise_of([p.on_side(n) for p in parts], machine, ENOUGH_FREEDOM / SIDES)
        for n in range(SIDES)
    ]
    curves: dict[str, list[PartChange]] = {}
    workloads: dict[str, Workload] = {}
    for part, noise, own, *of_sides in zip(parts, noises, effects, *alone, strict=True):
        sizes = [
            _size_change(size, effect, decision, part.regime)
            for size, effect, decision in zip(part.sizes, own, decisions, strict=False)
        ]
        curves.setdefault(part.curve, []).append(_part_change(part, sizes, of_sides, noise))
        workloads[part.curve] = part.sizes[-1].workload
    for curve, workload in workloads.items():
        changes = sorted(curves[curve], key=lambda part: part.sizes[-1].bytes)
        verdict, why = _verdict(changes)
        yield PathChange(
            curve=curve,
            name=name_of(workload),
            verdict=verdict,
            why=why,
            headline=groups.get(curve),
            devices=devices_on(workload, devices),
            parts=tuple(changes),
        )


def _effects(part: Part, noise: Noise, *, is_headline: bool) -> list[Effect]:
    """One for each size; that of the typical one is the headline effect of a headline path."""
    return [
        Effect(
            log_ratio=size.log_ratio,
            variance=_variance(size, noise),
            headline=is_headline and size is part.typical,
            threshold=part.threshold,
        )
        for size in part.sizes
    ]


def _variance(size: SizePair, noise: Noise) -> Variance:
    """That of the change of a size; one value beside a plateau of another size is not tested."""
    found = of_difference(size.sides[0], size.sides[1], noise, size.shift)
    return Variance(found.value, 0.0) if size.is_one_value else found


def _part_change(
    part: Part, sizes: Sequence[SizeChange], alone: Sequence[Noise], together: Noise
) -> PartChange:
    """``alone`` is the noise of before and of now, as each alone shows it."""
    sides = []
    for number, (side, noise) in enumerate(zip(part.typical.sides, alone, strict=True)):
        deviation = noise.process.deviation if noise.process.freedom > 0 else None
        once = of_difference(side, side, noise, part.typical.on_side(number).shift)
        both = Effect(0.0, Variance(once.value, SIDES * once.freedom), threshold=part.threshold)
        sides.append(SideNoise(deviation, both.detectable()))
    before, now = sides
    typical = sizes[part.sizes.index(part.typical)]
    return PartChange(
        regime=part.regime,
        processes=typical.processes,
        surveys=typical.surveys,
        noise=(before, now),
        decision=typical.decision,
        ratio_with_outliers=part.typical.ratio_with_outliers(),
        verdict=typical.verdict,
        sizes=tuple(sizes),
        between_surveys=(together.survey or together.machine).deviation,
    )


def _size_change(
    size: SizePair,
    effect: Effect,
    decision: Decision,
    regime: Regime,
) -> SizeChange:
    (before, now), (processes, processes_now) = size.sides, map(len, size.medians)
    verdict: Reason = "not decided"
    if size.is_one_value:
        decision = msgspec.structs.replace(decision, suspected=False)
    else:
        verdict = verdict_of(effect, decision, before, now)
    return SizeChange(
        series=size.text,
        bytes=size.workload.bytes,
        rated_bytes=size.workload.rated_bytes,
        seconds_before=before.middle,
        seconds_now=now.middle,
        processes=(processes, processes_now),
        surveys=(len(before.medians), len(now.medians)),
        decision=decision,
        verdict=verdict,
        regime=regime,
        other_size=size.other_size,
    )


def _verdict(parts: Sequence[PartChange]) -> tuple[Reason, str]:
    """The verdict of a path by the gravest of its parts and sizes, and what it is about."""
    kinds: tuple[Reason, ...] = ("regression", "suspected", "improvement")
    for verdict in kinds:
        regimes = [REGIMES[part.regime] for part in parts if part.verdict == verdict]
        if regimes:
            return verdict, ", ".join(regimes)
        single = [s for p in parts for s in p.sizes if s.verdict == verdict]
        if single:
            return verdict, f"only at {', '.join(size_of(s.series) for s in single)}"
    for part in parts:
        if part.verdict == "not decided":
            return "not decided", one_value_text(part.typical)
    return "no change", ""
