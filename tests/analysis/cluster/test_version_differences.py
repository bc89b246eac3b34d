"""Versions that differ between nodes."""

from __future__ import annotations

from waywiser.analysis.cluster.version_differences import version_differences
from waywiser.words.cluster import ClusterNode


def test_nodes_with_other_versions_are_named() -> None:
    nodes = [ClusterNode(f"n{n}", versions={"nccl": "2.28.9", "mpi": "5.0"}) for n in range(6)]
    nodes.append(ClusterNode("n6", versions={"nccl": "2.27.3", "mpi": "5.0"}))
    nodes.append(ClusterNode("n7", versions={"mpi": "5.0"}))
    nodes.append(ClusterNode("n8", state="not reached"))
    (only,) = version_differences(nodes)
    assert only.text == "nccl: 2.28.9 on 6 nodes, 2.27.3 on n6, none on n7"


def test_equal_nodes_have_no_difference() -> None:
    assert version_differences([ClusterNode("n1", versions={"mpi": "5"})] * 2) == ()
    assert version_differences([]) == ()
