"""Measured workloads as models read them: the seconds of each process, and of each transfer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TypeVar

from waywiser.model.alone import SampledCurve
from waywiser.profile import BlockEstimate, BlockSummary, SeriesFrame
from waywiser.stats import are_outliers, median
from waywiser.stats.method_choice import TOLERANCE
from waywiser.words import Value, Workload


class TimedSet(Value, frozen=True):
    """Transfers that started together, as measured."""

    workload: Workload
    spans: tuple[float, ...]
    """Median seconds from the common start to the last end, by process."""
    transfers: tuple[tuple[float, ...], ...] = ()
    """Median seconds of each transfer from its own start, by process; empty if they were not
    timed."""
    blocks: tuple[int, ...] = ()
    """The number of each process in its survey; empty if it is not known."""

    @property
    def span(self) -> float:
        """The median over processes."""
        return median(self.spans)

    @property
    def transfer_seconds(self) -> tuple[float, ...]:
        """The median over processes of each transfer's time; empty if they were not timed."""
        return tuple(median(each) for each in zip(*self.transfers, strict=True))

    @property
    def has_host(self) -> bool:
        """Whether memory of the host is an end: sets over it differ more between processes."""
        return any(place.kind != "gpu" for place in self.workload.places)

    @property
    def is_one_after_another(self) -> bool:
        """Whether no two transfers overlapped, in any process."""
        return bool(self.transfers) and all(
            sum(own) <= span * (1 + TOLERANCE) and max(own) <= span * (1 - TOLERANCE)
            for own, span in zip(self.transfers, self.spans, strict=True)
        )

    @property
    def deviations(self) -> tuple[float, ...]:
        """The logarithm of each span minus their mean."""
        logs = [math.log(span) for span in self.spans]
        mean = fmean(logs)
        return tuple(log - mean for log in logs)

    @property
    def squares(self) -> float:
        """The sum of the squares of `deviations`."""
        return sum(each**2 for each in self.deviations)


Block = TypeVar("Block", BlockEstimate, BlockSummary)


def usual_blocks(blocks: Sequence[Block]) -> list[Block]:
    """Those of the processes that are no outliers."""
    flags = are_outliers([math.log(block.median) for block in blocks])
    return [block for block, is_outlier in zip(blocks, flags, strict=True) if not is_outlier]


def timed(frame: SeriesFrame) -> tuple[list[TimedSet], list[TimedSet]]:
    """(single transfers, sets of several) of a frame with a bandwidth, in their order.

    Processes that are outliers are not used. Collectives, messages of ranks, transfers into one
    shared buffer, and those that start from another cache state are skipped: they have limits of
    their own.
    """
    singles: list[TimedSet] = []
    sets: list[TimedSet] = []
    for known in frame.series_blocks():
        workload = known.series.workload
        blocks = [block for block in known.blocks if block is not None and block.median > 0]
        usable = workload.cache == "warm" and not workload.shared and workload.rated_bytes > 0
        usable = usable and bool(workload.copies) and not workload.is_of_ranks
        if not blocks or not usable or any(block.summary for block in blocks):
            continue
        used = usual_blocks(blocks)
        own = tuple(block.transfers for block in used) if all(b.transfers for b in used) else ()
        numbers = tuple(block.block for block in used)
        found = TimedSet(workload, tuple(block.median for block in used), own, numbers)
        (sets if workload.kind == "set" else singles).append(found)
    return singles, sets


def sampled_curves(singles: Iterable[TimedSet]) -> dict[str, SampledCurve]:
    """The curve of each transfer, by its text without size."""
    points: dict[str, dict[int, float]] = {}
    for each in singles:
        (transfer,) = each.workload.transfers
        points.setdefault(transfer.way, {})[transfer.bytes] = each.span
    return {
        way: SampledCurve(tuple(sorted(known)), tuple(known[size] for size in sorted(known)))
        for way, known in points.items()
    }
