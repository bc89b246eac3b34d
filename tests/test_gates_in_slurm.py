"""The documented health check and prolog in a real Slurm: a node with a planted loss is drained."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import simulated_nodes
from tests.cluster.slurm_cluster import SlurmCluster, slurm_cluster
from tests.measure.ranks.watching import wait_until

from kept import RESULTS, unpacked
from tree import ROOT
from waywiser.cli import run

EXAMPLES = ROOT / "docs" / "how-to" / "examples"
CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-4.wwp.xz"
LOSS = "18.4% slower"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script of each night leaves on two nodes, of which n2 has a slow link since."""
    folder = tmp_path_factory.mktemp("nights")
    original = unpacked(CHECK, folder / "node.wwp")
    program = folder / "bin" / "waywiser"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nif [ "$1" = survey ]; then\n'
        '    while [ "$1" != -o ]; do shift; done\n    exec cp "$SURVEYED" "$2"\nfi\n'
        f'exec {shlex.quote(sys.executable)} -m waywiser "$@"\n'
    )
    program.chmod(0o755)
    for node, changes in (("n1", []), ("n2", ["--set", "PCIe to gpu:1=45GB/s"])):
        words = ["simulate", str(original), "--host", node]
        former = folder / f"former-{node}"
        assert run([*words, "--nights", "3", "-o", str(former)]) == 0
        assert run([*words, *changes, "-o", str(folder / f"{node}.wwp")]) == 0
        own = folder / node
        own.mkdir()
        for number, night in enumerate(sorted(former.iterdir())):
            night.rename(own / f"baseline-{number}.wwp")
        script = subprocess.run(
            ["sh", str(EXAMPLES / "waywiser-night.sh")],
            env={
                **os.environ,
                "PATH": f"{program.parent}:{os.environ['PATH']}",
                "SURVEYED": str(folder / f"{node}.wwp"),
                "WAYWISER_NIGHTS": str(own),
                "WAYWISER_METRICS": str(folder / "metrics"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert script.returncode == (1 if changes else 0), script.stdout + script.stderr
    return folder


@contextmanager
def gated(folder: Path, nights: Path, setting: str, script: str) -> Iterator[SlurmCluster]:
    """A Slurm with two nodes that has one of the documented scripts as a setting. The script gets
    the environment that a site's installation would have."""
    gate = folder / "gate"
    with ExitStack() as stack:
        nodes = stack.enter_context(simulated_nodes(folder / "nodes", ("a", "a")))
        slurm = stack.enter_context(
            slurm_cluster(
                nodes,
                folder / "slurm",
                f"{setting}={gate}\nHealthCheckInterval=1\nHealthCheckNodeState=ANY\n",
            )
        )
        gate.write_text(
            "#!/bin/sh\n"
            + "".join(f"export {k}={shlex.quote(v)}\n" for k, v in slurm.environment.items())
            + f"export WAYWISER_NIGHTS={nights}/$SLURMD_NODENAME\n"
            f"exec sh {EXAMPLES / script}\n"
        )
        gate.chmod(0o755)
        yield slurm


def reason(slurm: SlurmCluster, node: str) -> str:
    """Why Slurm has drained a node; empty if it has not."""
    time.sleep(0.2)  # each look is a process
    listed = slurm.run("sinfo", "--noheader", "--nodes", node, "--format=%t|%E").strip()
    state, _, why = listed.partition("|")
    return why if state.startswith("dr") else ""


def test_the_health_check_drains_a_node_with_a_loss_and_says_why(
    nights: Path, tmp_path: Path
) -> None:
    with gated(tmp_path, nights, "HealthCheckProgram", "slurm-health-check.sh") as slurm:
        assert wait_until(lambda: reason(slurm, "n2") != ""), slurm.states()
        assert reason(slurm, "n2").startswith("waywiser: FAILED n2: ")
        assert LOSS in reason(slurm, "n2")
        assert reason(slurm, "n1") == ""


def test_the_prolog_starts_no_job_on_a_node_with_a_loss(nights: Path, tmp_path: Path) -> None:
    with gated(tmp_path, nights, "Prolog", "slurm-prolog.sh") as slurm:
        assert slurm.run("srun", "--nodelist=n1", "hostname").strip() == "n1"
        job = slurm.start("srun", "--nodelist=n2", "hostname", stdout=subprocess.PIPE)
        try:
            assert wait_until(lambda: reason(slurm, "n2") != ""), slurm.states()
        finally:
            job.kill()
            out, _ = job.communicate()
        assert "Prolog error" in reason(slurm, "n2")
        assert "n2" not in out
        assert reason(slurm, "n1") == ""
