"""The rate of each transfer of a workload, beside that of the whole (methodology 11)."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.records import Series
from waywiser.stats.block import VOID
from waywiser.stats.order import median


def transfer_rates(series: Series) -> Iterator[float]:
    """Bytes per second of each transfer over the median of its own times, in the workload's order.

    Nothing for one transfer, for an operation, and where no sample counts.
    """
    transfers = series.workload.transfers
    if len(transfers) < 2:
        return
    samples = [
        seconds
        for visit in series.visits
        for seconds, flags in zip(visit.samples.transfers, visit.samples.flags, strict=False)
        if not flags & VOID and len(seconds) == len(transfers)
    ]
    for transfer, seconds in zip(transfers, zip(*samples, strict=True), strict=False):
        middle = median(list(seconds))
        if middle > 0:
            yield transfer.bytes / middle
