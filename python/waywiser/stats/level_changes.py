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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from waywiser.stats.level_boundaries import (
    CONFIRMING,
    FALSE_ALARM,
    FEW_NIGHTS,
    LEAST_BEFORE,
    LEAST_SHARE,
    prune,
    settled_squares,
    squares_around,
)
from waywiser.stats.night_noise import (
    DEVIATIONS,
    LEAST_DEVIATION,
    UNKNOWN_NOISE,
    NightNoise,
    least_sizes,
    own_noise,
    own_weights,
    usual_noise,
)
from waywiser.stats.night_rows import (
    MOST_CELLS,
    MOST_ODD,
    best_drifts,
    best_stretches,
    chunks,
    row_medians,
    row_slopes,
    running_medians,
    sorted_medians,
)
from waywiser.stats.order import NORMAL_SCALE
from waywiser.words import grouped

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    Array = NDArray[Any]

SUSPICIOUS = 1e-4
"""`FALSE_ALARM` of what is worth to be measured again."""

SUSPECT_NIGHTS = 10
"""Last nights that are looked at for what is suspected."""

DRIFT_NIGHTS = 14
"""Nights over which a drift is seen at least."""

CLIPPED = 3.0
"""Deviations from the median of its neighbours to which a value is clipped."""

ROUGH_SHARE = 0.3
"""Degrees of freedom of the first estimate of the noise, over nights: it is made of medians."""

NORMAL_MEAN = math.pi**0.5 / 2
"""The deviation of normal values over the mean absolute difference of two of them."""

CANDIDATE = 3.5
"""Deviations, by a first estimate of the noise, from which on a change is a candidate."""

CANDIDATE_NIGHTS = 60
"""Nights up to which these count; of more nights, more deviations."""

LEAST_NIGHTS = 6
"""Nights before which nothing is said of a series: its noise is not known."""

MOST_NIGHTS = 400
"""Nights of a series; of more, the last ones are looked at."""


class SeriesOfNights(NamedTuple):
    """Series that have equally many nights with a value, one in each row, in the order of time.
    Series whose nights are the same may have one row of days and surveys."""

    values: Array
    """Logarithms."""
    days: Array
    """When each was measured, in days since some day."""
    surveys: Array
    """Surveys of each night."""
    peers: Sequence[Hashable]
    """Series with an equal one have equal noise; one with None has no peers."""


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


Shown = dict["Hashable", list["Array"]]
"""The squares of series and their degrees of freedom, in two columns, by peers."""

Known = Mapping["Hashable", NightNoise]
"""The noise that peers show together."""


class CandidateChanges(NamedTuple):
    """The candidates for changes of many series, and what the series show of their noise around
    them. Columns have a value for each series, by its number."""

    changes: dict[int, tuple[frozenset[int], int, float]]
    """The cuts, the onset of a drift and its slope, by the numbers of series that have some."""
    squares: Array
    freedom: Array
    """The degrees of freedom of the ``squares``."""
    wander: Array
    """The squares of the differences from night to night, of `MOST_NIGHTS` at most."""
    trends: Array
    """The slope per day over all nights."""
    means: Array
    """The level of a series that has one alone."""
    is_level: Array
    """Whether a series has one level alone: no candidate, and nothing that its last nights show."""

    @classmethod
    def none(cls, series: int) -> CandidateChanges:
        squares, freedom, wander, trends, means = np.zeros((5, series))
        return cls({}, squares, freedom, wander, trends, means, np.zeros(series, bool))

    def of(self, numbers: Sequence[int]) -> CandidateChanges:
        """Returns the candidates of some series, whose new numbers are their places."""
        changes = {
            place: self.changes[number]
            for place, number in enumerate(numbers)
            if number in self.changes
        }
        at = np.array(numbers, int)
        return CandidateChanges(changes, *(column[at] for column in self[1:]))


def fit_series(series: Iterable[SeriesOfNights], threshold: float) -> list[FittedSeries | None]:
    """Returns what is known of each series; None for one with fewer than `LEAST_NIGHTS` nights.
    Changes of up to ``threshold``, as a relative change, are none. The noise of a series is that
    which these show."""
    fits = SeriesFits(series, threshold)
    return fits.finished(fits.look(None).settled)


