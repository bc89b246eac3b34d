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
        ends: sorted(group, key=best_rate, reverse=True)[:MOST_LINES]
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


def best_rate(curve: Shown) -> float:
    """Bytes per second at its best size; 0 for an operation."""
    rates = (line.estimate.rate for line in curve.measured if line.estimate)
    return max((rate.value for rate in rates if rate), default=0.0)
