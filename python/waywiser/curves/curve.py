"""A curve: the series of one workload over sizes, and the family that it is shown in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import msgspec

from waywiser.curves.bystanders import bystander_of
from waywiser.curves.point import Point
from waywiser.curves.regimes import BANDWIDTH_BYTES
from waywiser.curves.sizes import SMALL_BYTES as SMALL_BYTES
from waywiser.machine.ranks import memory_of
from waywiser.machine.traits import DECLARED
from waywiser.stats.scatter import CurveBlocks
from waywiser.words import Path, Transfer, Workload, format_settings, grouped
from waywiser.words.number_format import RATE_BYTES
from waywiser.words.sizes_in_text import with_units

BYSTANDERS = "bystanders"
"""Small copies and loads beside large copies (`waywiser.curves.bystanders`), and loads alone."""

COLLECTIVES = "collectives"

NEAR = 4
"""Sizes that differ by less, as a factor, show nearly the same bandwidth."""

BETWEEN_RANKS = "between ranks"
"""What the families of messages begin with; then the nodes and the memory, where they are known."""

FAMILIES = (
    "host to device (H2D)",
    "device to host (D2H)",
    "local copy (D2D)",
    "device to device (P2P)",
    "host to host (H2H), one NUMA node",
    "host to host (H2H), two NUMA nodes",
    "files",
    *(
        f"{BETWEEN_RANKS}{nodes}{memory}"
        for nodes in (" of one node", " of two nodes", "")
        for memory in (", host memory", ", GPU memory", ", host and GPU memory", "")
    ),
    "bidirectional",
    "concurrent",
    COLLECTIVES,
    BYSTANDERS,
    "operations",
)

_BY_KINDS = {
    ("numa", "gpu"): FAMILIES[0],
    ("gpu", "numa"): FAMILIES[1],
    ("rank", "gpu"): FAMILIES[0],
    ("gpu", "rank"): FAMILIES[1],
}


@dataclass(frozen=True)
class Curve:
    """The series of one workload over sizes, the smallest first."""

    points: tuple[Point, ...]
    """All, measured or not."""

    @cached_property
    def measured(self) -> tuple[Point, ...]:
        """Those that a process measured."""
        return tuple(point for point in self.points if point.blocks)

    @property
    def text(self) -> str:
        """`Workload.curve`."""
        return self.points[0].curve

    @property
    def name(self) -> str:
        """As people call it: short where it is many transfers."""
        return self.points[0].name

    @property
    def like(self) -> str:
        """The first curve of its class; empty if it is the first."""
        return self.points[0].like

    @property
    def representative(self) -> str:
        """The first curve of its class."""
        return self.like or self.text

    @cached_property
    def workload(self) -> Workload:
        """The workload of its first measured point: all of the curve but the size."""
        return (self.measured or self.points)[0].workload

    @cached_property
    def rated(self) -> tuple[Point, ...]:
        """Its measured points whose figure is a bandwidth."""
        return tuple(point for point in self.measured if point.bytes >= RATE_BYTES and point.rate)

    @property
    def plateau(self) -> Point | None:
        """The point that states its bandwidth: the largest size that several processes measured,
        since one process may be disturbed, and smaller sizes may come out of a cache. The largest
        of all, if these are too small to show it. None if no figure is a bandwidth."""
        if not self.rated:
            return None
        largest = self.rated[-1]
        enough = min(BANDWIDTH_BYTES, largest.bytes // NEAR)
        repeated = (p for p in reversed(self.rated) if len(p.blocks) > 1 and p.bytes >= enough)
        return next(repeated, largest)

    def at(self, size: int) -> Point | None:
        """Its measured point of ``size`` bytes."""
        return next((point for point in self.measured if point.bytes == size), None)

    def beside(self, other: Curve) -> list[tuple[Point, Point]]:
        """Its measured points and those of the other, at the sizes that both have."""
        return [(p, its) for p in self.measured if (its := other.at(p.bytes)) is not None]

    @property
    def blocks(self) -> CurveBlocks:
        """The medians of the blocks without outliers, by size."""
        estimates = [point.measured for point in self.measured]
        return CurveBlocks(
            bytes=[point.bytes for point in self.measured],
            blocks=[{block.block: block.median for block in each.used} for each in estimates],
            within=[
                max((block.deviation for block in each.used if block.interval), default=0.0)
                for each in estimates
            ],
            alike=self.representative,
        )

    @property
    def transfer(self) -> Transfer | None:
        """`Workload.transfer`."""
        return self.workload.transfer

    @property
    def first_transfer(self) -> Transfer:
        """Its first transfer: of a path the only one."""
        return self.workload.copies[0]

    @property
    def shown(self) -> Workload:
        """Its workload as tables show it."""
        return (self.measured or self.points)[0].shown

    @property
    def shown_transfer(self) -> Transfer:
        """`first_transfer` as tables show it."""
        return self.shown.copies[0]

    @property
    def path(self) -> Path | None:
        return self.transfer.path if self.transfer else None

    @property
    def base(self) -> Path | None:
        """The path with its memories as they are by default."""
        if self.transfer is None:
            return None
        path = self.transfer.path
        source = msgspec.structs.replace(path.source, variant={})
        return Path(source, msgspec.structs.replace(path.destination, variant={}), path.executor)

    @property
    def is_default(self) -> bool:
        return self.base is not None and self.text == str(self.base)

    @property
    def difference(self) -> str:
        """What is not as by default on the path: ``[api=sync]``, ``to device[from=pool]``."""
        if self.transfer is None or self.is_default:
            return ""
        path = self.transfer.path
        parts = [
            f"{word} {memory.kind}{format_settings(memory.variant)}"
            for word, memory in (("from", path.source), ("to", path.destination))
            if memory.variant
        ]
        parts.append(format_settings(self.transfer.parameters))
        parts += [f"as {layout}"] if (layout := self.transfer.layout) else []
        parts += [f"({self.workload.cache})"] if self.workload.cache != "warm" else []
        return with_units(" ".join(filter(None, parts)))

    @cached_property
    def family(self) -> str:
        if self.workload.kind == "operation":
            return "operations"
        if self.workload.kind == "collective":
            return COLLECTIVES
        executors = (each.path.executor for each in self.workload.transfers)
        is_load = any(DECLARED.executor(each).bystander for each in executors)
        if is_load or bystander_of(self.points[-1].workload, DECLARED) is not None:
            return BYSTANDERS
        if self.transfer is None:
            two = len(self.workload.transfers) == 2 and " <-> " in self.name
            return "bidirectional" if two else "concurrent"
        source, destination = self.transfer.path.places
        kinds = (source.kind, destination.kind)
        if "file" in kinds:
            return "files"
        if DECLARED.is_between_ranks(self.transfer.path):
            nodes, memory = self.points[0].nodes, memory_of(self.transfer.path, DECLARED)
            of_nodes = f"{BETWEEN_RANKS} of {nodes}" if nodes else BETWEEN_RANKS
            return f"{of_nodes}, {memory}" if memory else of_nodes
        same = source == destination
        if kinds == ("numa", "numa"):
            return FAMILIES[4 if same else 5]
        return _BY_KINDS.get(kinds, FAMILIES[2 if same else 3])


def curves_of(points: Iterable[Point]) -> tuple[Curve, ...]:
    """The curves that were measured at any size, in the order of their first points."""
    found = grouped((point.curve, point) for point in points).values()
    curves = (Curve(tuple(sorted(own, key=lambda point: point.bytes))) for own in found)
    return tuple(curve for curve in curves if curve.measured)


def by_family(curves: Iterable[Curve]) -> list[Curve]:
    """Sorted by family, and by text within it."""
    return sorted(curves, key=lambda curve: (FAMILIES.index(curve.family), curve.text))


def by_text(curves: Iterable[Curve]) -> dict[str, Curve]:
    return {curve.text: curve for curve in curves}
