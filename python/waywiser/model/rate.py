"""Equal messages that start together: n of one process, or one of each of n processes.

At one size the time of n messages is

    max(t + (n - 1) * g,  o + n * bytes / limit)

- t is what one message takes, and g the *start gap*: what each further one costs, as the gap of
  LogP and LogGP (Culler et al., PPoPP 1993; Alexandrov et al., JPDC 44, 1997), at this size. Of
  messages of one process g grows with the size, since they follow one another: the line g + bytes *
  inverse rate is fitted too.
- The second term is the max-rate model of Gropp, Olson & Samfass (EuroMPI 2016), for messages of
  several processes: together they inject no faster than a limit, which is one number for all sizes.
  Most of their latencies overlaps with the bytes of others; the overhead o is what does not. Both
  are the line through the measurements at which more processes bring no more rate: the rates
  themselves are below the limit. A limit that no measurement shows is not identified.

t and g of a size minimise the absolute deviations of logarithms, so that a disturbed count does not
bend them. Between sizes they are interpolated (`waywiser.model.neighbours`). A size without one
message, or with fewer numbers of them than `waywiser.model.count_table` asks for, is skipped.

The interval of a prediction is for a single time of another job: it has the 95 % quantile of the
deviations of every second count of one job from a model of the other counts and jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from waywiser.model.count_table import CountKey, CountTable, CountTimes, table_of, times_of
from waywiser.model.job_scatter import ENOUGH_JOBS
from waywiser.model.messages import ONE_SENDER, PEERS, Locality, MessageTimes, OfMethod
from waywiser.model.neighbours import between
from waywiser.stats import CONFIDENCE, Interval, ProtocolRange, robust_lines
from waywiser.words import Value

Array = NDArray[Any]

SATURATED = 0.9
"""Share of the highest measured rate from which on a measurement shows the limit."""
LEAST_SATURATED = 6
"""Measurements of a limit: fewer may be single disturbances."""
PLATEAU = 1.1
"""At a limit more messages bring no more rate: from the fewest to the most saturated messages of a
size the rate grows by no more than this factor, while their number at least doubles."""
MOST_JOBS = 10
"""Jobs that are held out in turn."""
OF_ONE_PROCESS = (ONE_SENDER, PEERS)
"""Tests in which all messages are of one process, which reaches no limit of the node."""
LEAST_GAP = 1e-12
"""Seconds: a gap of 0 has no relative deviation."""
MOST_DEVIATION = 0.5
"""A larger deviation counts as this one."""
DRAWS = 200
SEED = 1


class InjectionLimit(Value, frozen=True):
    """The rate that all messages of a node together do not exceed."""

    bytes_per_second: float
    interval: Interval
    """95 %: percentiles of a bootstrap over the measurements that show it."""
    overhead: float
    """Seconds that messages at the limit take in addition."""
    measurements: int
    highest: float
    """The highest rate that was measured: a limit far above it would be an extrapolation."""

    def seconds(self, total: Any) -> Any:
        """The least time of so many bytes; of a number or an array."""
        return self.overhead + total / self.bytes_per_second


class CountPrediction(Value, frozen=True):
    """The time of some messages that start together."""

    count: int
    bytes: int
    """Bytes of each."""
    seconds: float
    interval: Interval
    limited: bool
    """The injection limit sets the time."""


class CountModel(OfMethod, frozen=True):
    """The time of n equal messages that start together, by size."""

    kind: str
    """The kind of memory."""
    test: str
    """What was measured: ``messages`` of one process, or ``max-rate`` of as many processes."""
    sizes: tuple[int, ...]
    """Measured bytes of one message, ascending."""
    counts: tuple[int, ...]
    first: tuple[float, ...]
    """Seconds of one message, by size."""
    gaps: tuple[float, ...]
    """Seconds of each further message, by size."""
    limit: InjectionLimit | None
    """None if no measurement shows one."""
    start_gap: ProtocolRange
    """The line through the gaps: latency is the start gap g itself."""
    deviation: float
    """95 % quantile of the deviations of held-out counts of held-out jobs, as a logarithm."""
    typical: float
    """Their median, without the scatter between jobs."""
    jobs: int = 1
    """Jobs of the size and count that have most: of one, the scatter between jobs is not known."""
    skipped: tuple[int, ...] = ()
    """Sizes that too few counts were measured at."""
    locality: Locality | Literal[""] = ""
    """The method of a survey; empty for results of another tool, whose model is of all methods."""

    @property
    def key(self) -> CountKey:
        """What it is a model of."""
        return CountKey(self.kind, self.test, self.method, self.locality)

    def seconds(self, count: int, bytes: int) -> float:
        return float(self.times_at(count, np.array([float(bytes)]))[0])

    def times_at(self, count: int, at: Array) -> Array:
        """Seconds of so many messages of each of some sizes."""
        return self._times_at(count, at)[0]

    def predict(self, count: int, bytes: int) -> CountPrediction | None:
        """Returns None for counts and sizes beyond the measured ones."""
        if not 1 <= count <= self.counts[-1] or not self.sizes[0] <= bytes <= self.sizes[-1]:
            return None
        (seconds,), (alone,) = self._times_at(count, np.array([float(bytes)]))
        seconds, limited = float(seconds), bool(seconds > alone)
        factor = math.exp(self.deviation)
        around = Interval(seconds / factor, seconds * factor)
        return CountPrediction(count, bytes, seconds, around, limited)

    def _times_at(self, count: int, at: Array) -> tuple[Array, Array]:
        """(seconds, those without the limit)."""
        sizes = np.array(self.sizes, float)
        if len(sizes) == 1:
            alone: Array = np.full(at.shape, self.first[0] + (count - 1) * self.gaps[0])
        else:
            first = between(sizes, np.array(self.first), at).seconds
            alone = first + (count - 1) * np.interp(at, sizes, np.array(self.gaps))
        limit = self.limit
        return alone if limit is None else np.maximum(alone, limit.seconds(count * at)), alone


def fit_all_counts(
    messages: Sequence[MessageTimes], *, least: bool = False
) -> tuple[CountModel, ...]:
    """The models of all kinds of memory and tests. Jobs of other kinds show how far another job may
    be from a few."""
    keys = {CountKey.of(each) for each in messages if each.count > 1}
    fits = [_fit(messages, key, least=least) for key in sorted(key for key in keys if key)]
    found = [each for each in fits if each is not None]
    of_jobs = [off for model, off in found if model.jobs > 1]
    if not of_jobs:
        return tuple(model for model, _ in found)
    all_jobs = float(np.quantile(np.concatenate(of_jobs), CONFIDENCE))
    return tuple(
        msgspec.structs.replace(model, deviation=max(model.deviation, all_jobs))
        if model.jobs < ENOUGH_JOBS
        else model
        for model, _ in found
    )


def fit_counts(
    messages: Iterable[MessageTimes], kind: str, test: str, *, least: bool = False
) -> CountModel | None:
    """The model of one kind of memory and test; None without two sizes of three counts. A time is
    the median of its jobs, or with ``least`` the minimum, as the published rule takes it."""
    found = _fit(messages, CountKey(kind, test), least=least)
    return found[0] if found is not None else None


def _fit(
    messages: Iterable[MessageTimes], key: CountKey, *, least: bool
) -> tuple[CountModel, Array] | None:
    """(the model, the deviations that its interval is made from)."""
    times = times_of(messages, key)
    table = table_of(times, least=least)
    if table is None:
        return None
    is_limited = key.test not in OF_ONE_PROCESS
    first, gaps, limit = _fitted(table, is_limited)
    off = _held_out(table, is_limited)
    off = off[np.isfinite(off)]
    of_jobs = _off_jobs(times, is_limited, least=least)
    all_off = of_jobs if len(of_jobs) else off
    one = np.ones((1, len(gaps)))
    lines, _ = robust_lines(table.sizes[None], np.maximum(gaps, LEAST_GAP)[None], one)
    sizes = tuple(table.sizes.astype(int).tolist())
    model = CountModel(
        kind=key.kind,
        test=key.test,
        method=key.method,
        locality=key.locality,
        sizes=sizes,
        counts=tuple(table.counts.astype(int).tolist()),
        first=tuple(first.tolist()),
        gaps=tuple(gaps.tolist()),
        limit=limit,
        start_gap=ProtocolRange(sizes[0], sizes[-1], float(lines[0, 0]), float(lines[0, 1])),
        deviation=float(np.quantile(all_off, CONFIDENCE)) if len(all_off) else MOST_DEVIATION,
        typical=float(np.median(off)) if len(off) else MOST_DEVIATION,
        jobs=max(map(len, times.values())),
        skipped=tuple(sorted({size for size, _ in times}.difference(sizes))),
    )
    return model, all_off


def held_out_deviations(
    messages: Iterable[MessageTimes], key: CountKey, *, least: bool = False
) -> list[float]:
    """The deviations, as ratios less 1, of every second count from a model of the others."""
    table = table_of(times_of(messages, key), least=least)
    if table is None:
        return []
    off = _held_out(table, key.test not in OF_ONE_PROCESS)
    return np.expm1(off[np.isfinite(off)]).tolist()  # type: ignore[no-any-return]


def _off_jobs(times: CountTimes, is_limited: bool, *, least: bool) -> Array:
    """How far counts of jobs are from a model without these counts and jobs, as logarithms; empty
    of one job."""
    found = [np.empty(0)]
    for job in range(min(MOST_JOBS, max(map(len, times.values())))):
        others = {key: own[:job] + own[job + 1 :] for key, own in times.items() if len(own) > 1}
        rest = table_of(others, least=least)
        if rest is not None:
            found.append(_off_job(times, job, rest, is_limited))
    return np.concatenate(found)


def _off_job(times: CountTimes, job: int, rest: CountTable, is_limited: bool) -> Array:
    """How far a job's times are from held-out counts of the ``rest``, as logarithms."""
    predicted = _held_out_times(rest, is_limited)
    off = []
    for row, column in np.argwhere(np.isfinite(predicted)).tolist():
        own = times[int(rest.sizes[row]), int(rest.counts[column])]
        if job < len(own):
            off.append(abs(math.log(predicted[row, column] / own[job])))
    return np.array(off)


