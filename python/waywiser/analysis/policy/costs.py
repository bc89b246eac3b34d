"""What methods take from other work, and which of them is simpler.

CPUs, staging memory and links come from the requirements that the registry answers; the slowdown
of small copies, a matrix product and collectives beside a large copy from workloads of two
transfers (`waywiser.curves.bystanders`), if a profile has them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from waywiser.analysis.policy.candidates import (
    RELAYS,
    is_bounded,
    kind_of,
    needs_idle_peers,
    threads_of,
)
from waywiser.analysis.policy.decision_table import CopyKind, Method
from waywiser.analysis.policy.table import MethodCosts
from waywiser.curves import Point, Subject, bystander_of
from waywiser.machine import DECLARED, Catalogue, Machine, Requirements
from waywiser.stats import median
from waywiser.version import __version__
from waywiser.words import MOST_INDEX, Transfer, whole_number

_BLOCKS = "blocks"
"""The parameter of kernels that limits them to so many multiprocessors."""


class CostsOfMethods:
    """The costs of the methods of copies on one machine, by its registry."""

    def __init__(self, machine: Machine, subjects: Sequence[Subject]) -> None:
        self._machine = machine
        self._catalogue = Catalogue(machine)
        self._traits = machine.traits
        self._slowdowns = _slowdowns(subjects)
        versions = {run.version for subject in subjects for run in subject.overview.runs}
        self._knows_defaults = versions == {__version__}

    def method(self, transfer: Transfer) -> Method:
        """The method as a policy names it: with the number of relays, not with their names."""
        executor = transfer.path.executor
        taken = DECLARED.executor(executor).library.settings
        settings = {name: value for name, value in transfer.parameters.items() if name in taken}
        if RELAYS in taken:
            settings[RELAYS] = str(_relays(self._requirements(transfer), transfer))
        return Method(executor, settings)

    def settings(self, transfer: Transfer) -> dict[str, str]:
        """All settings of the method by name, as a policy names them. What the transfer does not
        name has the default value, if this version measured it."""
        named = self.method(transfer).settings
        if not self._knows_defaults:
            return named
        taken = DECLARED.executor(transfer.path.executor).library.settings
        defaults = {
            name: value
            for name, value in self._defaults(transfer).items()
            if name in taken and name != RELAYS and is_bounded(name, value)
        }
        return {**defaults, **named}

    def _defaults(self, transfer: Transfer) -> dict[str, str]:
        """The default values of parameters; none of a transfer that is not supported."""
        if self._catalogue.unsupported_reason(transfer) is not None:
            return {}
        parameters = self._catalogue.parameters(transfer)
        return {each.name: each.choices[0] for each in parameters if each.choices}

    def others(self, transfer: Transfer, measured: Collection[str]) -> tuple[str, ...]:
        """The executors with which the library could make a copy too, besides those that were
        measured, without the links of other GPUs."""
        found = []
        for kind in self._catalogue.executors.values():
            library = kind.traits.library
            path = msgspec.structs.replace(transfer.path, executor=kind.name)
            other = msgspec.structs.replace(transfer, path=path, parameters={})
            if (
                kind.name not in measured
                and (library.contiguous if transfer.layout is None else library.lists)
                and not needs_idle_peers(Method(kind.name, {}))
                and self._catalogue.unsupported_reason(other) is None
            ):
                found.append(kind.name)
        return tuple(found)

    def of(self, transfer: Transfer, kind: CopyKind) -> MethodCosts:
        """Returns the costs of a transfer, which is a copy of this kind."""
        needs = self._requirements(transfer)
        executor = DECLARED.executor(transfer.path.executor)
        own = _LargeCopy(kind, _text(transfer), transfer.layout is not None)
        slowdowns = self._slowdowns.get(own, {})
        collectives = {name: slowdowns[name] for name in sorted(slowdowns.keys() - _OTHERS)}
        return MethodCosts(
            threads=needs.threads,
            multiprocessors=self._multiprocessors(transfer),
            pinned_bytes=needs.pinned_bytes,
            relays=_relays(needs, transfer) if RELAYS in executor.library.settings else 0,
            small_copy=slowdowns.get(_SMALL_COPY),
            matrix_product=slowdowns.get(_LOAD),
            collectives=collectives or msgspec.UNSET,
        )

    def _multiprocessors(self, transfer: Transfer) -> int | None:
        if self._traits.by_multiprocessors(transfer):
            return None
        if not DECLARED.executor(transfer.path.executor).is_kernel:
            return 0
        own = transfer.parameters.get(_BLOCKS)
        return whole_number(own or self._defaults(transfer).get(_BLOCKS, ""))

    def _requirements(self, transfer: Transfer) -> Requirements:
        """What the registry answers. A transfer that this machine, as its profile describes it,
        does not support, such as one of another tool, needs the threads that its text says, or one
        if CPUs make it."""
        if self._catalogue.unsupported_reason(transfer) is not None:
            if not DECLARED.executor(transfer.path.executor).uses_cpus:
                return Requirements()
            stated = transfer.parameters.get("threads", "")
            every = threads_of(self._machine) if stated == "all" else 1
            return Requirements(threads=whole_number(stated, MOST_INDEX) or every)
        return self._catalogue.requirements(transfer)


def simplicity(costs: MethodCosts, method: Method, plain: bool) -> tuple[float | bool | str, ...]:
    """A key by which simpler methods come first: those that take less from others."""
    several = costs.multiprocessors
    return (
        costs.relays,
        costs.threads,
        math.inf if several is None else several,
        costs.pinned_bytes,
        not plain,
        len(method.settings),
        str(method),
    )


def is_plain(method: Method, source: str, destination: str) -> bool:
    """Whether it is the reference of the class of such paths, with default settings. ``source`` and
    ``destination`` are kinds of places."""
    places = {source, destination}
    paths = "gpu" if "gpu" in places else "file" if "file" in places else "host"
    reference = DECLARED.executor(method.executor).reference
    return not method.settings and reference == paths


def _relays(needs: Requirements, transfer: Transfer) -> int:
    own = {place.index for place in transfer.path.places if place.kind == "gpu"}
    return len(set(needs.device_bytes) - own)


def _text(transfer: Transfer) -> str:
    """The executor with its settings."""
    return str(Method(transfer.path.executor, transfer.parameters))


class _LargeCopy(NamedTuple):
    """A large copy with which others are measured together."""

    kind: CopyKind
    method: str
    is_list: bool
    """Whether it is a list: a kernel uses other blocks for it."""


_SMALL_COPY, _LOAD = "small copy", "load"
_OTHERS = {_SMALL_COPY, _LOAD}
"""The kinds of work that are measured with a large copy. Collectives have their own names."""


def _slowdowns(subjects: Sequence[Subject]) -> dict[_LargeCopy, dict[str, float]]:
    """Returns how many times as long each bystander takes with a large copy as alone. The largest
    copy counts; of several of that size, the one with the largest slowdown."""
    found: dict[_LargeCopy, dict[str, tuple[int, float]]] = {}
    for subject in subjects:
        alone = {
            point.text: point
            for curve in subject.curves
            if curve.transfer is not None
            for point in curve.measured
        }
        for copy, beside, size, factor in _beside(subject, alone):
            known = found.setdefault(copy, {})
            known[beside] = max(known.get(beside, (0, 0.0)), (size, factor))
    return {
        copy: {beside: factor for beside, (_, factor) in known.items()}
        for copy, known in found.items()
    }


def _beside(
    subject: Subject, alone: dict[str, Point]
) -> Iterator[tuple[_LargeCopy, str, int, float]]:
    for curve in subject.curves:
        at = bystander_of(curve.measured[-1].workload, subject.machine.traits)
        if at is None or curve.workload.cache != "warm":
            continue
        for point in curve.measured:
            bystander, large = point.workload.transfers[at], point.workload.transfers[1 - at]
            kind = kind_of(*large.path.ends, subject.machine, layout=large.layout)
            factor = _slowdown(point, alone.get(str(bystander)), at)
            if kind is not None and factor is not None:
                copy = _LargeCopy(kind, _text(large), large.layout is not None)
                yield copy, _name(bystander), large.bytes, factor


def _name(bystander: Transfer) -> str:
    is_load = DECLARED.executor(bystander.path.executor).bystander
    return bystander.collective or (_LOAD if is_load else _SMALL_COPY)


def _slowdown(point: Point, alone: Point | None, at: int) -> float | None:
    """Returns how many times as long a bystander takes as alone. A sustained workload has both
    times; those of others are by the same clock. Returns None if the bystander alone takes longer
    than the large copy, for a part of it would run without the copy, or if it was not measured
    alone."""
    if point.workload.is_sustained:
        known = point.measured.slowdowns
        return known[at].median if known else None
    if alone is None:
        return None
    seconds = alone.seconds
    if point.mode != alone.mode:
        seen = alone.measured.host_median
        if point.mode != "host" or seen is None:
            return None
        seconds = seen
    times = [each.transfers for each in point.measured.used if each.transfers]
    if not times or median([each[1 - at] for each in times]) < seconds:
        return None
    return median([each[at] for each in times]) / seconds
