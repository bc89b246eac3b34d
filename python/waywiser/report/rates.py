"""What was measured between two places: sustained rate and shortest time of plain copies."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.report.entry import Entry
from waywiser.stats.line import Line
from waywiser.stats.shown import Shown
from waywiser.words import Place, Value

PLAIN = ("pinned", "device")
"""Kinds of memory that a link is judged by, where both ends have one."""

PREFERRED = "copy-engine"
"""What moves the bytes where it was measured; else the fastest of the others."""


class Between(Value, frozen=True):
    """One ordered pair of places."""

    source: str
    destination: str
    curve: Shown
    most: Line
    """At the largest size: smaller ones may come out of a cache."""
    least: Line
    """At the smallest size."""

    @property
    def rate(self) -> float:
        """Bytes per second."""
        found = self.most.estimate
        return found.rate.value if found and found.rate else 0.0


def between_places(entry: Entry) -> dict[tuple[str, str], Between]:
    """By (source, destination), of single copies, with default settings where there are."""
    found: dict[tuple[str, str], Between] = {}
    for each in _candidates(entry):
        key = (each.source, each.destination)
        if key not in found or _worth(each) > _worth(found[key]):
            found[key] = each
    return found


def _candidates(entry: Entry) -> Iterator[Between]:
    for curve in entry.curves:
        transfer = curve.transfer
        if transfer is None or transfer.layout or curve.workload.cache != "warm":
            continue
        ends = transfer.path.source.place, transfer.path.destination.place
        measured = [line for line in curve.measured if line.estimate and line.estimate.rate]
        if "file" not in (ends[0].kind, ends[1].kind) and measured:
            yield Between(str(ends[0]), str(ends[1]), curve, measured[-1], measured[0])


def _worth(each: Between) -> tuple[bool, bool, bool, float]:
    """Plain memory before other, default settings before others, then the preferred executor."""
    assert each.curve.transfer is not None
    path = each.curve.transfer.path
    plain = path.source.kind in PLAIN and path.destination.kind in PLAIN
    return plain, each.curve.is_default, path.executor == PREFERRED, each.rate


def places(entry: Entry) -> list[Place]:
    """NUMA nodes, then GPUs."""
    machine = entry.subject.machine
    nodes = [Place("numa", node.index) for node in machine.numa]
    return nodes + [Place("gpu", gpu.index) for gpu in machine.gpus]
