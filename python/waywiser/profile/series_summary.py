"""A series in short: the median of each block with its interval, and why other visits have none.

Comparisons and fleets read these; `waywiser.profile.series_frame` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.profile.block import standard_error
from waywiser.stats.order import Interval
from waywiser.words import Value, Workload
from waywiser.words.records import Failure


class BlockSummary(Value, frozen=True):
    """One visit that has samples that count. Seconds."""

    block: int
    median: float
    interval: Interval | None = None
    """The median's 95 % interval within the block; None if there is none."""
    count: int = 0
    """Samples that count."""
    deviation: float = 0.0
    """Relative standard deviation of samples that are too few for an interval, or of those that
    another tool did not keep, times √τ if they depend on each other (`waywiser.stats.dependence`);
    0 if it is not known, or if there is an interval."""
    shift: float = 0.0
    """The relative size of a level that shifted among the samples and returned
    (`waywiser.stats.level_shift`); the interval has it."""
    of_independent: float | None = None
    """The standard error of the median of independent samples with these values; None if they are
    too few for an interval."""

    @property
    def standard_error(self) -> float:
        """That of the median by the samples alone, as a fraction of it; 0 if it is not known."""
        return standard_error(self.median, self.interval, self.deviation, self.count)

    @property
    def independent_error(self) -> float:
        """The standard error that independent samples would have: the least by which processes
        differ."""
        return self.standard_error if self.of_independent is None else self.of_independent


class SeriesSummary(Value, frozen=True):
    """One series: its workload, its blocks that were measured, and the failures of the others."""

    workload: Workload
    blocks: tuple[BlockSummary, ...]
    failures: tuple[Failure, ...]
    """Reasons of visits that failed or were skipped."""
    identity: str
    """That of the workload, as its text and curve: files have them, and to make them takes long."""
    text: str
    curve: str

    @classmethod
    def of(
        cls,
        workload: Workload,
        blocks: Sequence[BlockSummary] = (),
        failures: Sequence[Failure] = (),
    ) -> SeriesSummary:
        """The summary of a workload in memory."""
        return cls(workload, tuple(blocks), tuple(failures),
                   workload.identity, str(workload), workload.curve)  # fmt: skip

    @property
    def bytes(self) -> int:
        return self.workload.bytes
