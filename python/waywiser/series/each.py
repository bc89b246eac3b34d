"""The rate of each transfer of a workload, beside that of the whole (methodology 11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.series.block import BlockEstimate
from waywiser.stats.order import median
from waywiser.words import Workload


def transfer_rates(workload: Workload, blocks: Sequence[BlockEstimate]) -> Iterator[float]:
    """Bytes per second of each transfer over the median of its own times, in the workload's order:
    as for the whole, the median of the blocks' medians.

    Nothing for one transfer, for an operation, and where no sample counts.
    """
    times = [block.transfers for block in blocks if block.transfers]
    for transfer, seconds in zip(workload.transfers, zip(*times, strict=True), strict=False):
        middle = median(seconds)
        if middle > 0:
            yield transfer.bytes / middle
