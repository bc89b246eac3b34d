"""Compares profiles path by path: what got slower, and how large a change could have been missed.

A side may have several surveys; from three on, their own variance is used
(`waywiser.stats.noise_model`). With fewer, a loss is suspected until further surveys repeat it.
GPUs are matched by UUID, so that a GPU that has gone does not make those after it look changed.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from waywiser.analysis.comparison.comparison_text import (
    ONE_EACH,
    change_text,
    copy_text,
    label,
    slow_processes_text,
    slower,
    survey_noise_notes,
)
from waywiser.analysis.comparison.differences import (
    ComparisonSides,
    differences,
    message_settings,
    of_gpus,
)
from waywiser.analysis.comparison.one_sided import one_sided, with_failures, without_common_size
from waywiser.analysis.comparison.other_sizes import at_common_sizes
from waywiser.analysis.comparison.part_change import PartChange, Process
from waywiser.analysis.comparison.path_change import (
    BOUNDED,
    PATH_REASONS,
    REGIMES,
    PathChange,
    ProfileComparison,
    worst_first,
)
from waywiser.analysis.comparison.path_parts import Summaries, parts_of, path_changes
from waywiser.curves import Group, Subject, device_of, gpus_of, in_order, matches_any, require_match
from waywiser.curves.headline import headline
from waywiser.curves.select import sized_texts_of
from waywiser.machine import Machine, Traits, launch_options
from waywiser.stats import SURVEYS_FOR_VARIANCE, THRESHOLD
from waywiser.words import Workload, count, grouped

SCHEMA = 2
"""The schema of the JSON form."""

SLOW = 0.1
"""Relative loss of bandwidth from which on a process that is an outlier is reported."""


def compare(
    base: Sequence[Subject],
    new: Sequence[Subject],
    threshold: float = THRESHOLD,
    only: Sequence[str] = (),
    repeats: Sequence[Subject] = (),
) -> ProfileComparison:
    """Compares all paths of either side.

    ``threshold`` is the relative change that matters. ``only`` keeps what matches a pattern of
    `waywiser.curves.select`. ``repeats`` are later surveys of the new side's machine, in which
    suspected paths were measured again. Raises `NothingMatches` for a pattern that matches nothing,
    ValueError for a side without nodes.
    """
    sides = ComparisonSides(base, new, repeats)
    before, after = _by_identity(sides.base), _by_identity(sides.new)
    if only:
        machines = [node.machine for node in (sides.reference, *sides.new)]
        before, after = _chosen(before, after, only, machines)
    series = [found[0][1] for side in (before, after) for found in side.values()]
    by_curve = {each.curve: each.workload for each in series}
    groups = headline(sides.reference.machine, by_curve.values())
    compared, refuted, parts = _compared(sides, before, after, threshold, groups)
    paths = [*compared, *one_sided(sides, before, after, groups, _crowded(sides, only))]
    paths += without_common_size(sides, before, after, groups, {path.curve for path in compared})
    paths = sorted(with_failures(paths, before, after), key=worst_first)
    return ProfileComparison(
        schema=SCHEMA,
        base=tuple(node.called for node in sides.base),
        new=tuple(node.called for node in sides.new),
        repeats=tuple(node.called for node in sides.repeats),
        threshold=threshold,
        paths=tuple(paths),
        counts={each: sum(p.verdict == each for p in paths) for each in PATH_REASONS},
        in_common=common_traits(paths, by_curve, sides.reference.machine.traits),
        notes=tuple(_notes(sides, parts, paths, refuted)),
        another_machine=sides.another,
        missing_gpus=tuple(map(device_of, sides.gone.values())),
        unnamed_gpus=tuple(map(device_of, sides.unnamed.values())),
        exchanged_gpus=sides.exchanged,
        tools=tuple(dict.fromkeys(t for node in (*sides.base, *sides.new) for t in node.tools)),
        launch=tuple(launch_options(sides.new[-1].machine, sides.new[-1].environment)),
        message_settings=message_settings(sides.base, sides.new),
    )


def _crowded(sides: ComparisonSides, only: Sequence[str]) -> dict[str, Workload]:
    """What a survey has measured and nothing is compared with, by curve."""
    return {
        each.curve: each.workload
        for node in (*sides.base, *sides.new)
        for each in node.crowded
        if not only or matches_any(sized_texts_of(each.workload, node.machine), only)
    }


def _compared(
    sides: ComparisonSides,
    before: Summaries,
    after: Summaries,
    threshold: float,
    groups: Mapping[str, Group],
) -> tuple[list[PathChange], list[PathChange], list[PartChange]]:
    """The paths that both sides have measured, slower ones as they are with the repeats; those of
    them that are not slower then; and what was compared last."""
    order = sides.is_in_order
    parts = _parts(before, after, threshold, order)
    compared = list(path_changes(parts, groups, sides.devices))
    lost = ("suspected", "regression")
    suspected = {path.curve: path for path in compared if path.verdict in lost}
    if not sides.repeats:
        return compared, [], parts
    again = _by_identity([*sides.new, *sides.repeats])
    later = {identity: again[identity] for identity in after}
    parts = _parts(before, later, threshold, order)
    together = {path.curve: path for path in path_changes(parts, groups, sides.devices)}
    found = [
        now if path.curve in suspected or now.verdict == "regression" else path
        for path in compared
        for now in [together[path.curve]]
    ]
    refuted = [path for path in suspected.values() if together[path.curve].verdict not in lost]
    return found, refuted, parts


def _parts(
    before: Summaries, after: Summaries, threshold: float, is_in_order: bool | None
) -> list[PartChange]:
    """What both sides have measured, at common sizes."""
    before, after, moved = at_common_sizes(before, after)
    return parts_of(before, after, threshold, is_in_order, moved)


def _notes(
    sides: ComparisonSides,
    parts: Sequence[PartChange],
    paths: Sequence[PathChange],
    refuted: Sequence[PathChange],
) -> Iterator[str]:
    """What else differs, or what the decisions lack, one line each. ``refuted`` are the paths that
    are not slower when measured again."""
    yield from differences(sides.base, sides.new)
    yield from of_gpus(sides.base, sides.new, sides.gone_text, same_machine=not sides.another)
    yield from _missing_devices(sides.base, sides.new, paths)
    yield from _slow_processes(parts, paths)
    yield from (f"{copy_text(copy, of)}, and counts once" for copy, of in sides.copies)
    yield from (f"{slower(path)} in the survey, and not when measured again" for path in refuted)
    yield from _disputed(paths, {path.curve for path in refuted})
    yield from survey_noise_notes(parts, paths)
    yield from sides.rejected


def _slow_processes(parts: Sequence[PartChange], paths: Sequence[PathChange]) -> Iterator[str]:
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
    base: Sequence[Subject], new: Sequence[Subject], paths: Sequence[PathChange]
) -> Iterator[str]:
    """What the decisions lack, one line each."""
    parts = [part for path in paths for part in path.parts if part.verdict != "not decided"]
    unknown = sum(part.decision.freedom <= 0 for part in parts)
    by_sizes = sum(part.decision.freedom > 0 and part.processes == ONE_EACH for part in parts)
    if by_sizes:
        yield (
            f"before and now, one process alone measured {_share(by_sizes, len(parts))}: the noise "
            "is how sizes scatter around a line, and what differs between processes is not known"
        )
    if unknown:
        survey = (
            "make a new baseline and a new profile in several processes (--preset check for links, "
            "--preset standard for all paths), or "
        )
        imported = all(node.tools for node in (*base, *new))
        yield (
            f"before and now, one process alone measured {_share(unknown, len(parts))}: the "
            "variance between processes is not known, and no change of these can be confirmed; "
            f"{'' if imported else survey}compare "
            "several files of before with several of now"
        )
    improved = any(path.verdict == "improvement" for path in paths)
    if improved and max(len(base), len(new)) < SURVEYS_FOR_VARIANCE:
        yield (
            f"an improvement that fewer than {SURVEYS_FOR_VARIANCE} surveys of before or of now "
            "show may be chance: the variance between surveys is not known"
        )


def _share(number: int, of: int) -> str:
    return "all paths" if number == of else f"{number} of {of} parts of paths"


def _disputed(paths: Sequence[PathChange], known: Container[str]) -> Iterator[str]:
    """One line for each path, but for those ``known``, that changed in some new surveys only."""
    for path in paths:
        if path.verdict == "no change" and path.changes and path.curve not in known:
            sizes = [s for p in path.parts for s in p.sizes if s.decision in path.changes]
            largest = max(sizes, key=lambda size: abs(math.log(size.decision.ratio)))
            by = change_text(largest)
            yield f"{label(path)} is {by} over all new surveys, but not changed in each of them"


def _by_identity(side: Sequence[Subject]) -> Summaries:
    return grouped(
        (series.identity, (number, series))
        for number, survey in enumerate(side)
        for series in survey.matched_points
    )


def _chosen(
    before: Summaries, after: Summaries, only: Sequence[str], machines: Sequence[Machine]
) -> tuple[Summaries, Summaries]:
    """What matches a pattern. Raises as `require_match` for one that nothing of either side
    matches. The links of a path are those of the first machine that has its GPUs."""
    texts: dict[str, tuple[str, ...]] = {}
    for identity, found in {**before, **after}.items():
        workload = found[0][1].workload
        gpus = gpus_of(workload)
        having = (each for each in machines if gpus <= {gpu.index for gpu in each.gpus})
        texts[identity] = sized_texts_of(workload, next(having, machines[0]))
    known = [text for each in texts.values() for text in each]
    most = max(len(machine.gpus) for machine in machines)
    described = all(machine.is_described for machine in machines)
    require_match(only, known, gpus=most if described else None, measured=True)
    kept = {identity for identity, each in texts.items() if matches_any(each, only)}
    first, second = (
        {identity: found for identity, found in side.items() if identity in kept}
        for side in (before, after)
    )
    return first, second


SLOWER = ("regression", "suspected")


def common_traits(
    paths: Iterable[PathChange], workloads: Mapping[str, Workload], traits: Traits
) -> str:
    """``no change was found on 16 paths over GPU links (H2D, D2H; a loss of 4.1% or more would have
    been found); CPUs have a part in all 5 slower paths``; empty if nothing can be said, or if no
    path is slower. ``workloads`` are by curve."""
    measured = [path for path in paths if path.parts]
    slower = [path for path in measured if path.verdict in SLOWER]
    others = [path for path in measured if path.verdict not in SLOWER]
    if not slower:
        return ""
    found = []
    links = [path for path in measured if path.headline in BOUNDED]
    if links and all(path.verdict == "no change" for path in links):
        groups = in_order(path.headline for path in links if path.headline)
        known = [path.detectable for path in links if path.detectable is not None]
        missed = "the noise of some is not known"
        if len(known) == len(links):
            missed = f"a loss of {max(known):.1%} or more would have been found"
        found.append(
            f"no change was found on {count(len(links), 'path')} over GPU links "
            f"({', '.join(groups)}; {missed})"
        )
    if found or len(slower) > 1:
        found += _shared(slower, others, workloads, traits)[:1]
    return "; ".join(found)


def _shared(
    slower: Sequence[PathChange],
    others: Sequence[PathChange],
    workloads: Mapping[str, Workload],
    traits: Traits,
) -> list[str]:
    """What all slower paths have and not all others, the most specific first."""
    of_slower = [dict(_traits(path, workloads[path.curve], traits)) for path in slower]
    of_others = [dict(_traits(path, workloads[path.curve], traits)) for path in others]
    all_ = "both" if len(slower) == 2 else f"all {len(slower)}"
    who = "the slower path" if len(slower) == 1 else f"{all_} slower paths"
    number = 0 if len(slower) == 1 else 1
    found = {
        trait: texts[number].format(who)
        for trait, texts in of_slower[0].items()
        if all(trait in each for each in of_slower)
        and not (of_others and all(trait in each for each in of_others))
    }
    shared = [device.place for device in slower[0].devices if device.place in found]
    if len(shared) > 1:  # none of them more than the others
        for place in shared:
            del found[place]
        verb = "uses" if len(slower) == 1 else "use"
        return [f"{who} {verb} {', '.join(shared)} together", *found.values()]
    return list(found.values())


def _traits(
    path: PathChange, workload: Workload, traits: Traits
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each trait of a path, with what is said of one path that has it, and of several."""
    for device in path.devices:
        yield device.place, (f"{{}} uses {device.place}", f"{{}} use {device.place}")
    if workload.kind == "operation":
        text = "an operation that moves no bytes"
        yield "operation", (f"{{}} is {text}", "{} are operations that move no bytes")
    memories = [m for t in workload.transfers for m in t.path.ends]
    if any(memory.place.kind == "file" for memory in memories):
        yield "file", ("{} reads or writes a file", "{} read or write files")
    if any(traits.memory(memory.kind).migrates for memory in memories):
        yield "unified", ("{} moves unified memory", "{} move unified memory")
    executors = {transfer.path.executor for transfer in workload.transfers}
    if any(traits.executor(each).uses_cpus for each in executors) or any(
        traits.memory(memory.kind).is_moved_by_cpus for memory in memories
    ):
        yield "CPUs", ("CPUs have a part in {}", "CPUs have a part in {}")
    if path.why == REGIMES["latency"]:
        yield "latency", ("{} is slower in latency alone", "{} are slower in latency alone")
