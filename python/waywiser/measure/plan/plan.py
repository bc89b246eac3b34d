"""The plan of a survey: which series, in what processes, how much memory, about how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from waywiser.curves import (
    SMALL_BYTES,
    asks_for_latency,
    has_name,
    matches_any,
    representatives,
    require_match,
    texts_of,
    with_paths,
)
from waywiser.curves.select import (
    NothingMatches,
    is_whole_path,
    texts_of_unsupported,
    without_group,
)
from waywiser.machine import Machine, placements
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.calibration import CALIBRATING_BYTES, MODEL_SECONDS, model_curves
from waywiser.measure.plan.curves import (
    PlannedCurve,
    cache_curves,
    operation_curves,
    pair_curves,
    path_curves,
)
from waywiser.measure.plan.evidence import watched
from waywiser.measure.plan.layouts import layout_curves
from waywiser.measure.plan.paths import find_paths
from waywiser.measure.plan.points import PlannedPoint, Points
from waywiser.measure.plan.preset import Depth, Preset, Request
from waywiser.measure.plan.ranks import rank_curves
from waywiser.measure.plan.requested_workloads import (
    WorkloadError,
    parse_workload,
    requested_curves,
    unsupported_transfers,
)
from waywiser.measure.plan.sets import (
    bystander_curves,
    check_curves,
    collective_curves,
    set_curves,
)
from waywiser.words import MOST_REASONS, Unsupported, format_bytes, grouped, with_units

WORKING_BYTES = 256 * 2**20
"""What a worker may hold in any case: buffers are rounded up, and repetitions that must not find a
warm cache take pieces of their own."""

WORKER_SECONDS = 0.5
"""Seconds to start a worker process and to end it."""

GPU_SECONDS = 0.3
"""More, per GPU: a driver makes a context, and clocks have to rise."""

RANK_SECONDS = 0.35
"""Additional seconds for each rank: a launch of 16 ranks with two GPUs took 6.2 s until its first
visit, and one of two ranks without GPUs 0.5 to 1.6 s
(docs/results/2026-11-26-ranks-and-collectives)."""

MOST_PAIRS = 12
"""Ordered pairs of GPUs that every process of a check measures: those of four GPUs. Of more pairs
two processes measure each, in turns."""


@dataclass(frozen=True)
class Plan:
    """Frozen: the same request on the same machine gives an equal plan."""

    request: Request
    preset: Preset
    points: tuple[PlannedPoint, ...]
    unsupported_paths: tuple[Unsupported, ...]
    """Paths that cannot be measured, and sizes that were cut, with reasons."""
    skipped: int
    """Series that only the preset `full` has."""
    worker_seconds: float
    """Expected for starting one worker process."""
    deadline_seconds: float = 0.0
    """Seconds after the start by which every visit is expected to end; 0 for no deadline."""
    notes: tuple[str, ...] = ()
    """What the plan made of a request that could not be met to the letter."""
    validation: tuple[str, ...] = ()
    """Identities of the series that a model of the machine is compared with, and never fitted
    to."""

    @property
    def visits(self) -> int:
        """Visits of all series, without further ones that use the time up to a deadline."""
        return sum(point.processes for point in self.points)

    @property
    def series_of_curves(self) -> dict[str, int]:
        """How many series of each curve every process measures."""
        everywhere = (p for p in self.points if p.processes >= self.preset.processes)
        return Counter(p.curve.text for p in everywhere if not p.conditional)

    @cached_property
    def watched(self) -> frozenset[str]:
        """Identities of the series whose links are looked at, in their first visit."""
        looked = self.preset.depth > Depth.DEFAULTS or self.request.is_narrow
        return watched(self.points) if looked else frozenset()

    @property
    def buffer_bytes(self) -> int:
        """What a worker may hold: the buffers of the largest workload, and of small ones enough
        that cache states and alignment find room."""
        largest = max((point.buffer_bytes for point in self.points), default=0)
        return min(max(largest, WORKING_BYTES), self.request.memory_bytes)


def make_plan(machine: Machine, request: Request) -> Plan:
    """Plans a survey of the machine. Asks the registry only: no GPU and no driver.

    Raises `WaywiserError` for an unknown preset, sizes that are none, and a pattern of ``only``
    that matches nothing.
    """
    maker = Points(machine, request)
    preset = maker.preset
    curves, unsupported_paths = _chosen(maker)
    if not request.only:
        selected = [curve for curve in curves if _is_selected(curve, maker)]
        maker.skipped = len(curves) - len(selected)
        curves = selected
    validation: tuple[str, ...] = ()
    if request.model:
        added, validation = _for_model(maker, curves)
        curves = [*curves, *added]
    points = _points(curves, maker)
    if points or not maker.unsupported_paths:
        _require_small_sizes(points, machine, request)
    if preset.links_only:
        points = _rotating(points)
    deadline = preset.deadline_seconds(len(machine.gpus))
    if deadline and request.model:
        deadline += MODEL_SECONDS
    measured = {point.identity for point in points}
    return Plan(
        request,
        preset,
        tuple(points),
        (*unsupported_paths, *maker.unsupported_paths),
        skipped=maker.skipped,
        worker_seconds=WORKER_SECONDS
        + GPU_SECONDS * len(machine.gpus)
        + RANK_SECONDS * len(machine.ranks),
        deadline_seconds=request.deadline_seconds or deadline,
        notes=tuple(_rounded(points, maker.sizes)) if maker.explicit else (),
        validation=tuple(identity for identity in validation if identity in measured),
    )


def _for_model(
    basis: Basis, curves: Sequence[PlannedCurve]
) -> tuple[list[PlannedCurve], tuple[str, ...]]:
    """The sets for a model that the curves do not have, and the identities of those for
    validation."""
    found = model_curves(basis, find_paths(basis.machine).valid)
    known = {
        curve.at(size).identity
        for curve in curves
        if curve.kind == "set"
        for size in (curve.sizes or (CALIBRATING_BYTES,))
    }
    added = [curve for curve in found if curve.at(0).identity not in known]
    validation = (curve for curve in found if curve.for_model == "validation")
    return added, tuple(curve.at(0).identity for curve in validation)


def _is_selected(curve: PlannedCurve, maker: Points) -> bool:
    """Whether a curve that the user does not name is measured: sizes are a question about bytes
    that move."""
    if maker.explicit and curve.kind == "operation" and not curve.principal:
        return False
    return maker.preset.depth is Depth.PAIRS or curve.requested or not curve.remote


def _points(curves: list[PlannedCurve], maker: Points) -> list[PlannedPoint]:
    first: dict[str, str] = {}
    if maker.preset.equal_sizes:
        first = representatives((curve.at(0) for curve in curves), maker.machine)
    points: list[PlannedPoint] = []
    for curve in curves:
        by_itself = curve.requested or bool(curve.for_model)
        like = "" if by_itself else first.get(curve.text, "")
        found = maker.of(curve, "" if like == curve.text else like)
        if curve.requested and not found:
            unsupported = maker.unsupported_paths[-1:]
            reason = unsupported[0].reason if unsupported else "it has no such size"
            raise WorkloadError(
                f"--workload {curve.text!r} does not fit: {reason}",
                remedy="name another size (of SIZE, --sizes), or survey with more --memory",
            )
        points += found
    return points


def _require_small_sizes(points: list[PlannedPoint], machine: Machine, request: Request) -> None:
    """Raises `NothingMatches` for a pattern with the term ``latency`` that matches no point: the
    sizes of the preset, or those asked for, are larger."""
    patterns = [*filter(asks_for_latency, request.patterns)]
    texts = [texts_of(point.workload, machine) for point in points] if patterns else []
    for pattern in patterns:
        if not any(matches_any(known, [pattern]) for known in texts):
            sizes = f"--sizes {request.sizes}" if request.sizes else f"--preset {request.preset}"
            raise NothingMatches(
                f"--only {pattern!r}: {sizes} has no size of up to {format_bytes(SMALL_BYTES)}",
                remedy="name a small size with --sizes 8, or another --preset",
            )


def _rotating(points: list[PlannedPoint]) -> list[PlannedPoint]:
    """The points, with pairs of GPUs in few processes if there are many of them: the others show
    how far processes differ."""
    pairs = {point.identity for point in points if _is_pair_of_gpus(point)}
    if len(pairs) <= MOST_PAIRS:
        return points
    return [replace(p, processes=2) if p.identity in pairs else p for p in points]


def _is_pair_of_gpus(point: PlannedPoint) -> bool:
    transfers = point.workload.transfers
    return len(transfers) == 1 and all(place.kind == "gpu" for place in point.workload.places)


def _rounded(points: list[PlannedPoint], sizes: tuple[int, ...]) -> Iterator[str]:
    """What was made of sizes that a layout cannot have."""
    found = grouped(
        (str(point.curve.layout), point.size)
        for point in points
        if point.curve.layout is not None and point.size not in sizes
    )
    for text, rounded in found.items():
        given = ", ".join(map(format_bytes, sorted(set(rounded))))
        yield f"a {with_units(text)} takes whole numbers of its pieces: --sizes gives {given}"


def _chosen(basis: Basis) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """The curves that are asked for: by name, by pattern, or all of the preset."""
    texts, every = basis.request.workloads, None
    if any(map(has_name, texts)):
        every = _curves(basis)
        known = [curve.at(0) for curve in every[0]]
        texts = tuple(with_paths(text, known, basis.machine) for text in texts)
    requested = requested_curves(texts, basis.machine)
    if requested and not basis.request.only:
        return requested, []
    curves, unsupported_paths = _select(basis, *(every or _curves(basis)))
    named = {curve.text for curve in requested}
    return [*requested, *(curve for curve in curves if curve.text not in named)], unsupported_paths


def _curves(basis: Basis) -> tuple[list[PlannedCurve], list[Unsupported]]:
    if basis.machine.ranks:
        return _of_placements(basis)
    if basis.preset.links_only:
        return check_curves(basis)
    found = find_paths(basis.machine)
    single, unsupported_paths = path_curves(found.valid, basis)
    curves = [*single, *pair_curves(single, basis)]
    if basis.preset.cache_sizes:
        curves += cache_curves(single, basis)
    curves += set_curves(basis, found.valid)
    curves += bystander_curves(basis, found.valid)
    curves += collective_curves(basis, found.valid)
    laid_out, unserved = layout_curves(found.valid, basis)
    operations, unperformed = operation_curves(basis)
    unsupported_paths = [*found.unsupported_paths, *unsupported_paths, *unserved, *unperformed]
    return [*curves, *laid_out, *operations], unsupported_paths


def _of_placements(basis: Basis) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """The curves of the ranks of each placement; what cannot be measured is equal for all."""
    found = [rank_curves(basis.among(ranks)) for ranks in placements(basis.machine.ranks)]
    return [curve for curves, _ in found for curve in curves], found[0][1]


def _select(
    basis: Basis, curves: list[PlannedCurve], unsupported_paths: list[Unsupported]
) -> tuple[list[PlannedCurve], list[Unsupported]]:
    machine, only = basis.machine, basis.request.patterns
    if not only:
        return curves, unsupported_paths
    texts = [texts_of(curve.at(0), machine) for curve in curves]
    of_unsupported = [
        (each, texts_of_unsupported(each.path, machine)) for each in unsupported_paths
    ]
    for pattern in only:
        if any(matches_any(known, [pattern]) for known in texts):
            continue
        _require_support(pattern, basis)
        unsupported = [each for each, known in of_unsupported if matches_any(known, [pattern])]
        if unsupported:
            raise NothingMatches(
                f"--only {pattern!r} matches only what cannot be measured here",
                remedy=_reasons(unsupported),
            )
    require_match(
        only,
        [text for known in texts for text in known],
        [text for _, known in of_unsupported for text in known],
        gpus=len(machine.gpus),
    )
    return (
        [curve for curve, known in zip(curves, texts, strict=True) if matches_any(known, only)],
        [each for each, known in of_unsupported if matches_any(known, only)],
    )


def _require_support(pattern: str, basis: Basis) -> None:
    """Raises `NothingMatches`, with the reason, for a whole path that the registry does not
    support."""
    if not is_whole_path(pattern):
        return
    try:
        workload = parse_workload(without_group(pattern))
    except WorkloadError:  # the name of a set
        return
    catalogue = basis.catalogue
    names = catalogue.executors.keys() | catalogue.memories.keys()
    for path in (transfer.path for transfer in workload.transfers):
        if not names >= {path.executor, path.source.kind, path.destination.kind}:
            return  # misspelt: the error has a suggestion
    for _, reason in unsupported_transfers(workload, catalogue, basis.machine):
        raise NothingMatches(f"--only {pattern!r} cannot be measured here", remedy=reason)


def _reasons(unsupported_paths: list[Unsupported]) -> str:
    """An example of each reason, `MOST_REASONS` at most: what this machine or these places do not
    support comes before what is impossible anywhere."""
    examples: dict[str, str] = {}
    for each in sorted(unsupported_paths, key=lambda each: "@" not in each.path):
        examples.setdefault(each.reason, each.path)
    stated = [f"{path}: {reason}" for reason, path in examples.items()][:MOST_REASONS]
    return "; ".join(stated)
