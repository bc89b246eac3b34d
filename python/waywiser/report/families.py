"""Which curves a report draws: few that stand for many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waywiser.analysis.shown import FAMILIES, Shown
from waywiser.report.entry import Entry
from waywiser.words import format_settings
from waywiser.words.sizes_in_text import with_units

MOST_LINES = 8
"""Most lines in one figure: more cannot be distinguished."""

MOST_GROUPS = 3
"""Pairs of places of a family that are drawn; the rest is in its table."""

UNDRAWN = "operations"

SUSTAINED_BYTES = 16 * 2**20
"""A rate at fewer bytes than these is no sustained one."""


def families(entries: Sequence[Entry]) -> list[str]:
    """Those that any machine has, in order."""
    present = {curve.family for entry in entries for curve in entry.curves}
    return [family for family in FAMILIES if family in present]


def of_family(entry: Entry, family: str) -> list[Shown]:
    return [curve for curve in entry.curves if curve.family == family]


def stands_for_many(curve: Shown) -> bool:
    """First of its class, of contiguous bytes, with the caches as they are."""
    transfers = curve.workload.transfers
    return (
        not curve.like and curve.workload.cache == "warm" and not any(t.layout for t in transfers)
    )


def is_principal(curve: Shown) -> bool:
    """Stands for many, with every setting as it is by default."""
    if not stands_for_many(curve):
        return False
    if curve.transfer is not None:
        return curve.is_default
    return not any(t.parameters for t in curve.workload.transfers)


def principal_groups(curves: Iterable[Shown]) -> dict[str, list[Shown]]:
    """Curves by the places that they are between; in each group the fastest first. If nothing has
    its default settings, as in other tools' results, of all that stand for many."""
    groups: dict[str, list[Shown]] = {}
    drawn = [curve for curve in curves if stands_for_many(curve) and len(curve.measured) > 1]
    for curve in [curve for curve in drawn if is_principal(curve)] or drawn:
        groups.setdefault(between(curve), []).append(curve)
    first = sorted(groups, key=lambda ends: len(groups[ends]), reverse=True)[:MOST_GROUPS]
    return {
        ends: sorted(group, key=sustained, reverse=True)[:MOST_LINES]
        for ends, group in groups.items()
        if ends in first
    }


def between(curve: Shown) -> str:
    """``numa:0 → gpu:0``; of several transfers what they are together."""
    if curve.transfer is None:
        return curve.family
    path = curve.transfer.path
    if path.source.place == path.destination.place:
        return f"within {path.source.place}"
    return f"{path.source.place} → {path.destination.place}"


def label(curve: Shown) -> str:
    """Its difference from others between the same places: ``pinned → device, copy-engine``."""
    if curve.transfer is None:
        return with_units(curve.name)
    path, settings = curve.transfer.path, format_settings(curve.transfer.parameters)
    ends = (f"{end.kind}{format_settings(end.variant)}" for end in (path.source, path.destination))
    return with_units(f"{' → '.join(ends)}, {path.executor}{settings}")


def sustained(curve: Shown) -> float:
    """Bytes per second at its largest size, since smaller ones may come out of a cache; 0 for an
    operation, and if that size is too small to show a rate."""
    line = curve.measured[-1]
    if line.bytes < SUSTAINED_BYTES or line.estimate is None or line.estimate.rate is None:
        return 0.0
    return line.estimate.rate.value
