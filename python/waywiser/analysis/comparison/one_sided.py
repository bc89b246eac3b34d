"""Paths that a comparison finds on one side only, and sizes that fail now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from waywiser.analysis.comparison.comparison_text import UNNAMED
from waywiser.analysis.comparison.node import Node, devices_on, gpus_of
from waywiser.analysis.comparison.path_change import PathChange, PathVerdict
from waywiser.analysis.comparison.path_parts import Summaries
from waywiser.analysis.comparison.sides import ComparisonSides
from waywiser.curves.headline import Group
from waywiser.curves.name import name_of
from waywiser.profile.series_summary import SeriesSummary
from waywiser.words import Workload
from waywiser.words.records import Failure

NOT_MEASURED = ("skipped", "interrupted")
"""Kinds of failure that are no property of the path: no time, or an interruption."""


def one_sided(
    sides: ComparisonSides, before: Summaries, after: Summaries, headlines: Mapping[str, Group]
) -> Iterator[PathChange]:
    """Yields the paths that the baseline has measured and the new files have not, and the
    reverse."""
    measured, known = _measured(after), _measured(before)
    failures = _failures(after)
    for curve, first in known.items():
        if curve not in measured:
            workload, group = first.workload, headlines.get(curve)
            verdict, why = _verdict_of_lost(sides, workload, failures.get(curve), group)
            on = devices_on(workload, sides.known)
            yield PathChange(curve, name_of(workload), verdict, why, group, on)
    failures = _failures(before)
    for curve, first in measured.items():
        if curve not in known:
            verdict, why = _verdict_of_new(failures.get(curve))
            on = devices_on(first.workload, sides.devices)
            yield PathChange(curve, name_of(first.workload), verdict, why, devices=on)


def _verdict_of_new(failure: Failure | None) -> tuple[PathVerdict, str]:
    if failure is not None and failure.kind in NOT_MEASURED:
        return "skipped", f"skipped before: {failure.reason}"
    return "new", "the base has not measured it"


def _verdict_of_lost(
    sides: ComparisonSides, workload: Workload, failure: Failure | None, headline: Group | None
) -> tuple[PathVerdict, str]:
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
    if len(sides.requests) > 1:
        return "skipped", "the options of the new survey do not select it"
    if headline:
        return "missing", "the new survey has not measured it"
    return "skipped", "the new survey did not plan it"


def _has_nodes(workload: Workload, new: Sequence[Node]) -> bool:
    """Whether all have the NUMA nodes that it names: what is planned for one goes with it."""
    named = {place.index for place in workload.named_places if place.kind == "numa"}
    return all(named <= {node.index for node in each.machine.numa} for each in new)


def _unsupported_reason(workload: Workload, reasons: Mapping[str, str]) -> str:
    """Why it is not supported: by its own name, as one of its paths, or with all of its kinds."""
    paths = [transfer.path for transfer in workload.transfers]
    names = [workload.curve, *map(str, paths), *(path.kinds for path in paths)]
    return next((reasons[name] for name in names if name in reasons), "")


def _measured(found: Summaries) -> dict[str, SeriesSummary]:
    """The first series of each curve that has any blocks."""
    curves: dict[str, SeriesSummary] = {}
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
    lost: dict[str, str] = {}
    for identity, numbered in after.items():
        summaries = [summary for _, summary in numbered]
        failures = [f for each in summaries for f in each.failures if f.kind not in NOT_MEASURED]
        was_measured = any(each.blocks for _, each in before.get(identity, ()))
        if failures and was_measured and not any(each.blocks for each in summaries):
            why = f"fails at {summaries[0].bytes} B: {failures[0].kind}: {failures[0].reason}"
            lost.setdefault(summaries[0].curve, why)
    return [
        msgspec.structs.replace(path, verdict="missing", why=lost[path.curve])
        if path.curve in lost and path.verdict not in ("regression", "missing")
        else path
        for path in paths
    ]
