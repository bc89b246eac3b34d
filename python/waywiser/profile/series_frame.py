"""All series of a profile as arrays: one entry per visit, one per sample.

A frame reads the visits of its profile in one pass, and makes the statistics of all blocks at
once. Reports, comparisons and fleets read frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np

from waywiser.profile.block import (
    OF_MEDIAN,
    QUANTILE_NAMES,
    SHOWN_QUANTILES,
    STANDARD_ERRORS,
    BlockEstimate,
    BlockSummary,
    OutlierCount,
    Slowdown,
    standard_error,
)
from waywiser.profile.profile import Profile
from waywiser.profile.rows import (
    AloneRow,
    SeriesRow,
    VisitRow,
    alone_row,
    series_row,
    visit_row,
)
from waywiser.profile.sample_columns import Array, SampleColumns
from waywiser.stats import Interval
from waywiser.stats.dependence import Dependence, dependence, intervals
from waywiser.stats.level_shift import returned_in_blocks
from waywiser.stats.order import Segments, lower_rank
from waywiser.words import (
    BELOW_RESOLUTION,
    SUMMARY,
    VOID,
    GpuState,
    Samples,
    Series,
    Visit,
    Workload,
)

HOST_TICK_SECONDS = 1e-9
"""The unit of ``clock_gettime``."""

EVENT_TICK_SECONDS = 0.5e-6
"""Resolution that the CUDA runtime's documentation gives for the time between two events; used
where samples that are all equal do not show the device's own tick."""

SAME_SECONDS = 1e-9
"""Times of one tick count differ by less than this after division by the batch and rounding to
the 32-bit milliseconds of the event clock."""

MILD_IQR = 1.5
"""Interquartile ranges beyond a quartile where a sample is a mild outlier; Tukey's inner fence."""

SEVERE_IQR = 3.0
"""The same for a severe one; Tukey's outer fence."""


class FrameSeries(NamedTuple):
    """One series of a frame, and which of the frame's visits belong to it."""

    workload: Workload
    row: SeriesRow
    visits: slice


class SeriesBlocks(NamedTuple):
    """A series with the statistics of its blocks; its visits may come without their samples."""

    series: Series
    row: SeriesRow
    taken: Sequence[int]
    """The number of samples of each visit, void ones included."""
    blocks: Sequence[BlockEstimate | None]
    """The statistics of each visit; None if it has no sample that counts."""
    summaries: Sequence[BlockSummary]
    """The same in short, of each visit whose median is a time."""


