"""Which curves a report draws: few that stand for many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from waywiser.curves import BANDWIDTH_BYTES, FAMILIES, Curve
from waywiser.curves.curve import BETWEEN_RANKS, BYSTANDERS
from waywiser.machine import DECLARED, Traits
from waywiser.render.entry import Entry
from waywiser.words import COLLECTIVE, Transfer, Value, format_settings, grouped, with_units

MOST_LINES = 8
"""Most lines in one figure: more cannot be distinguished."""

MOST_BARS = 12
"""Most bars in one figure."""

MOST_GROUPS = 3
"""Pairs of places of a family that are drawn; the rest is in its table."""

FEW_SIZES = 2
"""Sizes up to which a curve is only points."""

OPERATIONS = "operations"

UNDRAWN = (BYSTANDERS, OPERATIONS)
"""Families of few sizes each: tables show them, and no figures."""


def families(entries: Sequence[Entry]) -> list[str]:
    """Those that any machine has, in order."""
    present = {curve.family for entry in entries for curve in entry.curves}
    return [family for family in FAMILIES if family in present]


def of_family(entry: Entry, family: str) -> list[Curve]:
    return [curve for curve in entry.curves if curve.family == family]


def stands_for_many(curve: Curve) -> bool:
    """First of its class, of contiguous bytes, with the caches as they are."""
    transfers = curve.workload.transfers
    return (
        not curve.like and curve.workload.cache == "warm" and not any(t.layout for t in transfers)
    )


def is_principal(curve: Curve) -> bool:
    """Stands for many, with every setting as it is by default."""
    if not stands_for_many(curve):
        return False
    if curve.transfer is not None:
        return curve.is_default
    if curve.workload.kind == "collective":
        return set(curve.workload.transfers[0].parameters) <= {COLLECTIVE}
    return not any(t.parameters for t in curve.workload.transfers)


class DrawnGroup(Value, frozen=True):
    """Curves that are drawn together."""

    title: str
    """``numa:0 -> gpu:0``; of concurrent transfers the kinds of places: ``host and GPU``."""
    curves: tuple[Curve, ...]
    """The most important first: those that others are compared with, then the fastest."""
    total: int
    """Curves between the same places, with those that are not drawn."""


def curve_groups(curves: Sequence[Curve], traits: Traits) -> list[DrawnGroup]:
    """The curves of one family by the places that they are between. For each path there is one
    curve: with its default settings, or the fastest if it was not measured with these."""
    of_sets = all(curve.transfer is None for curve in curves)
    totals = Counter(_group_of(curve) for curve in curves)
    chosen = filter(is_principal, curves) if of_sets else _one_of_each_path(curves)
    groups = grouped((_group_of(curve), curve) for curve in chosen if _bandwidth(curve))
    if of_sets:
        drawn = [title for title in (*_PLACES.values(), RANKS, FILES) if title in groups]
    else:
        several = sorted(groups, key=lambda title: len(groups[title]), reverse=True)
        drawn = [title for title in groups if title in several[:MOST_GROUPS]]
    return [DrawnGroup(title, _ranked(groups[title], traits), totals[title]) for title in drawn]


def _one_of_each_path(curves: Iterable[Curve]) -> Iterator[Curve]:
    paths = grouped((str(curve.base), curve) for curve in curves if stands_for_many(curve))
    for same in paths.values():
        yield next((curve for curve in same if is_principal(curve)), max(same, key=sustained))


def _group_of(curve: Curve) -> str:
    if curve.transfer is not None:
        return between(curve)
    if all(DECLARED.is_between_ranks(each.path) for each in curve.workload.transfers):
        return RANKS
    kinds = ("numa" if place.kind == "rank" else place.kind for place in curve.workload.places)
    return _PLACES.get(frozenset(kinds), FILES)


FILES = "files"

RANKS = BETWEEN_RANKS

_PLACES = {
    frozenset(("numa", "gpu")): "host and GPU",
    frozenset(("gpu",)): "GPU and GPU",
    frozenset(("numa",)): "host memory",
    frozenset(("rank",)): "ranks",
}
"""Concurrent transfers over PCIe first, then those over the links between GPUs."""


def _ranked(group: Iterable[Curve], traits: Traits) -> tuple[Curve, ...]:
    def rank(curve: Curve) -> tuple[bool, bool, float]:
        return not is_reference(curve, traits), len(curve.measured) <= FEW_SIZES, -_bandwidth(curve)

    return tuple(sorted(group, key=rank))


def is_reference(curve: Curve, traits: Traits) -> bool:
    """Whether all its transfers are by the executor and in the memory that paths of their class
    are compared by."""
    for transfer in curve.workload.transfers:
        known = traits.executor(transfer.path.executor).reference
        if not known or any(traits.memory(e.kind).reference != known for e in transfer.path.ends):
            return False
    return True


def method(curve: Curve, traits: Traits) -> str:
    """The executor with its settings and the kinds of memory, the same in both directions:
    ``copy-engine, pinned``. The plain memory of GPUs is not named."""
    return " + ".join(dict.fromkeys(method_of(each, traits) for each in curve.workload.transfers))


def method_of(transfer: Transfer, traits: Traits) -> str:
    """`method` of one transfer."""
    path = transfer.path
    plain = traits.reference_memory("gpu", "gpu")
    named = [
        end for end in path.ends if end.place.kind != "gpu" or end.kind != plain or end.variant
    ]
    kinds = list(dict.fromkeys(f"{end.kind}{format_settings(end.variant)}" for end in named))
    if path.source.place.kind != path.destination.place.kind:
        kinds.sort()
    arrow = " -> " if path.source.place.kind == path.destination.place.kind else "/"
    executor = traits.by_multiprocessors(transfer)
    executor = executor or f"{path.executor}{format_settings(transfer.parameters)}"
    return with_units(", ".join(filter(None, (executor, arrow.join(kinds)))))


_MEMORY = re.compile(r"[\w-]+(?:\[[^\]]*\])?@")


def set_label(curve: Curve) -> str:
    """What starts together, without kinds of memory: ``ring gpu:0-3 -> gpu:0-3``."""
    name, by, rest = curve.name.partition(" by ")
    if not by or ";" in rest:
        return with_units(curve.name)
    return _MEMORY.sub("", name)


def between(curve: Curve) -> str:
    """``numa:0 -> gpu:0``; of several transfers what they are together."""
    if curve.transfer is None:
        return curve.family
    path = curve.transfer.path
    if path.source.place == path.destination.place:
        return f"within {path.source.place}"
    return f"{path.source.place} -> {path.destination.place}"


def sustained(curve: Curve) -> float:
    """Bytes per second of its plateau; 0 for an operation, and if it is at a size that the start of
    a transfer still counts at."""
    point = curve.plateau
    return point.rate if point is not None and point.bytes >= BANDWIDTH_BYTES else 0.0


def _bandwidth(curve: Curve) -> float:
    """Bytes per second at its largest size; 0 if it has none."""
    return curve.measured[-1].rate
