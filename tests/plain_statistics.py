"""The statistics of one visit, one number after another: what arrays of many visits must equal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, repeat
from math import isnan, sqrt

import msgspec
import numpy as np

from waywiser.profile.block import (
    QUANTILE_NAMES,
    SHOWN_QUANTILES,
    STANDARD_ERRORS,
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
from waywiser.stats.dependence import dependence
from waywiser.stats.level_shift import returned_in_blocks
from waywiser.stats.order import Interval, Segments, at_least, lower_rank, median, median_interval
from waywiser.words.records import BELOW_RESOLUTION, SUMMARY, VOID, Series, Visit


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


def blocks_of(series: Series) -> list[BlockEstimate | None]:
    """The statistics of each visit. Processes of one series depend alike."""
    kept = [
        [
            s
            for s, flag in zip(v.samples.span, v.samples.flags or repeat(0), strict=False)
            if not flag & VOID
        ]
        for v in series.visits
    ]
    hosts = [
        [
            host
            for host, flag in zip(v.samples.host, v.samples.flags or repeat(0), strict=False)
            if not flag & VOID and not isnan(host)
        ]
        for v in series.visits
    ]
    of_spans, of_hosts = _dependences(kept), _dependences(hosts)
    found = list(map(_block_of, series.visits, of_spans, of_hosts))
    ratios = [_ratios(v) if block else [] for v, block in zip(series.visits, found, strict=True)]
    slowdowns = zip(
        *(
            list(map(Slowdown, map(median, each), map(interval_of, each, _dependences(each))))
            for each in zip(*filter(None, ratios), strict=True)
        ),
        strict=True,
    )
    return [
        msgspec.structs.replace(block, slowdowns=next(slowdowns)) if block and own else block
        for block, own in zip(found, ratios, strict=True)
    ]


def _ratios(visit: Visit) -> list[list[float]]:
    """The times of each transfer over those alone, of the samples that count."""
    taken = visit.samples
    kept = [n for n in range(len(taken)) if not (taken.flags and taken.flags[n] & VOID)]
    pairs = (zip(taken.transfers[n], taken.alone[n], strict=True) for n in kept if taken.alone)
    ratios = ([together / alone for together, alone in pair] for pair in pairs)
    return list(map(list, zip(*ratios, strict=True)))


def _dependences(samples: Sequence[Sequence[float]]) -> list[tuple[float, float, bool]]:
    """(autocorrelation time, that of intervals, whether there are enough of them), of each
    visit."""
    counts = np.array([len(each) for each in samples])
    values = np.array([value for each in samples for value in each], float)
    found = dependence(Segments(values, counts), np.zeros(len(counts), int))
    return list(zip(*(each.tolist() for each in found), strict=True))


def interval_of(samples: Sequence[float], of: tuple[float, float, bool]) -> Interval | None:
    """The interval of the median of samples that depend on each other."""
    _, time, are_enough = of
    rank = lower_rank(len(samples))
    if rank is None or not (are_enough or shift_of(samples)):
        return None
    ordered, middle = sorted(samples), (len(samples) - 1) / 2
    position = max(middle - (middle - (rank - 1)) * sqrt(time), 0.0)
    at = int(position)
    part, beside = position - at, min(at + 1, len(samples) - 1)
    low = ordered[at] + part * (ordered[beside] - ordered[at])
    high = ordered[-1 - at] + part * (ordered[-1 - beside] - ordered[-1 - at])
    return Interval(low, high)


def shift_of(samples: Sequence[float]) -> float:
    """The relative size of a level that shifted and returned; 0 for none."""
    return float(returned_in_blocks(np.array(samples, float), np.array([len(samples)]))[0])


def with_shift(interval: Interval | None, samples: Sequence[float]) -> Interval | None:
    """The interval of a median, no narrower than a shift of the level."""
    if interval is None or not (shift := shift_of(samples)):
        return interval
    middle = median(samples)
    reach = STANDARD_ERRORS * shift * middle
    return Interval(max(0.0, min(interval.low, middle - reach)), max(interval.high, middle + reach))


def _block_of(
    visit: Visit, of_spans: tuple[float, float, bool], of_hosts: tuple[float, float, bool]
) -> BlockEstimate | None:
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
    interval = None if summary else interval_of(spans, of_spans)
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
        interval=with_shift(at_least(interval, middle, step) if interval else None, spans),
        tick=step,
        host_median=median(host) if host else None,
        host_interval=None if summary else with_shift(interval_of(host, of_hosts), host),
        quantiles=None
        if summary or max(batches) > 1
        else dict(zip(QUANTILE_NAMES, shown, strict=True)),
        spread=(third - first) / middle if middle else 0.0,
        largest_deviation=max(max(spans) - middle, middle - min(spans)) / middle if middle else 0.0,
        drift=_drift(spans),
        outliers=_outliers(spans, Interval(first, third)),
        autocorrelation_time=of_spans[0],
        summary=summary,
        transfers=tuple(median(times) for times in zip(*timed, strict=True)),
    )


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
