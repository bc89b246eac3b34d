"""The profile that analyses ask: its curves with their estimates, and all that is known beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from waywiser.curves.answer import Device, device_at
from waywiser.curves.classes import representatives
from waywiser.curves.curve import Curve, curves_of
from waywiser.curves.imported import imported_from, origin_of
from waywiser.curves.overview import Overview, overview
from waywiser.curves.point import point_of
from waywiser.curves.texts import survey_again
from waywiser.machine.machine import Machine
from waywiser.machine.ranks import launch_options
from waywiser.profile import Profile
from waywiser.profile.quality_flags import Origin, are_crowded
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Place, Value
from waywiser.words.records import GpuState


class Subject(Value, frozen=True):
    """One profile, read once."""

    name: str
    """The machine's, as a table of several calls it."""
    machine: Machine
    curves: tuple[Curve, ...]
    """The curves in the order of the profile."""
    overview: Overview
    """Unsupported paths, quality flags, health, sides and all else that the profile has as a
    whole."""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What could explain a number, as the latest run found it; empty if it was not recorded."""
    gpu_states: tuple[GpuState, ...] = ()
    """Readings of GPUs while bytes moved."""
    alone: tuple[Curve, ...] = ()
    """Copies that were measured in sets with collectives only, by their times alone in turn."""

    @classmethod
    def of(cls, profile: Profile) -> Subject:
        """Raises `ProfileError` for a damaged file."""
        frame = SeriesFrame.read(profile)
        seen = overview(profile, frame=frame)
        machine = profile.machine
        curves = curves_of(seen.series)
        return cls(
            machine.hostname or profile.path.stem,
            machine,
            curves,
            seen,
            profile.environment,
            frame.gpu_states,
            curves_alone(frame, curves, machine),
        )

    def curve(self, text: str) -> Curve | None:
        return next((curve for curve in self.curves if curve.text == text), None)

    @property
    def decidable(self) -> Subject:
        """The same without curves of ranks that share CPUs: they show how these take turns, and
        decide nothing."""
        kept = tuple(x for x in self.curves if not are_crowded(x.workload, self.machine))
        if len(kept) == len(self.curves):
            return self
        return msgspec.structs.replace(self, curves=kept)

    @property
    def origin(self) -> Origin:
        """Where its numbers are from."""
        return origin_of(self.machine, self.environment)

    @property
    def launch(self) -> list[str]:
        """Options of a survey that starts its ranks again; empty without."""
        return launch_options(self.machine, self.environment)

    def surveyed(self, remedy: str) -> str:
        """A remedy that surveys the machine; empty if that cannot repeat the numbers."""
        return remedy if self.origin == "surveyed" else ""

    def again(self, *curves: str) -> str:
        """What measures curves again, for a remedy: nothing does for a simulated machine, and for
        imported results the tool that wrote them."""
        origin = self.origin
        if origin == "simulated":
            return "nothing was measured: the machine is simulated"
        if origin == "imported":
            return f"run {' and '.join(imported_from(self.environment))} again for these paths"
        return f"measure again alone: {survey_again(*curves, launch=self.launch)}"

    def device(self, place: Place) -> Device:
        """A device with UUID and PCI address if the machine has them."""
        return device_at(place, self.machine)

    def gpus(self, places: Iterable[Place]) -> tuple[Device, ...]:
        """The GPUs among ``places``, each once, by index."""
        indexes = {place.index for place in places if place.kind == "gpu"}
        return tuple(self.device(Place("gpu", index)) for index in sorted(indexes))


def curves_alone(
    frame: SeriesFrame, curves: Sequence[Curve], machine: Machine
) -> tuple[Curve, ...]:
    """The curves of members of sustained workloads alone that were not measured otherwise."""
    measured = {curve.text for curve in curves}
    found = [each for each in frame.alone_series() if each.workload.curve not in measured]
    if not found:
        return ()
    first = representatives((each.workload for each in found), machine)
    known = SeriesFrame.of(found).series_blocks()
    return curves_of(point_of(each, machine, first) for each in known)
