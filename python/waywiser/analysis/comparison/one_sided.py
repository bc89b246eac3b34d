"""Paths that a comparison finds on one side only, or on both without a size in common, and sizes
that fail now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence

import msgspec

from waywiser.analysis.comparison.comparison_text import UNNAMED
from waywiser.analysis.comparison.differences import ComparisonSides
from waywiser.analysis.comparison.other_sizes import largest_bytes
from waywiser.analysis.comparison.path_change import PathChange
from waywiser.analysis.comparison.path_parts import Summaries
from waywiser.curves import Group, Point, Subject, devices_on, gpus_of, name_of
from waywiser.curves.subject import CROWDED
from waywiser.words import (
    NOT_MEASURED,
    Failure,
    Reason,
    Workload,
    count,
    format_bytes,
    format_settings,
    grouped,
)


def one_sided(
    sides: ComparisonSides,
    before: Summaries,
    after: Summaries,
    headlines: Mapping[str, Group],
    crowded: Mapping[str, Workload],
) -> Iterator[PathChange]:
    """Yields the paths that the baseline has measured and the new files have not, and the
    reverse; those that any of them has measured without a verdict too."""
    measured, known = _measured(after), _measured(before)
    for curve, workload in crowded.items():
        if curve not in measured and curve not in known:
            on = devices_on(workload, sides.devices)
            yield PathChange(curve, name_of(workload), "skipped", CROWDED, devices=on)
    failures, methods = _failures(after), _methods(measured)
    for curve, first in known.items():
        if curve not in measured:
            workload, group = first.workload, headlines.get(curve)
            verdict, why = _verdict_of_lost(sides, workload, failures.get(curve), group)
            if why == NOT_IN_SURVEY:
                why += _by_others(workload, methods)
            on = devices_on(workload, sides.known)
            yield PathChange(curve, name_of(workload), verdict, why, group, on)
    failures, methods = _failures(before), _methods(known)
    for curve, first in measured.items():
        if curve not in known:
            verdict, why = _verdict_of_new(failures.get(curve))
            if curve in crowded:
                verdict, why = "skipped", CROWDED
            if verdict == "new" and any(node.tools for node in sides.new):
                why += _by_others(first.workload, methods)
            on = devices_on(first.workload, sides.devices)
            yield PathChange(curve, name_of(first.workload), verdict, why, devices=on)


def without_common_size(
    sides: ComparisonSides,
    before: Summaries,
    after: Summaries,
    headlines: Mapping[str, Group],
    compared: Container[str],
) -> Iterator[PathChange]:
    """Yields the paths that both sides have measured and that are not ``compared``: at no common
    size, and not on a plateau that the sizes of the other side reach."""
    sizes = _sizes(before), _sizes(after)
    for curve, first in _measured(after).items():
        if curve in sizes[0] and curve not in compared:
            workload, (was, now) = first.workload, (of[curve] for of in sizes)
            why = f"{_listed(was)} before, {_listed(now)} now: {_same_sizes(sides, was, now)}"
            on, group = devices_on(workload, sides.devices), headlines.get(curve)
            yield PathChange(curve, name_of(workload), "no common size", why, group, on)


def _sizes(found: Summaries) -> dict[str, list[int]]:
    """The sizes of the largest transfer at which a curve was measured, ascending."""
    known = (
        (each.curve, largest_bytes(each.workload))
        for numbered in found.values()
        for each in [next((each for _, each in numbered if each.blocks), None)]
        if each is not None
    )
    return {curve: sorted(set(sizes)) for curve, sizes in grouped(known).items()}


def _listed(sizes: Sequence[int]) -> str:
    """``64 MiB``, ``8 B, 1 MiB and 64 MiB``, ``8 B to 64 MiB``."""
    if len(sizes) > MOST_SIZES:
        return f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
    *most, last = map(format_bytes, sizes)
    return f"{', '.join(most)} and {last}" if most else last


def _same_sizes(sides: ComparisonSides, was: Sequence[int], now: Sequence[int]) -> str:
    """The option that makes the sizes of both sides equal."""
    pairs = ((sides.base, now), (sides.new, was))
    for nodes, others in pairs:
        for tool in [tool for node in nodes for tool in node.tools]:
            option = SIZE_OPTIONS.get(tool.partition(" ")[0])
            if option is not None and others[-1] % 2**20 == 0:
                return f"run {option.format(others[-1] // 2**20)}"
    for nodes, others in pairs:
        if not any(node.tools for node in nodes):
            sizes = ",".join(format_bytes(size).replace(" ", "") for size in others[-MOST_SIZES:])
            return f"survey again with --sizes {sizes}"
    return "measure one of these sizes on both sides"


SIZE_OPTIONS = {"nvbandwidth": "nvbandwidth -b {}", "gpu_copy": "gpu_copy --size {}M"}
"""How other tools take the MiB of a copy."""

MOST_SIZES = 3
"""Sizes that are listed one by one."""


def _methods(measured: Mapping[str, Point]) -> dict[Hashable, list[str]]:
    """How the same bytes were moved, by what they are."""
    return grouped((_moves(each.workload), _method(each.workload)) for each in measured.values())


def _moves(workload: Workload) -> Hashable:
    """Between which memories the transfers of a workload move bytes, whatever moves them."""
    return tuple(sorted(" -> ".join(f"{end.kind}@{end.place}" for end in each.path.ends)
                        for each in workload.transfers))  # fmt: skip


def _method(workload: Workload) -> str:
    found = (f"{t.path.executor}{format_settings(t.parameters)}" for t in workload.transfers)
    return " and ".join(dict.fromkeys(found))


def _by_others(workload: Workload, methods: Mapping[Hashable, Sequence[str]]) -> str:
    """By which other methods the same bytes were moved; empty if by none."""
    if not workload.transfers:
        return ""
    own = _method(workload)
    known = [each for each in dict.fromkeys(methods.get(_moves(workload), ())) if each != own]
    if not known:
        return ""
    more = f" and {len(known) - MOST_METHODS} more" if len(known) > MOST_METHODS else ""
    text = f" by {own}, but by {', '.join(known[:MOST_METHODS])}{more}"
    if any(each.parameters.get("by") == "destination" for each in workload.transfers):
        text += BY_DESTINATION
    return text


NOT_IN_SURVEY = "the new survey has not measured it"

BY_DESTINATION = "; a survey has no copies that the GPU of the destination submits"

MOST_METHODS = 3
"""Other methods that are named."""


def _verdict_of_new(failure: Failure | None) -> tuple[Reason, str]:
    if failure is not None and failure.kind in NOT_MEASURED:
        return "skipped", f"skipped before: {failure.reason}"
    return "new", "the base has not measured it"


def _verdict_of_lost(
    sides: ComparisonSides, workload: Workload, failure: Failure | None, headline: Group | None
) -> tuple[Reason, str]:
    """Why the new files lack a path of the baseline.

    It is missing if one of its GPUs is gone, if it failed, or if it is a headline path, which every
    survey is expected to measure. It is skipped if the machine does not support it, if the survey
    had no time for it, did not select it, did not plan it or is unfinished, and if results of other
    tools do not have it: they say nothing of what they leave out.
    """
    own = sorted(gpus_of(workload))
    if lost := [gpu for gpu in own if gpu in sides.gone]:
        return "missing", ", ".join(f"gpu:{gpu} {sides.gone_text}" for gpu in lost)
    if unnamed := [gpu for gpu in own if gpu in sides.unnamed]:
        return "skipped", ", ".join(f"gpu:{gpu} {UNNAMED}" for gpu in unnamed)
    if failure is not None:
        if failure.kind in NOT_MEASURED:
            return "skipped", failure.reason
        return "missing", f"{failure.kind}: {failure.reason}"
    if reason := _unsupported_reason(workload, sides.unsupported):
        return "missing" if headline else "skipped", reason
    if all(node.tools for node in sides.new):
        return "skipped", "the new results do not have it"
    if any(node.unfinished for node in sides.new):
        return "skipped", "the new survey is unfinished"
    if sides.replanned and _has_nodes(workload, sides.new):
        planned = "the plan of this version no longer has it"
        return "skipped", f"by waywiser {sides.replanned} {planned}"
    if any(node.tools for node in sides.base):
        return "skipped", NOT_IN_SURVEY
    if len(sides.requests) > 1:
        return "skipped", "the options of the new survey do not select it"
    if headline:
        return "missing", NOT_IN_SURVEY
    return "skipped", "the new survey did not plan it"


def _has_nodes(workload: Workload, new: Sequence[Subject]) -> bool:
    """Whether all have the NUMA nodes that it names: what is planned for one goes with it."""
    named = {place.index for place in workload.named_places if place.kind == "numa"}
    return all(named <= {node.index for node in each.machine.numa} for each in new)


def _unsupported_reason(workload: Workload, reasons: Mapping[str, str]) -> str:
    """Why it is not supported: by its own name, as one of its paths, or with all of its kinds."""
    paths = [transfer.path for transfer in workload.transfers]
    names = [workload.curve, *map(str, paths), *(path.kinds for path in paths)]
    return next((reasons[name] for name in names if name in reasons), "")


def _measured(found: Summaries) -> dict[str, Point]:
    """The first series of each curve that has any blocks."""
    curves: dict[str, Point] = {}
    for summaries in found.values():
        if any(summary.blocks for _, summary in summaries):
            _, first = summaries[0]
            curves.setdefault(first.curve, first)
    return curves


def _failures(found: Summaries) -> dict[str, Failure]:
    """One failure of each curve; one that was only skipped if there is no other."""
    curves: dict[str, Failure] = {}
    for summaries in found.values():
        for _, summary in summaries:
            for failure in summary.failures:
                if curves.setdefault(summary.curve, failure).kind in NOT_MEASURED:
                    curves[summary.curve] = failure
    return curves


def with_failures(
    paths: Sequence[PathChange], before: Summaries, after: Summaries
) -> list[PathChange]:
    """A path that fails at a size that it had is not the same path, whatever its other sizes do."""
    sizes: dict[str, int] = Counter(
        numbered[0][1].curve for numbered in before.values() if any(e.blocks for _, e in numbered)
    )
    lost: dict[str, list[tuple[int, Failure]]] = {}
    for identity, numbered in after.items():
        summaries = [summary for _, summary in numbered]
        failures = [f for each in summaries for f in each.failures if f.kind not in NOT_MEASURED]
        was_measured = any(each.blocks for _, each in before.get(identity, ()))
        if failures and was_measured and not any(each.blocks for each in summaries):
            lost.setdefault(summaries[0].curve, []).append((summaries[0].bytes, failures[0]))
    return [
        msgspec.structs.replace(
            path, verdict="missing", why=_failed(path, lost[path.curve], sizes[path.curve])
        )
        if path.curve in lost and path.verdict not in ("regression", "missing")
        else path
        for path in paths
    ]


FAILS = "fails at "
"""The beginning of the reason of a path that fails at some of its sizes."""


def _failed(path: PathChange, lost: Sequence[tuple[int, Failure]], sizes: int) -> str:
    """``fails at 4096 B, 1 of 24 sizes: REASON; at the other 23: no change``."""
    at, failure = sorted(lost, key=lambda each: each[0])[0]
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    why = f"{FAILS}{at} B{more}, {len(lost)} of {count(sizes, 'size')}"
    others = f"; at the other {sizes - len(lost)}: {path.verdict}" if sizes > len(lost) else ""
    return f"{why}: {failure.kind}: {failure.reason}{others}"
