"""The series of a plan: at which sizes a curve is visited, how often, and what comes first if time
is short."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from waywiser.curves import BANDWIDTH_BYTES, SMALL_BYTES, asks_for_latency, matches_any, texts_of
from waywiser.curves.sizes import GROWING, LATENCY_BELOW, representative_sizes, thin
from waywiser.machine import Footprint, Machine, bound, footprint
from waywiser.measure.plan import layouts
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.calibration import VALIDATION_PROCESSES
from waywiser.measure.plan.curves import PlannedCurve
from waywiser.measure.plan.preset import Depth, Request
from waywiser.words import Order, Process, Rule, Unsupported, Workload, format_bytes

GRACE_SECONDS = 30.0
SLOWEST_RATE = 10e6
"""A worker is given up after the seconds that a gate's watchdog and the start of a slow driver
take, and the buffers at so many bytes per second."""

PAGE = 4096
"""What moves in place moves in whole pages: less takes the time of one. No disk has larger blocks:
anything less would go through the page cache."""

COSTLY_OCTAVES = 2
"""The step between sizes of a principal curve of what moves in place, since each sample costs a way
back, and of what a search has to tune, of which few sizes show the latency, the rate, and where the
plain copy is slower; unless the preset wants more of every curve."""

FILE_OCTAVES = 3
"""The step between sizes of a principal curve of files, which are slow and saturate early; unless
the preset is as thorough with every curve."""

SEARCHED_LARGEST = 256 * 2**20
"""The largest size of what a search has to tune."""


SHORT_SECONDS = 40e-6
"""Copies within the memory of an H200 that take 7 µs differ by 1.2 to 1.9 % between processes,
those of 35 µs by 0.6 % (docs/results/2026-11-23-surveys)."""

VISIT_SECONDS = 0.02
"""A visit of a small size: order, set-up, samples, answer, and a commit that reaches the disk."""

RANK_VISIT_SECONDS = 0.2
"""The same among ranks, which agree on each step: 0.11 s of 16 ranks that share two GPUs, 0.26 s of
two ranks on two cores (docs/results/2026-11-26-ranks-and-collectives)."""

BYTE_SECONDS = 0.8e-9
"""More, per byte of buffers of the host, which CPUs fill and compare. GPUs do it in no time."""


class ProcessKind(NamedTuple):
    """What a process of a block is, besides the block."""

    peer_access: bool
    loads: str = ""

    @classmethod
    def of(cls, process: Process) -> ProcessKind:
        return cls(process.peer_access, process.loads)

    @property
    def turn(self) -> tuple[str, bool]:
        """Kinds of a block are measured in its order."""
        return self.loads, not self.peer_access


class Priority(IntEnum):
    """What a schedule measures first if time is short."""

    HEADLINE = 0
    """Representative sizes of paths that people ask for, and concurrent sets."""
    REPRESENTATIVE = 1
    """Representative sizes of all other curves."""
    REST = 2
    """All other sizes."""
    CONDITIONAL = 3
    """Sizes that are measured only if a curve of the class differs from the first."""


@dataclass(frozen=True)
class PlannedPoint:
    """One size of a curve."""

    curve: PlannedCurve
    size: int
    workload: Workload
    buffer_bytes: int
    """All its buffers together, and what stages bytes between them."""
    host_bytes: int = 0
    """Its buffers in memory of the host and in files, which CPUs fill and compare."""
    processes: int = 1
    """Processes that measure it."""
    priority: Priority = Priority.REST
    growing: bool = False
    """Visited in the waves above `waywiser.curves.sizes.GROWING`, and skipped once the rate has
    saturated..."""
    always: bool = False
    """... unless it is the size that is visited in any case."""
    like: str = ""
    """The curve that this one should equal: the first of its class; empty where it is first."""
    gpus: frozenset[int] = frozenset()
    """Whose memory or links the workload uses."""
    longest_seconds: float = math.inf
    """Skipped if one execution is expected to take longer, by what smaller sizes took."""

    @cached_property
    def identity(self) -> str:
        """The identity of its series."""
        return self.workload.identity

    @cached_property
    def conditional(self) -> bool:
        return self.priority is Priority.CONDITIONAL

    @property
    def peer_access(self) -> bool:
        """The peer access of its process. Where it does not matter, there is some."""
        return self.curve.peer_access is not False

    @cached_property
    def process(self) -> ProcessKind:
        """What its process must be."""
        return ProcessKind(self.peer_access, self.curve.loads)

    @cached_property
    def cost_groups(self) -> tuple[str, str, str]:
        """What its cost is estimated from, the nearest first: its curve, all curves of the same
        methods, and all."""
        return self.curve.text, " ".join(sorted(self.workload.methods)), ""

    @cached_property
    def unmeasured_seconds(self) -> float:
        """Expected of one visit if nothing has been measured."""
        visit = RANK_VISIT_SECONDS if self.workload.is_of_ranks else VISIT_SECONDS
        return visit + BYTE_SECONDS * self.host_bytes

    def order(
        self, process: Process, rule: Rule, *, seed: int, seconds: float, evidence: bool = False
    ) -> Order:
        """The order of a visit, which is expected to take so many ``seconds``; ``seed`` is that of
        the plan."""
        of_plan = random.Random(f"{seed}:{self.identity}:{process.block}")
        return Order(
            workload=self.workload,
            block=process.block,
            process=process,
            rule=rule,
            seed=of_plan.getrandbits(53),
            buffer_bytes=self.buffer_bytes,
            expected_seconds=seconds,
            timeout_seconds=GRACE_SECONDS + self.buffer_bytes / SLOWEST_RATE,
            evidence=evidence,
        )


_Sizes = dict[int, tuple[Workload, Footprint]]
"""Sizes of a curve, each with its workload and what that needs."""


class Points(Basis):
    """Makes the points of curves; ``unsupported_paths`` and ``skipped`` gather what is not
    visited."""

    unsupported_paths: list[Unsupported]
    skipped = 0
    """Series that a more thorough preset, or `--only`, would measure."""

    def __init__(self, machine: Machine, request: Request) -> None:
        super().__init__(machine, request)
        self.unsupported_paths = []

    @property
    def explicit(self) -> bool:
        """Whether the user named these sizes: every curve is visited at all of them."""
        return bool(self.request.sizes)

    def of(self, curve: PlannedCurve, like: str) -> list[PlannedPoint]:
        """The curve's points, ascending. ``like`` is the first of its class, empty where it is the
        first itself. Of paths that a search has to tune, only the first of a class is principal."""
        if like and self._is_searched(curve) and not curve.requested:
            curve = replace(curve, principal=False)
        selected = self._possible(curve, self._of_patterns(curve, self._selected(curve)))
        few = self._few(curve, selected) if like and not self.explicit else selected
        plain = not curve.layout and curve.cache == "warm"
        most_settings = 1 if self.preset.depth is Depth.PAIRS else 0
        if like and not (few and plain and curve.settings <= most_settings):
            self.skipped += len(selected)
            return []
        kept = self._within_memory(curve, selected)
        points = list(self._points(curve, kept, like, few))
        self.skipped += len(kept) - len(points)
        return points

    def _selected(self, curve: PlannedCurve) -> tuple[int, ...]:
        """The sizes of the first of a class, whatever memory and time allow."""
        sizes, preset = self.sizes, self.preset
        if curve.kind == "operation":
            return (0,)
        if curve.is_sized:
            is_needed = curve.requested or bool(curve.for_model)
            return curve.sizes if is_needed or not self.explicit else ()
        if curve.sizes and not self.explicit:
            return curve.sizes
        if curve.layout is not None and self.explicit:
            return layouts.whole_units(curve.layout, sizes)
        if curve.layout is not None:
            return layouts.usual_sizes(curve.layout)
        if curve.cache != "warm":
            usual = sizes if self.explicit or curve.requested else preset.cache_sizes
            return tuple(size for size in sizes if size >= LATENCY_BELOW and size in usual)
        return sizes if self.explicit else self._usual(curve, sizes)

    def _usual(self, curve: PlannedCurve, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Those of the preset's ``sizes`` that a plain curve has."""
        preset = self.preset
        executors = (self.catalogue.executors[each.path.executor] for each in curve.transfers)
        least = max(executor.least_bytes for executor in executors)
        if curve.settings > 1 and preset.combined_sizes:
            return tuple(s for s in sizes if s >= least and s in preset.combined_sizes)
        in_place = any(map(self.catalogue.in_place, curve.transfers))
        least = max(least, PAGE if curve.has_file or in_place else 0)
        if curve.kind == "set" and not (curve.principal or curve.has_file):
            least = max(least, preset.pair_smallest)
        sizes = tuple(size for size in sizes if size >= least)
        if curve.has_file and preset.secondary_octaves > FILE_OCTAVES:
            if curve.principal:
                return thin(sizes, FILE_OCTAVES)
            if self._is_on_disk(curve):
                return tuple(size for size in sizes if size == BANDWIDTH_BYTES)
            if _in_a_state(curve):
                return thin(sizes, preset.secondary_octaves)
        elif curve.principal and in_place and preset.secondary_octaves > COSTLY_OCTAVES:
            return thin(sizes, COSTLY_OCTAVES, sizes[-1])
        elif curve.principal and preset.seconds and self._is_searched(curve):
            return thin(sizes, COSTLY_OCTAVES, SEARCHED_LARGEST)
        elif curve.principal:
            return sizes
        kept = thin(sizes, preset.secondary_octaves)
        # And the one that all processes measure.
        repeated = preset.processes > 1 and preset.depth < Depth.PAIRS
        extra = {self._bandwidth_size(curve)} & set(sizes) if repeated else set()
        return tuple(sorted({*kept, *extra}))

    def _of_patterns(self, curve: PlannedCurve, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Those that ``--only`` asks for: the small ones if it names the curve's latency alone."""
        only = self.request.patterns
        if curve.requested or not any(map(asks_for_latency, only)):
            return sizes
        if matches_any(texts_of(curve.at(SMALL_BYTES + 1), self.machine), only):
            return sizes
        return tuple(size for size in sizes if size <= SMALL_BYTES)

    def _is_on_disk(self, curve: PlannedCurve) -> bool:
        ends = (end for transfer in curve.transfers for end in transfer.path.ends)
        return any(map(self.catalogue.is_on_disk, ends))

    def _is_searched(self, curve: PlannedCurve) -> bool:
        """Whether a search has to find its best settings."""
        return any(map(self.catalogue.is_searched, curve.transfers))

    def _is_repeatable(self, curve: PlannedCurve) -> bool:
        """Whether nothing has to be brought back after a sample."""
        return all(map(self.catalogue.repeatable, curve.transfers))

    def _possible(self, curve: PlannedCurve, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Those that its executor can move; where the others were requested, they are one
        unsupported path."""
        least = PAGE if self._is_on_disk(curve) else 0
        cut = [format_bytes(size) for size in sizes if size < least]
        if cut and (self.explicit or curve.requested):
            reason = f"a disk moves no less than {format_bytes(PAGE)} at a time"
            self.unsupported_paths.append(Unsupported(f"{curve.text} of {', '.join(cut)}", reason))
        return tuple(size for size in sizes if size >= least)

    def _few(self, curve: PlannedCurve, selected: tuple[int, ...]) -> tuple[int, ...]:
        """What is measured of every member of a class: of a principal curve several sizes, of the
        others, and of what has to be brought back after each sample, one that shows its rate; of
        several such at once nothing, and where time is short nothing between GPUs."""
        few = tuple(size for size in selected if size in self.preset.equal_sizes)
        if not self.preset.equal_sizes or curve.kind == "operation":
            return selected
        cheap = self._is_repeatable(curve)
        if curve.kind == "set" and (not cheap or self._is_searched(curve)):
            return ()
        # What is brought back between GPUs takes a third of a second for each of many pairs, and
        # copies measure their links: where time is short, the first pair has to do.
        places = (place for transfer in curve.transfers for place in transfer.path.places)
        if self.preset.seconds and not cheap and all(place.kind == "gpu" for place in places):
            return ()
        if curve.principal and cheap:
            return few
        size = self._bandwidth_size(curve)
        return (size,) if size in selected else few[-1:]

    def _points(
        self, curve: PlannedCurve, known: _Sizes, like: str, few: tuple[int, ...]
    ) -> Iterator[PlannedPoint]:
        preset = self.preset
        # Where time is short, what has to be brought back after each sample adds nothing.
        again = not preset.seconds or self._is_repeatable(curve)
        again = again and curve.is_default and not self._is_searched(curve)
        again = again and preset.depth > Depth.DEFAULTS
        named = self.explicit or curve.requested
        sizes = tuple(known)
        repeated = self._representatives(curve, [size for size in sizes if size in few])
        for size in sizes:
            conditional = size not in few
            if conditional and not (named or (again and size <= GROWING)):
                continue
            workload, needed = known[size]
            grows = not (self.explicit or curve.layout or curve.sizes) and size > GROWING
            is_bystander = curve.is_sized and not curve.for_model
            everywhere = size in repeated and not (is_bystander and preset.depth < Depth.PAIRS)
            everywhere = (everywhere or self.request.is_narrow) and not conditional
            everywhere = everywhere or preset.depth is Depth.PAIRS
            largest = size == sizes[-1] and preset.depth > Depth.DEFAULTS
            yield PlannedPoint(
                curve,
                size,
                workload,
                needed.total,
                host_bytes=sum(b for place, b in needed.at.items() if place[:3] != "gpu"),
                processes=self._processes(curve, everywhere=everywhere),
                priority=_priority(curve, size in repeated, conditional),
                growing=grows,
                always=largest and not conditional,
                like=like,
                gpus=needed.gpus,
                longest_seconds=math.inf if named else preset.longest_seconds,
            )

    def _processes(self, curve: PlannedCurve, *, everywhere: bool) -> int:
        if curve.for_model == "validation":
            return min(VALIDATION_PROCESSES, self.preset.processes)
        return self.preset.processes if everywhere else 1

    def _representatives(self, curve: PlannedCurve, sizes: list[int]) -> frozenset[int]:
        """Those of ``sizes`` that represent the curve."""
        if _in_a_state(curve):
            sizes = [size for size in sizes if size <= BANDWIDTH_BYTES] or sizes
        return representative_sizes(sizes, self._bandwidth_size(curve))

    def _bandwidth_size(self, curve: PlannedCurve) -> int:
        """The size that shows the curve's bandwidth: larger for what people ask for, and if the
        links could carry `BANDWIDTH_BYTES` in less than `SHORT_SECONDS`. Pieces take longer."""
        if curve.has_file or not self._is_repeatable(curve):
            return BANDWIDTH_BYTES
        if curve.principal:
            return GROWING
        workload = curve.at(BANDWIDTH_BYTES)
        peak = bound(self.machine, workload) if curve.layout is None else None
        short = peak is not None and workload.bytes < SHORT_SECONDS * peak.bytes_per_second
        return GROWING if short else BANDWIDTH_BYTES

    def _within_memory(self, curve: PlannedCurve, sizes: tuple[int, ...]) -> _Sizes:
        """The sizes whose buffers fit; those that do not are one unsupported path."""
        kept: _Sizes = {}
        why: dict[int, str] = {}
        for size in sizes:
            # To lay out the pieces of a size takes time and memory in proportion to it.
            if curve.layout is not None and size > self.request.memory_bytes:
                allowed = f"--memory allows {format_bytes(self.request.memory_bytes)}"
                why[size] = f"{format_bytes(size)} needs larger buffers, {allowed}"
                continue
            workload = curve.at(size)
            needed = footprint(workload, self.catalogue)
            if reason := self._too_large(size, needed):
                why[size] = reason
            else:
                kept[size] = workload, needed
        if why:
            what = f"{curve.name} of {', '.join(map(format_bytes, why))}"
            self.unsupported_paths.append(Unsupported(what, next(iter(why.values()))))
        return kept

    def _too_large(self, size: int, needed: Footprint) -> str:
        if needed.total > self.request.memory_bytes:
            what = "buffers and staging" if needed.staging else "buffers"
            allowed = f"--memory allows {format_bytes(self.request.memory_bytes)}"
            return f"{_needs(size, needed.total)} of {what}, {allowed}"
        for file in self.machine.files:
            there = needed.at.get(f"file:{file.name}", 0)
            if there > file.bytes:
                has = "may be used there" if file.scratch else "is what the file has"
                held = f"{format_bytes(file.bytes)} {has}"
                return f"{_needs(size, there)} of file:{file.name}, {held}"
        for node in self.machine.numa:
            there = needed.at.get(f"numa:{node.index}", 0)
            if node.memory_free_bytes is not None and there > node.memory_free_bytes:
                free = format_bytes(node.memory_free_bytes >> 20 << 20)
                return f"{_needs(size, there)} on numa:{node.index}, {free} is free"
        for gpu in self.machine.gpus:
            there = needed.at.get(f"gpu:{gpu.index}", 0)
            if gpu.memory_free_bytes and there > gpu.memory_free_bytes:
                free = format_bytes(gpu.memory_free_bytes)
                return f"{_needs(size, there)} on gpu:{gpu.index}, {free} is free"
        return ""


def _needs(size: int, needed: int) -> str:
    return f"{format_bytes(size)} needs {format_bytes(needed)}"


def _in_a_state(curve: PlannedCurve) -> bool:
    """Whether a file has to be brought into a state, which may take much longer than usual."""
    ends = (end for transfer in curve.transfers for end in transfer.path.ends)
    return any(end.place.kind == "file" and end.variant for end in ends)


def _priority(curve: PlannedCurve, representative: bool, conditional: bool) -> Priority:
    if conditional:
        return Priority.CONDITIONAL
    if not representative:
        return Priority.REST
    together = curve.kind == "set" and curve.is_default and not curve.is_sized
    is_headline = curve.principal or together or bool(curve.for_model)
    return Priority.HEADLINE if is_headline else Priority.REPRESENTATIVE
