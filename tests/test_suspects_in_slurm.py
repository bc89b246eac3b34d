"""The documented files that survey every node, and suspected nodes again, in a real Slurm."""

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

from kept import RESULTS, unpacked
from tree import ROOT
from waywiser.cli import run
from waywiser.machine.native import MODULE_VARIABLE

FLEET = ROOT / "docs" / "how-to" / "watch-a-fleet.md"
SBATCH = ROOT / "docs" / "how-to" / "examples" / "measure-suspects.sbatch"
CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-4.wwp.xz"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    folder = tmp_path_factory.mktemp("slurm")
    with (
        simulated_nodes(folder / "nodes", ("a", "a")) as nodes,
        slurm_cluster(nodes, folder / "slurm") as cluster,
    ):
        yield cluster


def environment(folder: Path, fake: dict[str, str]) -> dict[str, str]:
    program = folder / "waywiser"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m waywiser "$@"\n')
    program.chmod(0o755)
    return {
        **{name: fake[name] for name in ("PYTHONPATH", MODULE_VARIABLE)},
        "WAYWISER": str(program),
        "WAYWISER_FAKE": "devices=1;latency=1;event=1",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "FOLDER": str(folder / "nights"),
        "NO_COLOR": "1",
    }


def of_site(slurm: SlurmCluster, variables: dict[str, str]) -> dict[str, str]:
    """What modules of a site set, in a job without the environment of who submits it: not what the
    documented file sets itself."""
    own = {"FOLDER", "WAYWISER"}
    return {**slurm.environment, **{k: v for k, v in variables.items() if k not in own}}


def end_of_job(slurm: SlurmCluster, said: str) -> str:
    """Waits for the end of the job that was submitted; returns its number."""
    job = re.search(r"Submitted batch job (\d+)", said)
    assert job is not None, said

    def is_over() -> bool:
        time.sleep(0.2)  # each look is a process
        alive = ("--noheader", "--states=PENDING,RUNNING", "--format=%i")
        return job[1] not in slurm.run("squeue", *alive).split()

    assert wait_until(is_over)
    return job[1]


def test_every_node_of_a_fleet_is_surveyed_into_one_folder(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    """In a job without the environment of who submits it; with a stand-in for Waywiser, since each
    survey takes 15 s."""
    blocks = re.findall(r"^```sh\n(#!.*?)^```", FLEET.read_text(), re.MULTILINE | re.DOTALL)
    (script,) = (block for block in blocks if "#SBATCH" in block)
    for of_gpus in ("#SBATCH --gpus-per-node=8\n", " --expect-gpus 8"):
        assert of_gpus in script
        script = script.replace(of_gpus, "")  # the nodes here have none
    program = tmp_path / "waywiser"
    program.write_text('#!/bin/sh\n[ "$1" != survey ] || touch "$5"\n')
    program.chmod(0o755)
    site = tmp_path / "fleet.sbatch"
    path = {"PATH": f"{tmp_path}:{slurm.environment['PATH']}"}
    site.write_text(without_environment(script, {**slurm.environment, **path}))
    job = end_of_job(slurm, slurm.run("sbatch", "--nodes=2", site, cwd=tmp_path))
    text = (tmp_path / f"waywiser-{job}.log").read_text()
    (folder,) = (path for path in tmp_path.glob("waywiser-*") if path.is_dir())
    assert sorted(path.name for path in folder.iterdir()) == ["n1.wwp", "n2.wwp"], text


def test_the_suspected_node_alone_is_measured_twice_more(
    slurm: SlurmCluster, tmp_path: Path, fake_native_environment: dict[str, str]
) -> None:
    nights = tmp_path / "nights"
    original = unpacked(CHECK, tmp_path / "node.wwp")
    for host, words in (
        ("n1", []),
        ("n2", ["--set", "PCIe to gpu:1=40GB/s", "--from-night", "12"]),
    ):
        simulated = ["simulate", str(original), "--host", host, "--nights", "12", *words]
        assert run([*simulated, "-o", str(nights)]) == 0
    before = set(nights.iterdir())
    variables = environment(tmp_path, fake_native_environment)
    site = tmp_path / "site.sbatch"
    site.write_text(without_environment(SBATCH.read_text(), of_site(slurm, variables)))
    job = end_of_job(slurm, slurm.run("bash", site, cwd=tmp_path, env=variables))
    text = (tmp_path / f"slurm-{job}.out").read_text()
    made = sorted(path.name for path in set(nights.iterdir()) - before)
    assert made == [f"n2-again-{job}-{turn}.wwp" for turn in (1, 2)], text
    assert "paths of" in text

    for path in nights.glob("n2-*"):
        path.unlink()
    assert slurm.run("bash", SBATCH, cwd=tmp_path, env=variables) == ""
