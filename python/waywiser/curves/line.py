"""One series of a profile as it is shown: its estimate, and what it is compared to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from waywiser.curves.name import name_of
from waywiser.machine.bounds import Bound, bound
from waywiser.machine.machine import Machine
from waywiser.profile.block import BlockEstimate
from waywiser.profile.estimate import Estimate, estimate_of
from waywiser.profile.series_frame import SeriesBlocks
from waywiser.profile.traffic import LinkUse, link_use
from waywiser.stats.order import median
from waywiser.words import Transfer, Value, Workload
from waywiser.words.number_format import count
from waywiser.words.records import Series

NEAREST = 1.5
"""Sizes this far apart, as a factor, are still compared: a layout takes whole units only."""


class Line(Value, frozen=True):
    """One series, with what it was compared to."""

    identity: str
    workload: str
    curve: str
    name: str
    """The curve as people call it: short where it is many transfers."""
    transfer_rates: tuple[float, ...]
    """Bytes per second of each transfer over its own median time, if there are several; their
    sum is more than the rate of the whole, which lasts until the last is done."""
    bytes: int
    """Bytes of all transfers together; 0 for an operation."""
    cache: str
    mode: str
    """Who timed: ``device``, ``host``, or empty if nothing was."""
    estimate: Estimate | None
    """None if nothing could be measured: then the reason is among the failures."""
    bound: Bound | None
    of_bound: float | None
    """Rate over bound; 1 is the theoretical peak."""
    seconds: float
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
    """Which links it used; None if nobody looked, as at other sizes of the curve."""


def line_of(known: SeriesBlocks, machine: Machine, first: Mapping[str, str]) -> Line:
    """``first`` gives for each curve the one that stands for its class."""
    series = known.series
    workload, row = series.workload, known.row
    curve = row.curve
    best = bound(machine, workload)
    found = estimate_of(known, machine, best)
    share = None
    if found is not None and found.rate is not None and best is not None:
        share = found.rate.value / best.bytes_per_second
    measured = [v.mode for v, taken in zip(series.visits, known.taken, strict=True) if taken]
    return Line(
        identity=row.identity,
        workload=row.text,
        curve=curve,
        name=name_of(workload),
        transfer_rates=tuple(transfer_rates(workload, found.used if found else ())),
        bytes=workload.bytes,
        cache=workload.cache,
        mode=measured[0] if measured else "",
        estimate=found,
        bound=best,
        of_bound=share,
        seconds=sum(visit.elapsed_seconds for visit in series.visits),
        skipped=_skipped(series),
        link_use=link_use(series, machine.traits),
        like="" if first[curve] == curve else first[curve],
    )


def outliers_text(lines: Iterable[Line]) -> str:
    """``2 of 8 processes are outliers and not used, in 3 of 11 series``; empty if none is."""
    measured = [line.estimate for line in lines if line.estimate is not None]
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


def by_curve(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Lines by curve in the order given; those of each curve ascending in size."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.curve, []).append(line)
    return {curve: sorted(each, key=lambda line: line.bytes) for curve, each in found.items()}


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


def beside_contiguous(lines: Sequence[Line], workloads: Sequence[Workload]) -> list[Line]:
    """The lines with the price of each layout: its rate over that of contiguous bytes by the same
    executor with its default settings."""
    known: dict[str, dict[int, float]] = {}
    layouts: dict[int, Transfer] = {}
    for n, (line, workload) in enumerate(zip(lines, workloads, strict=True)):
        transfer = workload.transfer if workload.cache == "warm" else None
        if transfer is None or not (rate := _rate(line)):
            continue
        if transfer.layout is not None:
            layouts[n] = transfer
        elif not transfer.parameters:
            known.setdefault(str(transfer.path), {})[transfer.bytes] = rate
    found = list(lines)
    for n, transfer in layouts.items():
        near = _nearest(known.get(str(transfer.path), {}), transfer.bytes)
        if near is not None:
            share = _rate(lines[n]) / near
            found[n] = msgspec.structs.replace(lines[n], of_contiguous=share)
    return found


def _rate(line: Line) -> float:
    return line.estimate.rate.value if line.estimate and line.estimate.rate else 0.0


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
