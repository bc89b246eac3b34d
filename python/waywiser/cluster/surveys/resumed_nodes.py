"""The nodes of a run that goes on: what is known of them stays."""

from __future__ import annotations

from msgspec.structs import replace

from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.surveys.run import FINAL_STATES
from waywiser.profile import ClusterFolder


def resume_nodes(
    folder: ClusterFolder, coordinator: Coordinator, *, retries: bool
) -> frozenset[str]:
    """Takes over the states of the folder. A node that is tested no more stays as it was found,
    unless it is tried again; one that has not joined again is "not reached". Returns the nodes that
    are no part of the run: they were not there when its tests began, as those of another
    allocation."""
    present = {node.name: node for node in coordinator.nodes()}
    for name, known in folder.nodes.items():
        now = present.get(name)
        if known.state in FINAL_STATES and not retries:
            coordinator.keep(known)
        elif now is None or now.state == "not reached":
            reason = now.reason if now else "it did not join again"
            coordinator.keep(replace(known, state="not reached", reason=reason))
    if retries or not folder.tests:
        return frozenset()
    return frozenset(name for name in present if name not in folder.nodes)
