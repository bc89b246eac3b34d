"""What one visit says, in short and with all that reports show: one block, from samples of one
process.

`waywiser.profile.series_frame` makes the estimates of all blocks at once.
"""

from __future__ import annotations

import math

import msgspec

from waywiser.stats import Interval
from waywiser.words import VOID, Samples, Stop, Value

SHOWN_QUANTILES = (0.0, 0.05, 0.25, 0.75, 0.95, 1.0)
QUANTILE_NAMES = tuple(f"p{probability * 100:g}" for probability in SHOWN_QUANTILES)


STANDARD_ERRORS = 1.96
"""Standard errors on either side of a median that its 95 % interval has."""

OF_MEDIAN = 1.2533
"""Deviation of the median of normal samples, over that of their mean."""


class OutlierCount(Value, frozen=True, gc=False):
    """How many samples lie beyond the fences, on either side. They are shown, never dropped (Tukey,
    "Exploratory Data Analysis", 1977)."""

    mild: int = 0
    severe: int = 0


class Slowdown(Value, frozen=True, gc=False):
    """How many times as long as alone a transfer of a sustained workload takes."""

    median: float
    interval: Interval | None = None
    """The 95 % interval of the median; None if there are too few samples for one."""


class BlockSummary(Value, frozen=True, gc=False):
    """One visit in short: the median of a process in seconds, and how well it is known."""

    block: int
    median: float
    standard_error: float = 0.0
    """That of the median by the samples alone, as a fraction of it: by its 95 % interval; without
    one by the standard deviation of samples that are too few for an interval, or of those that
    another tool did not keep, times √τ if they depend on each other (`waywiser.stats.dependence`);
    0 if it is not known."""
    count: int = 0
    """Samples that count."""
    has_interval: bool = False
    shift: float = 0.0
    """The relative size of a level that shifted among the samples and returned
    (`waywiser.stats.level_shift`); the interval has it."""
    independent_error: float | None = None
    """The standard error that independent samples would have, the least by which processes differ;
    None if they are too few for an interval: then it is the same."""


class BlockEstimate(Value, frozen=True, gc=False):
    """The median of one block and how its samples lie: seconds, and fractions of the median."""

    block: int
    stop: Stop
    count: int
    """Samples that count."""
    void: int
    below_resolution: int
    median: float
    interval: Interval | None
    """Within the process; None under 6 samples, and if they may be fewer than ten autocorrelation
    times; never narrower than a tick of the clock."""
    tick: float
    """Seconds that the clock can resolve, per repetition."""
    host_median: float | None
    """Seconds from call to completion, as an application sees it; None if it was not taken."""
    host_interval: Interval | None
    quantiles: dict[str, float] | None
    """``p0`` to ``p100``; None if repetitions were batched, since a mean of several has none."""
    spread: float
    """The interquartile range over the median."""
    largest_deviation: float
    drift: float
    outliers: OutlierCount
    autocorrelation_time: float = 1.0
    """How many samples say as much as an independent one (`waywiser.stats.dependence`)."""
    summary: bool = False
    """A sample is another tool's mean or median (`SUMMARY`): there is no interval."""
    transfers: tuple[float, ...] = ()
    """The median of each of several transfers' own time, in the workload's order; empty if there is
    one, or if they were not timed."""
    slowdowns: tuple[Slowdown, ...] | msgspec.UnsetType = msgspec.UNSET
    """The slowdowns of the transfers of a sustained workload; not set for everything else."""

    @property
    def deviation(self) -> float:
        """Standard error of the median by the samples alone, as a fraction of it."""
        # Of samples too few for an interval the middle half spans about a standard deviation.
        independent = self.count / self.autocorrelation_time
        return standard_error(self.median, self.interval, self.spread, independent)


def standard_error(
    median: float, interval: Interval | None, deviation: float, count: float
) -> float:
    """The standard error of a median, as a fraction of it: by its interval; without one, by the
    relative standard deviation of ``count`` independent samples."""
    if interval is None:
        return OF_MEDIAN * deviation / math.sqrt(max(count, 1))
    return interval.width / 2 / STANDARD_ERRORS / median


def counted(samples: Samples) -> list[int]:
    """Positions of the samples that count: those that are not void."""
    if not samples.flags:
        return list(range(len(samples)))
    return [n for n, flags in enumerate(samples.flags) if not flags & VOID]
