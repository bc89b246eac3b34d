"""The plan of a survey: which series, in what processes, how much memory, about how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from waywiser.plan.catalogue import Catalogue
from waywiser.plan.cost import Cost
from waywiser.plan.coverage import best_coverage
from waywiser.plan.curves import Curve, cache_curves, operation_curves, pair_curves, path_curves
from waywiser.plan.paths import find_paths, with_hypothetical_gpu
from waywiser.plan.point import Point
from waywiser.plan.preset import Preset, find_preset
from waywiser.plan.select import NothingMatches, matches, require_match
from waywiser.plan.sizes import GROWING, parse_sizes, thin
from waywiser.records import Process, Refusal
from waywiser.topology.machine import Machine
from waywiser.words import Value, format_bytes

CACHE_SMALLEST = 64 * 2**10
"""Below it a flush costs a thousand times the copy, and the copy is all latency."""

WORKING_BYTES = 256 * 2**20
"""What a worker may hold in any case: buffers are rounded up, and repetitions that must not find a
warm cache take pieces of their own."""


class Request(Value, frozen=True):
    """What was asked for: with the machine it gives the same plan again."""

    preset: str = "standard"
    only: tuple[str, ...] = ()
    sizes: str = ""
    """As in `waywiser.plan.sizes`; empty for those of the preset."""
    memory_bytes: int = 4 << 30
    """Of all buffers of a workload together, host and device."""
    seed: int = 1


@dataclass(frozen=True)
class Plan:
    """Frozen: the same request on the same machine gives an equal plan."""

    request: Request
    preset: Preset
    points: tuple[Point, ...]
    refusals: tuple[Refusal, ...]
    """Paths that cannot be measured, and sizes that were cut, with reasons."""
    left_out: int
    """Series that the preset has no time for, or that nobody asks for unless it is full."""
    worker_seconds: float
    """Expected for starting one worker process."""

    @property
    def visits(self) -> int:
        return len(self.points) * self.preset.blocks

    @property
    def seconds(self) -> float:
        """Expected duration of the survey."""
        workers = len(list(self.by_process()))
        return workers * self.worker_seconds + self.preset.blocks * sum(
            point.expected_seconds for point in self.points
        )

    @property
    def buffer_bytes(self) -> int:
        """What a worker may hold: the buffers of the largest workload, and of small ones enough
        that cache states and alignment find room."""
        largest = max((point.buffer_bytes for point in self.points), default=0)
        return min(max(largest, WORKING_BYTES), self.request.memory_bytes)

    def by_process(self) -> Iterator[tuple[Process, list[Point]]]:
        """The worker processes in order, with the points that each visits."""
        blocks = range(self.preset.blocks) if self.preset.fresh_processes else (0,)
        for block in blocks:
            for peer_access in (True, False):
                # Where it does not matter, the process is the one with peer access.
                wanted = [p for p in self.points if (p.curve.peer_access is False) != peer_access]
                if wanted:
                    yield Process(peer_access, block), wanted


def make_plan(machine: Machine, request: Request) -> Plan:
    """Plans a survey of the machine. Asks the registry only: no GPU and no driver.

    Raises `WaywiserError` for an unknown preset, sizes that are none, and a pattern of ``only``
    that matches nothing.
    """
    preset = find_preset(request.preset)
    sizes = parse_sizes(request.sizes or preset.sizes)
    curves, refusals = _curves(machine, preset)
    curves, refusals = _select(curves, refusals, request.only)
    cost = Cost(machine)
    points: list[Point] = []
    for curve in curves:
        wanted = _sizes(curve, sizes, preset, explicit=bool(request.sizes))
        kept, cut = _within_memory(curve, wanted, request.memory_bytes, machine)
        refusals += cut
        points += _points(curve, kept, preset, cost, growing=not request.sizes)
    everything = len(points)
    if not (preset.remote or request.only):
        points = [point for point in points if not point.curve.remote]
    if preset.seconds and not request.sizes:
        points = best_coverage(points, preset.seconds - cost.worker_seconds)
    return Plan(
        request,
        preset,
        tuple(points),
        tuple(refusals),
        left_out=everything - len(points),
        worker_seconds=cost.worker_seconds,
    )


def _curves(machine: Machine, preset: Preset) -> tuple[list[Curve], list[Refusal]]:
    catalogue = Catalogue(with_hypothetical_gpu(machine))
    found = find_paths(machine)
    single, refused = path_curves(found.valid, catalogue, preset)
    curves = [*single, *pair_curves(single, catalogue, preset)]
    if preset.cache_sizes:
        curves += cache_curves(single, catalogue, preset)
    operations, unperformed = operation_curves(machine, catalogue, preset)
    return [*curves, *operations], [*found.refused, *refused, *unperformed]


def _select(
    curves: list[Curve], refusals: list[Refusal], only: tuple[str, ...]
) -> tuple[list[Curve], list[Refusal]]:
    texts = [curve.text for curve in curves]
    for pattern in only:
        refused = next((r for r in refusals if matches(r.path, [pattern])), None)
        if refused and not any(matches(text, [pattern]) for text in texts):
            raise NothingMatches(
                f"--only {pattern!r} matches only what cannot be measured here",
                remedy=f"{refused.path}: {refused.reason}",
            )
    require_match(only, texts)
    return (
        [curve for curve, text in zip(curves, texts, strict=True) if matches(text, only)],
        [refusal for refusal in refusals if matches(refusal.path, only)],
    )


def _sizes(
    curve: Curve, sizes: tuple[int, ...], preset: Preset, *, explicit: bool
) -> tuple[int, ...]:
    """Those of the sizes at which the curve is visited."""
    if curve.operation is not None:
        return (0,)
    if curve.cache != "warm":
        sizes = tuple(size for size in sizes if size >= CACHE_SMALLEST)
        return sizes if explicit else tuple(size for size in sizes if size in preset.cache_sizes)
    if explicit:
        return sizes
    if curve.principal:
        return sizes if preset.principal_octaves == 1 else thin(sizes, preset.principal_octaves)
    if len(curve.transfers) > 1:
        sizes = tuple(size for size in sizes if size >= preset.pair_smallest)
    return thin(sizes, preset.secondary_octaves)


def _within_memory(
    curve: Curve, sizes: tuple[int, ...], memory_bytes: int, machine: Machine
) -> tuple[tuple[int, ...], list[Refusal]]:
    """The sizes whose buffers fit, and one refusal for those that do not."""
    kept: list[int] = []
    cut: list[int] = []
    reason = ""
    for size in sizes:
        why = _too_large(curve, size, memory_bytes, machine)
        reason = reason or why
        (cut if why else kept).append(size)
    if not cut:
        return tuple(kept), []
    return tuple(kept), [Refusal(f"{curve.text} of {', '.join(map(format_bytes, cut))}", reason)]


def _too_large(curve: Curve, size: int, memory_bytes: int, machine: Machine) -> str:
    needed = curve.buffer_bytes(size)
    if needed > memory_bytes:
        return (
            f"{format_bytes(size)} needs {format_bytes(needed)} of buffers, "
            f"--memory allows {format_bytes(memory_bytes)}"
        )
    for gpu in machine.gpus:
        place = f"gpu:{gpu.index}"
        ends = [m for t in curve.transfers for m in (t.path.source, t.path.destination)]
        there = size * sum(str(memory.place) == place for memory in ends)
        if gpu.memory_free_bytes and there > gpu.memory_free_bytes:
            free = format_bytes(gpu.memory_free_bytes)
            return f"{format_bytes(size)} needs {format_bytes(there)} on {place}, {free} is free"
    return ""


def _points(
    curve: Curve, sizes: tuple[int, ...], preset: Preset, cost: Cost, *, growing: bool
) -> Iterator[Point]:
    for size in sizes:
        workload = curve.at(size)
        grows = growing and size > GROWING
        always = preset.largest_always and size == sizes[-1]
        yield Point(
            curve,
            size,
            workload,
            curve.buffer_bytes(size),
            seconds=cost.visit_seconds(workload, preset.rule),
            share=cost.growing_share(workload) if grows and not always else 1.0,
            growing=grows,
            always=always,
        )