def finish_series(
    series: Iterable[SeriesOfNights], threshold: float, settled: Known, candidates: CandidateChanges
) -> list[FittedSeries | None]:
    """Returns what `fit_series` does, of series whose ``candidates`` were found before, with the
    noise that peers show around their levels."""
    fits = SeriesFits(series, threshold)
    fits.resume(candidates)
    return fits.finished(settled)


def noise_by_peers(shown: Shown) -> dict[Hashable, NightNoise]:
    """The noise that the series of each group of peers show together."""
    return {peers: usual_noise(*np.concatenate(own).T) for peers, own in shown.items()}


def noise_of_series(
    known: Known, by_peers: Mapping[Hashable, Sequence[int]], squares: Array, freedom: Array
) -> tuple[Array, Array]:
    """Returns the weights and the deviation of the noise of each series, by what it shows and what
    its peers do. The numbers of the series are given by their peers."""
    weights, deviations = np.empty((len(squares), len(DEVIATIONS))), np.empty(len(squares))
    for peers, same in by_peers.items():
        for part in chunks(len(same), len(DEVIATIONS)):
            own = same[part]
            weights[own], deviations[own] = own_weights(
                known[peers].weights, squares[own], freedom[own]
            )
    return weights, deviations


class SeriesFits:
    """Series while they are looked at. Between the steps, which follow one another, the noise of
    peers is shared, maybe with series that are elsewhere. No thread-safety."""

    def __init__(self, series: Iterable[SeriesOfNights], threshold: float) -> None:
        self._limit = float(np.log1p(threshold))
        self._count = 0
        self._blocks: list[_Block] = []
        waiting: dict[int, list[tuple[int, SeriesOfNights]]] = {}
        cells: dict[int, int] = {}
        for each in series:
            number, nights = each.values.shape
            if nights >= LEAST_NIGHTS:
                waiting.setdefault(nights, []).append((self._count, each))
                cells[nights] = cells.get(nights, 0) + each.values.size
                if cells[nights] >= MOST_CELLS:
                    self._blocks.append(_Block(waiting.pop(nights)))
                    cells[nights] = 0
            self._count += number
        self._blocks += map(_Block, waiting.values())

    def look(self, noise: SeriesNoise | None) -> SeriesNoise:
        """Finds candidates, and what the series show around their levels: with the noise of a
        fleet of which these are a part, or with what these show, which is returned then."""
        if noise is not None:
            self.divide(noise.rough)
            self.shown_around_levels()
            return noise
        rough = noise_by_peers(self.shown_by_differences())
        self.divide(rough)
        return SeriesNoise(rough, noise_by_peers(self.shown_around_levels()))

    def shown_by_differences(self) -> Shown:
        """What the series show of their noise by a first estimate."""
        return self._shown()

    def divide(self, known: Known) -> None:
        """Finds candidates, with the noise that peers are ``known`` to have."""
        self._share(known)
        self._divide([part for block in self._blocks for part in block.divided(self._limit)])

    def shown_around_levels(self) -> Shown:
        """What the series show of their noise around their levels."""
        for block in self._blocks:
            if not block.is_settled:
                block.settle()
        return self._shown()

    @property
    def candidates(self) -> CandidateChanges:
        """The candidates that were found until now."""
        found = CandidateChanges.none(self._count)
        for block in self._blocks:
            found.squares[block.numbers] = block.squares
            found.freedom[block.numbers] = block.freedom
            found.wander[block.numbers] = block.wander
            found.trends[block.numbers] = block.trends
            found.means[block.numbers] = block.means
            found.is_level[block.numbers] = block.are_level(self._limit)
            for row, fit in block.fits.items():
                if not fit.is_even:
                    number = int(block.numbers[row])
                    found.changes[number] = frozenset(fit.cuts), fit.onset, fit.slope
        return found

    def resume(self, candidates: CandidateChanges) -> None:
        """Goes on with candidates that were found of the same series, and with what these showed
        around their levels."""
        for block in self._blocks:
            for row, number in enumerate(block.numbers.tolist()):
                if (known := candidates.changes.get(number)) is not None:
                    fit = block.fit(row)
                    fit.cuts, fit.onset, fit.slope = {*known[0]}, known[1], known[2]
            block.squares = candidates.squares[block.numbers]
            block.freedom = candidates.freedom[block.numbers]
            block.is_settled = True

    def finished(self, known: Known) -> list[FittedSeries | None]:
        """What is known of each series, in their order."""
        self._share(known)
        drifting = [f for block in self._blocks for f in block.fits.values() if f.onset >= 0]
        for fit in drifting:
            fit.drift = fit.confirmed_drift(self._limit)
        steady = [fit for fit in drifting if fit.drift is None]
        for fit in steady:
            fit.is_drifting, fit.onset, fit.slope = False, -1, 0.0
            fit.cuts.clear()
        self._divide([_Part(fit, 0, len(fit.values)) for fit in steady])
        found: list[FittedSeries | None] = [None] * self._count
        for block in self._blocks:
            fitted = block.fitted(self._limit)
            for number, series in zip(block.numbers.tolist(), fitted, strict=True):
                found[number] = series
        return found

    def _shown(self) -> Shown:
        found: Shown = {}
        for block in self._blocks:
            both = np.column_stack([block.squares, block.freedom])
            for peers, rows in block.rows_by_peers.items():
                found.setdefault(peers, []).append(both[rows])
        return found

    def _share(self, known: Known) -> None:
        """Estimates the noise of each series by that of it and of its peers."""
        for block in self._blocks:
            block.share(known)

    def _divide(self, parts: list[_Part]) -> None:
        while parts:
            again: list[_Part] = []
            for count, same in grouped((part.stop - part.start, part) for part in parts).items():
                if count < 2 * CONFIRMING:
                    continue
                for chunk in chunks(len(same), count):
                    again += _divided(same[chunk], self._limit)
            parts = again


