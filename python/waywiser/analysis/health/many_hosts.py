"""Reads the profiles of many hosts, and compares each with its peers and its own nights."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from waywiser.analysis.comparison.fleet import Fleet, HostVerdict, assess_fleet
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.analysis.comparison.own_findings import own_findings
from waywiser.analysis.comparison.read_subject import read_subject
from waywiser.analysis.health.health_check import (
    HealthCheck,
    ReferenceResult,
    health_of,
    host_health,
)
from waywiser.analysis.history.history import History, PathHistory, history_of
from waywiser.analysis.history.history_texts import change_text
from waywiser.analysis.history.index import read_nights
from waywiser.analysis.history.last_change import with_last_changes
from waywiser.analysis.history.night import Night
from waywiser.profile import ProfileError
from waywiser.profile.file_name import profiles_in, why_no_profile
from waywiser.words import STATUSES, grouped
from waywiser.words.number_format import count

PEER_SURVEYS = 4
"""Surveys of a machine that are compared with its peers, the last ones: a loss that another survey
shows again is a verdict, and nights of former months say nothing of today."""


class ReadHosts(NamedTuple):
    """The hosts of many profiles, beside their peers and over their nights."""

    peers: Fleet
    nights: History


def read_hosts(
    files: Sequence[str],
    threshold: float,
    since: str = "",
    labels: Mapping[str, Mapping[str, str]] | None = None,
    expected_gpus: int = 0,
) -> ReadHosts:
    """Compares the readable profiles; the others are listed with the reason. A folder stands for
    the profiles in it."""
    read = read_nights(list(files))
    nights = history_of(read.nights, threshold, since, labels, read.unreadable)
    old = {night.file for night in read.nights} - _last_surveys(read.nights)
    names = dict.fromkeys(name for each in files for name in _profiles_of(each))
    peers = read_fleet([name for name in names if name not in old], threshold, expected_gpus)
    return ReadHosts(with_last_changes(peers, nights), nights)


def _last_surveys(nights: Iterable[Night]) -> set[str]:
    """The files of the last surveys of each machine, and of the one that had most GPUs."""
    found = set()
    for own in grouped(((night.host, night.hardware), night) for night in nights).values():
        ordered = sorted(own, key=lambda night: night.moment)
        most = max(ordered, key=lambda night: len(night.gpus))
        found |= {night.file for night in (*ordered[-PEER_SURVEYS:], most)}
    return found


def read_fleet(files: Sequence[str], threshold: float, expected_gpus: int = 0) -> Fleet:
    """Compares hosts with their peers by all surveys of the files that can be read; the others are
    listed."""
    nodes = []
    unreadable: dict[str, str] = {}
    for file in files:
        try:
            node = read_subject(file, links=True)
            nodes.append(msgspec.structs.replace(node, own_findings=own_findings(node)))
        except ProfileError as error:
            is_folder = os.path.isdir(file)
            unreadable[file] = why_no_profile(file) if is_folder else error.what
    return assess_fleet(nodes, threshold, unreadable, expected_gpus)


def _profiles_of(name: str) -> list[str]:
    """The profiles of a folder; the folder itself if it has none; a file is its own profile."""
    if not os.path.isdir(name):  # no error for a name that is too long
        return [name]
    return profiles_in(Path(name)) or [name]


def health_of_hosts(peers: Fleet, nights: History) -> HealthCheck:
    """The verdict of each host of ``peers`` by all that both say of it."""
    hosts = [host_health(each.host, each.files, tuple(_results(each, peers, nights)))
             for each in peers.hosts]  # fmt: skip
    return health_of(hosts, peers=peers, nights=nights)


def _results(host: HostVerdict, peers: Fleet, nights: History) -> Iterator[ReferenceResult]:
    own_nights = nights_result(nights, host.host)
    if own_nights is not None:
        yield own_nights
    yield _of_peers(host, peers)
    if host.own_findings:
        yield ReferenceResult("equal parts", "slow", "; ".join(host.own_findings))


def peers_result(peers: Fleet | None, host: str) -> ReferenceResult | None:
    """What the peers of a host say of it; None if none are known."""
    if peers is None:
        return None
    own = next((each for each in peers.hosts if each.host == host), None)
    return None if own is None else _of_peers(own, peers)


def _of_peers(host: HostVerdict, peers: Fleet) -> ReferenceResult:
    alike = next((each.hosts for each in peers.classes if each.name == host.hardware), 1)
    if host.faults:
        first, more = host.faults[0], len(host.faults) - 1
        others = f" and {more} more" if more else ""
        return ReferenceResult("peers", host.status, f"{first.title}{others}", first.remedy)
    if host.status == "not determined":
        known = f"{count(alike, 'host')} of its kind"
        if alike < FEWEST_HOSTS:
            return ReferenceResult(
                "peers", "not compared", f"{known}, {FEWEST_HOSTS} are the fewest"
            )
        return ReferenceResult("peers", host.status, f"other sizes than the {known}")
    return ReferenceResult("peers", host.status, f"like {count(alike - 1, 'other host')}")


def nights_result(nights: History | None, host: str) -> ReferenceResult | None:
    """What the nights of a host say of it; None if they have no path of it."""
    if nights is None:
        return None
    names = {node.name: node.nights for node in nights.nodes if node.host == host}
    paths = [path for path in nights.paths if path.node in names]
    if not paths:
        return None
    worst = max(paths, key=_gravity)
    most = count(max(names.values()), "night")
    alike = sum(path.status == worst.status for path in paths)
    said = f"{alike} of {count(len(paths), 'path')} {worst.status} in {most}"
    if worst.status == "too few nights":
        said = f"{most}, too few to follow a path"
    change = f": {worst.path}, {change_text(worst.last_change)}" if worst.last_change else ""
    return ReferenceResult("nights", worst.status, f"{said}{change}")


def _gravity(path: PathHistory) -> tuple[int, float]:
    return STATUSES[path.status], -path.ratio
