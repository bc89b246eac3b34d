"""A series with the statistics of its blocks, whose samples are no longer needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from waywiser.records import Series
from waywiser.series.block import BlockEstimate


class SeriesBlocks(NamedTuple):
    """The visits of a series may come without their samples."""

    series: Series
    taken: Sequence[int]
    """The number of samples of each visit, void ones included."""
    blocks: Sequence[BlockEstimate | None]
    """The statistics of each visit; None if it has no sample that counts."""