class _Block:
    """Some series of equal length, one in each row of arrays that the cache of a core holds. Most
    have nothing but noise: only the others get a `_Fit`."""

    def __init__(self, pieces: Sequence[tuple[int, SeriesOfNights]]) -> None:
        """Each piece has the number of its first series."""
        shapes = [piece.values.shape for _, piece in pieces]
        self.numbers = np.concatenate(
            [first + np.arange(rows) for (first, _), (rows, _) in zip(pieces, shapes, strict=True)]
        )
        self.skipped = max(0, shapes[0][1] - MOST_NIGHTS)
        self.values, self.days, self.surveys = self._columns([piece for _, piece in pieces])
        every = [peers for _, piece in pieces for peers in piece.peers]
        self.peers: list[Hashable] = [
            ("alone", int(number)) if peers is None else peers
            for number, peers in zip(self.numbers, every, strict=True)
        ]
        self.rows_by_peers = grouped((peers, row) for row, peers in enumerate(self.peers))
        count, nights = self.values.shape
        steps = np.diff(self.values, axis=1)
        self.wander = (steps**2).sum(axis=1)
        """The squares of the differences from night to night."""
        self.clipped, rough = _clipped(self.values, np.sort(np.abs(steps)))
        self.means = np.add.reduce(self.clipped, axis=1) / nights
        self.trends = row_slopes(self.days, self.clipped)
        """The slope of each over all nights."""
        self.freedom = np.full(count, ROUGH_SHARE * nights)
        self.squares = self.freedom * rough**2
        """The squares of each series with so many degrees of freedom: first by `_clipped`."""
        self.is_settled = False
        """Whether they are those around its levels."""
        self.weights = np.zeros((count, 0))
        """What is known of the noise of each."""
        self.deviations = np.zeros(count)
        self.usual: Known = {}
        self.fits: dict[int, _Fit] = {}
        """The series that may have more than noise, by row."""

    def _columns(self, pieces: Sequence[SeriesOfNights]) -> Iterator[Array]:
        """Yields the values, the days and the surveys of all nights that are not skipped."""
        shapes = [piece.values.shape for piece in pieces]
        for column in zip(*((p.values, p.days, p.surveys) for p in pieces), strict=True):
            every = (np.broadcast_to(*each) for each in zip(column, shapes, strict=True))
            yield np.concatenate([rows[:, self.skipped :] for rows in every])

    def fit(self, row: int) -> _Fit:
        if row not in self.fits:
            self.fits[row] = fit = _Fit(self, row)
            if self.usual:
                fit.usual, fit.noise = self.usual[self.peers[row]], self._noise(row)
        return self.fits[row]

    def _noise(self, row: int) -> NightNoise:
        return NightNoise(self.weights[row], float(self.deviations[row]))

    def share(self, known: Known) -> None:
        """Estimates the noise of each series by that of it and of its peers."""
        self.usual = known
        self.weights, self.deviations = noise_of_series(
            known, self.rows_by_peers, self.squares, self.freedom
        )
        for row, fit in self.fits.items():
            fit.usual, fit.noise = known[self.peers[row]], self._noise(row)

    def divided(self, limit: float) -> Iterator[_Part]:
        """Takes the best step or drift of each series, and yields what is to be looked at again."""
        count = self.values.shape[1]
        for rows in chunks(len(self.values), count):
            drifts, steps = _best_changes(
                self.clipped[rows],
                self.deviations[rows],
                np.arange(rows.stop - rows.start),
                self.days[rows],
                limit,
            )
            for row, onset, slope in drifts:
                yield _Part(self.fit(rows.start + row), 0, count).with_drift(onset, slope)
            for row, first, last in steps:
                yield from _Part(self.fit(rows.start + row), 0, count).with_step(first, last)

    def settle(self) -> None:
        """Sets the squares of all nights but the last ones, which the next have to confirm."""
        rows = self.values
        drifting = {row: fit for row, fit in self.fits.items() if fit.onset >= 0}
        if drifting:
            rows = rows.copy()
        for row, fit in drifting.items():
            rows[row] = fit.detrended(fit.values)
        begins = _begins(rows.shape, ((row, fit.cuts) for row, fit in self.fits.items()))
        is_drifting = np.zeros(len(rows), bool)
        is_drifting[list(drifting)] = True
        self.squares, self.freedom = settled_squares(rows, begins, is_drifting)
        self.is_settled = True

    def _prune(self, limit: float) -> None:
        """Removes the candidates for steps that are no change."""
        fits = [fit for fit in self.fits.values() if fit.cuts or not fit.is_drifting]
        if not fits:
            return
        shape = len(fits), self.values.shape[1]
        begins = _begins(shape, ((n, fit.cuts) for n, fit in enumerate(fits)))
        weights, deviations = prune(
            np.array([fit.detrended(fit.clipped) for fit in fits]),
            np.array([fit.detrended(fit.values) for fit in fits]),
            begins,
            np.array([fit.usual.weights for fit in fits]),
            np.array([fit.onset >= 0 for fit in fits]),
            limit,
        )
        for n, (fit, deviation) in enumerate(zip(fits, deviations.tolist(), strict=True)):
            fit.cuts = {*np.flatnonzero(begins[n])[1:].tolist()}
            fit.noise = NightNoise(weights[n], deviation)

    def are_level(self, limit: float) -> Array:
        """Returns whether each has one level alone, by the candidates that are left."""
        found = _are_tails_level(self.clipped, self.values, slice(0, self.values.shape[1]), limit)
        for row, fit in self.fits.items():
            found[row] &= fit.is_even
        return found

    def fitted(self, limit: float) -> Iterator[FittedSeries]:
        """Yields what is known of each: of most there is one level alone."""
        self._prune(limit)
        level = self.are_level(limit)
        columns = (column.tolist() for column in (level, self.means, self.trends))
        for row, (is_level, mean, trend) in enumerate(zip(*columns, strict=True)):
            if is_level:
                noise = self.fits[row].noise if row in self.fits else self._noise(row)
                yield FittedSeries(mean, noise, (), trend)
            else:
                yield self.fit(row).fitted(limit)


