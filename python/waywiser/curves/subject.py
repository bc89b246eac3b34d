"""A profile as analyses take it: its curves, and all that is known beside. What is compared with
others has series without samples, in the words by which profiles are joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from waywiser.curves.answer import Device, device_at
from waywiser.curves.classes import representatives
from waywiser.curves.curve import Curve, Point, curves_of, point_of, points_of
from waywiser.curves.exchanges import among_memories
from waywiser.curves.former_words import in_words_of_today, names_ranks
from waywiser.curves.gpu_numbers import GpuMatch, gpus_of, match_gpus, renumbered
from waywiser.curves.imported import as_imported, imported_from, origin_of
from waywiser.curves.overview import Overview, overview
from waywiser.curves.texts import survey_again
from waywiser.machine import Gpu, Machine, launch_options, memories_of
from waywiser.profile import (
    Origin,
    Profile,
    Run,
    RunHealth,
    SeriesFrame,
    are_crowded,
    gpus_fed_by_host,
)
from waywiser.profile.derived import derived
from waywiser.profile.planned import Planned, planned
from waywiser.words import GpuState, Place, Unsupported, Value, Workload, count, grouped, json_text


class LoadedLink(Value, frozen=True):
    """The most that was seen of a GPU's PCIe link while it was loaded."""

    generation: int = 0
    width: int = 0

    def below(self, gpu: Gpu) -> str:
        """``PCIe 5 x8 of 5 x16`` if it is less than the link could be; else empty."""
        return gpu.pcie.below_best(self.generation, self.width)


