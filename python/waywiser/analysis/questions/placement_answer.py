"""The placement of a machine, from what was measured of it.

If the system hides the nodes, the sides that latencies show answer
(`waywiser.analysis.questions.hidden`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from waywiser.analysis.questions import hidden
from waywiser.analysis.questions.placement import (
    Basis,
    ConcurrentUse,
    GpuPlacement,
    NodePlacement,
    Placement,
    PlacementQuestion,
    PlacementRank,
    PlacementSource,
    ProcessSpread,
)
from waywiser.analysis.questions.placement_ranks import (
    decided_ranks,
    host_gpus,
    is_headline_kind,
    side_ranks,
)
from waywiser.analysis.questions.placement_text import sentences, unanswered
from waywiser.analysis.questions.together import found_together
from waywiser.curves import BANDWIDTH_BYTES, Subject
from waywiser.curves.kinds import usual
from waywiser.machine import Machine
from waywiser.stats import median
from waywiser.words import grouped


def placement(subject: Subject) -> Placement:
    """Ranks the places of buffers and threads, and the GPUs to use together."""
    machine, seen = subject.machine, subject.overview.sides
    by_latency = seen is not None and len(seen.groups) == 2
    nodes = {gpu.numa for gpu in machine.gpus if gpu.numa >= 0}
    hides = len(nodes) < 2 or any(
        each.id == "affinity-contradicted" for each in hidden.findings(subject)
    )
    shows = len(machine.numa) > 1 and bool(nodes)
    source: PlacementSource = (
        "latency" if by_latency and hides else "system" if shows else "not known"
    )
    sides = seen.groups if source == "latency" and seen is not None else _shown_sides(machine)
    ranks = (*decided_ranks(subject, sides, source), *side_ranks(subject, source))
    found = Placement(
        machine=subject.name,
        source=source,
        virtual=machine.virtual,
        sides=sides,
        gpus=tuple(_of_gpus(machine, ranks, sides, source)),
        nodes=tuple(_of_nodes(machine, ranks)),
        ranks=ranks,
        concurrent=tuple(_concurrent(subject)),
        spreads=tuple(_spreads(subject)) if machine.virtual and len(machine.numa) < 2 else (),
    )
    return msgspec.structs.replace(
        found,
        sentences=tuple(sentences(found, subject)),
        unanswered=tuple(unanswered(found, subject)),
    )


def _shown_sides(machine: Machine) -> tuple[tuple[int, ...], ...]:
    """The GPUs of each node that the system names; all together if it names none."""
    nodes = grouped((gpu.numa, gpu.index) for gpu in machine.gpus)
    return tuple(tuple(gpus) for _, gpus in sorted(nodes.items()))


def _basis(
    ranks: Iterable[PlacementRank], question: PlacementQuestion, whose: str
) -> tuple[Basis, PlacementRank | None]:
    """What the ranks of one GPU or node decide, and the one that shows most: the largest cost, or
    the largest difference that is not excluded."""
    own = [each for each in ranks if (each.question, each.subject) == (question, whose)]
    own = [each for each in own if each.is_headline] or own
    if differ := [each for each in own if each.cost.outcome == "different"]:
        return "measured", max(differ, key=lambda each: each.cost.loss)
    rank = max(own, key=lambda each: math.inf if each.cost.limit is None else each.cost.limit,
               default=None)  # fmt: skip
    if own and all(each.cost.outcome == "equivalent" for each in own):
        return "no difference", rank
    return "system", rank


def _of_gpus(
    machine: Machine,
    ranks: Sequence[PlacementRank],
    sides: Sequence[tuple[int, ...]],
    source: PlacementSource,
) -> Iterator[GpuPlacement]:
    for gpu in machine.gpus:
        basis, rank = _basis(ranks, "buffer", f"gpu:{gpu.index}")
        side = None
        if source == "latency":
            side = next((n for n, group in enumerate(sides) if gpu.index in group), None)
        node = gpu.numa if gpu.numa >= 0 else None
        if basis == "measured" and rank is not None:
            node = _number(rank.best.name)
        elif basis == "system" and (source != "system" or node is None):
            basis, node = "not known", None
        yield GpuPlacement(gpu.index, node, basis, side, rank)


def _of_nodes(machine: Machine, ranks: Sequence[PlacementRank]) -> Iterator[NodePlacement]:
    for node in machine.numa if len(machine.numa) > 1 else ():
        basis, rank = _basis(ranks, "gpu", f"numa:{node.index}")
        gpus = [gpu.index for gpu in machine.gpus if gpu.numa == node.index]
        if basis != "system" and rank is not None:
            gpus = sorted(_number(each.name) for each in rank.good)
        elif not gpus:
            basis = "not known"
        yield NodePlacement(node.index, tuple(gpus), basis, rank)


def _number(name: str) -> int:
    """The number of ``numa:0`` or ``gpu:0``."""
    return int(name.partition(":")[2])


def _concurrent(subject: Subject) -> Iterator[ConcurrentUse]:
    """Sets of the executor that paths with a GPU are compared by, of two GPUs and more."""
    reference = subject.machine.traits.reference_executor("gpu")
    for each in found_together(subject)[0]:
        gpus = host_gpus(each.curve)
        executors = {transfer.path.executor for transfer in each.transfers}
        if len(gpus) > 1 and executors == {reference} and not each.point.workload.shared:
            directions = {transfer.path.source.place.kind for transfer in each.transfers}
            yield ConcurrentUse(
                name=each.curve.name,
                series=each.curve.text,
                gpus=tuple(sorted(gpus)),
                is_bidirectional=len(directions) > 1,
                rate=each.point.rate,
                alone_rate=each.alone_rate,
                share=each.share,
                interval=each.share_interval,
                outcome=each.decision.outcome,
                detectable=each.decision.detectable,
            )


def _spreads(subject: Subject) -> Iterator[ProcessSpread]:
    """The processes of headline kinds at large sizes."""
    found = grouped(
        (kind.bare, (curve, blocks))
        for curve, kind in usual(subject)
        if kind.group == "host-GPU" and is_headline_kind(kind, subject.machine)
        for point in curve.measured
        if point.bytes >= BANDWIDTH_BYTES
        and len(blocks := [b.median for b in point.measured.blocks if b.median > 0]) > 1
    )
    for label, known in found.items():
        most = max(len(blocks) for _, blocks in known)
        spreads = [1 - min(blocks) / max(blocks) for _, blocks in known if len(blocks) == most]
        yield ProcessSpread(label, known[0][0].text, most, median(spreads))
