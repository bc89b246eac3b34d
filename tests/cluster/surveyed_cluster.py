"""Surveys of simulated nodes by the command line: who runs what, and what was found."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.simulated_nodes import SimulatedNodes
from tests.measure.ranks.watching import wait_until

from mpi_wheels import mpicc_of
from tree import ROOT
from waywiser.analysis.cluster.texts import ratio_of
from waywiser.analysis.cluster.verdict import verdict
from waywiser.analysis.cluster.verdict_values import ClusterVerdict
from waywiser.curves.answer import Finding
from waywiser.profile.cluster_folder import ClusterResult, read_cluster

SECONDS = 900.0
"""Only what hangs takes so long, on however busy a machine."""

PORT = 7000
WAYWISER = (sys.executable, "-m", "waywiser")

LAUNCHERS = {
    "mpich": "mpiexec -launcher ssh -launcher-exec {remote} -iface core -hosts {{hosts}}",
    "openmpi": "mpiexec --oversubscribe --bind-to none --prtemca plm_ssh_agent {remote} "
    "--prtemca prte_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 "
    "--hostfile {{hostfile}}",
}
"""Templates of ``--launcher``, for what runs on the head."""


class SurveyedCluster:
    """Simulated nodes, and one folder of results."""

    def __init__(
        self, nodes: SimulatedNodes, folder: Path, environment: Mapping[str, str], mpi: str
    ) -> None:
        self.nodes = nodes
        self.folder = folder
        self.results = folder / "c"
        self.mpicc = mpicc_of(mpi)
        template = LAUNCHERS[mpi].format(remote=nodes.remote)
        self.launcher = f"{Path(self.mpicc).parent}/{template} -n {{ranks}}"
        self.environment = {
            **environment,
            "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}:{environment['PYTHONPATH']}",
            "WAYWISER_FAKE": "devices=0",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "WAYWISER_CLUSTER_TOKEN": "0123456789abcdef" * 2,
            "NO_COLOR": "1",
        }
        (folder / "hosts").write_text("".join(f"{name}\n" for name in nodes.names))

    def start_survey(self, *options: str, launcher: str = "") -> subprocess.Popen[str]:
        """Starts the coordinator on the head."""
        address = f"{self.nodes.address(self.nodes.head)}:{PORT}"
        own = ("cluster", "survey", "-o", "c", "--address", address, "--mpicc", self.mpicc)
        template = launcher or f"{self.launcher} {{command}}"
        return self._start(
            self.nodes.head, *own, "--transport", "mpi", "--launcher", template, *options
        )

    def start_agents(self, *names: str) -> dict[str, subprocess.Popen[str]]:
        """Starts agents by hand."""
        where = f"{self.nodes.address(self.nodes.head)}:{PORT}"
        return {name: self._start(name, "cluster", "join", where) for name in names}

    def survey(self, *options: str, launcher: str = "") -> tuple[int, str]:
        """Its exit code, and all that it said."""
        return finish(self.start_survey(*options, launcher=launcher))

    def result(self) -> ClusterResult:
        return read_cluster(self.results)

    def verdict(self) -> ClusterVerdict:
        found = self.result()
        return verdict(found.nodes, found.plan, found.tests)

    def await_nothing(self) -> None:
        """Waits until nothing runs on any node."""
        assert wait_until(lambda: self.nodes.processes() == []), self.nodes.commands()

    def _start(self, name: str, *words: str) -> subprocess.Popen[str]:
        return self.nodes.start(
            name,
            *WAYWISER,
            *words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, _ = process.communicate(timeout=SECONDS)
    return process.returncode, out


def is_clear(finding: Finding, found: ClusterVerdict) -> bool:
    """Whether a slowness is larger than the smallest one that the run finds. On a busy machine the
    processes of a simulated node are late too, and now and then those of one node more than others.
    """
    return not finding.id.startswith("slow") or ratio_of(finding) > found.smallest_found


def standings(found: ClusterVerdict) -> dict[str, str]:
    """The verdict of each node that is not ``ok``; of slow ones only those that are clearly."""
    return {
        each.node: each.verdict
        for each in found.nodes
        if each.verdict != "ok"
        and (each.verdict != "slow" or any(is_clear(own, found) for own in each.findings))
    }


def findings(found: ClusterVerdict) -> list[tuple[str, Sequence[str], str]]:
    """The kind, the nodes and the direction of each finding that is clear. Not of slow
    collectives: all their ranks want a CPU at once, and these nodes share few."""
    return sorted(
        (each.id, each.nodes, each.where.direction)
        for each in found.findings
        if each.id != "collective slow" and is_clear(each, found)
    )
