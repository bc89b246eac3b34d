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
- The noise is the variance around the levels, without single odd nights and without the last ones,
  together with that of equivalent series (`waywiser.stats.night_noise`): few nights of one series
  show little of its noise. A change counts if noise alone makes it with a chance of less than
  `FALSE_ALARM`, and if it is larger than a threshold.
- The last nights are looked at each time, at one place. A longer level could begin on any night,
  and one that ended could also end on any: its chance has to be less by the number of places.

asv finds steps by dynamic programming on absolute deviations, with a penalty that its information
criterion chooses (Friedrich et al., J. Computational and Graphical Statistics 17, 2008). It does
not bound the rate of false alarms, knows no drift, and takes milliseconds for each series.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from waywiser.stats.night_noise import (
    LEAST_DEVIATION,
    UNKNOWN_NOISE,
    NightNoise,
    own_noise,
    usual_noise,
)
from waywiser.stats.noise_model import are_outliers
from waywiser.stats.order import NORMAL_SCALE
from waywiser.words import grouped

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    Array = NDArray[Any]

FALSE_ALARM = 1e-7
"""Chance that noise alone looks like a change, for each place where one could be. 500 nodes with
eight paths have 240,000 such places in 60 nights (benchmarks/history.py counts false alarms)."""

SUSPICIOUS = 1e-4
"""The same of what is worth to be measured again."""

CONFIRMING = 3
"""Nights that show a level before it counts."""

SUSPECT_NIGHTS = 10
"""Last nights that are looked at for what is suspected."""

FEW_NIGHTS = 6
"""Nights of a level of which each shows it: of more, single ones may be odd."""

LEAST_SHARE = 1 / 3
"""Share of a change that each of so few nights shows."""

DRIFT_NIGHTS = 14
"""Nights over which a drift is seen at least."""

CLIPPED = 3.0
"""Deviations from the median of its neighbours to which a value is clipped."""

ROUGH_SHARE = 0.3
"""Degrees of freedom of the first estimate of the noise, over nights: it is made of medians."""

NORMAL_MEAN = math.pi**0.5 / 2
"""The deviation of normal values over the mean absolute difference of two of them."""

MOST_ODD = 0.05
"""Largest share of nights that are no part of the noise, because they differ very much."""

CANDIDATE = 3.5
"""Deviations, by a first estimate of the noise, from which on a change is a candidate."""

LEAST_NIGHTS = 6
"""Nights before which nothing is said of a series: its noise is not known."""

LEAST_BEFORE = CONFIRMING + 1
"""Nights that show the first level of a series at least."""

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

    def first(self, nights: int) -> SeriesOfNights:
        """Returns the series with its first nights alone."""
        values, days, surveys = self.values[:nights], self.days[:nights], self.surveys[:nights]
        return SeriesOfNights(values, days, surveys, self.peers)


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
    noise: NightNoise
    changes: tuple[LevelChange, ...]
    """In the order of time."""
    slope: float = 0.0
    """The slope per day over all nights; 0 if there are too few."""


class SeriesNoise(NamedTuple):
    """What equivalent series show of one another, by their peers: by the first estimate of their
    noise, and around their levels. Each series can then be looked at alone."""

    rough: Mapping[Hashable, NightNoise]
    settled: Mapping[Hashable, NightNoise] = {}


Shown = dict["Hashable", list[tuple[float, float]]]
"""The squares and degrees of freedom of each series, by its peers."""


def shown_noise(
    series: Sequence[SeriesOfNights], threshold: float, rough: Mapping[Hashable, NightNoise] | None
) -> Shown:
    """What some of the series show, from which `usual_noise` of all of them follows: by the first
    estimate, or around their levels if the ``rough`` noise is known."""
    known = [_Fit.of(each) for each in series if len(each.values) >= LEAST_NIGHTS]
    _clip(known)
    squares = _Fit.rough_squares
    if rough is not None:
        _share_noise(known, squares, rough)
        _divide(known, float(np.log1p(threshold)))
        squares = _Fit.settled_squares
    return grouped((fit.series.peers, squares(fit)) for fit in known)