class _Fit:
    """A series that may have more than noise, while it is looked at."""

    def __init__(self, block: _Block, row: int) -> None:
        self.skipped = block.skipped
        self.values = block.values[row]
        self.days = block.days[row]
        self.surveys = block.surveys[row]
        self.clipped = block.clipped[row]
        self.trend = float(block.trends[row])
        """The slope over all nights."""
        self.cuts: set[int] = set()
        self.onset = -1
        """The first night of a drift; -1 for none."""
        self.slope = 0.0
        self.is_drifting = True
        """Whether a drift is looked for; False if the one that was found is none."""
        self.drift: LevelChange | None = None
        """The drift that began at ``onset``, if it is a change."""
        self.usual = UNKNOWN_NOISE
        """The noise that the peers of the series show together."""
        self.noise = UNKNOWN_NOISE
        """The noise of the series itself."""

    @property
    def is_even(self) -> bool:
        """Whether there is neither a candidate for a step nor one for a drift."""
        return self.onset < 0 and not self.cuts

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

    def squares(self, cut: int) -> tuple[float, float]:
        """Returns the squares of the series around its levels without outliers, and their degrees
        of freedom; with a further ``cut`` between levels."""
        begins = _begins((1, len(self.values)), [(0, {*self.cuts, cut})])
        squares, freedom = squares_around(self.detrended(self.values)[None], begins)
        return float(squares[0]), max(float(freedom[0]) - (self.onset >= 0), 1.0)

    def fitted(self, limit: float) -> FittedSeries:
        drift = self.drift
        if self.cuts:
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
        return FittedSeries(level, self.noise, tuple(moved), self.trend)

    def _step(self, flat: Array, before: slice, after: slice) -> LevelChange:
        """The size is that of means or of medians, whichever is smaller: few nights of a short
        level can be odd."""
        by_mean = float(_mean(flat[after]) - _mean(flat[before]))
        by_median = _middle(flat[after]) - _middle(flat[before])
        size = min(by_mean, by_median, key=abs)
        return _change(self.noise, size, before, after)

    def date(self) -> None:
        """Moves each boundary to where the two levels beside it divide their nights best."""
        flat = self.detrended(self.clipped)
        ends = [0, *sorted(self.cuts), len(self.values)]
        for n in range(1, len(ends) - 1):
            both = slice(ends[n - 1], ends[n + 1])
            first = both.start + (LEAST_BEFORE if both.start == 0 else CONFIRMING)
            ends[n] = min(_likeliest(flat, first, both), both.stop - CONFIRMING)
        self.cuts = set(ends[1:-1])

    def confirmed_drift(self, limit: float) -> LevelChange | None:
        """The drift from ``onset`` on; None if noise may make it, or if it is small."""
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
        if _are_tails_level(flat[None], raw[None], last, limit)[0]:
            return None
        shown: list[LevelChange] = []
        for start in reversed(_tail_starts(last)):
            if (found := self._tail_from(start, flat, raw, last, limit)) is not None:
                shown.append(found)
        best = min(shown, key=lambda each: (not each.confirmed, each.p), default=None)
        if best is None:
            return None
        start = _likeliest(flat, max(last.start + LEAST_BEFORE, best.start - CONFIRMING), last)
        dated = self._tail_from(start, flat, raw, last, limit) if start != best.start else None
        return best if dated is None or dated.confirmed < best.confirmed else dated

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
        surveys = int(self.surveys[start:].sum())
        sure = surveys >= CONFIRMING and found.p <= FALSE_ALARM
        return found._replace(confirmed=sure)


