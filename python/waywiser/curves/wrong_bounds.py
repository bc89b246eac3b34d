"""Bounds that measurements disprove: large copies are faster than the link that should limit them.

A cache can serve a copy only up to about its capacity. If a copy far larger than every cache
exceeds its bound, the bytes take another link than the topology shows, or the link is faster than
it says. Then the bound is unknown for all curves of that link.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from waywiser.curves.curve import Point
from waywiser.curves.name import label_of
from waywiser.curves.reasons import Reasons
from waywiser.machine import Machine
from waywiser.words import Transfer, Workload, format_bytes, format_rate

EXCESS = 0.05
"""Relative, above the bound: more than errors of clocks and of nominal rates."""

FAR = 4
"""Times the capacity of the largest cache of a CPU: no cache serves a copy of this size."""

LARGE_BYTES = 2**26
"""The least of such sizes if the caches are not known."""

LARGEST_GPU_CACHE = 126 * 2**20
"""Bytes of the largest last cache that a GPU had in 2025. NVML does not report their sizes."""

GPU_CACHE = (2**20, 2**28)
"""Bytes between which the last cache of every GPU so far lies, with room to spare."""

Limit = tuple[str, frozenset[tuple[str, str]]]
"""What limits a workload: the narrowest resource, and between which kinds of places it copies. Two
GPUs may have another link than the one that each has to the host."""


def without_wrong_bounds(
    points: Sequence[Point], machine: Machine, reasons: Reasons
) -> list[Point]:
    """The points without the bounds that large copies exceed by more than `EXCESS`.

    In ``reasons``, the curves move from the flag ``above bound`` to those without a bound.
    """
    fastest: dict[Limit, Point] = {}
    for point in points:
        limit = _limit(point)
        is_above = (point.of_bound or 0) > 1 + EXCESS
        if limit and is_above and exceeds_caches(point.workload, machine):
            known = fastest.get(limit)
            if known is None or (point.of_bound or 0) > (known.of_bound or 0):
                fastest[limit] = point
    if not fastest:
        return list(points)
    kept = []
    for point in points:
        limit = _limit(point)
        if limit in fastest:
            _move(point, _reason(fastest[limit]), reasons)
            point = _without_bound(point)
        kept.append(point)
    return kept


def _limit(point: Point) -> Limit | None:
    if point.bound is None:
        return None
    ends = frozenset(
        (transfer.path.source.place.kind, transfer.path.destination.place.kind)
        for transfer in point.workload.transfers
    )
    return point.bound.narrowest, ends


def exceeds_caches(workload: Workload, machine: Machine) -> bool:
    """Whether each transfer is far larger than every cache that could serve it. Copy engines
    between two places move all bytes over the link, whatever a GPU's cache holds."""
    largest = max((cache.bytes for cache in machine.caches), default=0)
    least = max(FAR * largest, LARGE_BYTES)
    return all(
        transfer.bytes >= (max(least, GPU_CACHE[1]) if _by_gpu_cache(transfer, machine) else least)
        for transfer in workload.transfers
    )


def _by_gpu_cache(transfer: Transfer, machine: Machine) -> bool:
    source, destination = transfer.path.places
    return source == destination or (
        transfer.path.executor != machine.traits.reference_executor("gpu")
    )


def _reason(point: Point) -> str:
    """Why a bound is wrong, by the copy that exceeds it most."""
    assert point.bound is not None and point.of_bound is not None
    rate = format_rate(point.bound.bytes_per_second * point.of_bound, 0.005)
    return (
        f"the bound of {point.bound.narrowest} is wrong ({point.bound.made_of}): copies of "
        f"{format_bytes(point.bytes)} reach {rate} GB/s, which exceeds all caches"
    )


def _move(point: Point, reason: str, reasons: Reasons) -> None:
    reasons.add_unbounded(reason, point)
    for flag in point.estimate.quality_flags if point.estimate else ():
        if flag.kind == "above bound":
            members = reasons.concerned("warnings", flag.kind)
            members.remove(f"{label_of(point.workload)}: {flag.what}")


def _without_bound(point: Point) -> Point:
    estimate = point.estimate
    if estimate is not None:
        flags = tuple(flag for flag in estimate.quality_flags if flag.kind != "above bound")
        estimate = msgspec.structs.replace(estimate, quality_flags=flags)
    return msgspec.structs.replace(point, estimate=estimate, bound=None, of_bound=None)
