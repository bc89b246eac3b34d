"""At which sizes a curve is visited: what its preset asks for, and what memory and time allow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from waywiser.plan import files, layouts
from waywiser.plan.catalogue import Catalogue
from waywiser.plan.curves import Curve
from waywiser.plan.footprint import Footprint, footprint
from waywiser.plan.point import Point, Priority, representative_sizes
from waywiser.plan.preset import Preset
from waywiser.plan.sizes import BANDWIDTH_SIZE, GROWING, LATENCY_BELOW, thin
from waywiser.records import Refusal
from waywiser.topology.machine import Machine
from waywiser.words import Transfer, format_bytes

PAGE = 4096
"""What moves in place moves in whole pages: less takes the time of one."""

COSTLY_OCTAVES = 2
"""Between the sizes of a principal curve of what moves in place, since each sample costs a way
back, and of what a search has to tune, of which few sizes tell the latency, the rate, and where the
plain copy is slower; unless the preset wants more of every curve."""

FILE_OCTAVES = 3
"""Between the sizes of a principal curve of files, which are slow and saturate early; unless the
preset is as thorough with every curve."""

SEARCHED_LARGEST = 256 * 2**20
"""Of the sizes of what a search has to tune."""


@dataclass
class Visits:
    """Makes the points of curves; ``refusals`` and ``left_out`` gather what is not visited."""

    machine: Machine
    catalogue: Catalogue
    preset: Preset
    sizes: tuple[int, ...]
    explicit: bool
    """Somebody asked for these sizes: every curve is visited at all of them."""
    memory_bytes: int
    narrow: bool = False
    """Somebody asked for a part of the plan: every process measures all of it."""
    refusals: list[Refusal] = field(default_factory=list)
    left_out: int = 0
    """Series that a more thorough preset, or somebody who asks, would measure."""

    def points(self, curve: Curve, like: str) -> list[Point]:
        """The curve's points, ascending. ``like`` is the first of its class, empty where it is the
        first itself. Of paths that a search has to tune, only the first of a class is principal."""
        if like and self._is_searched(curve) and not curve.asked:
            curve = replace(curve, principal=False)
        wanted = self._possible(curve, self._wanted(curve))
        few = self._few(curve, wanted) if like and not self.explicit else wanted
        told = curve.departures == curve.settings <= self.preset.equal_settings
        if like and not (told and few):
            self.left_out += len(wanted)
            return []
        kept = self._within_memory(curve, wanted)
        points = list(self._points(curve, kept, like, few))
        self.left_out += len(kept) - len(points)
        return points

    def _wanted(self, curve: Curve) -> tuple[int, ...]:
        """The sizes of the first of a class, whatever memory and time allow."""
        if curve.operation is not None:
            return (0,)
        if curve.has_sizes_of_its_own or (curve.sizes and not self.explicit):
            return curve.sizes
        sizes, preset = self.sizes, self.preset
        layout = next((t.layout for t in curve.transfers if t.layout is not None), None)
        if layout is not None:
            if self.explicit:
                return layouts.whole_units(layout, sizes)
            return layouts.usual_sizes(layout)
        if curve.cache != "warm":
            usual = sizes if self.explicit or curve.asked else preset.cache_sizes
            return tuple(s for s in sizes if s >= LATENCY_BELOW and s in usual)
        if self.explicit:
            return sizes
        executors = {transfer.path.executor for transfer in curve.transfers}
        least = max(self.catalogue.executor(name).least_bytes for name in executors)
        sizes = tuple(size for size in sizes if size >= least)
        if curve.settings > 1 and preset.combined_sizes:
            return tuple(size for size in sizes if size in preset.combined_sizes)
        if any(files.has_file(transfer.path) for transfer in curve.transfers):
            sizes = tuple(size for size in sizes if size >= files.SMALLEST)
            if preset.secondary_octaves > FILE_OCTAVES:
                disk = any(files.on_disk(t, self.catalogue) for t in curve.transfers)
                if disk and not curve.principal:
                    return tuple(size for size in sizes if size == BANDWIDTH_SIZE)
                if curve.principal or _in_a_state(curve):
                    return thin(
                        sizes, FILE_OCTAVES if curve.principal else preset.secondary_octaves
                    )
                return self._thinned(sizes)
        if any(map(self.catalogue.in_place, curve.transfers)):
            sizes = tuple(size for size in sizes if size >= PAGE)
            if curve.principal and preset.secondary_octaves > COSTLY_OCTAVES:
                return thin(sizes, COSTLY_OCTAVES, sizes[-1])
        if curve.principal and preset.seconds and self._is_searched(curve):
            return thin(sizes, COSTLY_OCTAVES, SEARCHED_LARGEST)
        if curve.principal:
            return sizes
        if len(curve.transfers) > 1:
            sizes = tuple(size for size in sizes if size >= preset.pair_smallest)
        return self._thinned(sizes)

    def _thinned(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes of a secondary curve: a few, and the one that all processes measure."""
        kept = thin(sizes, self.preset.secondary_octaves)
        repeated = self.preset.processes > 1 and not self.preset.repeat_all
        extra = {BANDWIDTH_SIZE} & set(sizes) if repeated else set()
        return tuple(sorted({*kept, *extra}))

    def _possible(self, curve: Curve, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Those that its executor can move; where somebody asked for the others, they are one
        refusal."""
        kept = files.possible_sizes(curve.transfers, sizes, self.catalogue)
        cut = [format_bytes(size) for size in sizes if size not in kept]
        if cut and (self.explicit or curve.asked):
            reason = f"a disk moves no less than {format_bytes(files.SMALLEST)} at a time"
            self.refusals.append(Refusal(f"{curve.text} of {', '.join(cut)}", reason))
        return kept

    def _few(self, curve: Curve, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """What is measured of every member of a class: of a principal curve several sizes, of the
        others, and of what has to be brought back after each sample, one that tells its rate; of
        several such at once nothing, and where time is short nothing between GPUs."""
        few = tuple(size for size in wanted if size in self.preset.equal_sizes)
        if not self.preset.equal_sizes or curve.operation is not None:
            return wanted
        cheap = all(map(self.catalogue.repeatable, curve.transfers))
        if len(curve.transfers) > 1 and (not cheap or self._is_searched(curve)):
            return ()
        # What is brought back between GPUs takes a third of a second for each of many pairs, and
        # their links are told by copies: where time is short, the first pair has to do.
        if self.preset.seconds and not cheap and all(map(_between_gpus, curve.transfers)):
            return ()
        if curve.principal and cheap:
            return few
        return (BANDWIDTH_SIZE,) if BANDWIDTH_SIZE in wanted else few[-1:]

    def _is_searched(self, curve: Curve) -> bool:
        """Whether a search has to find its best settings."""
        kinds = (self.catalogue.executor(t.path.executor) for t in curve.transfers)
        return any(kind.settings_on_request for kind in kinds)

    def _points(
        self, curve: Curve, sizes: tuple[int, ...], like: str, few: tuple[int, ...]
    ) -> Iterator[Point]:
        preset = self.preset
        laid_out = any(transfer.layout for transfer in curve.transfers)
        # Where time is short, what has to be brought back after each sample tells no more of it.
        again = not preset.seconds or all(map(self.catalogue.repeatable, curve.transfers))
        again = again and not self._is_searched(curve)
        named = self.explicit or curve.asked
        certain = [size for size in sizes if size in few]
        repeated = self._representatives(curve, certain)
        for size in sizes:
            conditional = size not in few
            wanted = preset.conditional and again and curve.is_default and size <= GROWING
            if conditional and not wanted and not named:
                continue
            workload = curve.at(size)
            needed = footprint(workload, self.catalogue)
            grows = not (self.explicit or laid_out or curve.sizes) and size > GROWING
            everywhere = (size in repeated or self.narrow) and not conditional
            everywhere = everywhere or preset.repeat_all
            yield Point(
                curve,
                size,
                workload,
                needed.total,
                host_bytes=sum(b for place, b in needed.at.items() if place[:3] != "gpu"),
                processes=preset.processes if everywhere else 1,
                priority=_priority(curve, size in repeated, conditional),
                growing=grows,
                always=preset.largest_always and size == sizes[-1] and not conditional,
                like=like,
                gpus=needed.gpus,
                longest_seconds=math.inf if named else preset.longest_seconds,
            )

    def _representatives(self, curve: Curve, sizes: list[int]) -> frozenset[int]:
        """Those of ``sizes`` that represent the curve."""
        quick = all(map(self.catalogue.repeatable, curve.transfers)) and not any(
            files.has_file(transfer.path) for transfer in curve.transfers
        )
        if _in_a_state(curve):
            sizes = [size for size in sizes if size <= BANDWIDTH_SIZE] or sizes
        return representative_sizes(sizes, GROWING if curve.principal and quick else BANDWIDTH_SIZE)

    def _within_memory(self, curve: Curve, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes whose buffers fit; those that do not are one refusal."""
        kept: list[int] = []
        cut: list[int] = []
        reason = ""
        for size in sizes:
            why = self._too_large(size, footprint(curve.at(size), self.catalogue))
            reason = reason or why
            (cut if why else kept).append(size)
        if cut:
            what = f"{curve.name} of {', '.join(map(format_bytes, cut))}"
            self.refusals.append(Refusal(what, reason))
        return tuple(kept)

    def _too_large(self, size: int, needed: Footprint) -> str:
        if needed.total > self.memory_bytes:
            what = "buffers and staging" if needed.staging else "buffers"
            return (
                f"{format_bytes(size)} needs {format_bytes(needed.total)} of {what}, "
                f"--memory allows {format_bytes(self.memory_bytes)}"
            )
        for file in self.machine.files:
            there = needed.at.get(f"file:{file.name}", 0)
            if there > file.bytes:
                has = "may be used there" if file.scratch else "is what the file has"
                return (
                    f"{format_bytes(size)} needs {format_bytes(there)} of file:{file.name}, "
                    f"{format_bytes(file.bytes)} {has}"
                )
        for gpu in self.machine.gpus:
            place = f"gpu:{gpu.index}"
            there = needed.at.get(place, 0)
            if gpu.memory_free_bytes and there > gpu.memory_free_bytes:
                free = format_bytes(gpu.memory_free_bytes)
                return (
                    f"{format_bytes(size)} needs {format_bytes(there)} on {place}, {free} is free"
                )
        return ""


def _between_gpus(transfer: Transfer) -> bool:
    return transfer.path.source.place.kind == transfer.path.destination.place.kind == "gpu"


def _in_a_state(curve: Curve) -> bool:
    """Whether a file has to be brought into a state, which may take much longer than usual."""
    ends = (end for t in curve.transfers for end in (t.path.source, t.path.destination))
    return any(end.place.kind == "file" and end.variant for end in ends)


def _priority(curve: Curve, representative: bool, conditional: bool) -> Priority:
    if conditional:
        return Priority.CONDITIONAL
    if not representative:
        return Priority.REST
    together = len(curve.transfers) > 1 and curve.is_default
    return Priority.HEADLINE if curve.principal or together else Priority.REPRESENTATIVE
