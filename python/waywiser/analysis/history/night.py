"""One profile as a history needs it: its GPUs, what could explain a change, and two times for each
headline path: the median and the fastest of its processes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from waywiser.analysis.comparison.differences import ENVIRONMENT, ISOLATION, entry_of
from waywiser.analysis.comparison.hardware import counted_models
from waywiser.curves import (
    SETS,
    LoadedLink,
    Point,
    Subject,
    headline_groups,
    imported_from,
    name_of,
    subject_of,
)
from waywiser.machine import Machine
from waywiser.profile import BlockSummary, Profile, SeriesFrame, are_crowded, gpus_fed_by_host
from waywiser.stats import survey_median
from waywiser.words import RATE_BYTES, Value, Workload, grouped, json_text

USUAL_BYTES = 64 * 2**20
"""The size of each transfer that a path is followed at, or the nearest: that of ``check``."""

_GPU = re.compile(r"\bgpu:([0-9]+)\b")

_KIND = re.compile(r"\S+@(\S+)")
"""A memory: a kind at a place."""


class NightGpu(Value, frozen=True):
    index: int
    uuid: str
    pci: str


class PathNight(Value, frozen=True):
    """A headline path in one survey."""

    curve: str
    path: str
    """Short: ``H2D gpu:3``."""
    group: str
    bytes: int
    """Bytes of all transfers together."""
    seconds: float
    """The median over processes of the median of each."""
    processes: int
    fastest_seconds: float
    """The median of the fastest process: what slows some processes of each survey moves it less."""


class FollowedPath(Value, frozen=True):
    """A headline path, without what was measured. The fields are those of a `PathNight`."""

    curve: str
    path: str
    group: str
    bytes: int


class PathColumns(Value, frozen=True):
    """The headline paths of one survey, each a `PathNight`, in columns: a fleet has many millions.
    The columns are bytes of `SECONDS` and `PROCESSES`."""

    paths: tuple[FollowedPath, ...] = ()
    seconds: bytes = b""
    fastest: bytes = b""
    processes: bytes = b""

    @classmethod
    def of(cls, paths: Iterable[PathNight]) -> PathColumns:
        rows = list(paths)
        return cls(
            tuple(FollowedPath(row.curve, row.path, row.group, row.bytes) for row in rows),
            np.array([row.seconds for row in rows], SECONDS).tobytes(),
            np.array([row.fastest_seconds for row in rows], SECONDS).tobytes(),
            np.array([row.processes for row in rows], PROCESSES).tobytes(),
        )

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[PathNight]:
        columns = (
            np.frombuffer(self.seconds, SECONDS).tolist(),
            np.frombuffer(self.processes, PROCESSES).tolist(),
            np.frombuffer(self.fastest, SECONDS).tolist(),
        )
        for path, *times in zip(self.paths, *columns, strict=True):
            yield PathNight(path.curve, path.path, path.group, path.bytes, *times)


SECONDS, PROCESSES = np.dtype("<f4"), np.dtype("<i4")
"""The numbers of columns. A data set has seconds in single precision too: a profile and its rows
say the same."""


class Night(Value, frozen=True):
    """What one profile says."""

    file: str
    host: str
    created: str
    """UTC, ISO 8601."""
    gpus: tuple[NightGpu, ...] = ()
    hardware: str = ""
    """Models of GPUs and CPUs: nodes with equal ones have equal paths."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """What could explain a change, by name: ``driver``, ``kernel``."""
    paths: PathColumns = PathColumns()
    simulated: str = ""
    first_visit: str = ""
    """When its first visit began; empty if that was not read."""

    @property
    def moment(self) -> datetime:
        return moment_of(self.created)

    @property
    def uuids(self) -> frozenset[str]:
        return frozenset(gpu.uuid for gpu in self.gpus if gpu.uuid)

    @property
    def keys(self) -> list[str]:
        """The curve of each path with the UUIDs of its GPUs, and its size: equal for one path of
        one node, even if the GPUs have other numbers."""
        uuids = self.known_gpus
        return [f"{_with_uuids(path.curve, uuids)} of {path.bytes}" for path in self.paths.paths]

    @property
    def known_gpus(self) -> dict[str, str]:
        """The UUIDs of GPUs by their numbers."""
        return {str(gpu.index): gpu.uuid for gpu in self.gpus if gpu.uuid}


@lru_cache(maxsize=65536)  # that of one night is looked at again and again
def moment_of(created: str) -> datetime:
    found = datetime.fromisoformat(created)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _with_uuids(curve: str, uuids: Mapping[str, str]) -> str:
    """The curve with the UUIDs of GPUs instead of their numbers."""
    texts, numbers = _parts_of(curve)
    named = (uuids.get(number, f"gpu:{number}") for number in numbers)
    return "".join([texts[0], *chain.from_iterable(zip(named, texts[1:], strict=True))])


@lru_cache(maxsize=65536)
def _parts_of(curve: str) -> tuple[list[str], list[str]]:
    """Returns the texts between the GPUs of a curve, and the numbers of these GPUs."""
    parts = _GPU.split(curve)
    return parts[::2], parts[1::2]


@lru_cache(maxsize=16384)
def gpus_text(text: str) -> tuple[str, ...]:
    """The UUIDs of GPUs that are written as JSON, those that are known."""
    gpus = msgspec.json.decode(text, type=tuple[NightGpu, ...])
    return tuple(gpu.uuid for gpu in gpus if gpu.uuid)


def gpus_in(curve: str) -> list[int]:
    """The numbers of the GPUs that a curve names, each once."""
    return list(dict.fromkeys(int(number) for number in _GPU.findall(curve)))


def read_night(file: str) -> Night:
    """Raises `waywiser.profile.ProfileError`. Reads less than `read_node`: a history has thousands
    of profiles."""
    with Profile.open_snapshot(file) as profile:
        environment = profile.environment
        if imported_from(environment):
            return night_of(msgspec.structs.replace(subject_of(profile), file=file))
        machine = profile.machine
        frame = SeriesFrame.read(profile)
        medians = frame.medians.tolist()
        points = [
            Point.of(each.workload, map(BlockSummary, range(len(own)), own), row=each.row)
            for each in frame.series
            if (own := [s for s in medians[each.visits] if s > 0])
            and not are_crowded(each.workload, machine)
        ]
        early = [row.started for row in frame.visits if row.samples]
        return _night(
            Night(file, machine.hostname or profile.path.stem, profile.created),
            machine,
            environment,
            points,
            _links(frame),
            min(early, default=""),
        )


def night_of(node: Subject) -> Night:
    """The same of a profile that was read."""
    measured = [each for each in node.points if each.blocks]
    links = {gpu: link for gpu, link in node.links.items() if link.width}
    about = Night(node.called, node.name, node.created)
    return _night(about, node.machine, node.environment, measured, links)


def _night(
    about: Night,
    machine: Machine,
    environment: Mapping[str, Any],
    points: Sequence[Point],
    links: Mapping[int, LoadedLink],
    first_visit: str = "",
) -> Night:
    return msgspec.structs.replace(
        about,
        gpus=tuple(NightGpu(gpu.index, gpu.uuid, gpu.pci) for gpu in machine.gpus),
        hardware=f"{counted_models(machine.gpus, len(machine.gpus))}; {machine.cpu_model}",
        facts=dict(_facts(machine, environment, links)),
        paths=PathColumns.of(_paths(machine, points)),
        simulated=machine.simulated,
        first_visit=first_visit,
    )


def _facts(
    machine: Machine, environment: Mapping[str, Any], links: Mapping[int, LoadedLink]
) -> Iterator[tuple[str, str]]:
    for name, value in (("driver", machine.driver), ("NCCL", machine.nccl)):
        if value:
            yield name, value
    for name in (*ENVIRONMENT, *ISOLATION) if "kernel" in environment else ():
        if environment.get(name) not in (None, "", []):
            yield name.replace("_", " "), entry_of(environment, name)
    for index, link in sorted(links.items()):
        yield f"link of gpu:{index}", f"PCIe {link.generation} x{link.width}"


def _links(frame: SeriesFrame) -> dict[int, LoadedLink]:
    """The link of each GPU while host memory was copied to or from it: the first that was read."""
    found: dict[int, LoadedLink] = {}
    for each in frame.series:
        missing = gpus_fed_by_host(each.workload) - found.keys()
        for visit in frame.visits[each.visits] if missing else ():
            states = {state.index: state for state in frame.gpu_states_of(visit)}
            for gpu in sorted(missing & states.keys()):
                if states[gpu].pcie_width:
                    state = states[gpu]
                    found[gpu] = LoadedLink(state.pcie_generation, state.pcie_width)
            missing -= found.keys()
            if not missing:
                break
    return found


def _paths(machine: Machine, points: Sequence[Point]) -> Iterator[PathNight]:
    large = [each for each in points if _of_each(each) >= RATE_BYTES]
    names = _named(machine, large)
    for curve, sizes in grouped((each.curve, each) for each in large).items():
        if curve not in names:
            continue
        found = min(sizes, key=lambda each: (abs(_of_each(each) - USUAL_BYTES), each.bytes))
        group, path = names[curve]
        medians = tuple([block.median for block in found.blocks])
        seconds, fastest = survey_median(medians), min(medians)
        yield PathNight(curve, path, group, found.bytes, seconds, len(medians), fastest)


def _of_each(point: Point) -> int:
    """Bytes of each transfer."""
    return point.bytes // max(len(point.workload.transfers), 1)


_Names = dict[str, tuple[str, str]]
_known: dict[Hashable, _Names] = {}
"""Names of the headline paths of machines: those of one node are the same each night."""

MOST_KNOWN = 4096


def _named(machine: Machine, points: Sequence[Point]) -> _Names:
    """The group and the short name of each headline path, by curve."""
    gpus = tuple((gpu.index, gpu.numa) for gpu in machine.gpus)
    curves = tuple(each.curve for each in points)
    key = len(machine.numa), gpus, curves, json_text(machine.traits)
    if key not in _known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        groups = headline_groups(machine, (each.workload for each in points))
        _known[key] = {
            each.curve: (groups[each.curve], short_path(groups[each.curve], each.workload))
            for each in points
            if each.curve in groups
        }
    return _known[key]


def short_path(group: str, workload: Workload) -> str:
    """``H2D gpu:3``, ``P2P gpu:0 -> gpu:1``: the group with the GPUs that differ in it; of a set
    its name with its places."""
    if group in SETS:
        return _KIND.sub(r"\1", name_of(workload).partition(" by ")[0])
    gpus = [str(place) for place in workload.places if place.kind == "gpu"]
    named = list(dict.fromkeys(gpus))
    others = list(dict.fromkeys(str(place) for place in workload.places))
    arrow = " <-> " if len(workload.transfers) > 1 else " -> "
    return f"{group} {arrow.join(named or others)}"
