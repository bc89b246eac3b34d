"""Changes of the level of series that have one value a night: steps, drifts, and what is suspected.

A series is a level that changes at times, a drift, and noise. Series of equal length are looked at
together, as the rows of an array; values are logarithms.

- A single odd night is no change. A value is clipped to `CLIPPED` deviations around the median of
  the five values around it, so that at least `CONFIRMING` nights have to show a level.
- A step is a stretch of nights whose mean differs from that of the other nights of its segment
  (circular binary segmentation: Olshen et al., Biostatistics 5, 2004). A stretch that ends with the
  series is a change that stays; others return. What is found divides the segment, and its parts are
  looked at again.
- A drift is a slope from some night on, at least `DRIFT_NIGHTS` long. Of the best step and the best
  drift the one that explains more is taken: half of a slope remains if steps stand for it.
- The noise is the variance around the levels, without outliers (`waywiser.stats.noise_model`),
  moderated by that of equivalent series (Smyth, Statistical Applications in Genetics and Molecular
  Biology 3, 2004): few nights of one series show little of its noise. A change counts if Student's
  t of it is rarer than `FALSE_ALARM`, and if it is larger than a threshold.

asv finds steps by dynamic programming on absolute deviations, with a penalty that its information
criterion chooses (Friedrich et al., J. Computational and Graphical Statistics 17, 2008). It does
not bound the rate of false alarms, knows no drift, and takes milliseconds for each series.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from waywiser.stats.distributions import student_quantile, student_tail
from waywiser.stats.noise_model import LEAST_VARIANCE, Variance, are_outliers, variance_of
from waywiser.stats.order import NORMAL_SCALE
from waywiser.words.grouping import grouped

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    Array = NDArray[Any]

FALSE_ALARM = 1e-6
"""Chance that noise alone looks like a change, for each place where one could be. A fleet of 4,000
series has 4,000 such places each night. Most changes so improbable are also below the threshold
(benchmarks/history.py counts false alarms)."""

SUSPICIOUS = 1e-4
"""The same of what is worth to be measured again."""

CONFIRMING = 3
"""Nights that show a level before it counts."""

SUSPECT_NIGHTS = 6
"""Last nights that are looked at for what is suspected."""

DRIFT_NIGHTS = 14
"""Nights over which a drift is seen at least."""

CLIPPED = 3.0
"""Deviations from the median of its neighbours to which a value is clipped."""

CANDIDATE = 3.5
"""Deviations, by a first estimate of the noise, from which on a change is a candidate."""

LEAST_NIGHTS = 6
"""Nights before which nothing is said of a series: its noise is not known."""

FEWEST_PEERS = 4
"""Series from which on their variances say something of one another."""

MOST_PRIOR = 1e4
"""Most degrees of freedom that other series add."""

MOST_CELLS = 2_000_000
"""Numbers of one temporary array."""

MOST_NIGHTS = 400
"""Nights of a series; of more, the last ones are looked at."""


class SeriesOfNights(NamedTuple):
    """The nights of one series that have a value, in the order of time."""

    values: Sequence[float]
    """Logarithms."""
    days: Sequence[float]
    """When each was measured, in days since some day."""
    surveys: Sequence[int]
    """Surveys of each night."""
    peers: Hashable = None
    """Series with an equal one have equal noise."""


class LevelChange(NamedTuple):
    """A step or a drift."""

    start: int
    """The first night that shows it."""
    size: float
    """The difference of logarithms; of a drift, from its start to its end."""
    deviation: float
    """Its standard error."""
    p: float
    """The chance of it without a change, at this place."""
    per_day: float = 0.0
    """The slope of a drift; 0 for a step."""
    confirmed: bool = True
    """False for what too few nights show."""


class FittedSeries(NamedTuple):
    """What is known of one series."""

    level: float
    """The level of the last nights."""
    noise: Variance
    """Variance of one night."""
    changes: tuple[LevelChange, ...]
    """In the order of time."""
    slope: float = 0.0
    """The slope per day over all nights; 0 if there are too few."""


def fit_series(series: Sequence[SeriesOfNights], threshold: float) -> list[FittedSeries | None]:
    """Returns what is known of each series; None for one with fewer than `LEAST_NIGHTS` nights.
    Changes of up to ``threshold``, as a relative change, are none."""
    limit = float(np.log1p(threshold))
    found = [_Fit.of(each) if len(each.values) >= LEAST_NIGHTS else None for each in series]
    known = [each for each in found if each is not None]
    _clip(known)
    _divide(known, limit)
    _share_noise(known)
    return [None if each is None else each.fitted(limit) for each in found]


class _Fit:
    """A series while it is looked at."""

    def __init__(self, series: SeriesOfNights, skipped: int) -> None:
        self.series = series
        self.skipped = skipped
        self.values = np.array(series.values, float)
        self.days = np.array(series.days, float)
        self.clipped = self.values
        self.rough = 0.0
        """A first estimate of the deviation of a night."""
        self.cuts: set[int] = set()
        self.onset = -1
        """The first night of a drift; -1 for none."""
        self.slope = 0.0
        self.own = Variance(LEAST_VARIANCE, 0.0)
        self.noise = self.own

    @classmethod
    def of(cls, series: SeriesOfNights) -> _Fit:
        skipped = max(0, len(series.values) - MOST_NIGHTS)
        values, days, surveys, peers = series
        kept = SeriesOfNights(values[skipped:], days[skipped:], surveys[skipped:], peers)
        return cls(kept, skipped)

    def detrended(self, values: Array) -> Array:
        if self.onset < 0:
            return values
        flat: Array = values - self.slope * self.hinge
        return flat

    @property
    def hinge(self) -> Array:
        found: Array = np.maximum(0.0, self.days - self.days[max(self.onset, 0)])
        return found

    def segments(self) -> list[slice]:
        ends = [0, *sorted(self.cuts), len(self.values)]
        return [slice(a, b) for a, b in pairwise(ends)]

    def measure_noise(self) -> None:
        """The variance around the levels, without outliers."""
        flat = self.detrended(self.values)
        middles = np.concatenate(
            [np.full(part.stop - part.start, _middle(flat[part])) for part in self.segments()]
        )
        rest = flat - middles
        kept = ~np.array(are_outliers(rest.tolist()))
        squares, freedom = 0.0, 0.0
        for part in self.segments():
            own = flat[part][kept[part]]
            if len(own) > 1:
                squares += float(((own - own.mean()) ** 2).sum())
                freedom += len(own) - 1
        freedom -= 1 if self.onset >= 0 else 0
        self.own = variance_of(squares, max(freedom, 1.0))

    def fitted(self, limit: float) -> FittedSeries:
        drift = self._drift(limit)
        if drift is None and self.onset >= 0:
            self.onset, self.slope = -1, 0.0
        self._prune(limit)
        flat = self.detrended(self.clipped)
        parts = self.segments()
        changes = [self._step(flat, a, b) for a, b in pairwise(parts)]
        changes += [drift] if drift is not None else []
        changes += filter(None, [self._tail(flat, parts[-1], limit)])
        level = float(flat[parts[-1]].mean() + (self.slope * self.hinge[-1] if drift else 0.0))
        moved = [each._replace(start=each.start + self.skipped) for each in changes]
        moved.sort(key=lambda each: each.start)
        return FittedSeries(level, self.noise, tuple(moved), _slope(self.days, self.clipped))

    def _step(self, flat: Array, before: slice, after: slice) -> LevelChange:
        size = float(flat[after].mean() - flat[before].mean())
        return self._change(after.start, size, before, after)

    def _change(self, start: int, size: float, before: slice, after: slice) -> LevelChange:
        share = 1 / (before.stop - before.start) + 1 / (after.stop - after.start)
        error = self.noise.deviation * share**0.5
        p = 2 * student_tail(self.noise.freedom, size / error)
        return LevelChange(start, size, error, p)

    def _prune(self, limit: float) -> None:
        """Removes the boundaries that are no change, the least certain one first."""
        while self.cuts:
            flat, parts = self.detrended(self.clipped), self.segments()
            changes = [self._step(flat, a, b) for a, b in pairwise(parts)]
            weak = [c for c in changes if c.p > FALSE_ALARM or abs(c.size) <= limit]
            if not weak:
                return
            self.cuts.remove(max(weak, key=lambda c: (c.p, -abs(c.size))).start)

    def _drift(self, limit: float) -> LevelChange | None:
        if self.onset < 0:
            return None
        hinge = self.hinge
        error = self.noise.deviation / float(((hinge - hinge.mean()) ** 2).sum()) ** 0.5
        p = 2 * student_tail(self.noise.freedom, self.slope / error)
        size, span = self.slope * float(hinge[-1]), float(hinge[-1])
        if p > FALSE_ALARM or abs(size) <= limit:
            return None
        return LevelChange(self.onset, size, error * span, p, self.slope)

    def _tail(self, flat: Array, last: slice, limit: float) -> LevelChange | None:
        """What the last few nights show, of all numbers of nights the least probable. Nights of
        which each was measured several times confirm it."""
        raw = self.detrended(self.values)
        best: LevelChange | None = None
        for nights in range(1, SUSPECT_NIGHTS + 1):
            start = last.stop - nights
            if start - last.start < LEAST_NIGHTS - 1:
                break
            before, after = slice(last.start, start), slice(start, last.stop)
            reference = float(flat[before].mean())
            apart = raw[after] - reference
            size = _middle(apart)
            if abs(size) <= limit or float((apart * np.sign(size)).min()) < limit / 2:
                continue
            found = self._change(start, size, before, after)
            if found.p <= SUSPICIOUS and (best is None or found.p < best.p):
                surveys = sum(self.series.surveys[start:])
                sure = surveys >= CONFIRMING and found.p <= FALSE_ALARM
                best = found._replace(confirmed=sure)
        return best


def _middle(values: Array) -> float:
    return float(np.median(values))


def _slope(days: Array, values: Array) -> float:
    apart = days - days.mean()
    squares = float((apart**2).sum())
    return float((apart * values).sum() / squares) if squares else 0.0


def _by_length(fits: Iterable[_Fit]) -> Iterator[list[_Fit]]:
    yield from grouped((len(fit.values), fit) for fit in fits).values()


def _clip(fits: Sequence[_Fit]) -> None:
    """Clips single odd values, and makes the first estimates of the noise."""
    for same in _by_length(fits):
        rows = np.array([fit.values for fit in same])
        count = rows.shape[1]
        half = np.median(np.abs(np.diff(rows, axis=1)), axis=1) * NORMAL_SCALE / 2**0.5
        middle = _running_median(rows)
        apart = np.abs(rows - middle)
        # the differences of a series that alternates are its noise, those of one that wanders not
        around = np.median(apart, axis=1) * NORMAL_SCALE * (1.25 if count >= 5 else 1.0)
        rough = np.maximum(np.maximum(half, around), LEAST_VARIANCE**0.5)
        reach = CLIPPED * rough[:, None]
        clipped = np.clip(rows, middle - reach, middle + reach)
        for fit, own, deviation in zip(same, clipped, rough.tolist(), strict=True):
            fit.clipped, fit.rough = own, deviation


def _running_median(rows: Array) -> Array:
    """The median of five values around each; at the ends, of the first and last five."""
    windows = np.lib.stride_tricks.sliding_window_view(rows, 5, axis=1)
    middle = np.median(windows, axis=2)
    return np.concatenate(
        [middle[:, :1].repeat(2, axis=1), middle, middle[:, -1:].repeat(2, axis=1)], axis=1
    )


class _Part(NamedTuple):
    """A segment of a series that may have a change in it."""

    fit: _Fit
    start: int
    stop: int


def _divide(fits: Sequence[_Fit], limit: float) -> None:
    """Finds the candidates of all series."""
    parts = [_Part(fit, 0, len(fit.values)) for fit in fits]
    while parts:
        parts = [each for each in parts if each.stop - each.start >= 2 * CONFIRMING]
        again: list[_Part] = []
        for count, same in grouped((part.stop - part.start, part) for part in parts).items():
            size = max(1, MOST_CELLS // (count * count))
            for first in range(0, len(same), size):
                again += _divided(same[first : first + size], limit)
        parts = again
    for fit in fits:
        fit.measure_noise()


def _divided(parts: Sequence[_Part], limit: float) -> Iterator[_Part]:
    """Takes the best step or drift of each part, and yields what is to be looked at again."""
    rows = np.array([p.fit.detrended(p.fit.clipped)[p.start : p.stop] for p in parts])
    rough = np.array([part.fit.rough for part in parts])
    score, start, stop = _best_stretch(rows)
    score = score / rough
    slopes, onsets, drift_score = _best_drift(parts, rows)
    drift_score = drift_score / rough
    count = rows.shape[1]
    for n, part in enumerate(parts):
        is_whole = part.start == 0 and part.stop == len(part.fit.values) and part.fit.onset < 0
        if is_whole and drift_score[n] > max(score[n], CANDIDATE):
            fit = part.fit
            span = fit.days[-1] - fit.days[onsets[n]]
            if abs(slopes[n]) * span > limit:
                fit.onset, fit.slope = int(onsets[n]), float(slopes[n])
                yield part
                continue
        if score[n] <= CANDIDATE:
            continue
        first, last = int(start[n]), int(stop[n])
        ends = [0, first, last, count]
        part.fit.cuts |= {part.start + cut for cut in (first, last) if 0 < cut < count}
        for a, b in pairwise(ends):
            if b - a < count:
                yield _Part(part.fit, part.start + a, part.start + b)


def _best_stretch(rows: Array) -> tuple[Array, Array, Array]:
    """Returns for each row the stretch whose mean differs most from that of the others: its
    difference in deviations of one value, its first value, and the one after its last."""
    count = rows.shape[1]
    first, last = _stretches(count)
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    size = last - first
    inside = sums[:, last] - sums[:, first]
    apart = inside - size * (sums[:, -1:] / count)
    score = np.abs(apart) * np.sqrt(count / (size * (count - size)))
    best = np.argmax(score, axis=1)
    return score[np.arange(len(rows)), best], first[best], last[best]


@lru_cache(maxsize=512)
def _stretches(count: int) -> tuple[Array, Array]:
    """All that leave at least `CONFIRMING` values, or none, on each side."""
    places = [0, *range(CONFIRMING, count - CONFIRMING + 1), count]
    pairs = [(a, b) for a in places for b in places if CONFIRMING <= b - a < count]
    first, last = np.array(pairs).T
    return first, last


def _best_drift(parts: Sequence[_Part], rows: Array) -> tuple[Array, Array, Array]:
    """Returns for each row the best slope from some value on: per day, where it begins, and what it
    explains in deviations of one value."""
    count = rows.shape[1]
    onsets = np.arange(0, count - DRIFT_NIGHTS + 1)
    none = np.zeros(len(rows))
    if not len(onsets):
        return none, none.astype(int), none
    days = np.array([part.fit.days[part.start : part.stop] for part in parts])
    hinge = np.maximum(0.0, days[:, None, :] - days[:, onsets][:, :, None])
    hinge -= hinge.mean(axis=2, keepdims=True)
    squares = (hinge**2).sum(axis=2)
    shared_part = (hinge * (rows - rows.mean(axis=1, keepdims=True))[:, None, :]).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(squares > 0, np.abs(shared_part) / np.sqrt(squares), 0.0)
        slope = np.where(squares > 0, shared_part / squares, 0.0)
    best = np.argmax(score, axis=1)
    at = np.arange(len(rows)), best
    return slope[at], onsets[best], score[at]


def _share_noise(fits: Sequence[_Fit]) -> None:
    """Moderates the variance of each series by those of its peers. The more these differ beyond
    what their degrees of freedom explain, the less they count."""
    for peers, same in grouped((fit.series.peers, fit) for fit in fits).items():
        usual = _usual([fit.own for fit in same]) if peers is not None else None
        for fit in same:
            fit.noise = fit.own if usual is None else _moderated(fit.own, usual)


def _usual(known: Sequence[Variance]) -> Variance | None:
    """The prior of variances, by the mean and the variance of their logarithms; None for too few
    series."""
    from scipy.special import digamma, polygamma

    if len(known) < FEWEST_PEERS:
        return None
    half = np.array([each.freedom for each in known]) / 2
    logs = np.log([each.value for each in known]) - digamma(half) + np.log(half)
    excess = float(logs.var(ddof=1) - polygamma(1, half).mean())
    freedom = MOST_PRIOR
    if excess > polygamma(1, MOST_PRIOR / 2):
        freedom = min(MOST_PRIOR, 2 * _inverse_trigamma(excess))
    middle = float(logs.mean()) + float(digamma(freedom / 2)) - math.log(freedom / 2)
    return Variance(math.exp(middle), freedom)


def _inverse_trigamma(value: float) -> float:
    """By Newton's method, which converges from this start for every value."""
    from scipy.special import polygamma

    found = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, found))
        change = trigamma * (1 - trigamma / value) / float(polygamma(2, found))
        found += change
        if abs(change) < 1e-8 * found:
            break
    return found


def _moderated(own: Variance, usual: Variance) -> Variance:
    freedom = own.freedom + usual.freedom
    return Variance((own.value * own.freedom + usual.value * usual.freedom) / freedom, freedom)


def least_change(noise: Variance, before: int, threshold: float) -> float:
    """The smallest relative change that `CONFIRMING` nights show with a chance of one half, after
    so many nights ``before``."""
    share = 1 / max(before, 1) + 1 / CONFIRMING
    sure = student_quantile(noise.freedom, 1 - FALSE_ALARM / 2)
    return float(np.expm1(max(sure * noise.deviation * share**0.5, np.log1p(threshold))))
