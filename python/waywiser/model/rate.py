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
bend them. Between sizes they are interpolated (`waywiser.model.neighbours`). The interval of a
prediction has the 95 % quantile of the deviations of counts that were held out, every second one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from waywiser.model.messages import MessageTimes
from waywiser.model.neighbours import between
from waywiser.stats.line_ranges import ProtocolRange
from waywiser.stats.order import CONFIDENCE, Interval
from waywiser.stats.postal import robust_lines
from waywiser.words import Value

Array = NDArray[Any]

SATURATED = 0.9
"""Share of the highest measured rate from which on a measurement shows the limit."""
LEAST_SATURATED = 6
"""Measurements of a limit: fewer may be single disturbances."""
PLATEAU = 1.1
"""At a limit more messages bring no more rate: from the fewest to the most saturated messages of a
size the rate grows by no more than this factor, while their number at least doubles."""
LEAST_GAP = 1e-12
"""Seconds: a gap of 0 has no relative deviation."""
MOST_DEVIATION = 0.5
"""A larger deviation counts as this one."""
DRAWS = 200
SEED = 1
ONE_SENDER = "messages"
"""The test in which one process sends all messages: these follow one another and reach no limit of
the node."""


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


class CountModel(Value, frozen=True):
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
    """95 % quantile of the deviations of held-out counts, as a logarithm."""
    typical: float
    """Their median."""

    def seconds(self, count: int, bytes: int) -> float:
        return self._seconds(count, bytes)[0]

    def predict(self, count: int, bytes: int) -> CountPrediction | None:
        """Returns None for counts and sizes beyond the measured ones."""
        if not 1 <= count <= self.counts[-1] or not self.sizes[0] <= bytes <= self.sizes[-1]:
            return None
        seconds, limited = self._seconds(count, bytes)
        factor = math.exp(self.deviation)
        around = Interval(seconds / factor, seconds * factor)
        return CountPrediction(count, bytes, seconds, around, limited)

    def _seconds(self, count: int, bytes: int) -> tuple[float, bool]:
        """(seconds, whether the limit sets them)."""
        sizes, at = np.array(self.sizes, float), np.array([float(bytes)])
        if len(sizes) == 1:
            first, gap = self.first[0], self.gaps[0]
        else:
            first = float(between(sizes, np.array(self.first), at).seconds[0])
            gap = float(np.interp(at, sizes, np.array(self.gaps))[0])
        alone = first + (count - 1) * gap
        if self.limit is None:
            return alone, False
        limited = float(self.limit.seconds(count * bytes))
        return max(alone, limited), limited > alone


class _Table(NamedTuple):
    """Measured seconds, [size, count]; not-a-number where nothing was measured."""

    sizes: Array
    counts: Array
    seconds: Array

    @property
    def bytes(self) -> Array:
        """Those of all messages."""
        return np.outer(self.sizes, self.counts)

    def only(self, kept: Array) -> _Table:
        return _Table(self.sizes, self.counts[kept], self.seconds[:, kept])


def fit_counts(
    messages: Iterable[MessageTimes], kind: str, test: str, *, least: bool = False
) -> CountModel | None:
    """The model of one kind of memory and test; None without two sizes and three counts. A time is
    the median of its jobs, or with ``least`` the minimum, as the published rule takes it."""
    table = _table(messages, kind, test, least=least)
    if table is None:
        return None
    first, gaps, limit = _fitted(table, test != ONE_SENDER)
    out = _held_out(table, test != ONE_SENDER)
    known_out = out[np.isfinite(out)]
    one = np.ones((1, len(gaps)))
    lines, _ = robust_lines(table.sizes[None], np.maximum(gaps, LEAST_GAP)[None], one)
    return CountModel(
        kind=kind,
        test=test,
        sizes=tuple(table.sizes.astype(int).tolist()),
        counts=tuple(table.counts.astype(int).tolist()),
        first=tuple(first.tolist()),
        gaps=tuple(gaps.tolist()),
        limit=limit,
        start_gap=ProtocolRange(
            int(table.sizes[0]), int(table.sizes[-1]), float(lines[0, 0]), float(lines[0, 1])
        ),
        deviation=float(np.quantile(known_out, CONFIDENCE)) if len(known_out) else MOST_DEVIATION,
        typical=float(np.median(known_out)) if len(known_out) else MOST_DEVIATION,
    )


def held_out_deviations(
    messages: Iterable[MessageTimes], kind: str, test: str, *, least: bool = False
) -> list[float]:
    """The deviations, as ratios less 1, of every second count from a model of the others."""
    table = _table(messages, kind, test, least=least)
    if table is None:
        return []
    out = _held_out(table, test != ONE_SENDER)
    return np.expm1(out[np.isfinite(out)]).tolist()  # type: ignore[no-any-return]


def _table(messages: Iterable[MessageTimes], kind: str, test: str, *, least: bool) -> _Table | None:
    times: Mapping[tuple[int, int], float] = {
        (each.bytes, each.count): min(each.seconds) if least else float(np.median(each.seconds))
        for each in messages
        if (each.source, each.test) == (kind, test)
    }
    sizes, counts = (sorted({key[n] for key in times}) for n in (0, 1))
    if len(sizes) < 2 or len(counts) < 3 or counts[0] != 1:
        return None
    table = [[times.get((size, count), math.nan) for count in counts] for size in sizes]
    return _Table(np.array(sizes, float), np.array(counts, float), np.array(table))


def _fitted(table: _Table, is_limited: bool) -> tuple[Array, Array, InjectionLimit | None]:
    """(first, gaps, limit)."""
    limit = _limit(table) if is_limited else None
    limited = limit.seconds(table.bytes) if limit is not None else np.zeros_like(table.seconds)
    rows = zip(table.seconds, limited, strict=True)
    first, gaps = np.array([_first_and_gap(table.counts, *row) for row in rows]).T
    return first, gaps, limit


def _limit(table: _Table) -> InjectionLimit | None:
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


def _held_out(table: _Table, is_limited: bool) -> Array:
    """The deviations of every second count from what the others predict, [size, count], as
    logarithms without their signs."""
    kept = np.arange(len(table.counts)) % 2 == 0
    first, gaps, limit = _fitted(table.only(kept), is_limited)
    times = first[:, None] + gaps[:, None] * (table.counts - 1)
    if limit is not None:
        times = np.maximum(times, limit.seconds(table.bytes))
    off: Array = np.abs(np.log(times / table.seconds))[:, ~kept]
    return off
