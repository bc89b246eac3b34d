"""Checks one node against its baseline: paths, GPUs, links, error counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import (
    GONE,
    MEASURE_AGAIN,
    NEW_BASELINE,
    OF_ANOTHER_MACHINE,
    ONLY_IN_BASE,
    REMEDIES,
    UNNAMED,
    changed_alone,
    could_miss,
    counts_text,
    disturbed_text,
    hidden_text,
    label,
    ran_below,
    several_runs,
    slower,
    suspicion,
    verdict_text,
    whole_loss,
)
from waywiser.analysis.comparison.differences import gpu_models, loaded
from waywiser.analysis.comparison.one_sided import FAILS
from waywiser.analysis.comparison.path_change import PathChange, ProfileComparison
from waywiser.curves import Finding, LoadedLink, Subject, device_of, is_copy
from waywiser.curves.gpu_numbers import match_gpus
from waywiser.machine import lost_text, unusable_notes
from waywiser.profile import errors_of
from waywiser.stats import THRESHOLD
from waywiser.words import Reason, Value, count, grouped, with_units

SCHEMA = 3
"""The schema of the JSON form."""

NO_PATH = "no path in common with its baseline"

MOST_DROPS = 5
"""The largest drops that are listed, whatever the verdict."""

CHECK_REASONS: tuple[Reason, ...] = ("ok", "failed", "inconclusive")


class Checkup(Value, frozen=True):
    """One node against its baseline."""

    schema: int
    host: str
    file: str
    baseline: tuple[str, ...]
    status: Reason
    findings: tuple[Finding, ...]
    """Why it failed, the gravest first."""
    undecided: tuple[str, ...]
    """Why it is inconclusive."""
    drops: tuple[PathChange, ...]
    """The paths with the largest drops, significant or not, the largest first."""
    notes: tuple[str, ...]
    comparison: ProfileComparison
    suspects: tuple[str, ...] = ()
    """Names of the paths that have to be measured again before their change counts."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it failed, then why it is inconclusive: a line each."""
        return (*(each.text for each in self.findings), *self.undecided)

    def __str__(self) -> str:
        """One line: the status and the first reason; without one what was tested."""
        head = f"{self.status.upper()} {self.host}"
        if another := self.comparison.another_machine:
            head += f": the baseline is of another machine ({another}), {OF_ANOTHER_MACHINE}"
        return f"{head}: {next(iter(self.reasons), self.tested)}"

    def for_json(self) -> dict[str, Any]:
        """The JSON form."""
        drops = [
            {
                "name": label(path),
                "ratio": path.ratio,
                "detectable": size.decision.detectable,
                "size": size,
                "verdict": verdict_text(self.comparison, path),
            }
            for path in self.drops
            if (size := path.size)
        ]
        comparison = self.comparison.for_json()
        return {**msgspec.structs.asdict(self), "drops": drops, "comparison": comparison}

    @property
    def tested(self) -> str:
        """One line: the paths by verdict, and which loss could hide."""
        paths = counts_text(self.comparison) or "no path in common"
        return "; ".join(filter(None, (paths, hidden_text(self.comparison))))


def check_up(
    node: Subject,
    baseline: Sequence[Subject],
    threshold: float = THRESHOLD,
    repeats: Sequence[Subject] = (),
    max_hidden: float | None = None,
) -> Checkup:
    """Checks ``node`` against one or more profiles of a healthy time.

    ``repeats`` are later profiles of the node in which suspected paths were measured again. The
    status is ``failed`` if a GPU or a path is missing, a link ran below what it was, an error was
    counted that healthy machines do not have, or a regression is confirmed (`verdict_of`).
    It is ``inconclusive`` if other programs used the machine during a survey, if a loss is
    suspected, if a pinned, P2P or set bandwidth could hide a
    loss of more than `ProfileComparison.most_hidden`, with ``max_hidden`` any headline path of more
    than that, if every path could, if nothing was
    compared, or if the survey is unfinished or is the baseline itself. Raises ValueError without a
    baseline.
    """
    baseline = sorted(baseline, key=lambda each: each.created)
    comparison = compare(baseline, [node], threshold, repeats=repeats)
    comparison = msgspec.structs.replace(comparison, max_hidden=max_hidden)
    grave, minor = errors_of(node.health, baseline[-1].health)
    loads = tuple(filter(None, map(loaded, (*baseline, node, *repeats))))
    findings = tuple(_findings(node, baseline, comparison, grave, is_loaded=bool(loads)))
    undecided = (
        *_loaded(node, baseline, repeats),
        *_uncompared(node, baseline, comparison),
        *_undecided(comparison, is_loaded=bool(loads)),
    )
    undecided += tuple(f"{gpu} {UNNAMED}" for gpu in comparison.unnamed_gpus)
    return Checkup(
        schema=SCHEMA,
        host=node.name,
        file=node.file,
        baseline=tuple(each.called for each in baseline),
        status="failed" if findings else "inconclusive" if undecided else "ok",
        findings=findings,
        undecided=undecided,
        drops=tuple(_drops(comparison)),
        notes=(
            *filter(None, (comparison.in_common,)),
            *_hiding(comparison),
            *(note for note in comparison.notes if note not in loads),
            *filter(None, (changed_alone(comparison),)),
            *minor,
            *unusable_notes(node.machine.unusable_gpus),
        ),
        comparison=comparison,
        suspects=tuple(path.name for path in comparison.of("suspected")),
    )