class Subject(Value, frozen=True, dict=True):
    """One machine at one time: its profile, read once. Tests and simulations make it without a
    file.

    `Subject.of` reads all that reports and questions take. What is compared with others has neither
    estimates nor an overview (`read_subject`).
    """

    name: str
    """The host's, else the file's."""
    machine: Machine
    points: tuple[Point, ...] = ()
    """All series, measured or not, in the order of the profile."""
    file: str = ""
    created: str = ""
    """UTC, ISO 8601."""
    request: str = ""
    """The request of the survey, as text: profiles with equal requests have the same plan, except
    for what their machines do not support."""
    unsupported_paths: tuple[Unsupported, ...] = ()
    crowded: tuple[Point, ...] = ()
    """What was measured and is not compared (`CROWDED`)."""
    health: tuple[RunHealth, ...] = ()
    links: dict[int, LoadedLink] = msgspec.field(default_factory=dict)
    """Links by GPU, those that host memory was copied to or from."""
    environment: dict[str, Any] = msgspec.field(default_factory=dict)
    """What could explain a number, as it was when the last run began; empty if it was not
    recorded."""
    tools: tuple[str, ...] = ()
    """Whose results these are, where they were imported: ``nvbandwidth 0.8``."""
    unfinished: bool = False
    """Its survey was killed, or is still running."""
    own_findings: tuple[str, ...] = ()
    """What its profile says of its links by itself."""
    match: GpuMatch = GpuMatch()
    """Its GPUs beside those of the subject that it is compared with."""
    seen: Overview | None = None
    gpu_states: tuple[GpuState, ...] = ()
    """Readings of GPUs while bytes moved."""
    alone: tuple[Curve, ...] = ()
    """Copies that were measured in sets with collectives only, by their times alone in turn."""

    @classmethod
    def of(cls, profile: Profile, frame: SeriesFrame | None = None) -> Subject:
        """``frame`` is the profile's, if it was read already. Raises `ProfileError` for a damaged
        file."""

        def make() -> Subject:
            read = frame or SeriesFrame.read(profile)
            seen = overview(profile, frame=read)
            known = cls.described(profile, (), len(read.visits))
            alone = curves_alone(read, curves_of(seen.series), known.machine)
            return replace(known, seen=seen, gpu_states=read.gpu_states, alone=alone)

        found = derived(profile, "subject", cls, make)
        seen = replace(found.overview, profile=str(profile.path))
        return replace(found.named(profile), points=seen.series, seen=seen)

    def named(self, profile: Profile) -> Subject:
        """The same by the name of a profile: of those with equal contents each has its own."""
        name = profile.machine.hostname or profile.path.stem
        return replace(self, name=name, file=str(profile.path))

    @classmethod
    def described(cls, profile: Profile, points: Iterable[Point], visits: int) -> Subject:
        """Points with what their profile says beside them; ``visits`` is the number of those that
        it holds."""
        environment, machine = profile.environment, profile.machine
        foreseen = planned(profile.plan_json)
        request = foreseen.request
        return cls(
            name=machine.hostname or profile.path.stem,
            machine=machine,
            points=tuple(points),
            file=str(profile.path),
            created=profile.created,
            request=json_text(request) if request else "",
            unsupported_paths=tuple(profile.unsupported_paths),
            health=tuple(profile.health()),
            environment=environment,
            tools=imported_from(environment),
            unfinished=_is_unfinished(profile.runs, foreseen, visits),
        )

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """The curves that were measured, in the order of the profile."""
        return curves_of(self.points)

    @property
    def overview(self) -> Overview:
        """Unsupported paths, quality flags, health, sides and all else that the profile has as a
        whole; of a subject that was read for it."""
        assert self.seen is not None
        return self.seen

    @property
    def called(self) -> str:
        """The file, else the host."""
        return self.file or self.name

    @property
    def is_of_results(self) -> bool:
        """Whether its GPUs are those that other tools' results name: a run may have used some."""
        return bool(self.tools) and not self.machine.is_described

    def beside(self, other: Subject) -> Subject:
        """The node with its GPUs matched to those of another."""
        return replace(self, match=match_gpus(other.machine, self.machine))

    @property
    def matched_points(self) -> Iterator[Point]:
        """Its series with the other's numbers for its GPUs."""
        changed = self.match.changed
        for point in self.points:
            if not changed or not gpus_of(point.workload) & changed.keys():
                yield point
                continue
            moved = renumbered(point.workload, changed)
            yield Point.of(moved, point.blocks, point.failures)

    def own_numbers(self, workload: Workload) -> Workload:
        """A workload of the other, with the node's numbers for its GPUs."""
        back = {old: new for new, old in self.match.changed.items()}
        return renumbered(workload, back) if back else workload

    def curve(self, text: str) -> Curve | None:
        return next((curve for curve in self.curves if curve.text == text), None)

    @property
    def decidable(self) -> Subject:
        """The same without curves of ranks that share CPUs: they show how these take turns, and
        decide nothing."""
        kept = tuple(x for x in self.points if not are_crowded(x.workload, self.machine))
        if len(kept) == len(self.points):
            return self
        return replace(self, points=kept)

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


def _is_unfinished(runs: Sequence[Run], foreseen: Planned, stored: int) -> bool:
    """Whether the last run was killed or goes on, or was stopped before all was measured."""
    if runs and runs[-1].ended is None:
        return True
    return foreseen.estimate is not None and stored < foreseen.estimate.visits


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


def without_copies(nodes: Sequence[Subject]) -> tuple[list[Subject], list[tuple[str, str]]]:
    """(the nodes that are surveys of their own, (copy, original) by file).

    Replicates are blocks: one that is counted twice agrees with itself, and makes noise look small
    or a suspicion confirmed. Of a survey and a copy from before it was resumed the former is kept.
    """
    kept: list[Subject] = []
    copies: list[tuple[str, str]] = []
    same: dict[tuple[str, str], list[int]] = {}
    for node in nodes:
        alike = same.setdefault((node.name, node.created), [])
        at = next((n for n in alike if is_copy(kept[n], node)), None)
        if at is None:
            alike.append(len(kept))
            kept.append(node)
            continue
        copy, original = node, kept[at]
        if not _is_within(node, original):
            copy, original = original, node
            kept[at] = node
        copies.append((copy.called, original.called))
    return kept, copies


def is_copy(one: Subject, other: Subject) -> bool:
    """Whether two files are of one survey: equal, or one from before it was resumed."""
    same = (one.name, one.created) == (other.name, other.created)
    return same and (_is_within(one, other) or _is_within(other, one))


