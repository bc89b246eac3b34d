"""A profile as others are compared with it: its machine, its series without samples, its health."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from waywiser.analysis.comparison.gpu_match import GpuMatch, match_gpus
from waywiser.curves.answer import Device
from waywiser.curves.exchanges import among_memories
from waywiser.curves.former_words import in_words_of_today, names_ranks
from waywiser.curves.imported import as_imported, imported_from
from waywiser.machine.machine import Gpu, Machine
from waywiser.machine.ranks import memories_of
from waywiser.machine.routes import renumbered_relays
from waywiser.profile import Profile, RunHealth
from waywiser.profile.planned import planned
from waywiser.profile.quality_flags import are_crowded, gpus_fed_by_host
from waywiser.profile.series_frame import SeriesFrame
from waywiser.profile.series_summary import SeriesSummary
from waywiser.words import Place, Value, Workload, grouped, json_text
from waywiser.words.number_format import count
from waywiser.words.numbers import MOST_INDEX, whole_number
from waywiser.words.records import Unsupported

CROWDED = "its ranks share CPUs: how they take turns has no verdict"


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
    crowded: tuple[SeriesSummary, ...] = ()
    """What was measured and is not compared (`CROWDED`)."""
    health: tuple[RunHealth, ...] = ()
    links: dict[int, LoadedLink] = msgspec.field(default_factory=dict)
    """Links by GPU, those that host memory was copied to or from."""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What could explain a number, as it was when the last run began."""
    tools: tuple[str, ...] = ()
    """Whose results these are, where they were imported: ``nvbandwidth 0.8``."""
    unfinished: bool = False
    """Its survey was killed, or is still running."""
    own_findings: tuple[str, ...] = ()
    """What its profile says of its links by itself."""
    match: GpuMatch = GpuMatch()
    """Its GPUs beside those of the node that it is compared with."""

    @property
    def called(self) -> str:
        """The file, else the host."""
        return self.file or self.name

    @property
    def is_of_results(self) -> bool:
        """Whether its GPUs are those that other tools' results name: a run may have used some."""
        return bool(self.tools) and not self.machine.is_described

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
    parted = grouped((are_crowded(each.workload, machine), each) for each in found)
    found, crowded = parted.get(False, []), parted.get(True, [])
    return Node(
        name=machine.hostname or profile.path.stem,
        machine=_without_ranks(machine, frame.workloads) if tools else machine,
        series=tuple(_joined(as_imported(found, profile.plan_json) if tools else found, machine)),
        file=str(profile.path),
        created=profile.created,
        request=json_text(request) if request else "",
        unsupported_paths=(
            *profile.unsupported_paths,
            *_without_verdict(crowded),
            *_of_fewer(found, machine),
        ),
        crowded=tuple(each for each in _joined(crowded, machine) if each.blocks),
        health=tuple(profile.health()),
        links=_links(frame) if links else {},
        environment=environment,
        tools=tools,
        unfinished=_is_unfinished(profile, len(frame.visits)),
    )


def _without_ranks(machine: Machine, workloads: Iterable[Workload]) -> Machine:
    """The machine without GPUs and nodes that results of messages name alone: their numbers are
    those of ranks, and say nothing of what a host has."""
    if machine.is_described:
        return machine
    parted = grouped((names_ranks(each), each) for each in workloads)
    of_ranks, own = (
        {(place.kind, place.index) for each in parted.get(is_so, []) for place in each.named_places}
        for is_so in (True, False)
    )
    foreign = of_ranks - own
    gpus = [x for x in machine.gpus if x.pci or x.uuid or ("gpu", x.index) not in foreign]
    nodes = [x for x in machine.numa if ("numa", x.index) not in foreign]
    packages = machine.packages[: max(len(nodes), 1)]
    return msgspec.structs.replace(machine, gpus=tuple(gpus), numa=tuple(nodes), packages=packages)


def _without_verdict(crowded: Sequence[SeriesSummary]) -> Iterator[Unsupported]:
    """What was measured and is not compared, each curve once."""
    for curve in dict.fromkeys(each.workload.curve for each in crowded):
        yield Unsupported(curve, CROWDED)


def _of_fewer(found: Iterable[SeriesSummary], machine: Machine) -> Iterator[Unsupported]:
    """Why an exchange of a benchmark, which has a memory for each rank, has no counterpart."""
    for curve in {each.workload.curve: each.workload for each in found}.values():
        if among_memories(curve, machine) is not curve:
            memory = curve.transfers[0].path.source
            few, ranks = memories_of(memory, machine), len(memory.each)
            why = f"the {ranks} ranks of this survey share {count(few, 'GPU')}, which exchange"
            yield Unsupported(curve.curve, why)


def _joined(found: Iterable[SeriesSummary], machine: Machine) -> Iterator[SeriesSummary]:
    """The series in the words that profiles are joined by."""
    for series in found:
        workload = among_memories(in_words_of_today(series.workload), machine)
        if workload is series.workload:
            yield series
        else:
            yield SeriesSummary.of(workload, series.blocks, series.failures)


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
        found = sorted(numbers.get(each.index, each.index) for each in place.each)
        if not place.is_several:
            return Place("gpu", found[0])
        is_range = found == list(range(found[0], found[0] + len(found)))
        return Place("gpu", found[0], last=found[-1]) if is_range else place

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
