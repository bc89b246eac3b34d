"""Tests by MPI in an allocation of a real Slurm, beside the step of the agents."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cluster.mpi_coordinator import (
    MpiRequest,
    command_of,
    divide_temporary,
    environment_of,
    finished_of,
    rounds_of,
)
from tests.cluster.simulated_nodes import simulated_nodes
from tests.cluster.slurm_cluster import SlurmCluster, slurm_cluster
from tests.measure.ranks.watching import PATIENCE_SECONDS, wait_until

from mpi_wheels import mpicc_of

pytestmark = pytest.mark.slow

PAIRS = (("n1", "n2"), ("n3", "n4"))

IN_ALLOCATION = """
srun -N4 sleep 1000 &
{rails} > {folder}/before
touch {folder}/measured
until [ -e {folder}/killed ]; do sleep 0.05; done
{pairs} > {folder}/after
touch {folder}/done
wait
"""
"""A step that lasts holds all CPUs, as the agents do."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    folder = tmp_path_factory.mktemp("slurm")
    with (
        simulated_nodes(folder / "nodes", ("a", "a", "b", "b")) as nodes,
        slurm_cluster(nodes, folder / "slurm") as cluster,
    ):
        divide_temporary(nodes)
        yield cluster


def test_ranks_start_beside_the_step_of_the_agents_and_a_dead_daemon_costs_its_node(
    slurm: SlurmCluster, tmp_path: Path, fake_native_environment: dict[str, str]
) -> None:
    remote = str(slurm.nodes.remote)
    limits = (PATIENCE_SECONDS, PATIENCE_SECONDS)
    pairs = MpiRequest(mpicc_of("mpich"), "", remote, rounds_of(PAIRS), 65536, *limits)
    rails = replace(pairs, rounds=rounds_of(PAIRS[:1]), rails=2)
    commands = {
        name: " ".join(command_of(request, tmp_path / f"{name}.json"))
        for name, request in (("pairs", pairs), ("rails", rails))
    }
    script = tmp_path / "job"
    script.write_text(IN_ALLOCATION.format(folder=tmp_path, **commands))
    with slurm.start(
        "salloc",
        "--quiet",
        "-N4",
        "--ntasks-per-node=1",
        "sh",
        script,
        env=environment_of(fake_native_environment, tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as allocation:
        assert wait_until(lambda: (tmp_path / "measured").exists())
        slurm.kill_daemon("n3")
        (tmp_path / "killed").touch()
        assert wait_until(lambda: (tmp_path / "done").exists())
        slurm.start_daemon("n3")
        slurm.run("scancel", "--user", str(os.geteuid()))
        out, _ = allocation.communicate(timeout=PATIENCE_SECONDS)
    before, after = (finished_of((tmp_path / name).read_text()) for name in ("before", "after"))
    assert [test.failed for test in before.tests] == [None], out
    assert len(before.tests[0].times) == 4, "there are more ranks than the allocation has tasks"
    assert before.killed == {}
    failed = {test.test.nodes: test.failed for test in after.tests}
    assert failed[PAIRS[0]] is None
    blamed = failed[PAIRS[1]]
    assert blamed is not None and blamed.node == "n3", blamed