class SeriesFrame(SampleColumns):
    """The visits and the samples of all series of a profile.

    Series are ordered by curve, then by size; visits by series, then by block; samples by visit, in
    the order taken. Arrays are made when they are first used. Statistics are NaN if a visit has no
    sample that counts. Every property raises `ProfileError` for a damaged file.
    """

    def __init__(
        self,
        found: Iterable[tuple[Workload, SeriesRow, Sequence[VisitRow]]],
        profile: Profile | None = None,
        alone: Mapping[tuple[str, int], AloneRow] | None = None,
    ) -> None:
        """Use `read` or `of`."""
        series: list[FrameSeries] = []
        visits: list[VisitRow] = []
        for workload, row, own in found:
            start = len(visits)
            visits += own
            series.append(FrameSeries(workload, row, slice(start, len(visits))))
        super().__init__(visits, profile, alone)
        self.series = tuple(series)

    @classmethod
    def read(cls, profile: Profile) -> SeriesFrame:
        """All visits of a profile."""
        rows = profile.rows_by_series()
        alone = profile.alone_rows
        return cls(
            ((profile.workload_of(row), row, rows[row.identity])
             for row in profile.series_rows(rows)),
            profile,
            {(row.series, row.block): alone[row.visit] for own in rows.values() for row in own
             if row.visit in alone},
        )  # fmt: skip

    @classmethod
    def joined(cls, frames: Sequence[SeriesFrame]) -> SeriesFrame:
        """The series of several frames, one frame after the other: arrays of few samples cost as
        much as longer ones. Its errors do not name the profile, unless it is of one frame."""
        if len(frames) == 1:
            return frames[0]
        return cls(
            (each.workload, each.row, frame.visits[each.visits])
            for frame in frames
            for each in frame.series
        )

    @classmethod
    def of(cls, series: Iterable[Series]) -> SeriesFrame:
        """Series in memory, in their order. Raises `ProfileError` for samples that no profile
        takes."""
        series = tuple(series)
        found = (
            (each.workload, series_row(each.workload),
             [visit_row(n, visit, 0, in_memory=True) for n, visit in enumerate(each.visits, 1)])
            for each in series
        )  # fmt: skip
        alone = {
            (each.workload.identity, visit.block): row
            for each in series
            if each.workload.is_sustained
            for n, visit in enumerate(each.visits, 1)
            if (row := alone_row(n, visit.samples)) is not None
        }
        return cls(found, alone=alone)

    def alone_series(self) -> Iterator[Series]:
        """Each copy between two memories of a sustained workload as a series of its own, of its
        times alone, by the host's clock. Of a copy of several workloads those of the first count.
        """
        known: set[str] = set()
        for workload, _, of in self.series if self._alone_rows else ():
            for at, transfer in enumerate(workload.transfers):
                alone = Workload((transfer,), cache=workload.cache)
                if transfer.path.is_among_several or alone.identity in known:
                    continue
                visits = tuple(self._alone_visits(alone, of, at))
                if visits:
                    known.add(alone.identity)
                    yield Series(alone, visits)

    def _alone_visits(self, workload: Workload, of: slice, at: int) -> Iterator[Visit]:
        for n in range(of.start, of.stop):
            if not self.counts[n] or (taken := self.alone(n)) is None:
                continue
            seconds = tuple(taken[:, at].tolist())
            start = self.starts[n]
            flags = tuple(self.flags[start : start + len(seconds)].tolist())
            once = (1,) * len(seconds)
            visit = self.bare_visit_of(self.visits[n], workload)
            times = Samples(span=seconds, host=seconds, repetitions=once, flags=flags)
            yield msgspec.structs.replace(visit, samples=times, mode="host")

    def only(self, is_selected: Callable[[Workload], bool]) -> SeriesFrame:
        """The frame of those series alone."""
        found = (
            (each.workload, each.row, self.visits[each.visits])
            for each in self.series
            if is_selected(each.workload)
        )
        return SeriesFrame(found, self.profile, self._alone_rows)

    @property
    def workloads(self) -> list[Workload]:
        return [each.workload for each in self.series]

    @property
    def gpu_states(self) -> tuple[GpuState, ...]:
        """Readings of GPUs while bytes moved, of all visits."""
        return tuple(state for visit in self.visits for state in self.gpu_states_of(visit))

    # Arrays with one entry per visit.

    @cached_property
    def host_timed(self) -> Array:
        """Whether the host's clock timed each visit, instead of the device's."""
        return np.array([visit.mode == "host" for visit in self.visits], dtype=bool)

    @cached_property
    def counts(self) -> Array:
        """Samples of each visit that count: those that are not void."""
        if self._are_all_kept:
            return self.taken
        return np.bincount(self._visit_of_kept, minlength=len(self.visits))

    @property
    def medians(self) -> Array:
        """Seconds."""
        return self._spans.medians

    @cached_property
    def intervals(self) -> tuple[Array, Array]:
        """The ends of the median's 95 % interval within each block, no narrower than a tick of the
        clock or a shift of the level that returned; NaN if there is none."""
        return self._no_narrower(*intervals(self._spans, self.dependence, self.shifts > 0))

    def _no_narrower(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Intervals that are no narrower than `intervals` are."""
        middle, tick = self.medians, self.ticks
        narrow = high - low < tick
        wide_low = np.maximum(0.0, np.minimum(low, middle - tick / 2))
        wide_high = np.maximum(high, middle + tick / 2)
        low, high = np.where(narrow, wide_low, low), np.where(narrow, wide_high, high)
        low, high = _with_shifts(low, high, middle, self.shifts)
        low[self.summaries_only], high[self.summaries_only] = np.nan, np.nan
        return low, high

    @cached_property
    def independent_errors(self) -> Array:
        """The standard error of each median, as a fraction of it, if its samples did not depend on
        each other; NaN if they are too few for an interval."""
        return self._errors(*self._no_narrower(*self._spans.intervals))

    def _errors(self, low: Array, high: Array) -> Array:
        """The standard errors of the medians that have these intervals, as fractions of them."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found: Array = (high - low) / 2 / STANDARD_ERRORS / self.medians
        return found

    @cached_property
    def dependence(self) -> Dependence:
        """How much the samples of each visit depend on each other."""
        return dependence(self._spans, self._series_of_visits)

    @cached_property
    def shifts(self) -> Array:
        """The relative size of a level that shifted among the samples of each visit and returned;
        0 for none."""
        return _shifts(self._spans)

    @cached_property
    def summaries_only(self) -> Array:
        """Whether a sample of a visit is another tool's mean or median."""
        return self._kept_sums((self._kept_flags & SUMMARY) != 0) > 0

    @cached_property
    def ticks(self) -> Array:
        """Seconds of one repetition that the clock of each visit can resolve.

        The tick is divided by the smallest batch. A device's tick is read off its samples: the
        smallest step between two times that differ, which is at least one tick.
        """
        spans = self._spans
        least = _reduced(np.minimum, self._kept_repetitions, spans)
        equal = least == _reduced(np.maximum, self._kept_repetitions, spans)
        whole = spans.ordered * np.repeat(least, spans.counts)
        if not equal.all():
            batched = Segments(spans.values * self._kept_repetitions, self.counts)
            mixed = ~np.repeat(equal, spans.counts)
            whole[mixed] = batched.ordered[mixed]
        steps = np.empty_like(whole)
        steps[1:] = np.diff(whole)
        steps[spans.starts] = 0.0
        step = _reduced(np.minimum, np.where(steps > SAME_SECONDS, steps, np.inf), spans)
        step = np.where(np.isinf(step), EVENT_TICK_SECONDS, step)
        host = self.host_timed[spans.known]
        return spans.filled(np.where(host, HOST_TICK_SECONDS, step) / least)

    @cached_property
    def deviations(self) -> Array:
        """The relative standard deviation of the samples of each visit, without other tools' means
        and medians; 0 for less than two samples. If they are enough, it is that of normal samples
        whose median has the same interval: a few slow ones do not widen it."""
        own = (self._kept_flags & SUMMARY) == 0
        visit = self._visit_of_kept[own]
        spans = Segments(self._kept_spans[own], np.bincount(visit, minlength=len(self.visits)))
        means = spans.sums(spans.values)[spans.known] / spans.counts
        squares = spans.sums((spans.values - np.repeat(means, spans.counts)) ** 2)[spans.known]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.sqrt(squares / (spans.counts - 1)) / means
        found = spans.filled(np.where((spans.counts > 1) & (means > 0), found, 0.0), 0.0)
        with np.errstate(over="ignore"):
            of_interval = self.independent_errors * np.sqrt(self.counts) / OF_MEDIAN
        return np.where(np.isnan(of_interval), found, of_interval)

    # What reports and comparisons take.

    def series_blocks(self) -> Iterator[SeriesBlocks]:
        """The statistics of each series' blocks; its visits come without their samples."""
        estimates, short = self._estimates(), self.summaries()
        taken = self.taken.tolist()
        for workload, row, of in self.series:
            visits = tuple(self.bare_visit_of(row, workload) for row in self.visits[of])
            summaries = [block for block in short[of] if block is not None]
            yield SeriesBlocks(Series(workload, visits), row, taken[of], estimates[of], summaries)

    def summaries(self) -> list[BlockSummary | None]:
        """Each visit in short; None if its median is no time."""
        errors = _or_none(self._errors(*self.intervals))
        medians, counts = self.medians.tolist(), self.counts.tolist()
        deviations = (self.deviations * np.sqrt(self.dependence.times)).tolist()
        shifts, summaries = self.shifts.tolist(), self.summaries_only.tolist()
        independent = _or_none(self.independent_errors)

        def block(n: int) -> BlockSummary:
            few = lower_rank(counts[n]) is None or not summaries[n]
            error = errors[n]
            if error is None:
                error = standard_error(medians[n], None, deviations[n] if few else 0.0, counts[n])
            return BlockSummary(
                self.visits[n].block,
                medians[n],
                error,
                counts[n],
                errors[n] is not None,
                shifts[n],
                independent[n],
            )

        return [block(n) if median > 0 else None for n, median in enumerate(medians)]

    def medians_alone(self) -> list[BlockSummary | None]:
        """The same without what samples of one process say of its median, which takes longer."""
        blocks = [visit.block for visit in self.visits]
        return [
            BlockSummary(block, median, shift=shift) if median > 0 else None
            for block, median, shift in zip(
                blocks, self.medians.tolist(), self.shifts.tolist(), strict=True
            )
        ]

    # How the statistics are made.

    @cached_property
    def _kept(self) -> Array:
        """Whether each sample counts."""
        found: Array = (self.flags & VOID) == 0
        return found

    @cached_property
    def _are_all_kept(self) -> bool:
        return bool(self._kept.all())

    @cached_property
    def _visit_of_kept(self) -> Array:
        return np.repeat(np.arange(len(self.visits)), self.taken)[self._kept]

    @cached_property
    def _kept_spans(self) -> Array:
        return self.span if self._are_all_kept else self.span[self._kept]

    @cached_property
    def _kept_flags(self) -> Array:
        return self.flags[self._kept]

    @cached_property
    def _kept_repetitions(self) -> Array:
        return self.repetitions[self._kept].astype(float)

    @cached_property
    def _series_of_visits(self) -> Array:
        """The number of each visit's series."""
        lengths = [len(self.visits[each.visits]) for each in self.series]
        return np.repeat(np.arange(len(lengths)), lengths)

    @cached_property
    def _spans(self) -> Segments:
        return Segments(self._kept_spans, self.counts)

    def _kept_sums(self, of_samples: Array) -> Array:
        """The number of a visit's samples that count for which it is true."""
        return self._spans.sums(of_samples.astype("<i8"))

    @cached_property
    def _host(self) -> Segments:
        host = self.host[self._kept]
        known = ~np.isnan(host)
        visit = self._visit_of_kept[known]
        return Segments(host[known], np.bincount(visit, minlength=len(self.visits)))

    def _drifts(self) -> Array:
        """Median of the second half over that of the first, minus 1; samples in the order taken.

        0 if the intervals of the two medians overlap, or if a half has no interval: then the halves
        are not known to differ; 0 also if the first half took no time.
        """
        spans = self._spans
        half = np.repeat(spans.counts // 2, spans.counts)
        place = np.arange(len(spans.values)) - np.repeat(spans.starts, spans.counts)
        size = np.repeat(spans.counts, spans.counts)
        halves = spans.filled(spans.counts // 2, 0)
        first = Segments(spans.values[place < half], halves)
        second = Segments(spans.values[place >= size - half], halves)
        (low, high), (low_after, high_after) = first.intervals, second.intervals
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = second.medians / first.medians - 1.0
        apart = (low > high_after) | (low_after > high)
        return np.where(apart & (first.medians != 0), found, 0.0)

    def _outliers(self, first: Array, third: Array) -> tuple[Array, Array]:
        """Mild and severe ones of each visit, by its quartiles; on a fence is inside."""
        spans = self._spans
        first, third = (np.repeat(each[spans.known], spans.counts) for each in (first, third))
        beyond = np.maximum(first - spans.values, spans.values - third)
        severe = (beyond > SEVERE_IQR * (third - first)) & (beyond > 0)
        mild = (beyond > MILD_IQR * (third - first)) & ~severe
        return self._kept_sums(mild), self._kept_sums(severe)

    def _transfer_medians(self) -> list[tuple[float, ...]]:
        """The median of each transfer's own time, for each visit of several transfers."""
        found: list[tuple[float, ...]] = [()] * len(self.visits)
        parts, counts, owners = [], [], []
        kept, starts, taken = self._kept, self.starts, self.taken
        for workload, _, of in self.series:
            width = len(workload.transfers)
            for n in range(of.start, of.stop):
                if width < 2 or self.visits[n].width != width or not self.counts[n]:
                    continue
                times = self.transfers(n)[kept[starts[n] : starts[n] + taken[n]]]
                parts.append(times.T.ravel())
                counts += [len(times)] * width
                owners.append((n, width))
        if parts:
            medians = iter(
                Segments(np.concatenate(parts), np.array(counts, dtype=np.int64)).medians.tolist()
            )
            for n, width in owners:
                found[n] = tuple(next(medians) for _ in range(width))
        return found

    def _slowdowns(self) -> dict[int, tuple[Slowdown, ...]]:
        """How many times as long as alone each transfer takes, for each visit that has both times:
        of a sample both were taken in turn."""
        found: dict[int, tuple[Slowdown, ...]] = {}
        kept, starts, taken = self._kept, self.starts, self.taken
        for _, _, of in self.series if self._alone_rows else ():
            known: dict[int, Array] = {}
            for n in range(of.start, of.stop):
                if not self.counts[n] or (alone := self.alone(n)) is None:
                    continue
                own = kept[starts[n] : starts[n] + taken[n]]
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios = (self.transfers(n) / alone)[own]
                if not np.isfinite(ratios).all():
                    raise self._damaged(self.visits[n], "a transfer that takes no time alone")
                known[n] = ratios.T
            if not known:
                continue
            # The ratios of one transfer in all processes depend alike.
            by_transfer = list(zip(*known.values(), strict=True))
            parts = [own for of_processes in by_transfer for own in of_processes]
            groups = Segments(np.concatenate(parts), np.array(list(map(len, parts))))
            of_transfer = np.repeat(np.arange(len(by_transfer)), len(known))
            ends = _intervals(*intervals(groups, dependence(groups, of_transfer)))
            slowdowns = list(map(Slowdown, groups.medians.tolist(), ends))
            for at, n in enumerate(known):
                found[n] = tuple(slowdowns[at :: len(known)])
        return found

    def _estimates(self) -> list[BlockEstimate | None]:
        """The estimate of each visit; None if it has no sample that counts."""
        quantiles = [self._spans.quantiles(probability) for probability in SHOWN_QUANTILES]
        first, third = (quantiles[SHOWN_QUANTILES.index(each)] for each in (0.25, 0.75))
        columns = self._columns(quantiles, third - first)
        names = tuple(columns)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        shown = [each.tolist() for each in quantiles]
        has_quantiles = (self._are_single & ~self.summaries_only).tolist()
        intervals, host_intervals = _intervals(*self.intervals), self._host_intervals()
        host_medians = _or_none(self._host.medians)
        mild, severe = (each.tolist() for each in self._outliers(first, third))
        summaries, transfers = self.summaries_only.tolist(), self._transfer_medians()
        slowdowns = self._slowdowns()

        def quantiles_of(n: int) -> dict[str, float]:
            return {name: each[n] for name, each in zip(QUANTILE_NAMES, shown, strict=True)}

        found: list[BlockEstimate | None] = []
        for n, (visit, values) in enumerate(zip(self.visits, rows, strict=True)):
            known = dict(zip(names, values, strict=True))
            if not known["count"]:
                found.append(None)
                continue
            found.append(
                BlockEstimate(
                    block=visit.block,
                    stop=visit.stop,
                    interval=intervals[n],
                    host_median=host_medians[n],
                    host_interval=host_intervals[n],
                    quantiles=quantiles_of(n) if has_quantiles[n] else None,
                    outliers=OutlierCount(mild[n], severe[n]),
                    summary=summaries[n],
                    transfers=transfers[n],
                    slowdowns=slowdowns.get(n, msgspec.UNSET),
                    **known,
                )
            )  # fmt: skip
        return found

    def _columns(self, quantiles: Sequence[Array], between_quartiles: Array) -> dict[str, Array]:
        """The numbers of each visit, by their names in `BlockEstimate`."""
        medians = self.medians
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            spread = np.where(medians != 0, between_quartiles / medians, 0.0)
            reach = np.maximum(quantiles[-1] - medians, medians - quantiles[0])
            largest_deviation = np.where(medians != 0, reach / medians, 0.0)
        return {
            "below_resolution": self._kept_sums((self._kept_flags & BELOW_RESOLUTION) != 0),
            "median": medians,
            "tick": self.ticks,
            "spread": spread,
            "largest_deviation": largest_deviation,
            "drift": self._drifts(),
            "autocorrelation_time": self.dependence.times,
            "count": self.counts,
            "void": self.taken - self.counts,
        }

    @cached_property
    def _are_single(self) -> Array:
        """Whether no sample of a visit is of several executions."""
        most = _reduced(np.maximum, self._kept_repetitions, self._spans)
        return self._spans.filled(most, 1.0) <= 1

    def _host_intervals(self) -> list[Interval | None]:
        host = self._host
        shifts = _shifts(host)
        low, high = intervals(host, dependence(host, self._series_of_visits), shifts > 0)
        low, high = _with_shifts(low, high, host.medians, shifts)
        low[self.summaries_only] = np.nan
        return _intervals(low, high)


def _reduced(how: Any, values: Array, segments: Segments) -> Array:
    """A ufunc over the values of each known group."""
    return how.reduceat(values, segments.starts) if len(segments.starts) else values[:0]


def _shifts(spans: Segments) -> Array:
    return spans.filled(returned_in_blocks(spans.values, spans.counts), 0.0)


def _with_shifts(low: Array, high: Array, middle: Array, shifts: Array) -> tuple[Array, Array]:
    """Intervals of medians, with levels of samples that shifted and returned: a median is known as
    well as they are large."""
    reach = STANDARD_ERRORS * shifts * middle
    low = np.where(shifts > 0, np.maximum(0.0, np.minimum(low, middle - reach)), low)
    return low, np.where(shifts > 0, np.maximum(high, middle + reach), high)


def _or_none(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _intervals(low: Array, high: Array) -> list[Interval | None]:
    return [
        None if first is None or last is None else Interval(first, last)
        for first, last in zip(_or_none(low), _or_none(high), strict=True)
    ]
