"""Which curves a report draws: few that stand for many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waywiser.report.entry import Entry
from waywiser.stats.shown import FAMILIES, Shown

MOST_LINES = 8
"""In one figure: more are not told apart."""

MOST_GROUPS = 3
"""Pairs of places of a family that are drawn; the rest is in its table."""

UNDRAWN = "operations"

SUSTAINED_BYTES = 16 * 2**20
"""A rate at fewer bytes than these is no sustained one."""


def families(entries: Sequence[Entry]) -> list[str]:
    """Those that any machine has, in the order told."""
    present = {curve.family for entry in entries for curve in entry.curves}
    return [family for family in FAMILIES if family in present]


def of_family(entry: Entry, family: str) -> list[Shown]:
    return [curve for curve in entry.curves if curve.family == family]


def is_principal(curve: Shown) -> bool:
    """First of its class, with every setting as it is by default."""
    if curve.like or curve.workload.cache != "warm":
        return False
    if curve.transfer is not None:
        return curve.is_default
    return not any(t.parameters or t.layout for t in curve.workload.transfers)


def principal_groups(curves: Iterable[Shown]) -> dict[str, list[Shown]]:
    """By the places that they are between, the fastest first; in each the fastest curves first."""
    groups: dict[str, list[Shown]] = {}
    for curve in curves:
        if is_principal(curve) and len(curve.measured) > 1:
            groups.setdefault(between(curve), []).append(curve)
    ordered = {
        ends: sorted(group, key=sustained, reverse=True)[:MOST_LINES]
        for ends, group in groups.items()
    }
    first = sorted(ordered, key=lambda ends: len(groups[ends]), reverse=True)[:MOST_GROUPS]
    return {ends: ordered[ends] for ends in ordered if ends in first}


def between(curve: Shown) -> str:
    """``numa:0 → gpu:0``; of several transfers what they are together."""
    if curve.transfer is None:
        return curve.family
    path = curve.transfer.path
    if path.source.place == path.destination.place:
        return f"within {path.source.place}"
    return f"{path.source.place} → {path.destination.place}"


def label(curve: Shown) -> str:
    """What tells it from others between the same places: ``pinned → device, copy-engine``."""
    if curve.transfer is None:
        return curve.name
    path = curve.transfer.path
    return f"{path.source.kind} → {path.destination.kind}, {path.executor}"


def sustained(curve: Shown) -> float:
    """Bytes per second at its largest size, since smaller ones may come out of a cache; 0 for an
    operation, and where that size is too small to tell."""
    line = curve.measured[-1]
    if line.bytes < SUSTAINED_BYTES or line.estimate is None or line.estimate.rate is None:
        return 0.0
    return line.estimate.rate.value
