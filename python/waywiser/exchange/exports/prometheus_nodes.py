"""The metrics of peers and of nights, of all nodes.

Names and labels are stable. The labels of a path are the node's host, the path as people call it
and its size; those that an administrator gave to the node follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from waywiser.analysis.comparison.fleet import HOST_REASONS, Fleet
from waywiser.analysis.history.history import NIGHT_REASONS, History, PathHistory
from waywiser.exchange.exports.metrics_text import Family, Sample

FLEET_STATUS = "waywiser_fleet_host_status"

HISTORY_STATUS = "waywiser_history_path_status"


def fleet_families(fleet: Fleet) -> tuple[Family, ...]:
    """All metrics of hosts beside their peers."""
    paths = [
        ({"host": host.host, "path": path.name}, path.ratio)
        for host in fleet.hosts
        for path in {path.name: path for path in host.slow_paths}.values()
    ]
    return (
        Family(FLEET_STATUS, "gauge", "1 for the status of the host beside its peers.",
               [({"host": host.host, "status": status}, float(host.status == status))
                for host in fleet.hosts for status in HOST_REASONS]),
        Family("waywiser_fleet_host_faults", "gauge", "Faults of the host, suspected ones too.",
               [({"host": host.host}, float(len(host.faults))) for host in fleet.hosts]),
        Family("waywiser_fleet_host_surveys", "gauge", "Profiles of the host.",
               [({"host": host.host}, float(len(host.files))) for host in fleet.hosts]),
        Family("waywiser_fleet_path_ratio", "gauge",
               "Bandwidth over that of the peers, of paths in faults.", list(paths)),
        Family("waywiser_fleet_unreadable_files", "gauge", "Files that could not be read or used.",
               [({}, float(len(fleet.unreadable)))]),
    )  # fmt: skip


def history_families(history: History) -> tuple[Family, ...]:
    """All metrics of paths over their nights."""
    own = {node.name: {"host": node.name} | node.labels for node in history.nodes}
    return (*_node_families(history, own), *_path_families(history, own))


def _node_families(history: History, own: Mapping[str, dict[str, str]]) -> tuple[Family, ...]:
    return (
        Family("waywiser_history_nodes", "gauge", "Nodes that are followed.",
               [({}, float(len(history.nodes)))]),
        Family("waywiser_history_unused_files", "gauge", "Files that could not be read or used.",
               [({}, float(len(history.unreadable)))]),
        Family("waywiser_history_nights", "gauge", "Nights with a survey.",
               [(own[node.name], float(node.nights)) for node in history.nodes]),
        Family("waywiser_history_last_survey_timestamp_seconds", "gauge",
               "When the last survey of the node was begun.",
               [(own[node.name], _seconds(node.last)) for node in history.nodes]),
    )  # fmt: skip


def _path_families(history: History, own: Mapping[str, dict[str, str]]) -> tuple[Family, ...]:
    def labels(path: PathHistory) -> dict[str, str]:
        return {**own[path.node], "path": path.path, "bytes": str(path.bytes)}

    def changes(figure: str) -> Iterator[Sample]:
        for path in history.paths:
            if (change := path.last_change) is None:
                continue
            value = change.ratio if figure == "ratio" else _seconds(change.date)
            about = {"kind": change.kind, "confirmed": "true" if change.confirmed else "false"}
            yield labels(path) | about, value

    return (
        Family(HISTORY_STATUS, "gauge", "1 for the status of the path.",
               [(labels(path) | {"status": status}, float(path.status == status))
                for path in history.paths for status in NIGHT_REASONS]),
        Family("waywiser_history_path_rate_bytes_per_second", "gauge",
               "The level of the bandwidth now.",
               [(labels(path), path.rate) for path in history.paths]),
        Family("waywiser_history_path_ratio", "gauge",
               "The level of the bandwidth now over the best one.",
               [(labels(path), path.ratio) for path in history.paths]),
        Family("waywiser_history_path_noise", "gauge",
               "Relative standard deviation of the bandwidth from night to night.",
               [(labels(path), path.noise) for path in history.paths if path.noise is not None]),
        Family("waywiser_history_path_detectable_change", "gauge",
               "Smallest relative change that three nights would show with a chance of one half.",
               [(labels(path), path.detectable)
                for path in history.paths if path.detectable is not None]),
        Family("waywiser_history_path_last_change_ratio", "gauge",
               "Bandwidth after the last change over that before.", list(changes("ratio"))),
        Family("waywiser_history_path_last_change_timestamp_seconds", "gauge",
               "When the first survey began that shows the last change.", list(changes("date"))),
    )  # fmt: skip


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
