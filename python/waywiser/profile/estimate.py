"""What a series says: its estimate over blocks.

Samples of one process are not independent, so replicates are blocks (Hoefler & Belli, SC'15):

    1 block      median and interval of that block                           within process
    2-5 blocks   median of the blocks' medians; the hull of their intervals  within process
    6 and more   median of the blocks' medians; order statistics over them   between processes
    a summary    median of the blocks' medians; no interval, however many blocks there are

A process that is an outlier of its survey is not used, as in comparisons
(`waywiser.stats.noise_model`). It stays among the blocks, and a quality flag counts it. The median
over all processes is a little on its side of that over the others. So the interval reaches further
there, by the share of outliers in its width.

The hull is conservative for what was seen and promises nothing for a further process: with fewer
than six blocks no 95 % interval over blocks exists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress
from operator import not_
from typing import Literal, TypeVar

import msgspec

from waywiser.machine import Bound, Machine, bound
from waywiser.profile.block import BlockEstimate, Slowdown
from waywiser.profile.quality_flags import TARGET, QualityFlag, quality_flags
from waywiser.profile.rows import VisitRow
from waywiser.profile.series_frame import SeriesBlocks, SeriesFrame
from waywiser.stats import (
    INTERVAL_SAMPLES,
    Interval,
    are_outliers,
    median,
    median_interval,
    relative,
)
from waywiser.stats.order import at_least
from waywiser.words import Series, Stop, Value, Visit

V = TypeVar("V", bound=Visit | VisitRow)

Kind = Literal["within process", "between processes"]

STOPS: tuple[Stop, ...] = ("converged", "limit", "budget", "failed")
"""Reasons to stop, from the best to the worst; a series shows the worst of its blocks."""


class Rate(Value, frozen=True):
    """Bytes per second at the median time, with the interval if the time has one. Rates are never
    averaged (Hoefler & Belli, rule 3)."""

    value: float
    interval: Interval | None = None


class Estimate(Value, frozen=True):
    """The median time of one execution of a workload, and how far it is to be trusted."""

    median: float
    """Seconds."""
    interval: Interval | None
    """Seconds, of the median; None if there are too few samples for one."""
    kind: Kind
    """What the interval is about."""
    host_median: float | None
    """Seconds from call to completion, as an application sees it: never less than `median`. None
    if it was not taken, or if the executions that it was taken of were shorter."""
    host_interval: Interval | None
    rate: Rate | None
    """None for an operation, and where a range is touched only here and there."""
    count: int
    """Samples that count, in all blocks."""
    void: int
    blocks: tuple[BlockEstimate, ...]
    """All blocks that have samples that count, outliers too."""
    stop: Stop
    """The worst over all visits, failed ones included and skipped ones left out."""
    converged: bool
    quality_flags: tuple[QualityFlag, ...]
    outliers: tuple[int, ...] = ()
    """Numbers of the blocks that are outliers: all figures above are without them."""

    @property
    def used(self) -> tuple[BlockEstimate, ...]:
        """The blocks without outliers."""
        return tuple(block for block in self.blocks if block.block not in self.outliers)

    @property
    def slowdowns(self) -> tuple[Slowdown, ...]:
        """How many times as long as alone each transfer of a sustained workload takes; empty for
        everything else. Over blocks as the time itself."""
        known = [each.slowdowns for each in self.used if each.slowdowns is not msgspec.UNSET]
        found = []
        for blocks in zip(*known, strict=True):
            medians = [each.median for each in blocks]
            _, interval = _interval(medians, [each.interval for each in blocks], 0.0)
            found.append(Slowdown(median(medians), interval))
        return tuple(found)

    @property
    def summary(self) -> bool:
        """A block is another tool's mean or median: there is no interval, and none can be made."""
        return any(block.summary for block in self.blocks)

    @property
    def is_dependent(self) -> bool:
        """There is no interval because the samples of a process may depend on each other."""
        enough = all(block.count >= INTERVAL_SAMPLES for block in self.used)
        return self.interval is None and not self.summary and enough

    @property
    def relative(self) -> float | None:
        """Half the interval's width over the median; of the rate as well."""
        return relative(self.median, self.interval)

    @property
    def seen_median(self) -> float:
        """Seconds from call to completion; those of the transfer if these are not known. Methods
        are ranked by it: it is the same clock for all."""
        return self.median if self.host_median is None else self.host_median

    @property
    def seen_interval(self) -> Interval | None:
        """The interval of `seen_median`."""
        return self.interval if self.host_median is None else self.host_interval

    @property
    def seen_relative(self) -> float | None:
        """Half the width of `seen_interval` over `seen_median`."""
        return relative(self.seen_median, self.seen_interval)

    @property
    def host_relative(self) -> float | None:
        """The same of what the application sees."""
        return relative(self.host_median or 0.0, self.host_interval)


def estimate(series: Series, machine: Machine | None = None) -> Estimate | None:
    """Returns None if no visit has a sample that counts: see `Series.failure` for the reason.

    ``machine`` is used for flags about links.
    """
    (known,) = SeriesFrame.of([series]).series_blocks()
    best = bound(machine, series.workload) if machine is not None else None
    return estimate_of(known, machine, best)


def _interval_of(
    used: Sequence[BlockEstimate], outliers: Sequence[BlockEstimate]
) -> tuple[Kind, Interval | None]:
    """`_interval` of blocks; None if one of them is a summary of another tool."""
    kind, interval = _interval(
        [block.median for block in used],
        [block.interval for block in used],
        max(block.tick for block in used),
        [block.median for block in outliers],
    )
    return kind, None if any(block.summary for block in used) else interval


