"""What was measured between two places: sustained rate and shortest time of plain copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from waywiser.report.entry import Entry
from waywiser.stats.line import Line
from waywiser.stats.shown import Shown
from waywiser.words import Place, Value

OF_LINKS = ("pinned", "device")
"""Kinds of memory that a link is judged by, where both ends have one."""

SMALL_BYTES = 4096
"""A time tells of latency up to there."""

PREFERRED = "copy-engine"
"""What moves the bytes where it was measured; else the fastest of the others."""


class Between(Value, frozen=True):
    """One ordered pair of places."""

    source: str
    destination: str
    curve: Shown
    most: Line
    """At the largest size, since smaller ones may come out of a cache: of those that all links of
    the kind were measured at, so that they can be compared."""
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
    kinds: dict[tuple[str, str, bool], list[tuple[str, str]]] = {}
    for source, destination in found:
        kind = (source.split(":")[0], destination.split(":")[0], source == destination)
        kinds.setdefault(kind, []).append((source, destination))
    for keys in kinds.values():
        for key, line in zip(keys, _at_a_common_size([found[key] for key in keys]), strict=True):
            found[key] = msgspec.structs.replace(found[key], most=line)
    return found


def _at_a_common_size(links: Sequence[Between]) -> list[Line]:
    """Of each link, at the largest size that all of them have; their own largest where all have
    none."""
    known = [{line.bytes: line for line in _rated(each.curve)} for each in links]
    common = set.intersection(*map(set, known))
    if not common:
        return [each.most for each in links]
    return [lines[max(common)] for lines in known]


def _rated(curve: Shown) -> list[Line]:
    return [line for line in curve.measured if line.estimate and line.estimate.rate]


def _candidates(entry: Entry) -> Iterator[Between]:
    for curve in entry.curves:
        transfer = curve.transfer
        if transfer is None or transfer.layout or curve.workload.cache != "warm":
            continue
        ends = transfer.path.places
        measured = _rated(curve)
        if "file" not in (ends[0].kind, ends[1].kind) and measured:
            yield Between(str(ends[0]), str(ends[1]), curve, measured[-1], measured[0])


def _worth(each: Between) -> tuple[bool, bool, bool, float]:
    """First by memory, as links are judged by it, then default settings, then the executor."""
    assert each.curve.transfer is not None
    path = each.curve.transfer.path
    of_links = path.source.kind in OF_LINKS and path.destination.kind in OF_LINKS
    return of_links, each.curve.is_default, path.executor == PREFERRED, each.rate


def places(entry: Entry) -> list[Place]:
    """NUMA nodes, then GPUs."""
    machine = entry.subject.machine
    nodes = [Place("numa", node.index) for node in machine.numa]
    return nodes + [Place("gpu", gpu.index) for gpu in machine.gpus]
