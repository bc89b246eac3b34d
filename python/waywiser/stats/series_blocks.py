"""A series with the statistics of its blocks, whose samples are no longer needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.records import Series
from waywiser.stats.block import BlockEstimate, estimate_block


class SeriesBlocks(NamedTuple):
    """The visits of a series may come without their samples."""

    series: Series
    taken: Sequence[int]
    """The number of samples of each visit, void ones included."""
    blocks: Sequence[BlockEstimate | None]
    """The statistics of each visit; None if it has no sample that counts."""

    @classmethod
    def of(cls, series: Series) -> SeriesBlocks:
        """The statistics of a series with its samples."""
        visits = series.visits
        return cls(series, [len(v.samples) for v in visits], [estimate_block(v) for v in visits])
