"""Whether the host memory of a visit was on the side of its GPUs, and whether that mattered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from waywiser.records import Visit
from waywiser.series.block import BlockEstimate
from waywiser.series.doubts import DIFFERENCE_LIMIT
from waywiser.series.locality import Sides
from waywiser.stats.order import median

Nearness = Literal["near", "far", "mixed", ""]


def nearness(visit: Visit, sides: Sides | None) -> Nearness:
    """Of the visit's transfers between host memory and a GPU; empty where that is not known."""
    if sides is None:
        return ""
    found = set(_near(visit, sides))
    if len(found) > 1:
        return "mixed"
    return "" if not found else ("near" if found.pop() else "far")


def _near(visit: Visit, sides: Sides) -> Iterator[bool]:
    if len(visit.buffers) != 2 * len(visit.workload.transfers):
        return
    if not any(buffer.gpu_seconds for buffer in visit.buffers):
        return  # as of most visits of most surveys
    for n, transfer in enumerate(visit.workload.transfers):
        ends = (transfer.path.source, transfer.path.destination)
        groups = [sides.group_of(m.place.index) for m in ends if m.place.kind == "gpu"]
        buffers = visit.buffers[2 * n : 2 * n + 2]
        known = [side for buffer in buffers if (side := sides.side_of(buffer)) is not None]
        if len(groups) == len(known) == 1:
            yield groups[0] == known[0]


def near_and_far(where: Mapping[int, Nearness], blocks: Iterable[BlockEstimate]) -> str:
    """How near and far blocks of a series differ, in one line; empty where it has not both, or
    they differ by less than `DIFFERENCE_LIMIT`. ``where`` is the nearness of each block."""
    medians: dict[str, list[float]] = {"near": [], "far": []}
    for each in blocks:
        if where.get(each.block, "") in medians:
            medians[where[each.block]].append(each.median)
    if not (medians["near"] and medians["far"]):
        return ""
    near, far = median(medians["near"]), median(medians["far"])
    if abs(far / near - 1) < DIFFERENCE_LIMIT:
        return ""
    return f"with its memory on the far side it takes {far / near - 1:+.1%}"
