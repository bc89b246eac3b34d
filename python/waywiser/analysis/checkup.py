"""Is this node as it was? The nightly verdict: paths, GPUs, links, error counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from waywiser.analysis.answer import Device
from waywiser.analysis.compared import Comparison, PathVerdict
from waywiser.analysis.comparison import compare
from waywiser.analysis.copies import without_copies
from waywiser.analysis.errors_counted import counted, counted_since
from waywiser.analysis.node import Node
from waywiser.analysis.one_sided import NOT_ASKED
from waywiser.analysis.same_gpus import match
from waywiser.analysis.verdict import THRESHOLD
from waywiser.words import Value

SCHEMA = 1
"""Of the JSON form."""

Status = Literal["ok", "failed", "inconclusive"]


class Checkup(Value, frozen=True):
    """One node against its baseline."""

    schema: int
    host: str
    file: str
    baseline: tuple[str, ...]
    status: Status
    findings: tuple[str, ...]
    """Why it failed, the gravest first."""
    notes: tuple[str, ...]
    """What somebody may want to know."""
    comparison: Comparison
    not_asked: int = 0
    """Paths of the baseline that this survey was not asked for: a check beside a standard."""

    def __str__(self) -> str:
        """One line: the verdict and what it stands on."""
        counts = dict(self.comparison.counts)
        counts["missing"] -= self.not_asked
        told = [f"{number} {verdict}" for verdict, number in counts.items() if number]
        told += [f"{self.not_asked} not asked for"] if self.not_asked else []
        paths = ", ".join(told) or "no path in common"
        head = f"{self.status.upper()} {self.host}"
        return f"{head}: {self.findings[0]} ({paths})" if self.findings else f"{head}: {paths}"


def check_up(node: Node, baseline: Sequence[Node], threshold: float = THRESHOLD) -> Checkup:
    """``node`` against one or more profiles of when all was well.

    It fails where a path is worse or gone, a GPU is gone, a link ran below what it was, or an error
    was counted that healthy machines do not have. It is inconclusive where nothing of that is so
    and no path could be told either, or not all: of a survey that is unfinished, or that is the
    baseline itself. Raises ValueError without a baseline.
    """
    baseline = sorted(baseline, key=lambda each: each.created)
    comparison = compare(baseline, [node], threshold)
    asked_alike = all(node.asked == each.asked for each in baseline)
    findings = [
        *_gpus(comparison),
        *_links(node, baseline[0]),
        *_errors(node, baseline[-1]),
        *_paths(comparison, asked_alike),
    ]
    itself = all(without_copies((each, node))[1] for each in baseline)
    told = comparison.told and not node.unfinished and not itself
    status: Status = "ok" if told else "inconclusive"
    return Checkup(
        schema=SCHEMA,
        host=node.name,
        file=node.file,
        baseline=tuple(each.called for each in baseline),
        status="failed" if findings else status,
        findings=tuple(findings),
        notes=(*comparison.notes, *_minor(node, baseline[-1])),
        comparison=comparison,
        not_asked=0 if asked_alike else sum(p.why == NOT_ASKED for p in comparison.of("missing")),
    )


def _gpus(comparison: Comparison) -> Iterator[str]:
    for gpu in comparison.missing_gpus:
        yield f"{gpu} is gone"


def _links(node: Node, before: Node) -> Iterator[str]:
    """A link that never ran at its best is how the machine is; it is told as a note elsewhere."""
    matched = match(before.machine.gpus, node.machine.gpus)
    for gpu in node.machine.gpus:
        now = node.links.get(gpu.index)
        below = now.below(gpu) if now else ""
        was = before.links.get(matched.numbers[gpu.index])
        if now is None or not below:
            continue
        if was is None or now.width < was.width or now.generation < was.generation:
            yield f"{Device(f'gpu:{gpu.index}', gpu.uuid, gpu.pci)} ran at {below} under load"


def _errors(node: Node, before: Node) -> Iterator[str]:
    yield from (each.what for each in counted(node) if each.grave)
    since = (each.what for each in counted_since(before, node) if each.grave)
    yield from (f"{what} since the baseline" for what in since)


def _paths(comparison: Comparison, asked_alike: bool) -> Iterator[str]:
    """Paths of a GPU that is gone are told by the GPU; those that nobody asked for, not at all."""
    gone = {gpu.place for gpu in comparison.missing_gpus}
    yield from map(slower, comparison.of("worse"))
    for path in comparison.of("missing"):
        told = gone & {device.place for device in path.devices}
        if not told and (asked_alike or path.why != NOT_ASKED):
            yield f"{path.name} is missing: {path.why}"


def slower(path: PathVerdict) -> str:
    """``pinned… -> device…: 5.1 % slower (rate)``."""
    evidence = path.evidence
    if evidence is None:
        return f"{path.name} is {path.verdict}"
    return f"{path.name} is {1 - evidence.judged.ratio:.1%} slower ({path.why})"


def _minor(node: Node, before: Node) -> Iterator[str]:
    yield from (each.what for each in counted(node) if not each.grave)
    since = (each.what for each in counted_since(before, node) if not each.grave)
    yield from (f"{what} since the baseline" for what in since)