def _findings(
    node: Subject,
    baseline: Sequence[Subject],
    comparison: ProfileComparison,
    grave: Sequence[str],
    *,
    is_loaded: bool,
) -> Iterator[Finding]:
    """The gravest first; ``grave`` are the errors that healthy machines do not have. If a survey
    ``is_loaded``, no slower path is a finding: the other programs may be the reason."""
    gone = ONLY_IN_BASE if comparison.another_machine else GONE
    if lost := lost_text(node.machine):
        yield Finding("missing GPU", "error", lost)
    for gpu in comparison.missing_gpus:
        yield Finding("missing GPU", "error", f"{gpu} {gone}", devices=(gpu,))
    yield from _links(node, baseline)
    yield from (Finding("health", "error", text) for text in grave)
    if not is_loaded:
        yield from _regressions(comparison)
    yield from _missing(comparison)


def _regressions(comparison: ProfileComparison) -> Iterator[Finding]:
    if regressions := comparison.of("regression"):
        yield from (Finding("slow", "error", text) for text in _whole(comparison))
    for path in regressions:
        effect, devices = 1 - path.ratio, path.devices
        yield Finding("slow", "error", slower(path), effect, devices=devices)


def _whole(comparison: ProfileComparison) -> Iterator[str]:
    """A loss that all paths share."""
    if whole := whole_loss(comparison):
        yield whole


def _links(node: Subject, baseline: Sequence[Subject]) -> Iterator[Finding]:
    """Links that ran below their best and below the best that a baseline shows, if any shows it."""
    numbers = [match_gpus(each.machine, node.machine).numbers for each in baseline]
    for gpu in node.machine.gpus:
        known = [
            each.links.get(number[gpu.index])
            for each, number in zip(baseline, numbers, strict=True)
        ]
        was = [link for link in known if link is not None]
        now = node.links.get(gpu.index, LoadedLink())
        below = now.below(gpu)
        is_slower = any(now.width < w.width or now.generation < w.generation for w in was)
        if below and (is_slower or not was):
            device = device_of(gpu)
            yield Finding("link", "error", ran_below(str(device), below), devices=(device,))


def _missing(comparison: ProfileComparison) -> Iterator[Finding]:
    """Missing paths, but for those of a GPU that is gone, which is a separate finding."""
    gone = set(comparison.missing_gpus)
    for path in comparison.of("missing"):
        if not gone & set(path.devices):
            is_part = path.why.startswith(FAILS)
            said = path.why if is_part else f"is missing: {path.why}"
            text = f"{with_units(label(path))} {said}"
            yield Finding("missing path", "error", text, devices=path.devices)


def _loaded(
    node: Subject, baseline: Sequence[Subject], repeats: Sequence[Subject]
) -> Iterator[str]:
    """Surveys during which other programs used the machine, each with what to do."""
    for nodes, remedy in ((baseline, NEW_BASELINE), ((node, *repeats), MEASURE_AGAIN)):
        yield from (f"{text}: {remedy}" for text in map(loaded, nodes) if text)


def _undecided(comparison: ProfileComparison, *, is_loaded: bool) -> Iterator[str]:
    if is_loaded:
        yield from (each.text for each in _regressions(comparison))
    if not comparison.of("regression"):
        yield from _whole(comparison)
    yield from map(suspicion, comparison.of("suspected"))
    once = [path for path in comparison.undecided if path.verdict == "not decided"]
    for path in once[:1]:
        more = f"; the same for {count(len(once) - 1, 'more path')}" if once[1:] else ""
        yield f"{with_units(label(path))}: {path.why}{more}: {several_runs(comparison)}"
    others = [path for path in comparison.undecided if path.verdict != "not decided"]
    causes = ((comparison.noisy_sides(path), path) for path in others)
    for cause, paths in grouped(causes).items():
        kind = "more headline path" if paths[0].headline else "more path"
        more = f"; the same for {count(len(paths) - 1, kind)}" if paths[1:] else ""
        needed = f" (a check has to find {comparison.most_hidden:.0%})"
        yield f"{could_miss(paths[0], needed)}{more}: {REMEDIES[cause]}"
    yield from map(disturbed_text, comparison.disturbed)


def _hiding(comparison: ProfileComparison) -> Iterator[str]:
    """Says what the paths could hide that leave no check inconclusive."""
    named = {path.curve for path in comparison.undecided}
    yield from (could_miss(path) for path in comparison.hiding if path.curve not in named)


def _uncompared(
    node: Subject, baseline: Sequence[Subject], comparison: ProfileComparison
) -> Iterator[str]:
    if all(is_copy(each, node) for each in baseline):
        yield "the survey is its own baseline"
    elif not comparison.measured:
        apart = comparison.of("no common size")
        what = f"no size in common with its baseline: {apart[0].why}" if apart else NO_PATH
        yield f"the survey has {what}"
    elif (models := gpu_models(node)) and not any(gpu_models(each) <= models for each in baseline):
        yield "the GPUs of the baseline are of another model: make a baseline on this node"
    if node.unfinished:
        yield "the survey is unfinished"


def _drops(comparison: ProfileComparison) -> list[PathChange]:
    paths = [path for path in comparison.measured if path.ratio < 1]
    paths.sort(key=lambda path: path.ratio)
    return [path for path in paths[:MOST_DROPS] if path.size]
