"""Versions of software that differ between the nodes of a run."""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.words import ClusterNode, Value, compress_hosts, grouped

MISSING = "none"
"""Stands for the version of what a node does not have."""


class VersionDifference(Value, frozen=True):
    """A program of which nodes have several versions."""

    what: str
    """``waywiser``, ``driver``, ``nccl``, ``mpi``, ``kernel``."""
    nodes: dict[str, tuple[str, ...]]
    """The nodes with each version, the most common one first."""

    @property
    def text(self) -> str:
        """``nccl: 2.28.9 on 31 nodes, 2.27.3 on n7``."""
        (usual, most), *others = self.nodes.items()
        first = f"{usual} on {len(most)} nodes" if len(most) > 1 else f"{usual} on {most[0]}"
        rest = (f"{version} on {compress_hosts(nodes)}" for version, nodes in others)
        return f"{self.what}: {', '.join((first, *rest))}"


def version_differences(nodes: Iterable[ClusterNode]) -> tuple[VersionDifference, ...]:
    """The differences between the nodes that were reached."""
    reached = [node for node in nodes if node.versions]
    names = dict.fromkeys(name for node in reached for name in node.versions)
    found = []
    for name in names:
        versions = grouped((node.versions.get(name, MISSING), node.name) for node in reached)
        if len(versions) > 1:
            common = sorted(versions.items(), key=lambda each: (-len(each[1]), each[0]))
            found.append(VersionDifference(name, {v: tuple(nodes) for v, nodes in common}))
    return tuple(found)
