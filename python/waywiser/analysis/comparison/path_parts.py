"""What a comparison compares, one curve's sizes of one regime, before and after; and what it
decides about them.

All sizes of a curve that one process measures share its memory, and change together. So a part has
changed as its typical size has: the one whose change is the median over sizes, so that a drop at
one size is that size's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from statistics import fmean

from msgspec.structs import replace

from waywiser.analysis.comparison.part_change import (
    BOTH,
    SIDES,
    Key,
    Medians,
    OtherSize,
    PartChange,
    SizeChange,
    by_survey,
    one_value_text,
    verdict_of,
)
from waywiser.analysis.comparison.path_change import REGIMES, PathChange
from waywiser.curves import Devices, Group, Point, Regime, devices_on, name_of, regime_of
from waywiser.stats import (
    ENOUGH_FREEDOM,
    THRESHOLD,
    Contrast,
    Decision,
    Effect,
    Noise,
    Surveys,
    Variance,
    decide,
    noise_between_surveys,
    of_difference,
    share_beside_surveys,
    shared,
    survey_noise_of,
)
from waywiser.stats.noise_model import BetweenSurveys, between_sides, pooled, within_side
from waywiser.words import Reason, Workload, grouped, size_of

Summaries = Mapping[str, Sequence[tuple[int, Point]]]
"""What one side has measured, by identity: each file's number, and the series in it."""


class MachineNoise:
    """What the paths of a machine show of the noise between surveys, by the typical size of each
    part of both sides."""

    def __init__(self, parts: Sequence[PartChange]) -> None:
        self._own: dict[Key, list[Contrast]] = {}
        changes: dict[Regime, dict[Key, tuple[float, float, float]]] = {}
        processes = _process_noise(parts, [part.own_noise for part in parts])
        for part, process in zip(parts, processes, strict=True):
            own = self._own.setdefault(part.key, [])
            of_sides = []
            for side in part.typical.sides:
                noise = process.value if process.freedom > 0 else 0.0
                added = noise * share_beside_surveys(side.share_of_survey)
                own += within_side(side, added)
                of_sides.append((side.share_of_middle, side.share_of_middle * added))
            share, added = map(sum, zip(*of_sides, strict=True))
            change = part.typical.log_ratio, share, added
            changes.setdefault(part.regime, {})[part.key] = change
        self.regimes: dict[Regime, BetweenSurveys] = {}
        """The noise of one survey, by regime."""
        for regime, known in changes.items():
            between = between_sides(*zip(*known.values(), strict=True))
            for key, contrast in zip(known, between, strict=False):
                self._own[key].append(contrast)
            everything = chain.from_iterable(self._own[key] for key in known)
            self.regimes[regime] = noise_between_surveys(list(everything))

    def without(self, parts: Sequence[PartChange]) -> Variance:
        """The value of the regime of ``parts``, as all other parts show it."""
        own = [each for part in parts for each in self._own[part.key]]
        return self.regimes[parts[0].regime].without(own)


def noise_of(
    parts: Sequence[PartChange],
    machine: MachineNoise,
    enough: float = ENOUGH_FREEDOM,
    sides: slice = BOTH,
) -> list[Noise]:
    """Returns the noise of each part, as ``sides`` show it: pooled over equivalent paths, borrowed
    within a curve.

    - Equivalent paths share their noise, unless a path's own is too large to be theirs.
    - With fewer degrees of freedom than ``enough``, processes may agree by chance. Then the noise
      is at least that of the paths that differ only in the executor's parameters.
    - A part that nothing replicates has the noise of its sizes around a line. With fewer than
      `FEWEST_SIZES` it borrows from the other regimes of its curve, the noisiest one.
    - Between surveys each has that of the other paths of the ``machine``, unless the surveys of
      equivalent paths or its own show another noise.
    """
    owns = [part.own_noise if sides == BOTH else part.noise_of(sides) for part in parts]
    peers = grouped((part.peers, (part, own)) for part, own in zip(parts, owns, strict=True))
    between = {
        key: pooled([own.survey for _, own in of if own.survey]) for key, of in peers.items()
    }
    found = []
    processes = _process_noise(parts, owns, enough)
    for part, known, process in zip(parts, owns, processes, strict=True):
        noise = Noise(process, None, machine.without([part]))
        (first, *_) = part.most_replicated(sides)
        of_survey = fmean(side.share_of_survey for side in first.sides[sides])
        own = None
        for surveys, others in (
            (between[part.peers], [each for each, _ in peers[part.peers]]),
            (known.survey, [part]),
        ):
            if own is None and surveys is not None:
                expected = noise._replace(machine=machine.without(others)).of_survey(of_survey)
                own = survey_noise_of(surveys, expected)
        found.append(noise._replace(survey=own))
    return found


