"""Figures of other tools that no hardware reaches."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.exchange.imports.foreign_file import ForeignSeries
from waywiser.words import format_rate

MOST_OF_LINK = 20e12
"""Bytes per second between two places: several times an NVLink of the sixth generation."""

MOST_OF_MEMORY = 200e12
"""Bytes per second within a place, or among several: several times the cache of any GPU."""


def with_warning(series: ForeignSeries) -> ForeignSeries:
    """The series, with a note if it states a bandwidth that nothing can carry."""
    beyond = max(_beyond(series), default=0.0)
    if not beyond:
        return series
    note = (
        f"{format_rate(beyond)} GB/s is more than any link or memory carries: its unit or its "
        "figure is wrong, or nothing was copied"
    )
    return series.noted(note)


def _beyond(series: ForeignSeries) -> Iterator[float]:
    transfers = series.workload.transfers
    for n, span in enumerate(series.samples.span):
        each = series.samples.transfers[n] if series.samples.transfers else ()
        for at, transfer in enumerate(transfers):
            seconds = each[at] if at < len(each) else span
            is_link = len({str(place) for place in transfer.path.places}) == 2
            most = MOST_OF_LINK if is_link else MOST_OF_MEMORY
            if seconds > 0 and transfer.bytes / seconds > most:
                yield transfer.bytes / seconds
