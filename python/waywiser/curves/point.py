"""A point of a curve: one series, what processes measured of it, its estimate, and what it is
compared to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from waywiser.curves.answer import Exhibit
from waywiser.curves.name import name_of, shown_workload
from waywiser.machine.bounds import Bound, bound
from waywiser.machine.machine import Machine
from waywiser.machine.ranks import Nodes, memories_of, nodes_between
from waywiser.profile.block import BlockEstimate, BlockSummary, Slowdown
from waywiser.profile.estimate import Estimate, estimate_of
from waywiser.profile.rows import SeriesRow
from waywiser.profile.series_frame import SeriesBlocks, SeriesFrame
from waywiser.profile.traffic import LinkUse, link_use
from waywiser.stats.order import median
from waywiser.words import Transfer, Value, Workload
from waywiser.words.collective import UNEVEN_EXCHANGE, bus_factor
from waywiser.words.number_format import count, format_rate
from waywiser.words.records import Failure, Series

NEAREST = 1.5
"""Sizes this far apart, as a factor, are still compared: a layout takes whole units only."""


class VisitStart(Value, frozen=True, gc=False):
    """When a process began to measure one block of a series."""

    block: int
    process: int
    """Number of the worker process within the survey, from 1."""
    started: str
    """UTC, ISO 8601."""


class Point(Value, frozen=True, kw_only=True):
    """One series: what each process measured of it, and if it was estimated, what it is compared
    to. Comparisons take what the processes measured, and need no estimate."""

    identity: str
    text: str = msgspec.field(name="workload")
    """The text of its workload, size included."""
    curve: str
    """The text without sizes."""
    name: str = ""
    """The curve as people call it: short where it is many transfers; only with an estimate."""
    transfer_rates: tuple[float, ...] = ()
    """Bytes per second of each transfer over its own median time, if there are several; their
    sum is more than the rate of the whole, which lasts until the last is done."""
    bytes: int
    """Bytes of all transfers together; 0 for an operation."""
    cache: str
    mode: str = ""
    """Who timed: ``device``, ``host``, or empty if nothing was."""
    estimate: Estimate | None = None
    """None if nothing could be measured: then the reason is among the failures."""
    bound: Bound | None = None
    of_bound: float | None = None
    """Rate over bound; 1 is the theoretical peak."""
    spent_seconds: float = msgspec.field(name="seconds", default=0.0)
    """Seconds that measuring it took, set-up and verification included."""
    skipped: str = msgspec.field(default="", name="left_out")
    """Why it was not visited in any block, though planned: the rate had saturated, an equal path
    shows it, or the time was over; else empty."""
    like: str = ""
    """The curve that this one should equal by the machine's symmetry: the first of its class;
    empty if it is the first."""
    of_contiguous: float | None = None
    """The rate of a layout over that of contiguous bytes by the same executor at the nearest size,
    if that was measured."""
    link_use: LinkUse | None = None
    """Which links it used; None if that was not looked at, as at other sizes of the curve."""
    bus_rate: float | msgspec.UnsetType = msgspec.UNSET
    """Bus bandwidth in bytes per second of a collective, see `waywiser.words.collective`; not set
    for everything else."""
    slowdowns: tuple[Slowdown, ...] | msgspec.UnsetType = msgspec.UNSET
    """How many times as long as alone each transfer of a sustained workload takes; not set for
    everything else."""
    workload: Workload = msgspec.field(name="words")
    """Not in JSON, as all that follows: see `for_json`."""
    blocks: tuple[BlockSummary, ...] = ()
    """Each process that measured it."""
    failures: tuple[Failure, ...] = ()
    """Reasons of visits that failed or were skipped."""
    as_shown: Workload | None = None
    nodes: Nodes = ""
    """Whether the ranks of a message are on one node, if that is known."""
    visits: tuple[VisitStart, ...] = ()
    """All visits by block, skipped and failed ones too."""

    @classmethod
    def of(
        cls,
        workload: Workload,
        blocks: Iterable[BlockSummary] = (),
        failures: Iterable[Failure] = (),
        row: SeriesRow | None = None,
    ) -> Point:
        """What processes measured of a workload. ``row`` has its texts, which take long to make."""
        return cls(
            identity=row.identity if row else workload.identity,
            text=row.text if row else str(workload),
            curve=row.curve if row else workload.curve,
            bytes=workload.bytes,
            cache=workload.cache,
            workload=workload,
            blocks=tuple(blocks),
            failures=tuple(failures),
        )

    @property
    def shown(self) -> Workload:
        """The workload as tables show it, see `waywiser.curves.name.shown_workload`."""
        return self.as_shown or self.workload

    @property
    def measured(self) -> Estimate:
        """The estimate of a series that was measured."""
        assert self.estimate is not None
        return self.estimate

    @property
    def seconds(self) -> float:
        """Median time of one execution."""
        return self.measured.median

    @property
    def rate(self) -> float:
        """Bytes per second; 0 for an operation, and if nothing was measured."""
        return self.estimate.rate.value if self.estimate and self.estimate.rate else 0.0

    @property
    def bus_rate_text(self) -> str:
        """The bus bandwidth in GB/s, with the digits that are known; empty if there is none."""
        if self.bus_rate is msgspec.UNSET:
            return ""
        return format_rate(self.bus_rate, self.measured.relative)

    @property
    def rate_text(self) -> str:
        """The rate in GB/s, with the digits that are known."""
        return format_rate(self.rate, self.measured.relative)

    def exhibit(self, rate_from: int = 0) -> Exhibit:
        """Its bandwidth; its time if it has none, or is smaller than ``rate_from`` bytes."""
        found = self.measured
        if found.rate is None or self.bytes < rate_from:
            return Exhibit(self.text, "time", found.median, "s", found.interval)
        return Exhibit(self.text, "bandwidth", found.rate.value, "B/s", found.rate.interval)


def for_json(point: Point) -> Point:
    """The point with the fields that the schema of `waywiser.curves.overview.Overview` has."""
    unset: Any = msgspec.UNSET
    return msgspec.structs.replace(
        point, workload=unset, blocks=unset, failures=unset, as_shown=unset, nodes=unset,
        visits=unset,
    )  # fmt: skip


def points_of(frame: SeriesFrame) -> list[Point]:
    """All series of a frame as comparisons take them: without estimates."""
    short = frame.summaries()
    return [
        Point.of(
            workload,
            [block for block in short[of] if block is not None],
            [found for visit in frame.visits[of] if (found := visit.failure) is not None],
            row,
        )
        for workload, row, of in frame.series
    ]


def point_of(known: SeriesBlocks, machine: Machine, first: Mapping[str, str]) -> Point:
    """``first`` gives for each curve the one that stands for its class."""
    series = known.series
    workload, row = series.workload, known.row
    shown = shown_workload(workload, machine.traits)
    curve = row.curve
    best = bound(machine, workload)
    found = estimate_of(known, machine, best)
    share = None
    if found is not None and found.rate is not None and best is not None:
        share = found.rate.value / best.bytes_per_second
    measured = [v.mode for v, taken in zip(series.visits, known.taken, strict=True) if taken]
    failures = [visit.failure for visit in series.visits if visit.failure is not None]
    return msgspec.structs.replace(
        Point.of(workload, known.summaries, failures, row),
        name=name_of(shown),
        transfer_rates=tuple(transfer_rates(workload, found.used if found else ())),
        mode=measured[0] if measured else "",
        estimate=found,
        bound=best,
        of_bound=share,
        spent_seconds=sum(visit.elapsed_seconds for visit in series.visits),
        skipped=_skipped(series),
        link_use=link_use(series, machine.traits),
        bus_rate=_bus_rate(workload, found, machine),
        slowdowns=(found.slowdowns if found else ()) or msgspec.UNSET,
        like="" if first[curve] == curve else first[curve],
        as_shown=shown,
        nodes=nodes_between(workload.transfer.path, machine) if workload.transfer else "",
        visits=tuple(VisitStart(v.block, v.worker, v.started) for v in series.visits),
    )


def _bus_rate(
    workload: Workload, found: Estimate | None, machine: Machine
) -> float | msgspec.UnsetType:
    if workload.kind != "collective" or found is None or found.rate is None:
        return msgspec.UNSET
    (transfer,) = workload.transfers
    if transfer.collective == UNEVEN_EXCHANGE:
        return msgspec.UNSET
    count = memories_of(transfer.path.source, machine)
    return found.rate.value * bus_factor(transfer.collective, count)


def outliers_text(points: Iterable[Point]) -> str:
    """``2 of 8 processes are outliers and not used, in 3 of 11 series``; empty if none is."""
    measured = [point.estimate for point in points if point.estimate is not None]
    concerned = [found for found in measured if found.outliers]
    if not concerned:
        return ""
    processes = {block.block for found in measured for block in found.blocks}
    outliers = {number for found in concerned for number in found.outliers}
    return (
        f"{len(outliers)} of {count(len(processes), 'process')} "
        f"{'is an outlier' if len(outliers) == 1 else 'are outliers'} and not used, in "
        f"{len(concerned)} of {count(len(measured), 'series')}"
    )


def transfer_rates(workload: Workload, blocks: Sequence[BlockEstimate]) -> Iterator[float]:
    """Bytes per second of each transfer over the median of its own times, in the workload's order:
    as for the whole, the median of the blocks' medians.

    Nothing for one transfer, for an operation, and where no sample counts.
    """
    times = [block.transfers for block in blocks if block.transfers]
    for transfer, seconds in zip(workload.transfers, zip(*times, strict=True), strict=False):
        middle = median(seconds)
        if middle > 0:
            yield transfer.bytes / middle


def beside_contiguous(points: Sequence[Point]) -> list[Point]:
    """The points with the price of each layout: its rate over that of contiguous bytes by the same
    executor with its default settings."""
    known: dict[str, dict[int, float]] = {}
    layouts: dict[int, Transfer] = {}
    for n, point in enumerate(points):
        transfer = point.workload.transfer if point.cache == "warm" else None
        if transfer is None or not point.rate:
            continue
        if transfer.layout is not None:
            layouts[n] = transfer
        elif not transfer.parameters:
            known.setdefault(str(transfer.path), {})[transfer.bytes] = point.rate
    found = list(points)
    for n, transfer in layouts.items():
        near = _nearest(known.get(str(transfer.path), {}), transfer.bytes)
        if near is not None:
            share = points[n].rate / near
            found[n] = msgspec.structs.replace(points[n], of_contiguous=share)
    return found


def _nearest(rates: Mapping[int, float], size: int) -> float | None:
    """The rate at the nearest size, unless that is further away than `NEAREST`."""
    near = min(rates, key=lambda known: max(known / size, size / known), default=None)
    if near is None or max(near / size, size / near) > NEAREST:
        return None
    return rates[near]


def _skipped(series: Series) -> str:
    if any(visit.stop != "skipped" for visit in series.visits):
        return ""
    return next((visit.failure.reason for visit in series.visits if visit.failure), "")
