"""What is searched: paths, their sizes, and the parameters of their executors.

The registry's traits and kinds of parameters say which paths have something to search: those of an
executor whose best settings need a search, and those with ordered parameters or subsets. Nothing
depends on the name of an executor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from waywiser.curves import matches_any, representatives, require_match, texts_of
from waywiser.machine import Catalogue, Machine, Parameter, call_text, footprint
from waywiser.machine.ranks import OF_TASK
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.curves import PlannedCurve, is_principal, is_remote
from waywiser.measure.plan.layouts import layout_curves
from waywiser.measure.plan.paths import find_paths
from waywiser.measure.plan.points import PlannedPoint, Points
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.ranks import rank_curves
from waywiser.measure.tune.search import Configuration, SearchAxis, configurations
from waywiser.words import Transfer, Unsupported, Value

SIZES = "1MiB,16MiB,256MiB,1GiB"
"""The default sizes: one where overheads count, one that is nearly saturated, and two beyond."""


class TuneRequest(Value, frozen=True):
    """What was asked for. The same request on the same profile goes on with the same search."""

    paths: tuple[str, ...] = ()
    """Patterns, as those of ``--only``; empty for one of each class of equivalent paths."""
    sizes: str = ""
    memory_bytes: int = 4 << 30
    seed: int = 1
    grid: int = 0
    """Processes that measure every configuration; 0 for a search."""


@dataclass(frozen=True)
class Target:
    """One path at one size."""

    point: PlannedPoint
    """The path and size with default settings."""
    parameters: tuple[Parameter, ...]
    """Those that are searched."""
    plain: PlannedPoint | None
    """The plain copy of the same bytes; None if there is none, or if it is the default itself."""
    plain_text: str
    """The call that makes the plain copy."""
    needs_search: bool
    """Whether the registry says that the best settings need a search: these paths come first."""

    @property
    def transfer(self) -> Transfer:
        """The transfer with default settings."""
        return self.point.workload.transfers[0]

    @property
    def axes(self) -> tuple[SearchAxis, ...]:
        return tuple(SearchAxis(p.name, p.kind, p.choices) for p in self.parameters)

    @property
    def configurations(self) -> int:
        """The size of the full grid."""
        return sum(1 for _ in configurations(self.axes))


class Configurator:
    """Makes the points of configurations, and says which of them the machine supports."""

    def __init__(self, machine: Machine, memory_bytes: int) -> None:
        self._catalogue = Catalogue(machine)
        self._memory_bytes = memory_bytes
        self._points: dict[tuple[str, Configuration], PlannedPoint] = {}
        self._possible: dict[tuple[str, Configuration], bool] = {}

    def point(self, target: Target, configuration: Configuration) -> PlannedPoint:
        """The point of a target with these settings."""
        key = target.point.identity, configuration
        if key not in self._points:
            transfer = self._transfer(target, configuration)
            needed = self._catalogue.peer_access(transfer)
            curve = replace(target.point.curve, transfers=(transfer,), peer_access=needed)
            workload = curve.at(target.point.size)
            total = footprint(workload, self._catalogue).total
            self._points[key] = replace(
                target.point, curve=curve, workload=workload, buffer_bytes=total
            )
        return self._points[key]

    def is_possible(self, target: Target, configuration: Configuration) -> bool:
        """Whether the machine supports it, it moves every byte, and its buffers fit."""
        key = target.point.identity, configuration
        if key not in self._possible:
            transfer = self._transfer(target, configuration)
            self._possible[key] = (
                transfer.is_sparse == target.transfer.is_sparse
                and self._catalogue.unsupported_reason(transfer) is None
                and self.point(target, configuration).buffer_bytes <= self._memory_bytes
            )
        return self._possible[key]

    def _transfer(self, target: Target, configuration: Configuration) -> Transfer:
        """Without settings that equal their defaults, which words leave out. The default of one
        parameter may depend on the value of another."""
        names = (parameter.name for parameter in target.parameters)
        named = dict(zip(names, configuration, strict=True))
        full = msgspec.structs.replace(target.transfer, parameters=named)
        defaults = {p.name: p.choices[0] for p in self._catalogue.parameters(full)}
        kept = {name: value for name, value in named.items() if defaults.get(name) != value}
        return msgspec.structs.replace(target.transfer, parameters=kept)


@dataclass(frozen=True)
class Targets:
    """All that could be searched, and what cannot."""

    targets: tuple[Target, ...]
    unsupported: tuple[Unsupported, ...]
    """Sizes that do not fit, with reasons."""


def find_targets(machine: Machine, request: TuneRequest) -> Targets:
    """The targets, those whose executors need a search first, then by size.

    Raises `WaywiserError` for sizes that are none, and patterns that match nothing.
    """
    survey = Request(sizes=request.sizes or SIZES, memory_bytes=request.memory_bytes)
    maker = Points(machine, survey)
    catalogue = maker.catalogue
    targets: list[Target] = []
    for curve in _curves(maker, request):
        executor = catalogue.executors[curve.transfers[0].path.executor]
        least = 0 if request.sizes else executor.least_bytes
        points = [point for point in maker.of(curve, "") if point.size >= least]
        targets += (_target(point, machine, catalogue) for point in points)
    targets.sort(key=lambda target: (not target.needs_search, target.point.size))
    return Targets(tuple(targets), tuple(maker.unsupported_paths))


def _curves(basis: Basis, request: TuneRequest) -> list[PlannedCurve]:
    machine, catalogue = basis.machine, basis.catalogue
    possible = _of_ranks(basis) if machine.ranks else _of_paths(basis, request)
    curves = [curve for curve in possible if parameters_of(curve.transfers[0], catalogue)]
    if request.paths:
        texts = {curve.text: texts_of(curve.at(0), machine) for curve in curves}
        require_match(
            request.paths,
            [text for known in texts.values() for text in known],
            gpus=len(machine.gpus),
        )
        return [curve for curve in curves if matches_any(texts[curve.text], request.paths)]
    # the first of each class of equivalent paths, of those that people ask a machine for
    principal = [
        curve
        for curve in curves
        if machine.ranks
        or (
            is_principal(curve.transfers[0].path, catalogue)
            and not is_remote(curve.transfers[0].path, catalogue)
        )
    ]
    first = representatives((curve.at(0) for curve in principal), machine)
    return [curve for curve in principal if first[curve.text] == curve.text]


def _of_paths(basis: Basis, request: TuneRequest) -> list[PlannedCurve]:
    """All paths within one process, those with other layouts if paths were named."""
    catalogue = basis.catalogue
    found = find_paths(basis.machine)
    plain = [
        PlannedCurve.of([Transfer(path)], catalogue)
        for path in found.valid
        if "contiguous" in catalogue.executors[path.executor].layouts
    ]
    laid_out, _ = layout_curves(found.valid, basis) if request.paths else ([], [])
    return [*plain, *laid_out]


def _of_ranks(basis: Basis) -> list[PlannedCurve]:
    """Messages of one pair of ranks and exchanges, with default settings."""
    curves, _ = rank_curves(basis)
    return [
        curve for curve in curves if len(curve.transfers) == 1 and not curve.transfers[0].parameters
    ]


def parameters_of(transfer: Transfer, catalogue: Catalogue) -> tuple[Parameter, ...]:
    """The parameters of the transfer that are searched: all that have several values and move
    every byte, if the executor needs a search, or one of them is ordered or a subset; none
    otherwise. If the transfer library has settings of the executor, no others are searched: a
    policy cannot set them, and some make another promise, as when a write counts as written. What
    messages are sent is no setting to search."""
    settings = catalogue.executors[transfer.path.executor].traits.library.settings
    known = [
        p
        for p in catalogue.parameters(transfer)
        if len(SearchAxis(p.name, p.kind, p.choices).all_values) > 1
        and (not settings or p.name in settings)
        and p.name not in OF_TASK
        and _moves_all(transfer, p)
    ]
    searched = catalogue.is_searched(transfer) or any(p.kind != "choice" for p in known)
    return tuple(known) if searched else ()


def _moves_all(transfer: Transfer, parameter: Parameter) -> bool:
    """Whether a transfer moves every byte whatever the value of a parameter."""
    settings = ({parameter.name: value} for value in parameter.choices[1:])
    varied = (msgspec.structs.replace(transfer, parameters=each) for each in settings)
    return not any(each.is_sparse for each in varied)


def _target(point: PlannedPoint, machine: Machine, catalogue: Catalogue) -> Target:
    transfer = point.workload.transfers[0]
    plain = _plain_copy(transfer, catalogue)
    of_plain: PlannedPoint | None = None
    if plain is not None:
        curve = PlannedCurve.of([plain], catalogue)
        total = footprint(curve.at(point.size), catalogue).total
        of_plain = replace(point, curve=curve, workload=curve.at(point.size), buffer_bytes=total)
    return Target(
        point,
        parameters_of(transfer, catalogue),
        of_plain,
        call_text([plain], machine.traits).partition(",")[0] if plain else "",
        catalogue.is_searched(transfer),
    )


def _plain_copy(transfer: Transfer, catalogue: Catalogue) -> Transfer | None:
    """The same bytes by the executor that the class of the path is compared by, with defaults."""
    kinds = {place.kind for place in transfer.path.places}
    executor = catalogue.traits.reference_executor(
        "file" if "file" in kinds else "gpu" if "gpu" in kinds else "host"
    )
    if executor in ("", transfer.path.executor):
        return None
    path = msgspec.structs.replace(transfer.path, executor=executor)
    plain = msgspec.structs.replace(transfer, path=path, parameters={})
    return plain if catalogue.unsupported_reason(plain) is None else None


def fitting(
    targets: Sequence[Target], seconds: dict[str, float], budget: float
) -> tuple[list[Target], list[Target]]:
    """The targets that fit into the budget, in their order, and those that do not; ``seconds`` are
    those expected of each, by identity."""
    kept: list[Target] = []
    cut: list[Target] = []
    left = budget
    for target in targets:
        needed = seconds[target.point.identity]
        fits = needed <= left
        left -= needed if fits else 0.0
        (kept if fits else cut).append(target)
    return kept, cut
