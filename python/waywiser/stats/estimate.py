"""What a series says: its estimate over blocks.

Samples of one process are not independent, so replicates are blocks (Hoefler & Belli, SC'15):

    1 block      median and interval of that block                           within process
    2-5 blocks   median of the blocks' medians; the hull of their intervals  within process
    6 and more   median of the blocks' medians; order statistics over them   between processes

The hull is conservative for what was seen and promises nothing for a further process: with fewer
than six blocks no 95 % interval over blocks exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from waywiser.records import Series
from waywiser.stats import resolution
from waywiser.stats.block import BlockEstimate, estimate_block
from waywiser.stats.doubts import Doubt, doubts
from waywiser.stats.order import CONFIDENCE, Interval, median, median_interval
from waywiser.stats.rate import Rate, rate
from waywiser.topology.machine import Machine
from waywiser.words import Stop, Value

TARGET = 0.02
"""Half-width of the interval over the median at which sampling may stop, by default."""

Kind = Literal["within process", "between processes"]

GRAVITY: tuple[Stop, ...] = ("converged", "limit", "budget", "skipped", "failed")
"""Reasons to stop, the best first; a series is told by the worst of its blocks."""


class Estimate(Value, frozen=True):
    """The median time of one execution of a workload, and how far it is to be trusted."""

    median: float
    """Seconds."""
    interval: Interval | None
    """Seconds, of the median; None where there are too few samples for one."""
    kind: Kind
    """What the interval is about."""
    host_median: float | None
    """Seconds from call to completion, as an application sees it."""
    rate: Rate | None
    """None for an operation."""
    count: int
    """Samples that count, in all blocks."""
    void: int
    blocks: tuple[BlockEstimate, ...]
    stop: Stop
    """The worst over all visits, those without samples included."""
    converged: bool
    doubts: tuple[Doubt, ...]

    @property
    def relative(self) -> float | None:
        """Half the interval's width over the median."""
        if self.interval is None or not self.median:
            return None
        return self.interval.width / 2 / self.median


def estimate(
    series: Series, machine: Machine | None = None, target: float = TARGET
) -> Estimate | None:
    """None where no visit has a sample that counts: see `Series.failure` for the reason.

    Void samples are left out and counted. ``machine`` is used for doubts about links; ``target``
    is what the interval between processes has to meet where single blocks did not converge.
    """
    found = (estimate_block(visit) for visit in series.visits)
    blocks = tuple(block for block in found if block is not None)
    if not blocks:
        return None
    middle = median([block.median for block in blocks])
    kind, interval = _interval(blocks, middle)
    converged = all(visit.stop == "converged" for visit in series.visits)
    if kind == "between processes" and interval is not None:
        converged = converged or interval.width / 2 <= target * middle
    host = [block.host_median for block in blocks if block.host_median is not None]
    return Estimate(
        median=middle,
        interval=interval,
        kind=kind,
        host_median=median(host) if host else None,
        rate=rate(series.workload.bytes, middle, interval),
        count=sum(block.count for block in blocks),
        void=sum(block.void for block in blocks),
        blocks=blocks,
        stop=max((visit.stop for visit in series.visits), key=GRAVITY.index),
        converged=converged,
        doubts=doubts(series, blocks, converged, machine),
    )


def _interval(blocks: Sequence[BlockEstimate], middle: float) -> tuple[Kind, Interval | None]:
    between = median_interval([block.median for block in blocks], CONFIDENCE)
    if between is not None:
        width = max(block.tick for block in blocks)
        return "between processes", resolution.at_least(between, middle, width)
    known = [block.interval for block in blocks if block.interval is not None]
    if len(known) < len(blocks):
        return "within process", None
    low, high = min(each.low for each in known), max(each.high for each in known)
    return "within process", Interval(low, high)
