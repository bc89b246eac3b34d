"""A curve: the series of one workload over sizes, and the family that it is shown in. Its points
are series: what processes measured, the estimate, and what it is compared to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from waywiser.curves.answer import Exhibit
from waywiser.curves.bystanders import bystander_of
from waywiser.curves.name import name_of, shown_workload
from waywiser.curves.regimes import BANDWIDTH_BYTES
from waywiser.curves.sizes import SMALL_BYTES as SMALL_BYTES
from waywiser.machine import DECLARED, Bound, Machine, bound, memories_of
from waywiser.machine.ranks import Nodes, memory_of, nodes_between
from waywiser.profile import (
    BlockEstimate,
    BlockSummary,
    Estimate,
    SeriesBlocks,
    SeriesFrame,
    Slowdown,
)
from waywiser.profile.estimate import estimate_of
from waywiser.profile.rows import SeriesRow
from waywiser.profile.traffic import LinkUse, link_use
from waywiser.stats import CurveBlocks, median
from waywiser.words import (
    RATE_BYTES,
    UNEVEN_EXCHANGE,
    Failure,
    Path,
    Series,
    Transfer,
    Value,
    Workload,
    bus_factor,
    count,
    format_rate,
    format_settings,
    grouped,
    with_units,
)

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
        text, curve = (row.text, row.curve) if row else workload.texts
        return cls(
            identity=row.identity if row else workload.identity,
            text=text,
            curve=curve,
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


def points_of(
    frame: SeriesFrame, short: Sequence[BlockSummary | None] | None = None
) -> list[Point]:
    """All series of a frame as comparisons take them: without estimates. ``short`` are its visits
    in short, by default all that is known of them."""
    short = frame.summaries() if short is None else short
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


BYSTANDERS = "bystanders"
"""Small copies and loads beside large copies (`waywiser.curves.bystanders`), and loads alone."""

COLLECTIVES = "collectives"

NEAR = 4
"""Sizes that differ by less, as a factor, show nearly the same bandwidth."""

BETWEEN_RANKS = "between ranks"
"""What the families of messages begin with; then the nodes and the memory, where they are known."""

FAMILIES = (
    "host to device (H2D)",
    "device to host (D2H)",
    "local copy (D2D)",
    "device to device (P2P)",
    "host to host (H2H), one NUMA node",
    "host to host (H2H), two NUMA nodes",
    "files",
    *(
        f"{BETWEEN_RANKS}{nodes}{memory}"
        for nodes in (" of one node", " of two nodes", "")
        for memory in (", host memory", ", GPU memory", ", host and GPU memory", "")
    ),
    "bidirectional",
    "concurrent",
    COLLECTIVES,
    BYSTANDERS,
    "operations",
)

_BY_KINDS = {
    ("numa", "gpu"): FAMILIES[0],
    ("gpu", "numa"): FAMILIES[1],
    ("rank", "gpu"): FAMILIES[0],
    ("gpu", "rank"): FAMILIES[1],
}


@dataclass(frozen=True)
class Curve:
    """The series of one workload over sizes, the smallest first."""

    points: tuple[Point, ...]
    """All, measured or not."""

    @cached_property
    def measured(self) -> tuple[Point, ...]:
        """Those that a process measured."""
        return tuple(point for point in self.points if point.blocks)

    @property
    def text(self) -> str:
        """`Workload.curve`."""
        return self.points[0].curve

    @property
    def name(self) -> str:
        """As people call it: short where it is many transfers."""
        return self.points[0].name

    @property
    def like(self) -> str:
        """The first curve of its class; empty if it is the first."""
        return self.points[0].like

    @property
    def representative(self) -> str:
        """The first curve of its class."""
        return self.like or self.text

    @cached_property
    def workload(self) -> Workload:
        """The workload of its first measured point: all of the curve but the size."""
        return (self.measured or self.points)[0].workload

    @cached_property
    def rated(self) -> tuple[Point, ...]:
        """Its measured points whose figure is a bandwidth."""
        return tuple(point for point in self.measured if point.bytes >= RATE_BYTES and point.rate)

    @property
    def plateau(self) -> Point | None:
        """The point that states its bandwidth: the largest size that several processes measured,
        since one process may be disturbed, and smaller sizes may come out of a cache. The largest
        of all, if these are too small to show it. None if no figure is a bandwidth."""
        if not self.rated:
            return None
        largest = self.rated[-1]
        enough = min(BANDWIDTH_BYTES, largest.bytes // NEAR)
        repeated = (p for p in reversed(self.rated) if len(p.blocks) > 1 and p.bytes >= enough)
        return next(repeated, largest)

    def at(self, size: int) -> Point | None:
        """Its measured point of ``size`` bytes."""
        return next((point for point in self.measured if point.bytes == size), None)

    def beside(self, other: Curve) -> list[tuple[Point, Point]]:
        """Its measured points and those of the other, at the sizes that both have."""
        return [(p, its) for p in self.measured if (its := other.at(p.bytes)) is not None]

    @property
    def blocks(self) -> CurveBlocks:
        """The medians of the blocks without outliers, by size."""
        estimates = [point.measured for point in self.measured]
        return CurveBlocks(
            bytes=[point.bytes for point in self.measured],
            blocks=[{block.block: block.median for block in each.used} for each in estimates],
            within=[
                max((block.deviation for block in each.used if block.interval), default=0.0)
                for each in estimates
            ],
            alike=self.representative,
        )

    @property
    def transfer(self) -> Transfer | None:
        """`Workload.transfer`."""
        return self.workload.transfer

    @property
    def first_transfer(self) -> Transfer:
        """Its first transfer: of a path the only one."""
        return self.workload.copies[0]

    @property
    def shown(self) -> Workload:
        """Its workload as tables show it."""
        return (self.measured or self.points)[0].shown

    @property
    def shown_transfer(self) -> Transfer:
        """`first_transfer` as tables show it."""
        return self.shown.copies[0]

    @property
    def path(self) -> Path | None:
        return self.transfer.path if self.transfer else None

    @property
    def base(self) -> Path | None:
        """The path with its memories as they are by default."""
        if self.transfer is None:
            return None
        path = self.transfer.path
        source = msgspec.structs.replace(path.source, variant={})
        return Path(source, msgspec.structs.replace(path.destination, variant={}), path.executor)

    @property
    def is_default(self) -> bool:
        return self.base is not None and self.text == str(self.base)

    @property
    def difference(self) -> str:
        """What is not as by default on the path: ``[api=sync]``, ``to device[from=pool]``."""
        if self.transfer is None or self.is_default:
            return ""
        path = self.transfer.path
        parts = [
            f"{word} {memory.kind}{format_settings(memory.variant)}"
            for word, memory in (("from", path.source), ("to", path.destination))
            if memory.variant
        ]
        parts.append(format_settings(self.transfer.parameters))
        parts += [f"as {layout}"] if (layout := self.transfer.layout) else []
        parts += [f"({self.workload.cache})"] if self.workload.cache != "warm" else []
        return with_units(" ".join(filter(None, parts)))

    @cached_property
    def family(self) -> str:
        if self.workload.kind == "operation":
            return "operations"
        if self.workload.kind == "collective":
            return COLLECTIVES
        executors = (each.path.executor for each in self.workload.transfers)
        is_load = any(DECLARED.executor(each).bystander for each in executors)
        if is_load or bystander_of(self.points[-1].workload, DECLARED) is not None:
            return BYSTANDERS
        if self.transfer is None:
            two = len(self.workload.transfers) == 2 and " <-> " in self.name
            return "bidirectional" if two else "concurrent"
        source, destination = self.transfer.path.places
        kinds = (source.kind, destination.kind)
        if "file" in kinds:
            return "files"
        if DECLARED.is_between_ranks(self.transfer.path):
            nodes, memory = self.points[0].nodes, memory_of(self.transfer.path, DECLARED)
            of_nodes = f"{BETWEEN_RANKS} of {nodes}" if nodes else BETWEEN_RANKS
            return f"{of_nodes}, {memory}" if memory else of_nodes
        same = source == destination
        if kinds == ("numa", "numa"):
            return FAMILIES[4 if same else 5]
        return _BY_KINDS.get(kinds, FAMILIES[2 if same else 3])


def curves_of(points: Iterable[Point]) -> tuple[Curve, ...]:
    """The curves that were measured at any size, in the order of their first points."""
    found = grouped((point.curve, point) for point in points).values()
    curves = (Curve(tuple(sorted(own, key=lambda point: point.bytes))) for own in found)
    return tuple(curve for curve in curves if curve.measured)


def by_family(curves: Iterable[Curve]) -> list[Curve]:
    """Sorted by family, and by text within it."""
    return sorted(curves, key=lambda curve: (FAMILIES.index(curve.family), curve.text))


def by_text(curves: Iterable[Curve]) -> dict[str, Curve]:
    return {curve.text: curve for curve in curves}
