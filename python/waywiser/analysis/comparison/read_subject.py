"""Reads a profile as others are compared with it: series without samples, in the words by which
profiles are joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from waywiser.curves.exchanges import among_memories
from waywiser.curves.former_words import in_words_of_today, names_ranks
from waywiser.curves.imported import as_imported
from waywiser.curves.point import Point, points_of
from waywiser.curves.subject import LoadedLink, Subject
from waywiser.machine.machine import Machine
from waywiser.machine.ranks import memories_of
from waywiser.profile import Profile
from waywiser.profile.derived import derived
from waywiser.profile.quality_flags import are_crowded, gpus_fed_by_host
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Workload, grouped
from waywiser.words.number_format import count
from waywiser.words.records import Unsupported

CROWDED = "its ranks share CPUs: how they take turns has no verdict"


def read_subject(path: Path | str, *, links: bool = False) -> Subject:
    """Raises `ProfileError`. ``links`` says whether to read what the links were under load, which
    takes longer."""
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
    machine = known.machine
    parted = grouped((are_crowded(each.workload, machine), each) for each in known.points)
    found, crowded = parted.get(False, []), parted.get(True, [])
    measured = as_imported(found, profile.plan_json) if known.tools else found
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
    for curve in {each.workload.curve: each.workload for each in found}.values():
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
