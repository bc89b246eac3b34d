"""The profile that analyses ask: its curves with their estimates, and all that is known beside."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from waywiser.curves.answer import Device, Exhibit, device_at
from waywiser.curves.line import Line, by_curve
from waywiser.curves.overview import Overview, overview
from waywiser.machine.machine import Machine
from waywiser.profile import Profile
from waywiser.profile.estimate import Estimate
from waywiser.profile.series_frame import SeriesFrame
from waywiser.stats.scatter import CurveBlocks
from waywiser.words import Path, Place, Transfer, Value, Workload
from waywiser.words.number_format import format_rate
from waywiser.words.records import GpuState


class MeasuredPoint(Value, frozen=True):
    """One series of a curve that was measured."""

    workload: Workload
    line: Line
    """The line of a series with an estimate: a series without one is no point."""

    @property
    def bytes(self) -> int:
        return self.line.bytes

    @property
    def estimate(self) -> Estimate:
        assert self.line.estimate is not None
        return self.line.estimate

    @property
    def seconds(self) -> float:
        """Median time of one execution."""
        return self.estimate.median

    @property
    def rate(self) -> float:
        """Bytes per second; 0 for an operation."""
        return self.estimate.rate.value if self.estimate.rate else 0.0

    @property
    def rate_text(self) -> str:
        """The rate in GB/s, with the digits that are known."""
        return format_rate(self.rate, self.estimate.relative)

    def exhibit(self, rate_from: int = 0) -> Exhibit:
        """Its bandwidth; its time if it has none, or is smaller than ``rate_from`` bytes."""
        found, series = self.estimate, self.line.workload
        if found.rate is None or self.bytes < rate_from:
            return Exhibit(series, "time", found.median, "s", found.interval)
        return Exhibit(series, "bandwidth", found.rate.value, "B/s", found.rate.interval)


class MeasuredCurve(Value, frozen=True):
    """The measured series of one workload over sizes, the smallest first."""

    text: str
    """`Workload.curve`."""
    name: str
    """As people call it."""
    points: tuple[MeasuredPoint, ...]

    @property
    def workload(self) -> Workload:
        """The workload of its first point: all of the curve but the size."""
        return self.points[0].workload

    @property
    def transfer(self) -> Transfer | None:
        """Its only transfer; None for a concurrent workload or an operation."""
        return self.workload.transfer

    @property
    def path(self) -> Path | None:
        return self.transfer.path if self.transfer else None

    @property
    def representative(self) -> str:
        """The first curve of its class."""
        return self.points[0].line.like or self.text

    @property
    def blocks(self) -> CurveBlocks:
        """The medians of the blocks without outliers, by size."""
        estimates = [point.estimate for point in self.points]
        return CurveBlocks(
            bytes=[point.bytes for point in self.points],
            blocks=[{block.block: block.median for block in each.used} for each in estimates],
            within=[
                max((block.deviation for block in each.used if block.interval), default=0.0)
                for each in estimates
            ],
            alike=self.representative,
        )

    def at(self, size: int) -> MeasuredPoint | None:
        return next((point for point in self.points if point.bytes == size), None)


class Subject(Value, frozen=True):
    """One profile, read once."""

    name: str
    """The machine's, as a table of several calls it."""
    machine: Machine
    curves: tuple[MeasuredCurve, ...]
    """The curves in the order of the profile."""
    overview: Overview
    """Unsupported paths, quality flags, health, sides and all else that the profile has as a
    whole."""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What could explain a number, as the latest run found it; empty if it was not recorded."""
    gpu_states: tuple[GpuState, ...] = ()
    """Readings of GPUs while bytes moved."""

    @classmethod
    def of(cls, profile: Profile) -> Subject:
        """Raises `ProfileError` for a damaged file."""
        frame = SeriesFrame.read(profile)
        seen = overview(profile, frame=frame)
        workloads = {each.row.identity: each.workload for each in frame.series}
        machine = profile.machine
        return cls(
            machine.hostname or profile.path.stem,
            machine,
            curves_of(seen.series, workloads),
            seen,
            profile.environment,
            frame.gpu_states,
        )

    def curve(self, text: str) -> MeasuredCurve | None:
        return next((curve for curve in self.curves if curve.text == text), None)

    def device(self, place: Place) -> Device:
        """A device with UUID and PCI address if the machine has them."""
        return device_at(place, self.machine)

    def gpus(self, places: Iterable[Place]) -> tuple[Device, ...]:
        """The GPUs among ``places``, each once, by index."""
        indexes = {place.index for place in places if place.kind == "gpu"}
        return tuple(self.device(Place("gpu", index)) for index in sorted(indexes))


def curves_of(lines: Iterable[Line], workloads: dict[str, Workload]) -> tuple[MeasuredCurve, ...]:
    """Grouped by curve; ``workloads`` by identity."""
    measured = by_curve(line for line in lines if line.estimate is not None)
    return tuple(
        MeasuredCurve(
            text,
            found[0].name,
            tuple(MeasuredPoint(workloads[each.identity], each) for each in found),
        )
        for text, found in measured.items()
    )
