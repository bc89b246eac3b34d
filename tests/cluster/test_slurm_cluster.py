"""The Slurm that tests of clusters use: three nodes, and steps side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.simulated_nodes import simulated_nodes
from tests.cluster.slurm_cluster import SlurmCluster, slurm_cluster
from tests.measure.ranks.watching import wait_until


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    folder = tmp_path_factory.mktemp("slurm")
    with (
        simulated_nodes(folder / "nodes", ("a", "a", "b")) as nodes,
        slurm_cluster(nodes, folder / "slurm") as cluster,
    ):
        yield cluster


def test_a_step_runs_on_all_nodes(slurm: SlurmCluster) -> None:
    said = slurm.run("srun", "-N3", "--label", "sh", "-c", "hostname; echo $SLURM_NODEID")
    assert sorted(said.splitlines()) == ["0: 0", "0: n1", "1: 1", "1: n2", "2: 2", "2: n3"]


def test_steps_run_side_by_side_if_they_overlap(slurm: SlurmCluster) -> None:
    both = "srun -N3 sleep 1000 & srun -N3 --overlap hostname"
    said = slurm.run("salloc", "--quiet", "-N3", "sh", "-c", both)
    assert {"n1", "n2", "n3"} <= set(said.splitlines())
    assert wait_until(slurm.is_ready)
