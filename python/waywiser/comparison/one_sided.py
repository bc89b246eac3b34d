"""Paths that a comparison finds on one side only, and sizes that fail now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from waywiser.analysis.answer import Device
from waywiser.comparison.node import Node, gpus_of
from waywiser.comparison.path_change import PathChange, PathVerdict
from waywiser.plan.headline import Group
from waywiser.plan.name import name_of
from waywiser.records import Failure
from waywiser.series.series_summary import SeriesSummary
from waywiser.words import Place, Workload

Summaries = Mapping[str, Sequence[SeriesSummary]]
"""By identity, one of each file."""

NOT_ASKED = "the new survey was not asked for it"
NOT_PLANNED = "the new survey did not plan it"
NOT_MEASURED = "the new survey has not measured it"
"""Why a headline path is missing if the new file does not say why."""

VERSION = "waywiser"
"""Of the environment: the version of the program that made the file."""

UNPLANNED = "it is no longer planned for what was asked for"
"""How a reason ends where another version of the program made the new plan."""

UNFINISHED = "the new survey is unfinished"
"""Why nothing can be said of a path that is not there yet."""

LEFT_OUT = ("skipped", "interrupted")
"""Kinds of failure that say nothing of the path: somebody's time was over, or patience."""


def missing(
    before: Summaries,
    after: Summaries,
    reference: Node,
    base: Sequence[Node],
    new: Sequence[Node],
    gone: Mapping[int, str],
    headlines: Mapping[str, Group],
) -> Iterator[PathChange]:
    """Yields the paths that the baseline has measured and the new files have not. ``gone`` says of
    each GPU that the new files lack what to say about it.

    A path is missing if one of its GPUs is gone, if it failed, or if it is a headline path, which
    every survey is expected to measure. It is skipped if the machine does not support it, if the
    survey had no time for it, was not asked for it, did not plan it or is unfinished.
    """
    measured = _measured(after)
    reasons = {r.path: r.reason for node in new for r in node.refusals}
    replanned = _replanned(base, new)
    failures = _failures(after)
    asked_alike = len({node.asked for node in (*base, *new)}) == 1
    for curve, first in _measured(before).items():
        if curve in measured:
            continue
        gpus = sorted(gpus_of(first.workload))
        devices = tuple(reference.device(Place("gpu", gpu)) for gpu in gpus)
        lost = ", ".join(f"gpu:{gpu} {gone[gpu]}" for gpu in gpus if gpu in gone)
        failure = failures.get(curve)
        refused = _refused(first.workload, reasons)
        verdict: PathVerdict = "missing"
        if lost:
            why = lost
        elif failure is not None and failure.kind in LEFT_OUT:
            verdict, why = "skipped", f"left out: {failure.reason}"
        elif failure is not None:
            why = f"{failure.kind}: {failure.reason}"
        elif refused:
            verdict = "missing" if curve in headlines else "skipped"
            why = refused
        elif any(node.unfinished for node in new):
            verdict, why = "skipped", UNFINISHED
        elif replanned and _has_nodes(first.workload, new):
            verdict, why = "skipped", f"by waywiser {replanned} {UNPLANNED}"
        elif not asked_alike:
            verdict, why = "skipped", NOT_ASKED
        elif curve in headlines:
            why = NOT_MEASURED
        else:
            verdict, why = "skipped", NOT_PLANNED
        yield PathChange(
            curve, name_of(first.workload), verdict, why, headlines.get(curve), devices
        )


def added(
    before: Summaries, after: Summaries, devices_of: Callable[[Workload], tuple[Device, ...]]
) -> Iterator[PathChange]:
    """Yields the paths that the new files have measured and the baseline has not."""
    known, failures = _measured(before), _failures(before)
    for curve, first in _measured(after).items():
        if curve in known:
            continue
        devices = devices_of(first.workload)
        failure = failures.get(curve)
        if failure is not None and failure.kind in LEFT_OUT:
            why = f"left out before: {failure.reason}"
            yield PathChange(curve, name_of(first.workload), "skipped", why, devices=devices)
        else:
            why = "the base has not measured it"
            yield PathChange(curve, name_of(first.workload), "new", why, devices=devices)


def _replanned(base: Sequence[Node], new: Sequence[Node]) -> str:
    """The versions of the new files where all were asked for the same and none was made by a
    version that made a base; else empty. A plan is that of its version: what another one leaves out
    without a reason was not lost by the machine."""
    asked = {node.asked for node in (*base, *new)}
    before, now = (
        {node.environment.get(VERSION) for node in side if node.asked} for side in (base, new)
    )
    known = all(isinstance(each, str) and each for each in before | now)
    alike = len(asked) == 1 and all(asked) and known
    return ", ".join(sorted(map(str, now))) if alike and not before & now else ""


def _has_nodes(workload: Workload, new: Sequence[Node]) -> bool:
    """Whether all have the NUMA nodes that it names: what is planned for one goes with it."""
    named = {place.index for place in workload.named_places if place.kind == "numa"}
    return all(named <= {node.index for node in each.machine.numa} for each in new)


def _refused(workload: Workload, reasons: Mapping[str, str]) -> str:
    """Why it was refused: by its own name, as one of its paths, or with all of its kinds."""
    paths = [transfer.path for transfer in workload.transfers]
    kinds = [f"{p.source.kind} -> {p.destination.kind} by {p.executor}" for p in paths]
    names = [workload.curve, *map(str, paths), *kinds]
    return next((reasons[name] for name in names if name in reasons), "")


def _measured(found: Summaries) -> dict[str, SeriesSummary]:
    """The first series of each curve that has any blocks."""
    curves: dict[str, SeriesSummary] = {}
    for summaries in found.values():
        if any(summary.blocks for summary in summaries):
            curves.setdefault(summaries[0].curve, summaries[0])
    return curves


def _failures(found: Summaries) -> dict[str, Failure]:
    """Of each curve one, and one that was only skipped where there is no other."""
    curves: dict[str, Failure] = {}
    for summaries in found.values():
        for summary in summaries:
            for failure in summary.failures:
                if curves.setdefault(summary.curve, failure).kind in LEFT_OUT:
                    curves[summary.curve] = failure
    return curves


def with_failures(
    paths: Sequence[PathChange],
    before: Mapping[str, Sequence[SeriesSummary]],
    after: Mapping[str, Sequence[SeriesSummary]],
) -> list[PathChange]:
    """A path that fails at a size that it had is not the same path, whatever its other sizes do."""
    lost: dict[str, str] = {}
    for identity, summaries in after.items():
        old = before.get(identity, ())
        failures = [f for d in summaries for f in d.failures if f.kind not in LEFT_OUT]
        if failures and not any(d.blocks for d in summaries) and any(d.blocks for d in old):
            why = f"fails at {summaries[0].bytes} B: {failures[0].kind}: {failures[0].reason}"
            lost.setdefault(summaries[0].curve, why)
    return [
        msgspec.structs.replace(path, verdict="missing", why=lost[path.curve])
        if path.curve in lost and path.verdict not in ("regression", "missing")
        else path
        for path in paths
    ]
