"""What one visit says: the estimate of one block, from samples of one process."""

from __future__ import annotations

from math import isnan

from waywiser.records import BELOW_RESOLUTION, SUMMARY, VOID, Samples, Visit
from waywiser.stats import resolution
from waywiser.stats.order import CONFIDENCE, Interval, median, median_interval, quantiles
from waywiser.stats.outliers import OutlierCount, count_outliers
from waywiser.stats.spread import drift, farthest, spread
from waywiser.words import Stop, Value

SHOWN_QUANTILES = (0.0, 0.05, 0.25, 0.75, 0.95, 1.0)
_FIRST_QUARTILE = SHOWN_QUANTILES.index(0.25)
"""Where in them it is; the third is next."""
QUANTILE_NAMES = tuple(f"p{probability * 100:g}" for probability in SHOWN_QUANTILES)


class BlockEstimate(Value, frozen=True):
    """The median of one block and how its samples lie: seconds, and fractions of the median."""

    block: int
    stop: Stop
    count: int
    """Samples that count."""
    void: int
    below_resolution: int
    median: float
    interval: Interval | None
    """Within the process; None under 6 samples; never narrower than a tick of the clock."""
    tick: float
    """Seconds that the clock can tell apart, per repetition."""
    host_median: float | None
    """From call to completion, as an application sees it; None where it was not taken."""
    host_interval: Interval | None
    quantiles: dict[str, float] | None
    """``p0`` to ``p100``; None where repetitions were batched, since a mean of several has none."""
    spread: float
    farthest: float
    drift: float
    outliers: OutlierCount
    summary: bool = False
    """A sample is another tool's mean or median (`SUMMARY`): there is no interval."""
    transfers: tuple[float, ...] = ()
    """Of several transfers: the median of each one's own time, in the workload's order; empty where
    there is one, and where they were not timed."""


def counted(samples: Samples) -> list[int]:
    """Positions of the samples that count: those that are not void."""
    if not samples.flags:
        return list(range(len(samples)))
    return [n for n, flags in enumerate(samples.flags) if not flags & VOID]


def without_void(samples: Samples) -> Samples:
    """Those that count."""
    if not any(samples.flags):
        return samples
    kept = counted(samples)
    if len(kept) == len(samples):
        return samples
    columns = {name: getattr(samples, name) for name in samples.__struct_fields__}
    return Samples(**{name: tuple(c[n] for n in kept) if c else () for name, c in columns.items()})


def estimate_block(visit: Visit, confidence: float = CONFIDENCE) -> BlockEstimate | None:
    """None where the visit has no sample that counts."""
    samples = without_void(visit.samples)
    if not len(samples):
        return None
    spans, flags = samples.span, samples.flags if any(samples.flags) else ()
    batches = samples.repetitions or (1,) * len(spans)
    host = sorted(time for time in samples.host if not isnan(time))
    ordered = sorted(spans)  # what is in order is sorted again in no time
    middle = median(ordered)
    tick = resolution.tick(spans, batches, visit.mode)
    summary = any(flag & SUMMARY for flag in flags)
    interval = None if summary else median_interval(ordered, confidence)
    if interval is not None:
        interval = resolution.at_least(interval, middle, tick)
    shown = quantiles(ordered, SHOWN_QUANTILES)
    quartiles = shown[_FIRST_QUARTILE], shown[_FIRST_QUARTILE + 1]
    return BlockEstimate(
        block=visit.block,
        stop=visit.stop,
        count=len(samples),
        void=len(visit.samples) - len(samples),
        below_resolution=sum(bool(flag & BELOW_RESOLUTION) for flag in flags),
        median=middle,
        interval=interval,
        tick=tick,
        host_median=median(host) if host else None,
        host_interval=None if summary else median_interval(host, confidence),
        quantiles=None
        if summary or max(batches) > 1
        else dict(zip(QUANTILE_NAMES, shown, strict=True)),
        spread=spread(quartiles, middle),
        farthest=farthest(ordered, middle),
        drift=drift(spans),
        outliers=count_outliers(ordered, quartiles),
        summary=summary,
        transfers=_of_transfers(samples, len(visit.workload.transfers)),
    )


def _of_transfers(samples: Samples, transfers: int) -> tuple[float, ...]:
    if transfers < 2:
        return ()
    timed = [seconds for seconds in samples.transfers if len(seconds) == transfers]
    return tuple(median(each) for each in zip(*timed, strict=True))
