"""Folders of cluster surveys, with the results of simulated clusters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from analysis.cluster.simulated_clusters import SimulatedCluster, survey
from waywiser.profile.cluster_folder import ClusterFolder

STARTED = "2026-11-20T00:00:00+00:00"


def stored_cluster(
    path: Path, nodes: int = 8, *, tests: int | None = None, **planted: object
) -> Path:
    """The folder of a survey of a simulated cluster; only the first ``tests``, if it is not
    complete."""
    cluster = SimulatedCluster(nodes, np.random.default_rng(1), **planted)  # type: ignore[arg-type]
    plan = cluster.plan(groups=True)
    with ClusterFolder.create(path, plan) as folder:
        for node in cluster.members:
            folder.add_node(node)
        for test in survey(cluster, plan).finished[:tests]:
            folder.add_test(replace(test, started=STARTED))
    return path