def fit_series(
    series: Sequence[SeriesOfNights], threshold: float, noise: SeriesNoise | None = None
) -> list[FittedSeries | None]:
    """Returns what is known of each series; None for one with fewer than `LEAST_NIGHTS` nights.
    Changes of up to ``threshold``, as a relative change, are none. ``noise`` is that of a fleet,
    of which these are a part; by default they are all of it."""
    limit = float(np.log1p(threshold))
    found = [_Fit.of(each) if len(each.values) >= LEAST_NIGHTS else None for each in series]
    known = [each for each in found if each is not None]
    _clip(known)
    _share_noise(known, _Fit.rough_squares, noise and noise.rough)
    _divide(known, limit)
    _share_noise(known, _Fit.settled_squares, noise and noise.settled)
    steady = [fit for fit in known if fit.onset >= 0 and fit.drift(limit) is None]
    for fit in steady:
        fit.is_drifting, fit.onset, fit.slope = False, -1, 0.0
        fit.cuts.clear()
    _divide(steady, limit)
    for fit in steady:
        fit.noise = own_noise(fit.usual, *fit.settled_squares())
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
        self.is_drifting = True
        """Whether a drift is looked for."""
        self.usual = UNKNOWN_NOISE
        """The noise that the peers of the series show together."""
        self.noise = UNKNOWN_NOISE
        """The noise of the series itself."""

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

    def segments(self, *more: int) -> list[slice]:
        ends = [0, *sorted(self.cuts.union(more)), len(self.values)]
        return [slice(a, b) for a, b in pairwise(ends)]

    def rough_squares(self) -> tuple[float, float]:
        """Returns squares and degrees of freedom by the first estimate of the noise alone."""
        freedom = ROUGH_SHARE * len(self.values)
        return freedom * self.rough**2, freedom

    def settled_squares(self) -> tuple[float, float]:
        """The squares of all nights but the last ones, which the next have to confirm."""
        return self.squares(len(self.values) - CONFIRMING + 1, with_last=False)

    def squares(self, *cuts: int, with_last: bool = True) -> tuple[float, float]:
        """Returns the squares of the series around its levels without outliers, and their degrees
        of freedom; with further ``cuts`` between levels, and with or without the last level."""
        flat = self.detrended(self.values)
        parts = self.segments(*cuts)
        parts = parts if with_last else parts[:-1]
        rest = np.concatenate([flat[part] - _middle(flat[part]) for part in parts])
        odd = np.array(are_outliers(rest.tolist()))
        kept = ~odd if odd.sum() <= max(1, MOST_ODD * len(odd)) else np.ones(len(odd), bool)
        squares, freedom = 0.0, -1.0 if self.onset >= 0 else 0.0
        for part in parts:
            own = rest[part][kept[part]]
            if len(own) > 1:
                squares += float(((own - _mean(own)) ** 2).sum())
                freedom += len(own) - 1
        return squares, max(freedom, 1.0)

    def fitted(self, limit: float) -> FittedSeries:
        drift = self.drift(limit)
        self.prune(limit)
        self.date()
        flat = self.detrended(self.clipped)
        parts = self.segments()
        changes = [self._step(flat, a, b) for a, b in pairwise(parts)]
        changes += [drift] if drift is not None else []
        tail = self._tail(flat, parts[-1], limit)
        last = parts[-1]
        if tail is not None:
            changes.append(tail)
            self.noise = own_noise(self.usual, *self.squares(tail.start))
            is_shown = tail.confirmed or tail.size < 0  # an improvement counts if it is confirmed
            if is_shown and last.stop - tail.start >= CONFIRMING:
                last = slice(tail.start, last.stop)
        level = float(_mean(flat[last]) + (self.slope * self.hinge[-1] if drift else 0.0))
        moved = [each._replace(start=each.start + self.skipped) for each in changes]
        moved.sort(key=lambda each: each.start)
        return FittedSeries(level, self.noise, tuple(moved), _slope(self.days, self.clipped))

    def _step(self, flat: Array, before: slice, after: slice) -> LevelChange:
        """The size is that of means or of medians, whichever is smaller: few nights of a short
        level can be odd."""
        by_mean = float(_mean(flat[after]) - _mean(flat[before]))
        by_median = _middle(flat[after]) - _middle(flat[before])
        size = min(by_mean, by_median, key=abs)
        return _change(self.noise, size, before, after)

    def prune(self, limit: float) -> None:
        """Removes the boundaries that are no change, the least certain one first."""
        count = len(self.values)
        raw = self.detrended(self.values)
        while True:
            # what is left of a boundary that was removed is noise
            self.noise = own_noise(self.usual, *self.settled_squares())
            flat, parts = self.detrended(self.clipped), self.segments()
            weak = []
            for before, after in pairwise(parts):
                change = self._step(flat, before, after)
                base = _mean(flat[before])
                apart = raw[after] - base
                least = max(limit / 2, abs(_middle(apart)) * LEAST_SHARE)
                odd = not _stands_out(raw[before] - base, apart, change.size, least)
                first = before.start == 0 and before.stop < LEAST_BEFORE
                # a level that ended has a first and a last night
                places = count if after.stop == count else count**2
                is_rare = change.p * places <= FALSE_ALARM
                if first or odd or not is_rare or abs(change.size) <= limit:
                    weak.append(change)
            if not weak:
                return
            self.cuts.remove(max(weak, key=lambda c: (c.p, -abs(c.size))).start)

    def date(self) -> None:
        """Moves each boundary to where the two levels beside it divide their nights best."""
        flat = self.detrended(self.clipped)
        ends = [0, *sorted(self.cuts), len(self.values)]
        for n in range(1, len(ends) - 1):
            both = slice(ends[n - 1], ends[n + 1])
            first = both.start + (LEAST_BEFORE if both.start == 0 else CONFIRMING)
            ends[n] = min(_likeliest(flat, first, both), both.stop - CONFIRMING)
        self.cuts = set(ends[1:-1])

    def drift(self, limit: float) -> LevelChange | None:
        if self.onset < 0:
            return None
        hinge = self.hinge
        share = 1 / float(((hinge - hinge.mean()) ** 2).sum())
        error = self.noise.deviation * share**0.5
        p = self.noise.chance(self.slope, share)
        size, span = self.slope * float(hinge[-1]), float(hinge[-1])
        if p > FALSE_ALARM or abs(size) <= limit:
            return None
        return LevelChange(self.onset, size, error * span, p, self.slope)

    def _tail(self, flat: Array, last: slice, limit: float) -> LevelChange | None:
        """What the last few nights show, of all numbers of nights the least probable. Nights of
        which each was measured several times confirm it."""
        raw = self.detrended(self.values)
        starts = np.arange(max(last.start + LEAST_BEFORE, last.stop - SUSPECT_NIGHTS), last.stop)
        if self._is_tail_level(starts, flat, raw, last, limit):
            return None
        shown: list[LevelChange] = []
        for start in reversed(starts.tolist()):
            if (found := self._tail_from(start, flat, raw, last, limit)) is not None:
                shown.append(found)
        best = min(shown, key=lambda each: (not each.confirmed, each.p), default=None)
        if best is None:
            return None
        start = _likeliest(flat, max(last.start + LEAST_BEFORE, best.start - CONFIRMING), last)
        dated = self._tail_from(start, flat, raw, last, limit) if start != best.start else None
        return best if dated is None or dated.confirmed < best.confirmed else dated

    @staticmethod
    def _is_tail_level(starts: Array, flat: Array, raw: Array, last: slice, limit: float) -> bool:
        """Whether none of the last few nights is further than the limit from any level before it,
        so that `_tail_from` finds nothing from any of ``starts``: a quick look, for most series are
        so."""
        if not len(starts):
            return True
        before = starts - last.start
        levels = flat[last].cumsum()[before - 1] / before
        tail, margin = raw[starts], limit * (1 - 1e-9)
        return bool(tail.max() - levels.min() < margin and levels.max() - tail.min() < margin)

    def _tail_from(
        self, start: int, flat: Array, raw: Array, last: slice, limit: float
    ) -> LevelChange | None:
        """The change of the last nights from ``start`` on; None if they show none."""
        before, after = slice(last.start, start), slice(start, last.stop)
        base = _mean(flat[before])
        apart = raw[after] - base
        # of an even number the smaller one of the two in the middle
        middle = float(apart[np.argsort(np.abs(apart))[(len(apart) - 1) // 2]])
        least = max(limit / 2, abs(middle) * LEAST_SHARE)
        if abs(middle) <= limit or not _stands_out(raw[before] - base, apart, middle, least):
            return None
        noise = own_noise(self.usual, *self.squares(start))
        reach = CLIPPED * noise.deviation
        size = float(np.clip(apart, middle - reach, middle + reach).mean())
        found = _change(noise, size, before, after)
        if found.p > SUSPICIOUS:
            return None
        surveys = sum(self.series.surveys[start:])
        sure = surveys >= CONFIRMING and found.p <= FALSE_ALARM
        return found._replace(confirmed=sure)


def _likeliest(flat: Array, first: int, last: slice) -> int:
    """The night from ``first`` on at which two levels divide the nights of ``last`` best: the split
    of the greatest likelihood, if nights are normal around either level."""
    sums = np.cumsum(flat[last] - _mean(flat[last]))
    starts = np.arange(first, last.stop)
    before = starts - last.start
    size = last.stop - last.start
    explained = sums[before - 1] ** 2 * size / (before * (size - before))
    return int(starts[np.argmax(explained)])


def _stands_out(before: Array, after: Array, size: float, least: float) -> bool:
    """Whether each of a few nights differs by at least ``least``, and few nights before them are as
    far from their level as most of these: noise need not be normal. True for many nights."""
    if len(after) > FEW_NIGHTS:
        return True
    sign = np.sign(size)
    as_far = int((before * sign >= _middle(after) * sign).sum())
    shown = float((after * sign).min()) >= least
    return shown and as_far <= max(1, MOST_ODD * len(before))


def _change(noise: NightNoise, size: float, before: slice, after: slice) -> LevelChange:
    share = 1 / (before.stop - before.start) + 1 / (after.stop - after.start)
    return LevelChange(after.start, size, noise.deviation * share**0.5, noise.chance(size, share))


def _middle(values: Array) -> float:
    """The median, which numpy takes longer for than to sort a few nights."""
    ordered = np.sort(values)
    half = len(ordered) // 2
    low = ordered[half - (len(ordered) % 2 == 0)]
    return float((low + ordered[half]) / 2)


def _mean(values: Array) -> float:
    return float(np.add.reduce(values)) / len(values)


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
        # neither shows the noise of a series with two levels, of which each night has one or other
        apart = np.sort(np.abs(np.diff(rows, axis=1)), axis=1)[:, : -2 - count // 12]
        wide = apart.mean(axis=1) * NORMAL_MEAN
        rough = np.maximum.reduce([half, around, wide, np.full(len(rows), LEAST_DEVIATION)])
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


def _divided(parts: Sequence[_Part], limit: float) -> Iterator[_Part]:
    """Takes the best step or drift of each part, and yields what is to be looked at again."""
    rows = np.array([p.fit.detrended(p.fit.clipped)[p.start : p.stop] for p in parts])
    rough = np.array([part.fit.noise.deviation for part in parts])
    score, start, stop = _best_stretch(rows)
    score = score / rough
    slopes, onsets, drift_score = _best_drift(parts, rows)
    drift_score = drift_score / rough
    count = rows.shape[1]
    for n, part in enumerate(parts):
        is_whole = part.start == 0 and part.stop == len(part.fit.values)
        may_drift = is_whole and part.fit.is_drifting and part.fit.onset < 0
        if may_drift and drift_score[n] > max(score[n], CANDIDATE):
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


def _share_noise(
    fits: Sequence[_Fit],
    squares: Callable[[_Fit], tuple[float, float]],
    known: Mapping[Hashable, NightNoise] | None = None,
) -> None:
    """Estimates the noise of each series by that of it and of its peers, which may be ``known``."""
    for peers, same in grouped((fit.series.peers, fit) for fit in fits).items():
        for part in [same] if peers is not None else [[fit] for fit in same]:
            shown = [squares(fit) for fit in part]
            usual = noise_of_peers(shown) if known is None else known[peers]
            for fit, own in zip(part, shown, strict=True):
                fit.usual, fit.noise = usual, own_noise(usual, *own)


def noise_of_peers(shown: Iterable[tuple[float, float]]) -> NightNoise:
    """The noise that the squares of equivalent series show, in whatever order they come."""
    return usual_noise(*zip(*sorted(shown), strict=True))


def least_change(noise: NightNoise, before: int, threshold: float) -> float:
    """The smallest relative change that `CONFIRMING` nights show with a chance of one half, after
    so many nights ``before``."""
    share = 1 / max(before, 1) + 1 / CONFIRMING
    return float(np.expm1(max(noise.least_size(FALSE_ALARM, share), np.log1p(threshold))))