def estimate_of(
    known: SeriesBlocks, machine: Machine | None, best: Bound | None
) -> Estimate | None:
    """`estimate` from the statistics of blocks, with the bound of the workload on the machine.

    Void samples are left out and counted; a block that took no time at all, which no clock here
    measures and a damaged file may have, is ignored.
    """
    series = known.series
    blocks = tuple(block for block in known.blocks if block is not None and block.median > 0)
    if not blocks:
        return None
    flags = are_outliers([math.log(block.median) for block in blocks])
    used = tuple(compress(blocks, map(not_, flags)))
    outliers = tuple(compress(blocks, flags))
    middle = median([block.median for block in used])
    kind, interval = _interval_of(used, outliers)
    converged = _has_converged(series.visits, kind, interval, middle)
    host_median, host_interval = _seen_by_host(used, outliers, middle, interval)
    return Estimate(
        median=middle,
        interval=interval,
        kind=kind,
        host_median=host_median,
        host_interval=host_interval,
        rate=rate(series.workload.rated_bytes, middle, interval),
        count=sum(block.count for block in blocks),
        void=sum(block.void for block in blocks),
        blocks=blocks,
        stop=worst_stop(series.visits),
        converged=converged,
        quality_flags=quality_flags(series, used, converged, machine, best, outliers),
        outliers=tuple(block.block for block in outliers),
    )


def _has_converged(
    visits: Sequence[Visit], kind: Kind, interval: Interval | None, middle: float
) -> bool:
    """Whether sampling reached its target, or the processes together do."""
    if all(visit.stop == "converged" for visit in _not_skipped(visits)):
        return True
    if kind != "between processes" or interval is None:
        return False
    return interval.width / 2 <= TARGET * middle


def _seen_by_host(
    used: Sequence[BlockEstimate],
    outliers: Sequence[BlockEstimate],
    middle: float,
    interval: Interval | None,
) -> tuple[float | None, Interval | None]:
    """What the application sees of a series whose transfers take ``middle`` seconds."""
    timed = [block for block in used if block.host_median is not None]
    host = [block.host_median for block in timed if block.host_median is not None]
    if not host:
        return None, None
    beyond = [block.host_median for block in outliers if block.host_median is not None]
    _, host_interval = _interval(host, [block.host_interval for block in timed], 0.0, beyond)
    if any(block.summary for block in timed):
        host_interval = None
    host_median = median(host)
    if host_median < middle:
        return _no_shorter(middle, interval, host_median, host_interval)
    return host_median, host_interval


def rate(bytes: int, seconds: float, interval: Interval | None = None) -> Rate | None:
    """The rate of ``bytes`` in ``seconds``; the longest time gives the low end and the reverse.

    None if nothing is moved or the time is not above 0. An interval that reaches 0 seconds
    bounds no rate, so the rate then has none.
    """
    if bytes <= 0 or seconds <= 0:
        return None
    if interval is None or interval.low <= 0:
        return Rate(bytes / seconds)
    return Rate(bytes / seconds, Interval(bytes / interval.high, bytes / interval.low))


def _no_shorter(
    middle: float, interval: Interval | None, host_median: float, host: Interval | None
) -> tuple[float | None, Interval | None]:
    """What the application sees if that appears to be shorter than the transfer.

    The two are of different executions. If their intervals overlap, the application sees the time
    of the transfer; without intervals, if they differ by less than `TARGET`. Otherwise its
    executions moved less, as those that prefetch resident pages, and say nothing.
    """
    if interval is None or host is None:
        return (middle, None) if host_median > middle * (1 - TARGET) else (None, None)
    if host.high < interval.low:
        return None, None
    return middle, Interval(interval.low, max(interval.high, host.high))


def worst_stop(visits: Sequence[Visit | VisitRow]) -> Stop:
    """Why sampling of a series stopped: the worst of its visits, skipped ones left out."""
    stops = [visit.stop for visit in _not_skipped(visits)]
    return max(stops, key=STOPS.index, default="skipped")


def _not_skipped(visits: Sequence[V]) -> list[V]:
    """A plan that leaves a saturated size out of one block says nothing against the others."""
    return [visit for visit in visits if visit.stop != "skipped"]


def _interval(
    medians: Sequence[float],
    intervals: Sequence[Interval | None],
    width: float,
    outliers: Sequence[float] = (),
) -> tuple[Kind, Interval | None]:
    """The interval over the medians of blocks and their intervals; no narrower than ``width``.
    ``outliers`` are the medians of other blocks, which widen it."""
    between = median_interval(medians)
    if between is not None:
        found = at_least(between, median(medians), width)
        return "between processes", _towards(outliers, found, len(medians))
    known = [interval for interval in intervals if interval is not None]
    if not known or len(known) < len(intervals):
        return "within process", None
    low, high = min(each.low for each in known), max(each.high for each in known)
    return "within process", _towards(outliers, Interval(low, high), len(medians))


def _towards(outliers: Sequence[float], interval: Interval, used: int) -> Interval:
    """The interval, widened on the side of outliers by their share of all processes."""
    slow = sum(each > interval.high for each in outliers)
    fast = sum(each < interval.low for each in outliers)
    step = interval.width / (used + len(outliers))
    return Interval(max(0.0, interval.low - fast * step), interval.high + slow * step)