def _begins(shape: tuple[int, int], cuts: Iterable[tuple[int, Iterable[int]]]) -> Array:
    """Returns an array that says where segments begin, by the cuts of some rows."""
    found = np.zeros(shape, bool)
    found[:, 0] = True
    for row, own in cuts:
        found[row, list(own)] = True
    return found


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
    return float(row_medians(values))


def _mean(values: Array) -> float:
    return float(np.add.reduce(values)) / len(values)


def _tail_starts(last: slice) -> range:
    """The nights from which on a change of the last level may be seen that has just begun."""
    return range(max(last.start + LEAST_BEFORE, last.stop - SUSPECT_NIGHTS), last.stop)


def _are_tails_level(flat: Array, raw: Array, last: slice, limit: float) -> Array:
    """Whether in each row the last few nights, from any of them on, are no further than the limit
    from the level before them, so that `_Fit._tail` finds nothing: a quick look, for most series
    are so."""
    starts = np.array(_tail_starts(last), int)
    if not len(starts):
        return np.ones(len(flat), bool)
    before = starts - last.start
    levels = flat[:, last].cumsum(axis=1)[:, before - 1] / before
    tail, margin = raw[:, starts], limit * (1 - 1e-9)
    is_above = tail.max(axis=1) - levels.min(axis=1) >= margin
    is_apart = is_above | (levels.max(axis=1) - tail.min(axis=1) >= margin)
    rows = np.flatnonzero(is_apart)  # one night differs from one level: do most of them?
    tail, levels = tail[rows], levels[rows]
    is_apart[rows] = False
    for n in range(len(starts)):
        distances = np.sort(np.abs(tail[:, n:] - levels[:, n, None]), axis=1)
        is_apart[rows] |= distances[:, (distances.shape[1] - 1) // 2] >= margin
    found: Array = ~is_apart
    return found


def _clipped(rows: Array, steps: Array) -> tuple[Array, Array]:
    """Clips single odd values, and makes the first estimates of the noise. ``steps`` are how far
    each value is from the one before it, sorted."""
    count = rows.shape[1]
    half = sorted_medians(steps) * (NORMAL_SCALE / 2**0.5)
    middle = running_medians(rows)
    apart = np.abs(rows - middle)
    # the differences of a series that alternates are its noise, those of one that wanders not
    around = row_medians(apart) * NORMAL_SCALE * (1.25 if count >= 5 else 1.0)
    # neither shows the noise of a series with two levels, of which each night has one or other
    wide = steps[:, : -2 - count // 12].mean(axis=1) * NORMAL_MEAN
    rough = np.maximum.reduce([half, around, wide, np.full(len(rows), LEAST_DEVIATION)])
    reach = CLIPPED * rough[:, None]
    return np.clip(rows, middle - reach, middle + reach), rough


class _Part(NamedTuple):
    """A segment of a series that may have a change in it."""

    fit: _Fit
    start: int
    stop: int

    @property
    def may_drift(self) -> bool:
        is_whole = self.start == 0 and self.stop == len(self.fit.values)
        return is_whole and self.fit.is_drifting and self.fit.onset < 0

    def with_drift(self, onset: int, slope: float) -> _Part:
        """Lets the series drift. What is left of it is looked at again."""
        self.fit.onset, self.fit.slope = onset, slope
        return self

    def with_step(self, first: int, last: int) -> Iterator[_Part]:
        """Divides the segment at the ends of a stretch. Its parts are looked at again."""
        count = self.stop - self.start
        self.fit.cuts |= {self.start + cut for cut in (first, last) if 0 < cut < count}
        for a, b in pairwise((0, first, last, count)):
            if b - a < count:
                yield _Part(self.fit, self.start + a, self.start + b)


def _least_candidate(count: int) -> float:
    """Deviations of a candidate among so many values: the best of more stretches is larger by noise
    alone, whose square grows with the logarithm of their number."""
    return math.sqrt(CANDIDATE**2 + 4 * math.log(max(1.0, count / CANDIDATE_NIGHTS)))


def _divided(parts: Sequence[_Part], limit: float) -> Iterator[_Part]:
    """Takes the best step or drift of each part, and yields what is to be looked at again. The
    parts have equal lengths."""
    rows = np.array([p.fit.detrended(p.fit.clipped)[p.start : p.stop] for p in parts])
    rough = np.array([part.fit.noise.deviation for part in parts])
    whole = np.array([n for n, part in enumerate(parts) if part.may_drift], int)
    days = np.array([parts[n].fit.days for n in whole]).reshape(len(whole), rows.shape[1])
    drifts, steps = _best_changes(rows, rough, whole, days, limit)
    for n, onset, slope in drifts:
        yield parts[n].with_drift(onset, slope)
    for n, first, last in steps:
        yield from parts[n].with_step(first, last)


def _best_changes(
    rows: Array, rough: Array, whole: Array, days: Array, limit: float
) -> tuple[list[tuple[int, int, float]], list[tuple[int, int, int]]]:
    """Returns the best change of each row, if it may count: drifts with their onset and slope, and
    stretches with their ends. The ``whole`` rows, which have these days, may drift."""
    least = _least_candidate(rows.shape[1])
    score, first, last = best_stretches(rows, CONFIRMING, least * rough)
    score /= rough
    slopes, onsets, explained = best_drifts(days, rows[whole], DRIFT_NIGHTS)
    size = np.abs(slopes) * (days[:, -1] - days[np.arange(len(whole)), onsets])
    best = np.maximum(score[whole], least)
    drifting = np.flatnonzero((explained / rough[whole] > best) & (size > limit))
    score[whole[drifting]] = 0.0
    stepping = np.flatnonzero(score > least)
    drifts = zip(whole[drifting], onsets[drifting], slopes[drifting], strict=True)
    steps = zip(stepping, first[stepping], last[stepping], strict=True)
    return (
        [(int(n), int(onset), float(slope)) for n, onset, slope in drifts],
        [(int(n), int(a), int(b)) for n, a, b in steps],
    )


def least_changes(weights: Array, nights: Array, threshold: float) -> Array:
    """The smallest relative change of each of some series that `CONFIRMING` nights show with a
    chance of one half, after so many ``nights``. ``weights`` are those of their noise."""
    shares = 1 / np.maximum(nights, 1) + 1 / CONFIRMING
    found: Array = np.expm1(
        np.maximum(least_sizes(weights, FALSE_ALARM, shares), np.log1p(threshold))
    )
    return found