def _fitted(table: CountTable, is_limited: bool) -> tuple[Array, Array, InjectionLimit | None]:
    """(first, gaps, limit)."""
    limit = _limit(table) if is_limited else None
    limited = limit.seconds(table.bytes) if limit is not None else np.zeros_like(table.seconds)
    rows = zip(table.seconds, limited, strict=True)
    first, gaps = np.array([_first_and_gap(table.counts, *row) for row in rows]).T
    return first, gaps, limit


def _limit(table: CountTable) -> InjectionLimit | None:
    """Returns None if no size shows that more messages bring no more rate."""
    with np.errstate(invalid="ignore"):
        rates = table.bytes / table.seconds
        highest = float(np.nanmax(rates))
        saturated = rates >= SATURATED * highest
        flat = np.zeros_like(saturated)
        for n, row in enumerate(saturated):
            at = np.flatnonzero(row)
            if len(at) > 1 and table.counts[at[-1]] >= 2 * table.counts[at[0]]:
                flat[n] = row & (rates[n, at[-1]] <= PLATEAU * rates[n, at[0]])
    if flat.sum() < LEAST_SATURATED:
        return None
    bytes, seconds = table.bytes[flat], table.seconds[flat]
    count = len(bytes)
    drawn = np.random.default_rng(SEED).integers(0, count, (DRAWS, count))
    rows = np.concatenate([np.arange(count)[None], drawn])
    lines, _ = robust_lines(bytes[rows], seconds[rows], np.ones_like(rows, float))
    if not (lines > 0).all():
        lines = np.column_stack([np.zeros(len(rows)), np.median((seconds / bytes)[rows], axis=1)])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(1 / lines[1:, 1], (tail, 1 - tail))
    return InjectionLimit(
        bytes_per_second=float(1 / lines[0, 1]),
        interval=Interval(float(low), float(high)),
        overhead=float(lines[0, 0]),
        measurements=count,
        highest=highest,
    )


