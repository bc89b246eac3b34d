"""Compares profiles path by path: what got slower, and how large a change could have been missed.

A side may have several surveys; from three on, their own variance is used
(`waywiser.stats.noise_model`). GPUs are matched by UUID, so that a GPU that has gone does not make
those after it look changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from waywiser.analysis.answer import Device
from waywiser.comparison.copies import without_copies
from waywiser.comparison.differences import another_machine, differences, of_gpus
from waywiser.comparison.node import Node, gpus_of
from waywiser.comparison.one_sided import added, missing, with_failures
from waywiser.comparison.path_change import (
    REGIMES,
    WORST_FIRST,
    PartChange,
    PathChange,
    PathVerdict,
    ProfileComparison,
    SizeChange,
    verdict_of,
    worst_first,
)
from waywiser.comparison.path_parts import Part, noise_of, parts_of
from waywiser.comparison.same_gpus import Matched, in_numbers_of, match
from waywiser.plan.headline import Group, headline
from waywiser.plan.name import name_of
from waywiser.plan.select import matches_any, require_match, sized_texts_of
from waywiser.series.series_summary import SeriesSummary
from waywiser.stats.decision import THRESHOLD, Decision, Effect, decide
from waywiser.stats.noise_model import SURVEYS_FOR_VARIANCE, Noise, Surveys, of_difference
from waywiser.topology.machine import Gpu
from waywiser.words import Workload, format_bytes

SCHEMA = 2
"""Of the JSON form."""

GONE = "is gone"
ONLY_IN_BASE = "is only in the machine of the base"
"""What is said of a GPU that the new files lack: of the same machine, and of another one."""

_Summaries = dict[str, list[tuple[int, SeriesSummary]]]
"""By identity: each file's number, and the series in it."""


def compare(
    base: Sequence[Node],
    new: Sequence[Node],
    threshold: float = THRESHOLD,
    only: Sequence[str] = (),
) -> ProfileComparison:
    """Compares all paths of either side.

    ``threshold`` is the relative change that matters. ``only`` keeps what matches a pattern of
    `waywiser.plan.select`. Raises `NothingMatches` for a pattern that matches nothing, ValueError
    for a side without nodes.
    """
    if not base or not new:
        raise ValueError("a comparison needs a node on each side")
    (base, copies), (new, more) = without_copies(base), without_copies(new)
    reference = max(base, key=lambda node: len(node.machine.gpus))
    old, now = (
        [match(reference.machine.gpus, node.machine.gpus) for node in side] for side in (base, new)
    )
    before, after = _by_identity(base, old), _by_identity(new, now)
    if only:
        before, after = _chosen(before, after, only)
    gone = {gpu.index: gpu for same in now for gpu in same.missing}
    another = another_machine(base, new)
    gone_text = ONLY_IN_BASE if another else GONE
    lost = dict.fromkeys(gone, gone_text)
    devices = _Devices(reference, new, now)
    workloads = [found[0][1].workload for side in (before, after) for found in side.values()]
    groups = headline(reference.machine, workloads)
    plain_before, plain_after = _without_files(before), _without_files(after)
    paths = [
        *_compared(parts_of(before, after), threshold, groups, devices),
        *missing(plain_before, plain_after, reference, base, new, lost, groups),
        *added(plain_before, plain_after, devices),
    ]
    paths = with_failures(paths, plain_before, plain_after)
    paths.sort(key=worst_first)
    return ProfileComparison(
        schema=SCHEMA,
        base=tuple(node.called for node in base),
        new=tuple(node.called for node in new),
        threshold=threshold,
        paths=tuple(paths),
        counts={each: sum(p.verdict == each for p in paths) for each in WORST_FIRST},
        notes=(
            *differences(base, new),
            *of_gpus(base, new, old, now, gone_text),
            *_lacking(base, new, paths),
            *(f"{copy} is a copy of {of}, and counts once" for copy, of in (*copies, *more)),
        ),
        another_machine=another,
        missing_gpus=tuple(map(_device, gone.values())),
        exchanged_gpus=tuple(
            dict.fromkeys((_device(a), _device(b)) for same in now for a, b in same.exchanged)
        ),
    )


def _lacking(
    base: Sequence[Node], new: Sequence[Node], paths: Sequence[PathChange]
) -> Iterator[str]:
    """What the decisions lack, one line each."""
    parts = [part for path in paths for part in path.parts]
    alone = sum(part.decision.freedom <= 0 for part in parts)
    if alone:
        of = "all paths" if alone == len(parts) else f"{alone} of {len(parts)} parts of paths"
        survey = (
            "make a new baseline and a new profile with 'waywiser survey --preset check -o FILE', "
            "which measures in several processes, or "
        )
        imported = all(node.tools for node in (*base, *new))
        yield (
            f"before and now, one process alone measured {of}: how far processes differ is not "
            f"known, and no change of these can be confirmed; {'' if imported else survey}compare "
            "several files of before with several of now"
        )
    changed = any(path.verdict in ("regression", "improvement") for path in paths)
    if changed and max(len(base), len(new)) < SURVEYS_FOR_VARIANCE:
        yield (
            f"it takes {SURVEYS_FOR_VARIANCE} profiles of before or of now to see how far surveys "
            "of one machine differ; with fewer, half the deviation between processes is added"
        )


