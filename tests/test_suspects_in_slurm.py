"""The documented file that measures suspected nodes again, in a real Slurm."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import simulated_nodes
from tests.cluster.slurm_cluster import SlurmCluster, slurm_cluster
from tests.measure.ranks.watching import wait_until

from kept import RESULTS, unpacked
from tree import ROOT
from waywiser.cli import run
from waywiser.machine.native import MODULE_VARIABLE

SBATCH = ROOT / "docs" / "how-to" / "examples" / "measure-suspects.sbatch"
CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-4.wwp.xz"

pytestmark = pytest.mark.slow


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[SlurmCluster]:
    with (
        simulated_nodes(tmp_path / "nodes-of-slurm", ("a", "a")) as nodes,
        slurm_cluster(nodes, tmp_path / "slurm") as cluster,
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
    said = slurm.run("bash", SBATCH, cwd=tmp_path, env=variables)
    job = re.search(r"Submitted batch job (\d+)", said)
    assert job is not None, said

    def is_over() -> bool:
        time.sleep(0.2)  # each look is a process
        alive = ("--noheader", "--states=PENDING,RUNNING", "--format=%i")
        return job[1] not in slurm.run("squeue", *alive).split()

    assert wait_until(is_over)
    text = (tmp_path / f"slurm-{job[1]}.out").read_text()
    made = sorted(path.name for path in set(nights.iterdir()) - before)
    assert made == [f"n2-again-{job[1]}-{turn}.wwp" for turn in (1, 2)], text
    assert "paths of" in text

    for path in nights.glob("n2-*"):
        path.unlink()
    assert slurm.run("bash", SBATCH, cwd=tmp_path, env=variables) == ""