def _is_within(one: Subject, other: Subject) -> bool:
    """Whether all blocks of one, and there are some, are blocks of the other, to the last digit."""
    theirs = {series.identity: set(series.blocks) for series in other.points}
    blocks = [(series.identity, block) for series in one.points for block in series.blocks]
    return bool(blocks) and all(block in theirs.get(i, ()) for i, block in blocks)


CROWDED = "its ranks share CPUs: how they take turns has no verdict"


def read_subject(path: Path | str, *, links: bool = False) -> Subject:
    """Reads a profile as others are compared with it. Raises `ProfileError`. ``links`` says whether
    to read what the links were under load, which takes longer."""
    with Profile.open(path) as profile:
        part = "compared-with-links" if links else "compared"
        found = derived(profile, part, Subject, lambda: subject_of(profile, links=links))
        return msgspec.structs.replace(found.named(profile), file=str(path))


def subject_of(
    profile: Profile, frame: SeriesFrame | None = None, *, links: bool = False
) -> Subject:
    """As `read_subject`, of an open profile; ``frame`` is the profile's, if it was read already."""
    frame = frame or SeriesFrame.read(profile)
    known = Subject.described(profile, points_of(frame), len(frame.visits))
    return as_compared(known, frame, profile.plan_json, links=links)


def as_compared(
    known: Subject, frame: SeriesFrame, plan_json: str, *, links: bool = False
) -> Subject:
    """A subject that is described with all points of its frame, as others are compared with it.
    Raises `ProfileError`."""
    machine = known.machine
    parted = grouped((are_crowded(each.workload, machine), each) for each in known.points)
    found, crowded = parted.get(False, []), parted.get(True, [])
    measured = as_imported(found, plan_json) if known.tools else found
    return msgspec.structs.replace(
        known,
        machine=_without_ranks(machine, frame.workloads) if known.tools else machine,
        points=tuple(_joined(measured, machine)),
        unsupported_paths=(
            *known.unsupported_paths,
            *_without_verdict(crowded),
            *_of_fewer(found, machine),
        ),
        crowded=tuple(each for each in _joined(crowded, machine) if each.blocks),
        links=_links(frame) if links else {},
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


def _without_verdict(crowded: Sequence[Point]) -> Iterator[Unsupported]:
    """What was measured and is not compared, each curve once."""
    for curve in dict.fromkeys(each.workload.curve for each in crowded):
        yield Unsupported(curve, CROWDED)


def _of_fewer(found: Iterable[Point], machine: Machine) -> Iterator[Unsupported]:
    """Why an exchange of a benchmark, which has a memory for each rank, has no counterpart."""
    for curve in {each.curve: each.workload for each in found}.values():
        if among_memories(curve, machine) is not curve:
            memory = curve.transfers[0].path.source
            few, ranks = memories_of(memory, machine), len(memory.each)
            why = f"the {ranks} ranks of this survey share {count(few, 'GPU')}, which exchange"
            yield Unsupported(curve.curve, why)


def _joined(found: Iterable[Point], machine: Machine) -> Iterator[Point]:
    """The series in the words that profiles are joined by."""
    for series in found:
        workload = among_memories(in_words_of_today(series.workload), machine)
        if workload is series.workload:
            yield series
        else:
            yield Point.of(workload, series.blocks, series.failures)


def _links(frame: SeriesFrame) -> dict[int, LoadedLink]:
    """The links of GPUs that were read while host memory was copied to or from them."""
    seen: dict[int, set[tuple[int, int]]] = {}
    for workload, _, visits in frame.series:
        fed = gpus_fed_by_host(workload)
        for visit in frame.visits[visits] if fed else ():
            for state in frame.gpu_states_of(visit):
                if state.index in fed:
                    known = seen.setdefault(state.index, {(0, 0)})
                    known.add((state.pcie_generation, state.pcie_width))
    return {index: LoadedLink(*map(max, zip(*known, strict=True))) for index, known in seen.items()}
