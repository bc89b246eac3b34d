"""The statistics of one visit, one number after another: what arrays of many visits must equal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isnan

import msgspec

from waywiser.profile.block import (
    QUANTILE_NAMES,
    SHOWN_QUANTILES,
    BlockEstimate,
    OutlierCount,
    Slowdown,
)
from waywiser.profile.series_frame import (
    EVENT_TICK_SECONDS,
    HOST_TICK_SECONDS,
    MILD_IQR,
    SAME_SECONDS,
    SEVERE_IQR,
)
from waywiser.stats.order import Interval, at_least, median, median_interval
from waywiser.words.records import BELOW_RESOLUTION, SUMMARY, VOID, Visit


def quantiles(samples: Sequence[float], probabilities: Sequence[float]) -> list[float]:
    """Interpolated between order statistics (type 7)."""
    ordered = sorted(samples)
    found = []
    for probability in probabilities:
        position = probability * (len(ordered) - 1)
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        step = ordered[above] - ordered[below]
        found.append(min(ordered[below] + (position - below) * step, ordered[above]))
    return found


def block_of(visit: Visit) -> BlockEstimate | None:
    """None if the visit has no sample that counts."""
    taken = visit.samples
    every = range(len(taken))
    kept = [n for n in every if not (taken.flags and taken.flags[n] & VOID)]
    if not kept:
        return None
    spans = [taken.span[n] for n in kept]
    batches = [taken.repetitions[n] if taken.repetitions else 1 for n in kept]
    flags = [taken.flags[n] if taken.flags else 0 for n in kept]
    host = [taken.host[n] for n in kept if taken.host and not isnan(taken.host[n])]
    middle, shown = median(spans), quantiles(spans, SHOWN_QUANTILES)
    first, third = quantiles(spans, (0.25, 0.75))
    summary = any(flag & SUMMARY for flag in flags)
    step = _tick(spans, batches, visit.mode == "host")
    interval = None if summary else median_interval(spans)
    width = len(visit.workload.transfers)
    each = [taken.transfers[n] for n in kept] if width > 1 and taken.transfers else []
    timed = [seconds for seconds in each if len(seconds) == width]
    return BlockEstimate(
        block=visit.block,
        stop=visit.stop,
        count=len(kept),
        void=len(taken) - len(kept),
        below_resolution=sum(bool(flag & BELOW_RESOLUTION) for flag in flags),
        median=middle,
        interval=at_least(interval, middle, step) if interval else None,
        tick=step,
        host_median=median(host) if host else None,
        host_interval=None if summary else median_interval(host),
        quantiles=None
        if summary or max(batches) > 1
        else dict(zip(QUANTILE_NAMES, shown, strict=True)),
        spread=(third - first) / middle if middle else 0.0,
        largest_deviation=max(max(spans) - middle, middle - min(spans)) / middle if middle else 0.0,
        drift=_drift(spans),
        outliers=_outliers(spans, Interval(first, third)),
        summary=summary,
        transfers=tuple(median(times) for times in zip(*timed, strict=True)),
        slowdowns=_slowdowns(visit, kept),
    )


def _slowdowns(visit: Visit, kept: Sequence[int]) -> tuple[Slowdown, ...] | msgspec.UnsetType:
    taken = visit.samples
    if not taken.alone:
        return msgspec.UNSET
    pairs = (zip(taken.transfers[n], taken.alone[n], strict=True) for n in kept)
    ratios = zip(*([together / alone for together, alone in pair] for pair in pairs), strict=True)
    return tuple(Slowdown(median(each), median_interval(each)) for each in map(list, ratios))


def _tick(spans: Sequence[float], batches: Sequence[int], by_host: bool) -> float:
    if by_host:
        return HOST_TICK_SECONDS / min(batches)
    whole = sorted(span * batch for span, batch in zip(spans, batches, strict=True))
    steps = [after - before for before, after in pairwise(whole)]
    step = min((step for step in steps if step > SAME_SECONDS), default=EVENT_TICK_SECONDS)
    return step / min(batches)


def _drift(spans: Sequence[float]) -> float:
    half = len(spans) // 2
    first, second = spans[:half], spans[len(spans) - half :]
    before, after = median_interval(first), median_interval(second)
    if before is None or after is None or before.overlaps(after) or not median(first):
        return 0.0
    return median(second) / median(first) - 1.0


def _outliers(spans: Sequence[float], quartiles: Interval) -> OutlierCount:
    beyond = [max(quartiles.low - span, span - quartiles.high) for span in spans]
    severe = [each for each in beyond if each > SEVERE_IQR * quartiles.width and each > 0]
    outside = [each for each in beyond if each > MILD_IQR * quartiles.width]
    mild = [each for each in outside if each <= SEVERE_IQR * quartiles.width]
    return OutlierCount(len(mild), len(severe))
