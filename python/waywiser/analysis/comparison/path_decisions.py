"""From what two sides measured of a path to what a comparison reports of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from waywiser.analysis.comparison.path_change import (
    REGIMES,
    PartChange,
    PathChange,
    SideNoise,
    SizeChange,
    one_value_text,
    verdict_of,
)
from waywiser.analysis.comparison.path_parts import MachineNoise, Part, SizePair, noise_of
from waywiser.curves.gpu_numbers import Devices, devices_on
from waywiser.curves.headline import Group
from waywiser.curves.name import name_of
from waywiser.curves.regimes import Regime
from waywiser.stats.decision import Decision, Effect, decide
from waywiser.stats.noise_model import ENOUGH_FREEDOM, Noise, Variance, of_difference
from waywiser.words import Reason, Workload
from waywiser.words.sizes_in_text import size_of

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
    if not size.is_one_value:
        verdict = verdict_of(effect, decision, before, now)
    return SizeChange(
        series=size.text,
        bytes=size.workload.bytes,
        rated_bytes=size.workload.rated_bytes,
        seconds_before=before.middle,
        seconds_now=now.middle,
        processes=(processes, processes_now),
        surveys=(len(before.medians), len(now.medians)),
        decision=replace(decision, suspected=False) if size.is_one_value else decision,
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
