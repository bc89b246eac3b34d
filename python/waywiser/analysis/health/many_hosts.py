"""Reads the profiles of many hosts, and compares each with its peers and its own nights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

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
from waywiser.profile import ProfileError
from waywiser.profile.file_name import profiles_in, why_no_profile
from waywiser.words import STATUSES
from waywiser.words.number_format import count


def read_fleet(files: Sequence[str], threshold: float, expected_gpus: int = 0) -> Fleet:
    """Assesses the readable profiles; the others are listed with the reason. A folder stands for
    the profiles in it."""

    nodes = []
    unreadable: dict[str, str] = {}
    for file in dict.fromkeys(name for each in files for name in _profiles_of(each)):
        try:
            node = read_subject(file, links=True)
            nodes.append(msgspec.structs.replace(node, own_findings=own_findings(node)))
        except ProfileError as error:
            is_folder = os.path.isdir(file)
            unreadable[file] = why_no_profile(file) if is_folder else error.what
    found = assess_fleet(nodes, threshold, unreadable, expected_gpus)
    return with_last_changes(found, nodes)


def _profiles_of(name: str) -> list[str]:
    """The profiles of a folder; the folder itself if it has none; a file is its own profile."""

    if not os.path.isdir(name):  # no error for a name that is too long
        return [name]
    return profiles_in(Path(name)) or [name]


def read_history(
    files: Sequence[str], threshold: float, since: str, labels: Mapping[str, Mapping[str, str]]
) -> History:
    """Follows the nodes of all profiles that can be read; the others are listed."""
    read = read_nights(list(files))
    return history_of(read.nights, threshold, since, labels, read.unreadable)


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