def _first_and_gap(counts: Array, seconds: Array, limited: Array) -> tuple[float, float]:
    """The pair with the least absolute deviations of logarithms, among those that pass through a
    measurement of few messages and one more."""
    known = np.isfinite(seconds)
    counts, seconds, limited = counts[known], seconds[known], limited[known]
    if len(counts) < 2:
        return (float(seconds[0]) if len(counts) else math.nan), 0.0
    best = (math.inf, float(seconds[0]), 0.0)
    for start in seconds[:4]:
        gaps = np.append(np.maximum(seconds[1:] - start, 0) / np.maximum(counts[1:] - 1, 1), 0.0)
        times = np.maximum(start + np.outer(gaps, counts - 1), limited)
        off = np.minimum(np.abs(np.log(times / seconds)), MOST_DEVIATION).mean(axis=1)
        at = int(off.argmin())
        best = min(best, (float(off[at]), float(start), float(gaps[at])))
    return best[1:]


def _held_out_times(table: CountTable, is_limited: bool) -> Array:
    """Every second count of each size as the others predict it; not-a-number of the others."""
    known = np.isfinite(table.seconds)
    held = known & (np.cumsum(known, axis=1) % 2 == 0)
    rest = table._replace(seconds=np.where(held, np.nan, table.seconds))
    first, gaps, limit = _fitted(rest, is_limited)
    times = first[:, None] + gaps[:, None] * (table.counts - 1)
    if limit is not None:
        times = np.maximum(times, limit.seconds(table.bytes))
    found: Array = np.where(held, times, np.nan)
    return found


def _held_out(table: CountTable, is_limited: bool) -> Array:
    """How far every second count is from what the others predict, [size, count], as logarithms
    without their signs."""
    off: Array = np.abs(np.log(_held_out_times(table, is_limited) / table.seconds))
    return off
