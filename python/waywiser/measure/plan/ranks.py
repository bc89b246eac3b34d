"""The series of a survey with ranks: messages between every two of them, between growing numbers of
active pairs, from one to growing numbers of peers, exchanges among all, and the skew of all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.curves import PlannedCurve, combinations
from waywiser.measure.plan.exchanges import exchange_curves
from waywiser.measure.plan.preset import Depth
from waywiser.words import Memory, Operation, Path, Place, Transfer, Unsupported, grouped

BARRIER_SKEW = "barrier-skew"

MOST_PAIRS = 28
"""Pairs of ranks that are measured: those of eight ranks. Of more, near numbers come first."""


def rank_curves(basis: Basis) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """Each pair of ranks by each executor between ranks, with its settings; several pairs together;
    exchanges; and what cannot be measured, once for each pair of kinds of memory."""
    catalogue, depth = basis.catalogue, basis.preset.depth
    curves: list[PlannedCurve] = []
    unsupported: dict[str, Unsupported] = {}
    for a, b in _pairs(basis):
        for path in _paths(a, b, basis):
            if reason := catalogue.unsupported_reason(Transfer(path)):
                unsupported.setdefault(path.kinds, Unsupported(str(path), reason))
                continue
            principal = path.source.kind == path.destination.kind
            varied = depth if principal or depth is Depth.PAIRS else Depth.DEFAULTS
            for settings in combinations(catalogue.parameters(Transfer(path)), varied):
                transfer = Transfer(path, parameters=settings)
                main = principal and not settings
                curves.append(PlannedCurve.of([transfer], catalogue, principal=main))
    exchanges, without = exchange_curves(_kinds(basis), basis)
    curves += [*_together(curves, basis), *exchanges, _skew(basis)]
    return curves, [*unsupported.values(), *without]


def _skew(basis: Basis) -> PlannedCurve:
    """The skew of all ranks after a barrier: how well they start together."""
    first, last = (basis.machine.ranks[n].index for n in (0, -1))
    operation = Operation(BARRIER_SKEW, Place("rank", first, last=last))
    return PlannedCurve(operation=operation, principal=True)


def _pairs(basis: Basis) -> list[tuple[int, int]]:
    """Each two ranks once: a round trip is the same from either end."""
    numbers = [rank.index for rank in basis.machine.ranks]
    pairs = itertools.combinations(numbers, 2)
    return sorted(pairs, key=lambda pair: pair[1] - pair[0])[:MOST_PAIRS]


def _paths(a: int, b: int, basis: Basis) -> Iterator[Path]:
    """Between the same kinds of memory, and between different kinds that the preset asks for."""
    catalogue = basis.catalogue
    kinds = list(itertools.product(_kinds(basis), repeat=2))
    if basis.preset.depth is Depth.DEFAULTS:
        kinds = [(one, other) for one, other in kinds if one == other]
    for executor in catalogue.executors.values():
        among = executor.among_several or executor.among_ranks
        if executor.traits.route == "between ranks" and not among:
            for one, other in kinds:
                ends = Memory(one, Place("rank", a)), Memory(other, Place("rank", b))
                yield Path(*ends, executor.name)


def _kinds(basis: Basis) -> tuple[str, ...]:
    """Plain memory of the host, and where ranks have GPUs that of these and what feeds them; all
    that ranks can have if the preset is thorough."""
    catalogue = basis.catalogue
    host = catalogue.traits.reference_memory("host", "numa")
    with_gpus = any(rank.gpu >= 0 for rank in basis.machine.ranks)
    if basis.preset.depth is Depth.PAIRS:
        return tuple(
            kind.name
            for kind in catalogue.memories.values()
            if {"numa", "gpu"} & set(kind.places) and (with_gpus or not kind.needs_gpu)
        )
    if not with_gpus:
        return (host,)
    fed = (catalogue.traits.reference_memory("gpu", place) for place in ("numa", "gpu"))
    return (host, *fed)


def _together(curves: list[PlannedCurve], basis: Basis) -> Iterator[PlannedCurve]:
    """Growing numbers of messages: concurrent ones between pairs of ranks, each rank in one pair;
    concurrent ones between the processes of two GPUs, which split one message; and messages from
    one rank to several peers, which it sends one after another."""
    found: dict[tuple[str, str], dict[tuple[int, int], PlannedCurve]] = {}
    for curve in (each for each in curves if each.principal):
        path = curve.transfers[0].path
        ends = path.source.place.index, path.destination.place.index
        found.setdefault((path.executor, path.source.kind), {})[ends] = curve
    for of_pairs in found.values():
        known: set[tuple[tuple[int, int], ...]] = set()
        for several, counts in _sets(basis):
            active = [pair for pair in several if pair in of_pairs]
            for count in counts(len(active)):
                members = tuple(active[:count])
                if members in known:
                    continue
                known.add(members)
                transfers = tuple(of_pairs[pair].transfers[0] for pair in members)
                yield replace(of_pairs[members[0]], transfers=transfers, principal=False)


def _sets(basis: Basis) -> Iterator[tuple[list[tuple[int, int]], Callable[[int], list[int]]]]:
    """The pairs that are active together, and their numbers."""
    numbers = [rank.index for rank in basis.machine.ranks]
    yield list(zip(numbers[::2], numbers[1::2], strict=False)), _every
    of_gpus = grouped((rank.gpu, rank.index) for rank in basis.machine.ranks if rank.gpu >= 0)
    if len(of_gpus) > 1:
        one, other = list(of_gpus.values())[:2]
        yield list(zip(one, other, strict=False)), _doubling
    yield [(numbers[0], number) for number in numbers[1:]], _doubling


def _every(most: int) -> list[int]:
    return list(range(2, most + 1))


def _doubling(most: int) -> list[int]:
    """2, 4, 8 and so on, and the most."""
    powers = [2**n for n in range(1, most.bit_length()) if 2**n < most]
    return [*powers, most] if most > 1 else []
