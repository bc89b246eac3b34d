"""What methods take from other work, and which of them is simpler.

CPUs, staging memory and links come from the requirements that the registry answers; the slowdown
of a small copy beside a large one from workloads of two transfers, if a profile has them. Matrix
products beside copies are not measured by this version.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import msgspec

from waywiser import __version__
from waywiser.analysis.subject import MeasuredPoint, Subject
from waywiser.hardware.machine import Machine
from waywiser.hardware.traits import DECLARED
from waywiser.plan.catalogue import Catalogue, Requirements
from waywiser.policy.candidates import RELAYS, is_bounded, kind_of, needs_idle_peers
from waywiser.policy.decision_table import CopyKind, Method
from waywiser.policy.table import MethodCosts
from waywiser.stats.order import median
from waywiser.words import Transfer

SMALL_COPY = 2**16
"""Most bytes of a copy that is small."""

MANY_TIMES = 64
"""The copy beside a small one is so many times as large at least."""

_KERNELS = "kernels"
"""The family of executors that use multiprocessors."""

_BLOCKS = "blocks"
"""The parameter of kernels that limits them to so many multiprocessors."""


class CostsOfMethods:
    """The costs of the methods of one machine, by its registry."""

    def __init__(self, machine: Machine, subjects: Sequence[Subject] = ()) -> None:
        self._catalogue = Catalogue(machine)
        self._small = _small_copies(subjects)
        versions = {run.version for subject in subjects for run in subject.overview.runs}
        self._knows_defaults = versions == {__version__}

    def method(self, executor: str, transfer: Transfer) -> Method:
        """The method as a policy names it: with the number of relays, not with their names."""
        settings = {
            name: value
            for name, value in transfer.parameters.items()
            if name in DECLARED.executor(executor).library.settings
        }
        if RELAYS in DECLARED.executor(executor).library.settings:
            settings[RELAYS] = str(_relays(self._requirements(transfer), transfer))
        return Method(executor, settings)

    def settings(self, transfer: Transfer) -> dict[str, str]:
        """All settings of the method by name, as a policy names them. What the transfer does not
        name has the default value, if this version measured it."""
        executor = transfer.path.executor
        named = self.method(executor, transfer).settings
        if not self._knows_defaults or self._catalogue.unsupported_reason(transfer) is not None:
            return named
        defaults = {
            each.name: each.choices[0]
            for each in self._catalogue.parameters(transfer)
            if each.name in DECLARED.executor(executor).library.settings
            and each.name != RELAYS
            and each.choices
            and is_bounded(each.name, each.choices[0])
        }
        return {**defaults, **named}

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
        needs = self._requirements(transfer)
        executor = DECLARED.executor(transfer.path.executor)
        relays = RELAYS in executor.library.settings
        return MethodCosts(
            threads=needs.threads,
            multiprocessors=self._multiprocessors(transfer),
            pinned_bytes=needs.pinned_bytes,
            relays=_relays(needs, transfer) if relays else 0,
            small_copy=self._small.get((kind, str(_plain_method(transfer)))),
        )

    def _multiprocessors(self, transfer: Transfer) -> int | None:
        if DECLARED.executor(transfer.path.executor).family != _KERNELS:
            return 0
        value = transfer.parameters.get(_BLOCKS, "")
        if not value and self._catalogue.unsupported_reason(transfer) is None:
            parameters = self._catalogue.parameters(transfer)
            value = next((each.choices[0] for each in parameters if each.name == _BLOCKS), "")
        return int(value) if value.isascii() and value.isdigit() else None

    def _requirements(self, transfer: Transfer) -> Requirements:
        """None of a transfer that this machine, as its profile describes it, does not support."""
        if self._catalogue.unsupported_reason(transfer) is not None:
            return Requirements()
        return self._catalogue.requirements(transfer)


def simplicity(
    costs: MethodCosts, method: Method, kind: CopyKind, plain: bool
) -> tuple[float | bool | str, ...]:
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


def _plain_method(transfer: Transfer) -> Method:
    return Method(transfer.path.executor, dict(sorted(transfer.parameters.items())))


def _small_copies(subjects: Sequence[Subject]) -> dict[tuple[CopyKind, str], float]:
    """Returns, by kind and method of a large copy, how many times as long a small copy takes
    meanwhile. The largest copy counts."""
    found: dict[tuple[CopyKind, str], tuple[int, float]] = {}
    for subject in subjects:
        alone = {
            point.line.workload: point
            for curve in subject.curves
            if curve.transfer is not None
            for point in curve.points
        }
        for large, factor in _beside(subject, alone):
            kind = kind_of(large.path.source, large.path.destination, subject.machine)
            if kind is not None:
                key = kind, str(_plain_method(large))
                found[key] = max(found.get(key, (0, 0.0)), (large.bytes, factor))
    return {key: factor for key, (_, factor) in found.items()}


def _beside(subject: Subject, alone: dict[str, MeasuredPoint]) -> Iterator[tuple[Transfer, float]]:
    for curve in subject.curves:
        if len(curve.workload.transfers) != 2 or curve.workload.cache != "warm":
            continue
        for point in curve.points:
            pair = list(enumerate(point.workload.transfers))
            (at, small), (_, large) = sorted(pair, key=lambda each: each[1].bytes)
            known = alone.get(str(small))
            times = [each.transfers[at] for each in point.estimate.blocks if each.transfers]
            is_small = small.bytes <= SMALL_COPY and MANY_TIMES * small.bytes <= large.bytes
            if is_small and known is not None and times:
                yield large, median(times) / known.seconds
