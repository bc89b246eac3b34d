"""Surveys of clusters in a real Slurm: the documented batch file, an allocation that ends, another
one that goes on, a slurmd that dies."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import simulated_nodes
from tests.cluster.slurm_cluster import SlurmCluster, slurm_cluster, without_environment
from tests.measure.ranks.watching import wait_until

from mpi_wheels import mpicc_of
from tree import ROOT
from waywiser.analysis.cluster.verdict import verdict
from waywiser.machine.native import MODULE_VARIABLE
from waywiser.profile.cluster_folder import ClusterResult, read_cluster

SBATCH = ROOT / "docs" / "how-to" / "examples" / "cluster.sbatch"
NODES = ("n1", "n2", "n3")

pytestmark = pytest.mark.slow


class Batch:
    """Jobs with the documented file, one after the other, into one folder."""

    def __init__(self, slurm: SlurmCluster, folder: Path, environment: dict[str, str]) -> None:
        self.slurm = slurm
        self.folder = folder
        program = folder / "waywiser"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m waywiser "$@"\n')
        program.chmod(0o755)
        self._environment = {
            **{name: environment[name] for name in ("PYTHONPATH", MODULE_VARIABLE)},
            "WAYWISER": str(program),
            "WAYWISER_FAKE": "devices=0",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "FOLDER": "c",
            "NO_COLOR": "1",
        }
        self._job = ""

    def submit(self, *, inherits: bool = True) -> None:
        """``inherits``: the job has the environment of the shell that submits it."""
        options = ("--transport", "mpi", "--mpicc", mpicc_of("mpich"), "--no-check")
        script = SBATCH
        if not inherits:
            script = self.folder / "site.sbatch"
            variables = {**self.slurm.environment, **self._environment}
            script.write_text(without_environment(SBATCH.read_text(), variables))
        said = self.slurm.run(
            *("sbatch", f"--nodes={len(NODES)}", "--output=%j.out", script, *options),
            cwd=self.folder,
            env=self._environment if inherits else {},
        )
        match = re.search(r"Submitted batch job (\d+)", said)
        assert match is not None, said
        self._job = match[1]

    def cancel(self) -> None:
        """Ends the allocation, as its limit of time does."""
        self.slurm.run("scancel", self._job)

    @property
    def said(self) -> str:
        path = self.folder / f"{self._job}.out"
        return path.read_text() if path.exists() else ""

    def is_over(self) -> bool:
        """Whether the batch file has ended; nodes may still end what is left of the job."""
        time.sleep(0.1)  # each look is a process
        alive = ("--noheader", "--states=PENDING,RUNNING", "--format=%i")
        return self._job not in self.slurm.run("squeue", *alive).split()

    def result(self) -> ClusterResult | None:
        return (
            read_cluster(self.folder / "c") if (self.folder / "c" / "plan.json").exists() else None
        )

    def finished(self) -> list[str]:
        """The lines of finished tests."""
        path = self.folder / "c" / "tests.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def await_tests(self, more: int) -> None:
        count = len(self.finished()) + more
        assert wait_until(lambda: len(self.finished()) >= count or self.is_over())
        assert not self.is_over(), self.said


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    folder = tmp_path_factory.mktemp("slurm")
    with (
        simulated_nodes(folder / "nodes", ("a",) * len(NODES)) as nodes,
        slurm_cluster(nodes, folder / "slurm") as cluster,
    ):
        yield cluster


def test_an_allocation_that_ends_a_new_one_and_a_slurmd_that_dies(
    slurm: SlurmCluster, tmp_path: Path, fake_native_environment: dict[str, str]
) -> None:
    batch = Batch(slurm, tmp_path, fake_native_environment)
    batch.submit()
    batch.await_tests(2)
    batch.cancel()
    assert wait_until(batch.is_over)
    assert wait_until(slurm.is_ready), slurm.states()
    before = batch.finished()
    assert "waywiser cluster survey -o c --resume" in batch.said.partition("go on with: ")[2]

    batch.submit(inherits=False)
    batch.await_tests(2)
    slurm.kill_daemon("n3")
    assert wait_until(batch.is_over), batch.said
    slurm.start_daemon("n3")
    assert wait_until(slurm.is_ready), slurm.states()
    after = batch.finished()
    assert after[: len(before)] == before, "what was finished stays"
    found = batch.result()
    nodes = verdict(found.nodes, found.plan, found.tests).nodes
    standings = {each.node: each.verdict for each in nodes}
    assert standings["n3"] == "failed", batch.said
    # A step that was just starting may end first on the other node of its pair.
    assert [standings["n1"], standings["n2"]].count("failed") <= 1, batch.said