def _process_noise(
    parts: Sequence[PartChange], owns: Sequence[Noise], enough: float = ENOUGH_FREEDOM
) -> list[Variance]:
    """The variance between the processes of each part, as `noise_of` has it, by that which each
    shows."""
    each_own = list(zip(parts, owns, strict=True))
    equivalent = _pooled_by((part.peers, own) for part, own in each_own)
    similar = _pooled_by((part.similar, own) for part, own in each_own)
    curves = grouped((part.curve, part) for part in parts)
    found = []
    for part, own in each_own:
        known = equivalent[part.peers].process
        if known.freedom > 0:
            process = shared(own.process, known)
            if process.freedom < enough:
                process = max(process, similar[part.similar].process, key=lambda v: v.value)
            found.append(process)
            continue
        near = [equivalent[other.peers].process for other in curves[part.curve]]
        near = [each for each in near if each.freedom > 0]
        noisiest = max(near, key=lambda each: each.value, default=own.process)
        found.append(shared(own.process, noisiest))
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
) -> list[PartChange]:
    """All series that both sides have measured, by curve and regime. ``threshold`` is the relative
    change that matters; ``is_in_order`` says whether ``before`` was measured first; ``moved`` are
    those that were measured at other sizes, by identity."""
    pairs = ((identity, old, after.get(identity, ())) for identity, old in before.items())
    measured = (
        _size_change(old, now, is_in_order, (moved or {}).get(identity))
        for identity, old, now in pairs
        if all(any(each.blocks for _, each in side) for side in (old, now))
    )
    sizes = grouped(((size.workload.curve, size.regime), size) for size in measured)
    return [
        PartChange.of(curve, regime, sorted(found, key=lambda size: size.bytes), threshold)
        for (curve, regime), found in sizes.items()
    ]


def _size_change(
    old: Sequence[tuple[int, Point]],
    new: Sequence[tuple[int, Point]],
    is_in_order: bool | None,
    other_size: OtherSize | None,
) -> SizeChange:
    blocks = tuple(
        tuple([block for _, series in side for block in series.blocks]) for side in (old, new)
    )
    series = old[0][1]
    medians = _medians(old), _medians(new)
    before, now = (Surveys(list(by_survey(side).values())) for side in medians)
    return SizeChange(
        series=series.text,
        bytes=series.workload.bytes,
        rated_bytes=series.workload.rated_bytes,
        seconds_before=before.middle,
        seconds_now=now.middle,
        processes=(len(medians[0]), len(medians[1])),
        surveys=(len(before.medians), len(now.medians)),
        regime=regime_of(series.workload),
        other_size=other_size,
        workload=series.workload,
        medians=medians,
        blocks=blocks,
        sides=(before, now),
        is_in_order=is_in_order,
    )


def _medians(side: Sequence[tuple[int, Point]]) -> Medians:
    return {(file, block.block): block.median for file, series in side for block in series.blocks}


def path_changes(
    parts: Sequence[PartChange], groups: Mapping[str, Group], devices: Devices
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
        noise_of(parts, machine, ENOUGH_FREEDOM / SIDES, slice(n, n + 1)) for n in range(SIDES)
    ]
    curves: dict[str, list[PartChange]] = {}
    workloads: dict[str, Workload] = {}
    for part, noise, own, before, now in zip(parts, noises, effects, *alone, strict=True):
        sizes = [
            _decided(size, effect, decision)
            for size, effect, decision in zip(part.sizes, own, decisions, strict=False)
        ]
        curves.setdefault(part.curve, []).append(part.decided(sizes, (before, now), noise))
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


def _effects(part: PartChange, noise: Noise, *, is_headline: bool) -> list[Effect]:
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


def _variance(size: SizeChange, noise: Noise) -> Variance:
    """That of the change of a size; one value beside a plateau of another size is not tested."""
    found = of_difference(size.sides[0], size.sides[1], noise, size.shift(BOTH))
    return Variance(found.value, 0.0) if size.is_one_value else found


def _decided(size: SizeChange, effect: Effect, decision: Decision) -> SizeChange:
    if size.is_one_value:
        return size.decided(replace(decision, suspected=False), "not decided")
    return size.decided(decision, verdict_of(effect, decision, *size.sides))


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
