"""Compares profiles path by path: what got slower, and how large a change could have been missed.

A side may have several surveys; from three on, their own variance is used
(`waywiser.stats.noise_model`). With fewer, a loss is suspected until further surveys repeat it.
GPUs are matched by UUID, so that a GPU that has gone does not make those after it look changed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence

from waywiser.analysis.comparison.common_traits import common_traits
from waywiser.analysis.comparison.comparison_text import (
    GONE,
    ONLY_IN_BASE,
    copy_text,
    label,
    no_repetition,
    slow_processes_text,
    slower,
)
from waywiser.analysis.comparison.differences import (
    another_machine,
    differences,
    is_same_machine,
    of_gpus,
)
from waywiser.analysis.comparison.matching import Matched, is_copy, match, without_copies
from waywiser.analysis.comparison.node import Devices, Node, device_of, devices_on, gpus_of
from waywiser.analysis.comparison.one_sided import added, missing, with_failures
from waywiser.analysis.comparison.path_change import (
    REGIMES,
    WORST_FIRST,
    Noises,
    PartChange,
    PathChange,
    PathVerdict,
    ProfileComparison,
    SideNoise,
    SizeChange,
    verdict_of,
    worst_first,
)
from waywiser.analysis.comparison.path_parts import (
    Part,
    Process,
    Summaries,
    noise_of,
    parts_of,
)
from waywiser.curves.answer import Device
from waywiser.curves.headline import Group, headline
from waywiser.curves.name import name_of
from waywiser.curves.select import matches_any, require_match, sized_texts_of
from waywiser.machine.machine import Machine
from waywiser.profile.series_summary import SeriesSummary
from waywiser.stats.decision import THRESHOLD, Decision, Effect, decide, detectable
from waywiser.stats.noise_model import (
    ENOUGH_FREEDOM,
    SURVEYS_FOR_VARIANCE,
    Variance,
    of_difference,
)
from waywiser.words import Workload
from waywiser.words.sizes_in_text import size_of

SCHEMA = 2
"""The schema of the JSON form."""

SLOW = 0.1
"""Relative loss of bandwidth from which on a process that is an outlier is reported."""

SIDES = 2
"""Sides of a comparison: both show the noise, so that one alone has half of the freedom."""


def compare(
    base: Sequence[Node],
    new: Sequence[Node],
    threshold: float = THRESHOLD,
    only: Sequence[str] = (),
    repeats: Sequence[Node] = (),
) -> ProfileComparison:
    """Compares all paths of either side.

    ``threshold`` is the relative change that matters. ``only`` keeps what matches a pattern of
    `waywiser.curves.select`. ``repeats`` are later surveys of the new side's machine, in which
    suspected paths were measured again. Raises `NothingMatches` for a pattern that matches nothing,
    ValueError for a side without nodes.
    """
    if not base or not new:
        raise ValueError("a comparison needs a node on each side")
    (base, copies), (new, more) = without_copies(base), without_copies(new)
    repeats, rejected = _usable(repeats, base, new)
    reference = max(base, key=lambda node: len(node.machine.gpus))
    old, now, later = ([match(reference, node) for node in side] for side in (base, new, repeats))
    before, after = _by_identity(old), _by_identity(now)
    if only:
        machines = [reference.machine, *(each.node.machine for each in now)]
        before, after = _chosen(before, after, only, machines)
    gone = {gpu.index: gpu for same in now for gpu in same.missing}
    another = another_machine(base, new)
    gone_text = ONLY_IN_BASE if another else GONE
    known = {gpu.index: device_of(gpu) for gpu in reference.machine.gpus}
    devices = {**known, **_devices(now)}
    series = [found[0][1] for side in (before, after) for found in side.values()]
    by_curve = {each.curve: each.workload for each in series}
    groups = headline(reference.machine, by_curve.values())
    parts = parts_of(before, after)
    compared = list(_compared(parts, threshold, groups, devices))
    refuted: list[PathChange] = []
    if repeats and any(path.verdict == "suspected" for path in compared):
        again = _by_identity([*now, *later])
        again = {identity: again[identity] for identity in after}
        parts = parts_of(before, again)
        together = _compared(parts, threshold, groups, devices)
        compared, refuted = _measured_again(compared, list(together))
    lost = dict.fromkeys(gone, gone_text)
    paths = [
        *compared,
        *missing(before, after, base, new, lost, groups, known),
        *added(before, after, devices),
    ]
    paths = with_failures(paths, before, after)
    paths.sort(key=worst_first)
    return ProfileComparison(
        schema=SCHEMA,
        base=tuple(node.called for node in base),
        new=tuple(node.called for node in new),
        repeats=tuple(node.called for node in repeats),
        threshold=threshold,
        paths=tuple(paths),
        counts={each: sum(p.verdict == each for p in paths) for each in WORST_FIRST},
        in_common=common_traits(paths, by_curve, reference.machine.traits),
        notes=(
            *differences(base, new),
            *of_gpus(old, now, gone_text, same_machine=not another),
            *_missing_devices(base, new, paths),
            *_slow_processes(parts, paths),
            *(f"{copy_text(copy, of)}, and counts once" for copy, of in (*copies, *more)),
            *(f"{slower(path)} in the survey, and not when measured again" for path in refuted),
            *_disputed(paths, {path.curve for path in refuted}),
            *rejected,
        ),
        another_machine=another,
        missing_gpus=tuple(map(device_of, gone.values())),
        exchanged_gpus=tuple(
            dict.fromkeys((device_of(a), device_of(b)) for same in now for a, b in same.exchanged)
        ),
    )


def _usable(
    repeats: Sequence[Node], base: Sequence[Node], new: Sequence[Node]
) -> tuple[list[Node], list[str]]:
    """The repeats that are further surveys of the new machine, and a note on each other one."""
    usable, copies = without_copies(repeats)
    notes = [no_repetition(copy_text(copy, of)) for copy, of in copies]
    for repeat in list(usable):
        same = next((each for each in (*base, *new) if is_copy(each, repeat)), None)
        if same is not None:
            fact = f"is the survey {same.called}"
        elif not any(is_same_machine(each, repeat) for each in new):
            fact = "is of another machine"
        elif repeat.created < min(each.created for each in new):
            fact = "is older than the new survey"
        else:
            continue
        notes.append(no_repetition(f"{repeat.called} {fact}"))
        usable.remove(repeat)
    return usable, notes


def _measured_again(
    paths: Sequence[PathChange], together: Sequence[PathChange]
) -> tuple[list[PathChange], list[PathChange]]:
    """The paths, suspected ones as they are ``together`` with the repeats; and those of them that
    are not slower then."""
    with_repeats = {path.curve: path for path in together}
    found = [with_repeats[path.curve] if path.verdict == "suspected" else path for path in paths]
    refuted = [
        path
        for path, settled in zip(paths, found, strict=True)
        if path.verdict == "suspected" and settled.verdict not in ("suspected", "regression")
    ]
    return found, refuted


def _slow_processes(parts: Sequence[Part], paths: Sequence[PathChange]) -> Iterator[str]:
    """A note for each side on its processes that are outliers and much slower, if any is: the
    bandwidths of headline paths count."""
    names = {path.curve: label(path) for path in paths if path.headline}
    for side, when in enumerate(("in the baseline", "now")):
        slow: dict[Process, tuple[float, str]] = {}
        everything: set[Process] = set()
        for part in parts:
            if part.regime != "bandwidth" or part.curve not in names:
                continue
            everything.update(part.typical.medians[side])
            for process, ratio in part.typical.outliers(side).items():
                worst, _ = slow.get(process, (1 - SLOW, ""))
                if ratio <= worst:
                    slow[process] = ratio, names[part.curve]
        if slow:
            lowest, name = min(slow.values())
            yield slow_processes_text(len(slow), len(everything), when, name, lowest)


def _missing_devices(
    base: Sequence[Node], new: Sequence[Node], paths: Sequence[PathChange]
) -> Iterator[str]:
    """What the decisions lack, one line each."""
    parts = [part for path in paths for part in path.parts]
    alone = sum(part.decision.freedom <= 0 for part in parts)
    if alone:
        of = "all paths" if alone == len(parts) else f"{alone} of {len(parts)} parts of paths"
        survey = (
            "make a new baseline and a new profile in several processes (--preset check for links, "
            "--preset standard for all paths), or "
        )
        imported = all(node.tools for node in (*base, *new))
        yield (
            f"before and now, one process alone measured {of}: the variance between "
            "processes is not known, and no change of these can be confirmed; "
            f"{'' if imported else survey}compare "
            "several files of before with several of now"
        )
    improved = any(path.verdict == "improvement" for path in paths)
    if improved and max(len(base), len(new)) < SURVEYS_FOR_VARIANCE:
        yield (
            f"an improvement that fewer than {SURVEYS_FOR_VARIANCE} surveys of before or of now "
            "show may be chance: the variance between surveys is not known"
        )


def _disputed(paths: Sequence[PathChange], known: Container[str]) -> Iterator[str]:
    """One line for each path, but for those ``known``, that changed in some new surveys only."""
    for path in paths:
        if path.verdict == "no change" and path.changes and path.curve not in known:
            largest = max(path.changes, key=lambda change: abs(math.log(change.ratio)))
            change = f"{largest.ratio - 1:+.1%}"
            yield f"{label(path)} is {change} over all new surveys, but not changed in each of them"


def _by_identity(side: Sequence[Matched]) -> Summaries:
    found: dict[str, list[tuple[int, SeriesSummary]]] = {}
    for number, survey in enumerate(side):
        for series in survey.series:
            found.setdefault(series.identity, []).append((number, series))
    return found


def _chosen(
    before: Summaries, after: Summaries, only: Sequence[str], machines: Sequence[Machine]
) -> tuple[Summaries, Summaries]:
    """What matches a pattern. Raises as `require_match` for one that nothing of either side
    matches. The links of a path are those of the first machine that has its GPUs."""
    texts: dict[str, tuple[str, ...]] = {}
    for identity, found in (*before.items(), *after.items()):
        workload = found[0][1].workload
        gpus = gpus_of(workload)
        having = (each for each in machines if gpus <= {gpu.index for gpu in each.gpus})
        texts[identity] = sized_texts_of(workload, next(having, machines[0]))
    known = [text for each in texts.values() for text in each]
    most = max(len(machine.gpus) for machine in machines)
    require_match(only, known, gpus=most, measured=True)
    kept = {identity for identity, each in texts.items() if matches_any(each, only)}
    first, second = (
        {identity: found for identity, found in side.items() if identity in kept}
        for side in (before, after)
    )
    return first, second


def _devices(side: Sequence[Matched]) -> Devices:
    """GPUs in the numbers of the base, as the first node has them that has them."""
    found: dict[int, Device] = {}
    for survey in side:
        for gpu in survey.node.machine.gpus:
            found.setdefault(survey.numbers[gpu.index], device_of(gpu))
    return found


def _compared(
    parts: Sequence[Part],
    threshold: float,
    groups: Mapping[str, Group],
    devices: Devices,
) -> Iterator[PathChange]:
    effects: list[Effect] = []
    noises = noise_of(parts)
    for part, noise in zip(parts, noises, strict=True):
        for size in part.sizes:
            is_headline = size is part.typical and part.curve in groups
            before, now = size.sides
            variance = of_difference(before, now, noise)
            effects.append(Effect(size.log_ratio, variance, is_headline))
    decisions = iter(decide(effects, threshold))
    of_sides = zip(*(_side_noises(parts, side, threshold) for side in range(SIDES)), strict=True)
    curves: dict[str, list[PartChange]] = {}
    workloads: dict[str, Workload] = {}
    for part, noise, alone in zip(parts, noises, of_sides, strict=True):
        sizes = [next(decisions) for _ in part.sizes]
        workloads[part.curve] = part.sizes[-1].workload
        change = _part_change(part, sizes, noise.survey is not None, alone, threshold)
        curves.setdefault(part.curve, []).append(change)
    for curve, found in curves.items():
        found.sort(key=lambda part: part.sizes[-1].bytes)
        workload = workloads[curve]
        verdict, why = _verdict(found)
        on = devices_on(workload, devices)
        yield PathChange(
            curve, name_of(workload), verdict, why, groups.get(curve), on, tuple(found)
        )


def _side_noises(parts: Sequence[Part], side: int, threshold: float) -> Iterator[SideNoise]:
    """The noise of before (0) or of now (1) alone, of each part."""
    alone = [part.on_side(side) for part in parts]
    for part, noise in zip(parts, noise_of(alone, ENOUGH_FREEDOM / SIDES), strict=True):
        process, own = noise.process, part.typical.sides[side]
        once = of_difference(own, own, noise)
        both = Variance(once.value, SIDES * once.freedom)
        yield SideNoise(
            process.deviation if process.freedom > 0 else None, detectable(both, threshold)
        )


def _part_change(
    part: Part,
    decisions: Sequence[Decision],
    is_variance_known: bool,
    alone: Noises,
    threshold: float,
) -> PartChange:
    sizes = []
    for size, decision in zip(part.sizes, decisions, strict=True):
        (before, now), (processes, processes_now) = size.sides, map(len, size.medians)
        sizes.append(
            SizeChange(
                size.text,
                size.workload.bytes,
                size.workload.rated_bytes,
                before.median,
                now.median,
                (processes, processes_now),
                (len(before.medians), len(now.medians)),
                decision,
                verdict_of(decision, before, now, threshold, is_variance_known=is_variance_known),
            )
        )
    typical = sizes[part.sizes.index(part.typical)]
    return PartChange(
        part.regime,
        typical.processes,
        typical.surveys,
        alone,
        typical.decision,
        part.typical.ratio_with_outliers(),
        typical.verdict,
        tuple(sizes),
    )


def _verdict(parts: Sequence[PartChange]) -> tuple[PathVerdict, str]:
    """The verdict of a path by the gravest of its parts and sizes, and what it is about."""
    kinds: tuple[PathVerdict, ...] = ("regression", "suspected", "improvement")
    for verdict in kinds:
        regimes = [REGIMES[part.regime] for part in parts if part.verdict == verdict]
        if regimes:
            return verdict, ", ".join(regimes)
        single = [s for p in parts for s in p.sizes if s.verdict == verdict]
        if single:
            return verdict, f"only at {', '.join(size_of(s.series) for s in single)}"
    return "no change", ""
