"""Reads the profiles of many hosts, and compares each with its peers and its own nights."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.analysis.comparison.fleet import Fleet, HostVerdict, assess_fleet
from waywiser.analysis.comparison.own_findings import own_findings
from waywiser.analysis.dataset.files import is_dataset
from waywiser.analysis.dataset.profiles import ReadNights, read_nights
from waywiser.analysis.dataset.rows import as_recorded
from waywiser.analysis.dataset.scan import RecordedRun, Scan
from waywiser.analysis.health.health_check import (
    HealthCheck,
    ReferenceResult,
    health_of,
    host_health,
)
from waywiser.analysis.health.reference_results import (
    devices_result,
    equal_parts_of,
    equal_parts_recorded,
    nights_result,
    other_machines,
    peers_result,
)
from waywiser.analysis.history.history import History, NodeHistory, PathHistory, history_of
from waywiser.analysis.history.last_change import with_last_changes
from waywiser.analysis.history.night import Night, moment_of
from waywiser.curves import NormalValue, Subject, normal_paths_of, read_subject
from waywiser.machine import may_be_same
from waywiser.profile import Profile, ProfileError, profiles_in, why_no_profile
from waywiser.words import grouped

PEER_SURVEYS = 4
"""Surveys of a machine that are compared with its peers, the last ones: a loss that another survey
shows again is a verdict, and nights of former months say nothing of today."""


class ReadPeers(NamedTuple):
    """The hosts of many profiles, each compared with the others, without their nights."""

    peers: Fleet
    alone: dict[str, tuple[ReferenceResult, ...]]
    """The results of the last survey of each host alone, by its file."""
    unreadable: dict[str, str]
    """File -> why it was not read."""


class ReadHosts(NamedTuple):
    """The hosts of many profiles, beside their peers and over their nights."""

    peers: Fleet
    nights: History
    alone: dict[str, tuple[ReferenceResult, ...]]
    """The results of the last survey of each host alone, by its file; empty if one node is
    checked."""


def read_hosts(
    files: Sequence[str],
    threshold: float,
    since: str = "",
    labels: Mapping[str, Mapping[str, str]] | None = None,
    expected_gpus: int = 0,
    node: Subject | None = None,
    scans: Mapping[str, Scan] = {},
    first_day: str = "",
) -> ReadHosts:
    """Compares the readable profiles; the others are listed with the reason. A folder stands for
    the profiles in it; ``scans`` are data sets that were opened before, by their folders. With a
    ``node`` the nights are those of this machine, up to its profile. Surveys in folders count from
    ``first_day`` on."""
    read = read_nights(list(files), scans, first_day)
    followed = iter([n for n in read.nights if node is None or _is_before(n, node)])
    read = read.without_paths()
    nights = history_of(followed, threshold, since, labels, read.unreadable, first_day=first_day)
    last = _last_surveys(
        ((night.host, night.hardware), night.moment, len(night.gpus), night.file)
        for night in read.nights
    )
    old = {night.file for night in read.nights} - last
    if node is not None:
        old.discard(node.called)
    names = dict.fromkeys(name for each in files for name in _profiles_of(each))
    names |= dict.fromkeys(read.files)
    old |= read.earlier
    surveys, unreadable = _surveys([name for name in names if name not in old], read)
    peers = assess_fleet(list(surveys.values()), threshold, unreadable, expected_gpus)
    # of one node nothing else is looked at: its whole profile is
    alone = _each_alone(peers, surveys) if node is None else {}
    return ReadHosts(with_last_changes(peers, nights), nights, alone)


def _each_alone(
    peers: Fleet, surveys: Mapping[str, Subject]
) -> dict[str, tuple[ReferenceResult, ...]]:
    """Returns the results of the last survey of each host alone; ``surveys`` are all, by file."""
    return {file: tuple(_alone(surveys[file])) for file in (host.files[-1] for host in peers.hosts)}


def _alone(node: Subject) -> Iterator[ReferenceResult]:
    """Yields the results of a survey of one of many hosts without the others."""
    yield devices_result(node, has_baseline=True)  # links and errors are among the peers' faults
    yield equal_parts_of(node) if os.path.exists(node.called) else equal_parts_recorded(node)


def peers_of_dataset(
    scan: Scan, runs: Sequence[RecordedRun], threshold: float, expected_gpus: int
) -> ReadPeers:
    """Compares the hosts of a data set with one another, by these ``runs``."""
    subjects = {node.file: node for node in sorted(scan.subjects(runs), key=_file_of)}
    peers = assess_fleet(list(subjects.values()), threshold, expected_gpus=expected_gpus)
    return ReadPeers(peers, _each_alone(peers, subjects), scan.unreadable)


def runs_beside_peers(scan: Scan) -> list[RecordedRun]:
    """The runs of a data set that are compared with peers."""
    last = _last_surveys(
        ((run.host, run.hardware), run.measured, run.gpu_count, run.profile) for run in scan.runs
    )
    return [run for run in scan.runs if run.profile in last]


def read_dataset(scan: Scan, nights: History, found: ReadPeers) -> ReadHosts:
    """The hosts of a data set, whose ``nights`` and whose peers were checked by themselves, maybe
    in other processes: each may have found a file damaged."""
    files = {str(each.path) for each in scan.files}
    damaged = {file: why for file, why in nights.unreadable.items() if file in files}
    known = scan.unreadable | found.unreadable
    of_peers = known | damaged | found.peers.unreadable
    peers = msgspec.structs.replace(found.peers, unreadable=of_peers)
    nights = msgspec.structs.replace(nights, unreadable=known | nights.unreadable)
    return ReadHosts(with_last_changes(peers, nights), nights, found.alone)


def _file_of(node: Subject) -> str:
    return node.file


def _is_before(night: Night, node: Subject) -> bool:
    """Whether a survey is of the machine of a profile, and not later."""
    ours = {gpu.uuid for gpu in node.machine.gpus if gpu.uuid}
    if night.host != node.name or moment_of(night.created) > moment_of(node.created):
        return False
    return may_be_same(ours, night.uuids)


def _last_surveys(surveys: Iterable[tuple[Hashable, datetime, int, str]]) -> set[str]:
    """The files of the last surveys of each machine, and of the one that had most GPUs. Each survey
    has its machine, its moment, the number of its GPUs, and its file."""
    found = set()
    for own in grouped((survey[0], survey[1:]) for survey in surveys).values():
        own.sort(key=itemgetter(0))
        most = max(own, key=itemgetter(1))
        found |= {file for _, _, file in (*own[-PEER_SURVEYS:], most)}
    return found


def read_fleet(files: Sequence[str], threshold: float) -> Fleet:
    """Compares hosts with their peers by all surveys of the files that can be read; the others are
    listed."""
    surveys, unreadable = _surveys(files)
    return assess_fleet(list(surveys.values()), threshold, unreadable)


def _surveys(
    files: Iterable[str], read: ReadNights | None = None
) -> tuple[dict[str, Subject], dict[str, str]]:
    """The profiles that can be read, and why others cannot. What a data set has is not ``read``
    again."""
    surveys: dict[str, Subject] = {}
    unreadable: dict[str, str] = dict(_unreadable_datasets(read))
    files = list(files)
    known = dict(_recorded(files, read)) if read is not None else {}
    nights = {night.file: night for night in read.nights} if read is not None and known else {}
    for file in files:
        if file in known:
            surveys[file] = known[file]
            continue
        try:
            node = read_subject(file, links=True)
            node = msgspec.structs.replace(node, own_findings=own_findings(node))
            surveys[file] = as_recorded(node, nights[file]) if file in nights else node
        except ProfileError as error:
            is_folder = os.path.isdir(file)
            unreadable[file] = why_no_profile(file) if is_folder else error.what
    return surveys, unreadable


def _recorded(files: Iterable[str], read: ReadNights) -> Iterator[tuple[str, Subject]]:
    """The subjects that data sets have, by file."""
    chosen = grouped(
        (id(found[0]), found) for file in files if (found := read.runs.get(file)) is not None
    )
    for several in chosen.values():
        scan = several[0][0]
        for node in scan.subjects(run for _, run in several):
            yield node.file, node


def _unreadable_datasets(read: ReadNights | None) -> Iterator[tuple[str, str]]:
    """The files of data sets that cannot be read, with the reason of each."""
    for scan in read.scans.values() if read is not None else ():
        yield from scan.unreadable.items()


def _profiles_of(name: str) -> list[str]:
    """The profiles of a folder; the folder itself if it has none, and no data set; a file is its
    own profile."""
    if not os.path.isdir(name):  # no error for a name that is too long
        return [name]
    return profiles_in(Path(name)) or ([] if is_dataset(Path(name)) else [name])


def health_of_hosts(read: ReadHosts, values: Sequence[NormalValue]) -> HealthCheck:
    """The verdict of each host by all references that its last profile has."""
    paths = grouped((path.node, path) for path in read.nights.paths)
    nodes = {node.last_file: (node, paths.get(node.name, [])) for node in read.nights.nodes}
    hosts = [
        host_health(host.host, host.files, tuple(_results(host, read, nodes, values)))
        for host in read.peers.hosts
    ]
    return health_of(hosts, peers=read.peers, nights=read.nights)


def _results(
    host: HostVerdict,
    read: ReadHosts,
    nodes: Mapping[str, tuple[NodeHistory, Sequence[PathHistory]]],
    values: Sequence[NormalValue],
) -> Iterator[ReferenceResult]:
    """``nodes`` are those of all hosts and their paths, by their last files."""
    own = [nodes[file] for file in dict.fromkeys(host.files) if file in nodes]
    of_nights = nights_result(
        [path for _, paths in own for path in paths], [node for node, _ in own]
    )
    found = [of_nights, peers_result(host, read.peers)]
    better = [each for each in found if each is not None]
    yield from better
    yield from read.alone[host.files[-1]]
    if any(each.compared for each in better):
        return
    if not os.path.exists(host.files[-1]):
        yield ReferenceResult("other machines", "not compared", "its profile is not here")
        return
    with Profile.open(host.files[-1]) as profile:
        yield other_machines(profile.machine, normal_paths_of(profile, values))
