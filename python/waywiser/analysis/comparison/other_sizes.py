"""Curves of which two sides have no large size in common: one side's plateau at the other's size.

From some size on a bandwidth no longer grows. So the time of a curve that is on its plateau gives
that of any larger size: as much longer as the bytes are more. Nothing else is taken from another
size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec.structs import replace

from waywiser.analysis.comparison.part_change import OtherSize, equivalence_class
from waywiser.analysis.comparison.path_parts import Summaries
from waywiser.curves import Point, regime_of
from waywiser.stats import median
from waywiser.words import Workload, grouped

PLATEAU = 0.02
"""Bandwidths of a plateau differ by less, as a fraction, and beyond it they grow by less: less than
a change that matters (`waywiser.stats.decision.THRESHOLD`)."""

NEAR = 4
"""Sizes this far apart, as a factor, show whether caches hold a share of the bytes."""


def at_common_sizes(
    before: Summaries, after: Summaries
) -> tuple[Summaries, Summaries, Mapping[str, OtherSize]]:
    """Both sides, and of each curve without a large size in common the plateau of one side at the
    largest size of the other; and what was moved so, by identity. A curve that is on no plateau, or
    above the other's sizes, stays as it is."""
    if before.keys() == after.keys():  # as of the nights of a node
        return before, after, {}
    curves = _Curves(before), _Curves(after)
    sides: tuple[dict[str, Sequence[tuple[int, Point]]], ...] = {}, {}
    moved: dict[str, OtherSize] = {}
    for curve in curves[0].series.keys() & curves[1].series.keys():
        pair = next(_pairs(curve, curves), None)
        if pair is None:
            continue
        side, own, target = pair
        scale = target.bytes / own.bytes
        sides[side][target.identity] = [
            (number, _moved(each, target.workload, scale))
            for number, each in curves[side].found[own.identity]
        ]
        moved[target.identity] = _other_size(side, own.workload, target.workload)
    return {**before, **sides[0]}, {**after, **sides[1]}, moved


def _other_size(side: int, plateau: Workload, other: Workload) -> OtherSize:
    on_plateau, beside = largest_bytes(plateau), largest_bytes(other)
    if side == 0:
        return OtherSize(on_plateau, beside, "before")
    return OtherSize(beside, on_plateau, "now")


def _pairs(curve: str, curves: tuple[_Curves, _Curves]) -> Iterator[tuple[int, Point, Point]]:
    """Yields (the side on a plateau, its series, that of the other side), of the side with more
    sizes first."""
    sizes = [side.series[curve] for side in curves]
    common = sizes[0].keys() & sizes[1].keys()
    if any(regime_of(sizes[0][size].workload) == "bandwidth" for size in common):
        return
    for side in sorted((0, 1), key=lambda each: -len(sizes[each])):
        start, largest = curves[side].plateau(curve), max(sizes[1 - side])
        if start is None or largest < start:
            continue
        own = [size for size in sizes[side] if size >= start]
        if not own:
            continue
        counts = {size: curves[side].processes(sizes[side][size]) for size in own}
        best = min(own, key=lambda size: (-counts[size], abs(math.log(size / largest)), size))
        pair = sizes[side][best], sizes[1 - side][largest]
        are_large = all(regime_of(each.workload) == "bandwidth" for each in pair)
        if (are_large or not common) and _are_in_proportion(*(each.workload for each in pair)):
            yield side, *pair


def _are_in_proportion(one: Workload, other: Workload) -> bool:
    """Whether all transfers of one have as many times the bytes of those of the other."""
    first = one.transfers[0].bytes, other.transfers[0].bytes
    pairs = zip(one.transfers, other.transfers, strict=True)
    return all(a.bytes * first[1] == b.bytes * first[0] for a, b in pairs)


def _moved(series: Point, workload: Workload, scale: float) -> Point:
    return Point.of(workload, [replace(x, median=x.median * scale) for x in series.blocks])


class _Curves:
    """The curves of one side, of which bytes were measured."""

    def __init__(self, found: Summaries) -> None:
        self.found = found
        self.series: dict[str, dict[int, Point]] = {}
        """By curve, and by the bytes of the largest transfer, ascending."""
        measured = [
            next((each for _, each in numbered if each.blocks), None) for numbered in found.values()
        ]
        known = [each for each in measured if each is not None and _has_bandwidth(each.workload)]
        for each in sorted(known, key=lambda series: largest_bytes(series.workload)):
            size = largest_bytes(each.workload)
            self.series.setdefault(each.curve, {}).setdefault(size, each)
        self._starts: dict[str, tuple[bool, int | None]] = {}

    @cached_property
    def _equivalent(self) -> dict[str, list[str]]:
        return grouped((equivalence_class(curve), curve) for curve in self.series)

    def plateau(self, curve: str) -> int | None:
        """The bytes of the largest transfer from which on the curve is on its plateau; None if
        nothing shows one. If its own sizes say nothing, those of equivalent paths do, and of a set
        those of all its transfers: to begin them takes no larger share of its time."""
        for like in (curve, *self._equivalent[equivalence_class(curve)]):
            says, start = self._start(like)
            if says:
                return start
        first = next(iter(self.series[curve].values())).workload
        members = {transfer.way for transfer in first.transfers} - {curve}
        starts = [self.plateau(way) if way in self.series else None for way in members]
        known = [start for start in starts if start is not None]
        return max(known) if known and len(known) == len(starts) else None

    def _start(self, curve: str) -> tuple[bool, int | None]:
        if curve not in self._starts:
            self._starts[curve] = self._found_start(curve)
        return self._starts[curve]

    def _found_start(self, curve: str) -> tuple[bool, int | None]:
        """(whether the sizes of a curve say if it is on a plateau, where that begins)."""
        sizes = self.series[curve]
        largest = max(sizes)
        below = [size for size in sizes if 2 * size <= largest]
        if not below or (NEAR * below[-1] < largest and not _is_link(sizes[largest].workload)):
            return False, None
        seconds = {size: self._seconds(series) for size, series in sizes.items()}
        added = (seconds[largest] - seconds[below[-1]]) / (largest - below[-1])
        if added <= 0 or abs(seconds[largest] / largest / added - 1) > PLATEAU:
            return True, None
        rates = {size: size / each for size, each in seconds.items()}
        start = largest
        for size in sorted(sizes, reverse=True):
            if abs(rates[size] / rates[largest] - 1) > PLATEAU:
                break
            start = size
        return True, start

    def processes(self, series: Point) -> int:
        """Those that measured it, in all files."""
        return sum(len(each.blocks) for _, each in self.found[series.identity])

    def _seconds(self, series: Point) -> float:
        """The median over all processes of all files."""
        numbered = self.found[series.identity]
        return median([block.median for _, each in numbered for block in each.blocks])


def largest_bytes(workload: Workload) -> int:
    """The bytes of its largest transfer; 0 for an operation."""
    return max((transfer.bytes for transfer in workload.transfers), default=0)


def _has_bandwidth(workload: Workload) -> bool:
    """Whether its bytes set its time: not of an operation, and not if pages are touched here and
    there."""
    return bool(largest_bytes(workload)) and not any(each.is_sparse for each in workload.transfers)


def _is_link(workload: Workload) -> bool:
    """Whether its bytes go over a link of a GPU or a network, so that no cache makes smaller sizes
    faster."""
    ends = [[end.place for end in transfer.path.ends] for transfer in workload.transfers]
    kinds = [{place.kind for place in each} for each in ends]
    return all(a != b for a, b in ends) and all({"gpu", "rank"} & each for each in kinds)
