"""The last change of each host of a fleet, by its history."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from waywiser.analysis.comparison.fleet import Fleet
from waywiser.analysis.history.history import History, NodeHistory, PathHistory
from waywiser.analysis.history.history_texts import change_text, node_change_text
from waywiser.stats.level_changes import LEAST_NIGHTS
from waywiser.words import count, grouped


def with_last_changes(fleet: Fleet, history: History) -> Fleet:
    """The fleet with the last change of each host that was surveyed often enough."""
    paths = grouped((path.node, path) for path in history.paths)
    by_file = {node.last_file: node for node in history.nodes if node.surveys >= LEAST_NIGHTS}
    hosts = tuple(
        msgspec.structs.replace(host, last_change=_last(node, paths.get(node.name, [])))
        if (node := by_file.get(host.files[-1]))
        else host
        for host in fleet.hosts
    )
    return msgspec.structs.replace(fleet, hosts=hosts)


def _last(node: NodeHistory, paths: Sequence[PathHistory]) -> str:
    """The change of the node, or the largest of a path, of the last night with a change."""
    changed = [(change, path) for path in paths if (change := path.last_change) is not None]
    if not changed:
        return ""
    date = max(change.date for change, _ in changed)
    for common in node.changes:
        if common.date[:10] >= max(change.date[:10] for change, _ in changed if change.confirmed):
            return node_change_text(common)
    last = [(change, path) for change, path in changed if change.date == date]
    change, path = min(last, key=lambda each: each[0].ratio)
    others = f" and {count(len(last) - 1, 'more path')}" if len(last) > 1 else ""
    return f"{path.path}{others}: {change_text(change)}"
