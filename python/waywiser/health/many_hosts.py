"""The hosts of many profiles, each beside its peers and its own nights."""

from __future__ import annotations

from collections.abc import Iterator

from waywiser.analysis.comparison.fleet import Fleet, HostVerdict
from waywiser.analysis.comparison.outliers import FEWEST_HOSTS
from waywiser.analysis.history.history import History, PathHistory
from waywiser.analysis.history.history_texts import change_text
from waywiser.health.health_check import HealthCheck, health_of
from waywiser.health.reference import ReferenceResult, host_health
from waywiser.words import STATUSES
from waywiser.words.number_format import count


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
