"""One series of a profile as it is shown: its estimate, and what it is compared to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from waywiser.plan.name import name_of
from waywiser.records import Series
from waywiser.series.contiguous import Contiguous
from waywiser.series.each import transfer_rates
from waywiser.series.estimate import Estimate, estimate
from waywiser.series.series_blocks import SeriesBlocks
from waywiser.series.traffic import Ways, ways
from waywiser.topology.bounds import Bound, bound
from waywiser.topology.machine import Machine
from waywiser.words import Value, Workload


class Line(Value, frozen=True):
    """One series, with what it was compared to."""

    identity: str
    workload: str
    curve: str
    name: str
    """The curve as people call it: short where it is many transfers."""
    transfer_rates: tuple[float, ...]
    """Bytes per second of each transfer over its own median time, where there are several; their
    sum is more than the rate of the whole, which lasts until the last is done."""
    bytes: int
    """Of all transfers together; 0 for an operation."""
    cache: str
    mode: str
    """Who timed: ``device``, ``host``, or empty where nothing was."""
    estimate: Estimate | None
    """None where nothing could be measured: then the reason is among the failures."""
    bound: Bound | None
    of_bound: float | None
    """Rate over bound; 1 is the theoretical peak."""
    seconds: float
    """That measuring it took, set-up and verification included."""
    left_out: str = ""
    """Why it was not visited in any block, though planned: the rate had saturated, an equal path
    tells it, or the time was over; else empty."""
    like: str = ""
    """The curve that this one ought to equal by the machine's symmetry: the first of its class;
    empty where it is the first."""
    of_contiguous: float | None = None
    """Of a layout: its rate over that of contiguous bytes by the same executor at the nearest
    size, where that was measured."""
    ways: Ways | None = None
    """Which links it used; None where nobody looked, as at other sizes of the curve."""


def line_of(known: SeriesBlocks, machine: Machine, first: Mapping[str, str]) -> Line:
    """``first`` gives for each curve the one that stands for its class."""
    series = known.series
    workload = series.workload
    curve = workload.curve
    found = estimate(series, machine, blocks=known.blocks)
    best = bound(machine, workload)
    share = None
    if found is not None and found.rate is not None and best is not None:
        share = found.rate.value / best.bytes_per_second
    measured = [v.mode for v, taken in zip(series.visits, known.taken, strict=True) if taken]
    return Line(
        identity=workload.identity,
        workload=str(workload),
        curve=curve,
        name=name_of(workload),
        transfer_rates=tuple(transfer_rates(workload, found.blocks if found else ())),
        bytes=workload.bytes,
        cache=workload.cache,
        mode=measured[0] if measured else "",
        estimate=found,
        bound=best,
        of_bound=share,
        seconds=sum(visit.elapsed_seconds for visit in series.visits),
        left_out=_left_out(series),
        ways=ways(series, machine.traits),
        like="" if first[curve] == curve else first[curve],
    )


def by_curve(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """In the order given; those of each curve ascending in size."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.curve, []).append(line)
    return {curve: sorted(each, key=lambda line: line.bytes) for curve, each in found.items()}


def beside_contiguous(lines: Sequence[Line], workloads: Sequence[Workload]) -> list[Line]:
    """The lines with the price of each layout told."""
    contiguous = Contiguous()
    rates = [
        line.estimate.rate.value if line.estimate and line.estimate.rate else 0 for line in lines
    ]
    for workload, rate in zip(workloads, rates, strict=True):
        if rate:
            contiguous.add(workload, rate)
    return [
        msgspec.structs.replace(line, of_contiguous=contiguous.share(workload, rate))
        if rate
        else line
        for line, workload, rate in zip(lines, workloads, rates, strict=True)
    ]


def _left_out(series: Series) -> str:
    if any(visit.stop != "skipped" for visit in series.visits):
        return ""
    return next((visit.failure.reason for visit in series.visits if visit.failure), "")
