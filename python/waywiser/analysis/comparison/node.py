"""A profile as others are compared with it: its machine, its series without samples, its health."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from waywiser.analysis.comparison.gpu_match import GpuMatch, match_gpus
from waywiser.curves.answer import Device
from waywiser.curves.imported import as_imported, imported_from
from waywiser.machine.machine import Gpu, Machine
from waywiser.machine.routes import renumbered_relays
from waywiser.profile import Profile, RunHealth
from waywiser.profile.planned import planned
from waywiser.profile.quality_flags import gpus_fed_by_host
from waywiser.profile.series_frame import SeriesFrame
from waywiser.profile.series_summary import SeriesSummary
from waywiser.words import Place, Value, Workload, json_text
from waywiser.words.numbers import MOST_INDEX, whole_number
from waywiser.words.records import Unsupported


class LoadedLink(Value, frozen=True):
    """The most that was seen of a GPU's PCIe link while it was loaded."""

    generation: int = 0
    width: int = 0

    def below(self, gpu: Gpu) -> str:
        """``PCIe 5 x8 of 5 x16`` if it is less than the link could be; else empty."""
        return gpu.pcie.below_best(self.generation, self.width)


class Node(Value, frozen=True):
    """One machine at one time. Tests and simulations make it without a file."""

    name: str
    """The host's, else the file's."""
    machine: Machine
    series: tuple[SeriesSummary, ...] = ()
    file: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    request: str = ""
    """The request of the survey, as text: nodes with equal requests have the same plan, except for
    what their machines do not support."""
    unsupported_paths: tuple[Unsupported, ...] = ()
    health: tuple[RunHealth, ...] = ()
    links: dict[int, LoadedLink] = msgspec.field(default_factory=dict)
    """Links by GPU, those that host memory was copied to or from."""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What could explain a number, as it was when the last run began."""
    tools: tuple[str, ...] = ()
    """Whose results these are, where they were imported: ``nvbandwidth 0.8``."""
    unfinished: bool = False
    """Its survey was killed, or is still running."""
    match: GpuMatch = GpuMatch()
    """Its GPUs beside those of the node that it is compared with."""

    @property
    def called(self) -> str:
        """The file, else the host."""
        return self.file or self.name

    @property
    def is_of_results(self) -> bool:
        """Whether its GPUs are those that other tools' results name: a run may have used some."""
        return bool(self.tools) and not self.machine.architecture

    def beside(self, other: Node) -> Node:
        """The node with its GPUs matched to those of another."""
        return msgspec.structs.replace(self, match=match_gpus(other.machine, self.machine))

    @property
    def matched_series(self) -> Iterator[SeriesSummary]:
        """Its series with the other's numbers for its GPUs."""
        changed = self.match.changed
        for series in self.series:
            if not changed or not gpus_of(series.workload) & changed.keys():
                yield series
                continue
            moved = renumbered(series.workload, changed)
            yield SeriesSummary.of(moved, series.blocks, series.failures)

    def own_numbers(self, workload: Workload) -> Workload:
        """A workload of the other, with the node's numbers for its GPUs."""
        back = {old: new for new, old in self.match.changed.items()}
        return renumbered(workload, back) if back else workload


def read_node(path: Path | str, *, links: bool = False) -> Node:
    """Raises `ProfileError`. ``links`` says whether to read what the links were under load, which
    takes longer."""
    with Profile.open(path) as profile:
        return msgspec.structs.replace(node_of(profile, links=links), file=str(path))


def node_of(profile: Profile, frame: SeriesFrame | None = None, *, links: bool = False) -> Node:
    """As `read_node`, of an open profile; ``frame`` is the profile's, if it was read already."""
    machine, environment = profile.machine, profile.environment
    request = planned(profile.plan_json).request
    tools = imported_from(environment)
    frame = frame or SeriesFrame.read(profile)
    found = frame.summaries()
    return Node(
        name=machine.hostname or profile.path.stem,
        machine=machine,
        series=tuple(as_imported(found, profile.plan_json) if tools else found),
        file=str(profile.path),
        created=profile.created,
        request=json_text(request) if request else "",
        unsupported_paths=profile.unsupported_paths,
        health=tuple(profile.health()),
        links=_links(frame) if links else {},
        environment=environment,
        tools=tools,
        unfinished=_is_unfinished(profile, len(frame.visits)),
    )


def _is_unfinished(profile: Profile, stored: int) -> bool:
    """Whether its last run was killed or goes on, or was stopped before all was measured."""
    runs = profile.runs
    if runs and runs[-1].ended is None:
        return True
    foreseen = planned(profile.plan_json).estimate
    return foreseen is not None and stored < foreseen.visits


def _links(frame: SeriesFrame) -> dict[int, LoadedLink]:
    """The links of GPUs that were read while host memory was copied to or from them."""
    seen: dict[int, LoadedLink] = {}
    for workload, _, visits in frame.series:
        fed = gpus_fed_by_host(workload)
        for visit in frame.visits[visits] if fed else ():
            for state in frame.gpu_states_of(visit):
                if state.index in fed:
                    before = seen.get(state.index, LoadedLink())
                    seen[state.index] = LoadedLink(
                        max(before.generation, state.pcie_generation),
                        max(before.width, state.pcie_width),
                    )
    return seen


Devices = Mapping[int, Device]
"""GPUs by their numbers."""


def device_of(gpu: Gpu) -> Device:
    return Device(f"gpu:{gpu.index}", gpu.uuid, gpu.pci)


def devices_on(workload: Workload, devices: Devices) -> tuple[Device, ...]:
    """The GPUs of a workload; by their numbers alone if ``devices`` does not have them."""
    gpus = sorted(gpus_of(workload))
    return tuple(devices.get(gpu, Device(f"gpu:{gpu}")) for gpu in gpus)


def gpus_of(workload: Workload) -> set[int]:
    """All GPUs that a workload names, in the parameters of an operation too."""
    return {place.index for place in workload.named_places if place.kind == "gpu"}


def renumbered(workload: Workload, numbers: Mapping[int, int]) -> Workload:
    """The workload with the GPUs under other numbers; those that ``numbers`` does not have keep
    theirs."""
    replace = msgspec.structs.replace

    def moved(place: Place) -> Place:
        if place.kind != "gpu":
            return place
        return Place("gpu", numbers.get(place.index, place.index))

    operation = workload.operation
    if operation is not None:
        parameters = {
            key: str(moved(place)) if (place := _gpu_in(value)) else value
            for key, value in operation.parameters.items()
        }
        operation = replace(operation, place=moved(operation.place), parameters=parameters)
    transfers = []
    for transfer in workload.transfers:
        source, destination = (replace(m, place=moved(m.place)) for m in transfer.path.ends)
        path = replace(transfer.path, source=source, destination=destination)
        settings = renumbered_relays(transfer.parameters, numbers)
        transfers.append(replace(transfer, path=path, parameters=settings))
    return replace(workload, transfers=tuple(transfers), operation=operation)


def _gpu_in(value: str) -> Place | None:
    """The GPU that a parameter names; None if it says something else."""
    kind, _, index = value.partition(":")
    number = whole_number(index, MOST_INDEX)
    return Place("gpu", number) if kind == "gpu" and number is not None else None