def _without_files(found: _Summaries) -> dict[str, list[SeriesSummary]]:
    return {identity: [series for _, series in each] for identity, each in found.items()}


def _device(gpu: Gpu) -> Device:
    return Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)


def _by_identity(nodes: Sequence[Node], matched: Sequence[Matched]) -> _Summaries:
    found: _Summaries = {}
    for number, (node, same) in enumerate(zip(nodes, matched, strict=True)):
        for series in in_numbers_of(node, same):
            found.setdefault(series.identity, []).append((number, series))
    return found


def _chosen(
    before: _Summaries, after: _Summaries, only: Sequence[str]
) -> tuple[_Summaries, _Summaries]:
    """What matches a pattern. Raises `NothingMatches` for one that nothing of either side does."""
    texts = {
        i: sized_texts_of(found[0][1].workload)
        for side in (before, after)
        for i, found in side.items()
    }
    require_match(only, [text for each in texts.values() for text in each])
    kept = {identity for identity, each in texts.items() if matches_any(each, only)}
    first, second = (
        {i: found for i, found in side.items() if i in kept} for side in (before, after)
    )
    return first, second


class _Devices:
    """The GPUs of a workload, as the first new file has them that has them, else as the base."""

    def __init__(self, reference: Node, new: Sequence[Node], matched: Sequence[Matched]) -> None:
        self._known = {gpu.index: _device(gpu) for gpu in reference.machine.gpus}
        for node, same in reversed(list(zip(new, matched, strict=True))):
            for gpu in node.machine.gpus:
                self._known[same.numbers[gpu.index]] = _device(gpu)

    def __call__(self, workload: Workload) -> tuple[Device, ...]:
        return tuple(
            self._known.get(gpu, Device(f"gpu:{gpu}")) for gpu in sorted(gpus_of(workload))
        )


def _compared(
    parts: Sequence[Part],
    threshold: float,
    groups: Mapping[str, Group],
    devices: _Devices,
) -> Iterator[PathChange]:
    effects: list[Effect] = []
    for part, noise in zip(parts, noise_of(parts), strict=True):
        whole = Noise(noise.process, noise.survey)
        effects.append(_effect(part.sides, whole, part.curve in groups))
        if len(part.sizes) > 1:
            single = Noise(noise.process_of_size, noise.survey_of_size)
            effects += [_effect(size.sides, single, False) for size in part.sizes]
    decisions = iter(decide(effects, threshold))
    curves: dict[str, list[PartChange]] = {}
    workloads: dict[str, Workload] = {}
    for part in parts:
        whole_part = next(decisions)
        sizes = [next(decisions) for _ in part.sizes] if len(part.sizes) > 1 else [whole_part]
        workloads[part.curve] = part.sizes[-1].workload
        curves.setdefault(part.curve, []).append(_part_change(part, whole_part, sizes))
    for curve, found in curves.items():
        found.sort(key=lambda part: part.sizes[-1].bytes)
        workload = workloads[curve]
        verdict, why = _verdict(found)
        yield PathChange(
            curve, name_of(workload), verdict, why, groups.get(curve), devices(workload),
            tuple(found),
        )  # fmt: skip


def _effect(sides: tuple[Surveys, Surveys], noise: Noise, is_headline: bool) -> Effect:
    before, after = sides
    return Effect(after.mean - before.mean, of_difference(before, after, noise), is_headline)


def _part_change(part: Part, whole: Decision, decisions: Sequence[Decision]) -> PartChange:
    before, after = part.sides
    sizes = []
    for size, decision in zip(part.sizes, decisions, strict=True):
        old, new = size.sides
        sizes.append(
            SizeChange(
                size.text,
                size.workload.bytes,
                size.workload.rated_bytes,
                math.exp(old.mean),
                math.exp(new.mean),
                (old.processes, new.processes),
                decision,
            )
        )
    return PartChange(
        part.regime,
        (before.processes, after.processes),
        (len(before.replicates), len(after.replicates)),
        whole,
        tuple(sizes),
    )


def _verdict(parts: Sequence[PartChange]) -> tuple[PathVerdict, str]:
    """The verdict of a path by the gravest of its parts and sizes, and what it is about."""
    kinds: tuple[PathVerdict, ...] = ("regression", "suspected", "improvement")
    for verdict in kinds:
        regimes = [REGIMES[part.regime] for part in parts if verdict_of(part.decision) == verdict]
        if regimes:
            return verdict, ", ".join(regimes)
        single = [s for p in parts for s in p.sizes if verdict_of(s.decision) == verdict]
        if single:
            return verdict, f"at {_sizes(size.bytes for size in single)} alone"
    return "no change", ""


def _sizes(sizes: Iterable[int]) -> str:
    return ", ".join(map(format_bytes, sizes))
