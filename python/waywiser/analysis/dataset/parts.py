"""A fleet in parts: the noise of each class is found in one pass over all parts; then each part is
checked alone, on any machine that sees the data set, and the answers are joined.

What is found is the same as of the whole: nodes that may be one, by a host or a GPU in common, are
in one part, and the noise of a class does not depend on how its paths are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from socket import gethostname
from threading import RLock
from typing import Any, NamedTuple

import msgspec
import numpy as np

from waywiser.analysis.dataset.engines import PACKAGES
from waywiser.analysis.dataset.files import is_dataset
from waywiser.analysis.dataset.scan import AT_ONCE, RecordedRun, Scan
from waywiser.analysis.dataset.workers import WorkerProcesses, usable_processes
from waywiser.analysis.history.history import (
    SCHEMA,
    History,
    NightsOfPath,
    NightValue,
    NightValues,
    node_histories,
    path_histories,
    path_nights,
    series_of_paths,
    sorted_history,
)
from waywiser.analysis.history.night import gpus_text
from waywiser.analysis.history.nodes import NodeNights, named_nodes, nodes_of
from waywiser.analysis.history.reader_clock import latest_moment
from waywiser.profile import make_folder, profiles_in
from waywiser.stats import SeriesNoise
from waywiser.stats.level_changes import CandidateChanges, SeriesFits, Shown, noise_by_peers
from waywiser.stats.night_noise import NightNoise
from waywiser.words import Value, WaywiserError, grouped, json_bytes, read_regular, replaced_file

FEW_ROWS = 200_000
"""Rows of a data set up to which one process checks it at once."""

PART_RUNS = AT_ONCE // 2
"""Runs of a part that one process looks at, at most."""

CHECK_PROCESSES = 4
"""Processes that check parts on one machine: each may take more than a gigabyte."""

FOLDER = "parts"
"""The folder in a data set with what parts write."""

LARGEST = 2**32
"""Bytes of a file of a part that is read."""


class PartsError(WaywiserError):
    """Parts that do not fit together."""


class FleetDivision(Value, frozen=True):
    """How a data set is divided, and when: all parts look at the same runs with one clock."""

    folder: str
    parts: int
    threshold: float
    since: str
    now: str
    until: str
    """When the last survey that is looked at began."""
    latest: str
    """The latest moment at which a survey can have begun: later ones are from wrong clocks."""
    hosts: tuple[tuple[str, ...], ...]
    """The hosts of each part: they stay there, though others are recorded meanwhile."""
    first_day: str = ""
    """The first day that is looked at; empty for all."""


class PeerNoise(Value, frozen=True):
    """The noise that the series of some peers show."""

    peers: tuple[str | int, ...]
    weights: tuple[float, ...]


class NoiseReferences(Value, frozen=True):
    """The references of each class: after them parts are independent."""

    division: FleetDivision
    rough: tuple[PeerNoise, ...]
    settled: tuple[PeerNoise, ...] = ()

    @property
    def noise(self) -> SeriesNoise:
        return SeriesNoise(_noise_of(self.rough), _noise_of(self.settled))


class CheckedPart(Value, frozen=True):
    """What was found of one part."""

    number: int
    references: str
    """The digest of the references that it was checked by."""
    history: History


def _noise_of(found: Iterable[PeerNoise]) -> dict[Any, NightNoise]:
    return {each.peers: NightNoise.of(np.array(each.weights)) for each in found}


class PartNights(NamedTuple):
    """The nodes of a part and the nights of their paths."""

    nodes: dict[str, NodeNights]
    unused: dict[str, str]
    lines: list[NightsOfPath]
    candidates: list[CandidateChanges]
    """Candidates of the medians and of the fastest processes, if this process found them."""


class _ReadDivision(NamedTuple):
    """What this process has read of a division."""

    scan: Scan
    runs: dict[str, list[RecordedRun]]
    """The runs that all parts look at, by host."""
    unreadable: frozenset[str]
    """The files that could not be read then."""
    nights: dict[int, PartNights]
    """The nights of parts that will be looked at again."""

    @classmethod
    def of(cls, scan: Scan, division: FleetDivision) -> _ReadDivision:
        until = datetime.fromisoformat(division.until)
        runs = [run for run in scan.runs if run.measured <= until]
        by_host = grouped((run.host, run) for run in runs)
        return cls(scan, by_host, frozenset(scan.unreadable), {})


_lock = RLock()
"""Held while this process reads a data set: a `Scan` is not safe for threads."""

_read_divisions: dict[FleetDivision, _ReadDivision] = {}
"""The last division that this process has read."""


def drop_read_parts() -> None:
    """Drops the nights that this process has read of parts."""
    _read_divisions.clear()


def _reading(division: FleetDivision) -> _ReadDivision:
    """Raises `PartsError` where the folder is not seen."""
    if division not in _read_divisions:
        if not is_dataset(Path(division.folder)):
            raise PartsError(
                f"there is no data set in this folder on {gethostname()}",
                where=division.folder,
                remedy="name a folder that all machines see by this path",
            )
        _read_divisions.clear()
        scan = Scan(Path(division.folder), division.first_day)
        _read_divisions[division] = _ReadDivision.of(scan, division)
    return _read_divisions[division]


def nights_of_part(division: FleetDivision, number: int) -> PartNights:
    """The nights of part ``number``, from 0, which each process reads once before it has checked
    the part. Raises `PartsError` if a host has none any more."""
    with _lock:  # a worker of Dask may have several threads
        known = _reading(division).nights
        if number not in known:
            known[number] = _read_part(division, number)
        return known[number]


def _read_part(division: FleetDivision, number: int) -> PartNights:
    read, hosts = _reading(division), {*division.hosts[number]}
    own = [run for host in hosts for run in read.runs.get(host, ())]
    surveys = read.scan.nights(sorted(own, key=attrgetter("profile")))
    lost = hosts - {night.host for night in surveys}
    if lost and read.scan.unreadable.keys() <= read.unreadable:  # else a damaged file has them
        raise PartsError(
            f"has no night of {min(lost)}, which had one when the references were written",
            where=division.folder,
            remedy="repair the files that are damaged, or write the references again",
        )
    now, latest = map(datetime.fromisoformat, (division.now, division.latest))
    nodes, unused = nodes_of(surveys, now, latest)
    named = named_nodes(nodes)
    return PartNights(named, unused, path_nights(named), [])


def _divided(runs: Sequence[RecordedRun], parts: int) -> list[set[str]]:
    """The hosts of each part. Hosts that had a GPU in common are in one."""
    leaders: dict[str, str] = {}

    def leader(name: str) -> str:
        while (above := leaders.setdefault(name, name)) != name:
            leaders[name] = name = leaders[above]
        return name

    for host, gpus in sorted({(run.host, run.gpus or "[]") for run in runs}):
        for uuid in gpus_text(gpus):
            leaders[leader(uuid)] = leader(f"host {host}")
    hosts = sorted({run.host for run in runs})
    together = sorted(grouped((leader(f"host {host}"), host) for host in hosts).values())
    found: list[set[str]] = [set() for _ in range(parts)]
    for n, same in enumerate(together):  # a file has hosts in this order
        found[n * parts // len(together)].update(same)
    return found


def shown_by_part(
    division: FleetDivision, number: int, rough: Sequence[PeerNoise] | None = None
) -> Shown:
    """What the series of a part show of the noise of their peers: by differences, or around their
    levels if the ``rough`` noise is known."""
    own = nights_of_part(division, number)
    known = None if rough is None else _noise_of(rough)
    if known is not None:  # most parts are read
        with _lock:
            _reading(division).scan.disconnect()
    shown: Shown = {}
    own.candidates.clear()
    for is_fastest in (False, True):
        fits = SeriesFits(series_of_paths(own.lines, is_fastest=is_fastest), division.threshold)
        if known is None:
            shown |= fits.shown_by_differences()
            continue
        fits.divide(known)
        shown |= fits.shown_around_levels()
        own.candidates.append(fits.candidates)
    return shown


Map = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterable[Any]]
"""Calls a function with the arguments of each part, in some process."""


def here(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterable[Any]:
    """Calls a function in this process, for one part after another."""
    return (function(*each) for each in arguments)


def references_of(division: FleetDivision, each_part: Map = here) -> NoiseReferences:
    """The references of each class, by two looks at each part."""
    numbers = range(division.parts)
    rough = _joined_noise(each_part(shown_by_part, [(division, n) for n in numbers]))
    settled = _joined_noise(each_part(shown_by_part, [(division, n, rough) for n in numbers]))
    return NoiseReferences(division, rough, settled)


def _joined_noise(parts: Iterable[Shown]) -> tuple[PeerNoise, ...]:
    shown: Shown = {}
    for part in parts:
        for peers, own in part.items():
            shown.setdefault(peers, []).extend(own)
    found: list[tuple[Any, NightNoise]] = sorted(noise_by_peers(shown).items())
    return tuple(PeerNoise(peers, tuple(noise.weights.tolist())) for peers, noise in found)


def checked_part(
    references: NoiseReferences, number: int, labels: Mapping[str, Mapping[str, str]]
) -> CheckedPart:
    """Checks a part alone."""
    division = references.division
    own = nights_of_part(division, number)
    paths = path_histories(
        own.lines, division.threshold, division.since, references.noise, own.candidates
    )
    nodes = node_histories(own.nodes, paths, labels)
    read = _reading(division)
    read.nights.pop(number, None)  # nothing looks at the part again
    unreadable = {**read.scan.unreadable, **own.unused}
    history = History(
        SCHEMA,
        division.threshold,
        division.since,
        tuple(nodes),
        tuple(paths),
        unreadable,
        division.first_day,
    )
    # to sort them all again takes little, and is done by one process
    return CheckedPart(number, digest_of(references), sorted_history(history))


def digest_of(references: NoiseReferences) -> str:
    return blake2b(msgspec.json.encode(references), digest_size=8).hexdigest()


def joined_history(parts: Iterable[CheckedPart]) -> History:
    """The history of a whole fleet. Raises `PartsError` if parts are missing, or were checked by
    other references."""
    parts = sorted(parts, key=lambda each: each.number)
    if len({each.references for each in parts}) > 1:
        raise PartsError(
            "its parts were checked by different references",
            remedy="write the references once, then check all parts",
        )
    if [each.number for each in parts] != list(range(len(parts))):
        raise PartsError("a part is there twice", remedy="check all parts again")
    first = parts[0].history
    unused = {file: why for each in parts for file, why in each.history.unreadable.items()}
    return sorted_history(
        msgspec.structs.replace(
            first,
            nodes=tuple(node for each in parts for node in each.history.nodes),
            paths=tuple(path for each in parts for path in each.history.paths),
            unreadable=unused,
        )
    )


def take_division(division: FleetDivision, scan: Scan, runs: list[RecordedRun]) -> None:
    """Lets this process look at parts of a data set by what was read of it: its files, and the
    runs of these parts. Does nothing in the process that has read it."""
    if division in _read_divisions:
        return
    drop_read_parts()
    scan.take_runs(runs)
    _read_divisions[division] = _ReadDivision.of(scan, division)


def share(division: FleetDivision, workers: WorkerProcesses) -> None:
    """Gives each worker, which look at the parts in turn, what this process has read."""
    read = _reading(division)
    own: list[list[RecordedRun]] = [[] for _ in range(workers.count)]
    for number, hosts in enumerate(division.hosts):
        own[number % workers.count] += [run for host in hosts for run in read.runs.get(host, ())]
    workers.each(take_division, [(division, read.scan, runs) for runs in own])


def divide(scan: Scan, parts: int, threshold: float, since: str) -> FleetDivision:
    """A division of a data set as it is now, which this process has read."""
    runs = scan.runs
    hosts = tuple(tuple(sorted(own)) for own in _divided(runs, parts))
    until = max((run.measured for run in runs), default=datetime.min.replace(tzinfo=UTC))
    now = datetime.now(UTC)
    latest = latest_moment((run.measured for run in runs), now)
    began = now.isoformat(), until.isoformat(), latest.isoformat()
    division = FleetDivision(
        str(scan.folder), parts, threshold, since, *began, hosts, scan.first_day
    )
    take_division(division, scan, scan.runs)
    return division


def workers_for(scan: Scan, aside: Sequence[str]) -> WorkerProcesses:
    """The processes that should check a data set; of a large one also one that loads the modules
    ``aside``."""
    processes = usable_processes(CHECK_PROCESSES) if scan.rows > FEW_ROWS else 1
    return WorkerProcesses(processes, (__name__, *PACKAGES), aside if processes > 1 else ())


def parts_that_fit(scan: Scan, processes: int) -> int:
    """Returns into how many parts so many processes should divide a check, so that they fit into
    memory, and each process has as many; 1 for a small fleet, and for a folder with profiles that
    its data set does not have."""
    if processes == 1 and len(scan.runs) <= AT_ONCE:
        return 1
    if not {run.profile for run in scan.runs}.issuperset(profiles_in(scan.folder)):
        return 1
    return processes * -(-len(scan.runs) // (processes * PART_RUNS))


def history_by(
    each_part: Map, division: FleetDivision, labels: Mapping[str, Mapping[str, str]]
) -> History:
    """The history of a fleet, by an engine that calls functions for each part."""
    try:
        references = references_of(division, each_part)
        numbers = range(division.parts)
        parts = each_part(checked_part, [(references, n, labels) for n in numbers])
        return joined_history(parts)
    finally:
        drop_read_parts()


# Parts in files, for arrays of jobs.


def write_references(division: FleetDivision) -> Path:
    """Writes the references into the data set, from where all parts read them."""
    return _write(division.folder, "references.json", references_of(division))


def write_part(
    folder: str, number: int, parts: int, labels: Mapping[str, Mapping[str, str]]
) -> Path:
    """Checks part ``number``, from 1, and writes what is found. Raises `PartsError`."""
    references = _read(folder, "references.json", NoiseReferences)
    if references.division.parts != parts:
        raise PartsError(
            f"its references are of {references.division.parts} parts",
            where=folder,
            remedy=f"waywiser check {folder} --part references/{parts}",
        )
    moved = msgspec.structs.replace(references.division, folder=folder)
    part = checked_part(msgspec.structs.replace(references, division=moved), number - 1, labels)
    part = msgspec.structs.replace(part, references=digest_of(references))
    return _write(folder, f"{number}-of-{parts}.json", part)


def join_parts(folder: str) -> History:
    """The history by the files of all parts. Raises `PartsError`."""
    references = _read(folder, "references.json", NoiseReferences)
    parts = references.division.parts
    found = [_read(folder, f"{n}-of-{parts}.json", CheckedPart) for n in range(1, parts + 1)]
    digest = digest_of(references)
    if any(each.references != digest for each in found):
        raise PartsError(
            "a part was checked by former references", where=folder, remedy="check all parts again"
        )
    return joined_history(found)


def _write(folder: str, name: str, value: Value) -> Path:
    path = Path(folder) / FOLDER / name
    make_folder(path.parent)
    with replaced_file(path) as part:
        part.write_bytes(json_bytes(value))
    return path


def _nights(kind: Any, value: Any) -> NightValues:
    return NightValues.of(msgspec.convert(value, tuple[NightValue, ...]))


def _read(folder: str, name: str, kind: Any) -> Any:
    path = Path(folder) / FOLDER / name
    try:
        return msgspec.json.decode(read_regular(path, LARGEST), type=kind, dec_hook=_nights)
    except FileNotFoundError:
        raise PartsError(
            "is not there", where=str(path), remedy="check this part with --part"
        ) from None
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise PartsError(
            f"cannot be read: {error}", where=str(path), remedy="check this part again"
        ) from error
