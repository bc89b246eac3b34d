"""A real Slurm on simulated nodes: slurmctld on the head, a slurmd on each node.

It is the one that ``scripts/set-up --slurm`` unpacks. Everybody is its root: whoever runs the tests
submits and runs jobs.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.simulated_nodes import SECONDS, SimulatedNodes
from tests.measure.ranks.watching import wait_until

from tree import ROOT

FOLDER = ROOT / ".deps" / "slurm"
PROGRAMS = FOLDER / "usr" / "sbin"
USER = 1000
"""Slurm's daemons give groups up if they are root, which the root of a user namespace may not do:
there they are this user, in a namespace inside it."""

SETTINGS = """\
ClusterName=simulated
SlurmctldHost=head({head})
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
PluginDir={plugins}
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
InactiveLimit=0
KillWait=1
SlurmdTimeout=300
SlurmdParameters=config_overrides
MessageTimeout=5
NodeName={nodes} CPUs=4
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def without_environment(script: str, variables: Mapping[str, str]) -> str:
    """The script for a job without the environment of who submits it, as sites have it by
    ``--export=NONE``; their modules set these variables in it instead."""
    lines = script.splitlines()
    after = max(n for n, line in enumerate(lines) if line.startswith("#SBATCH")) + 1
    exports = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    site = [*lines[:after], "#SBATCH --export=NONE", *exports, *lines[after:]]
    return "\n".join(site) + "\n"


class SlurmCluster:
    """Slurm's daemons on the nodes; its commands run on the head."""

    def __init__(self, nodes: SimulatedNodes, folder: Path, settings: str = "") -> None:
        """``settings``: more lines of slurm.conf."""
        self.nodes = nodes
        libraries = next((FOLDER / "usr" / "lib").glob("*/slurm-wlm"))
        self.environment = {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "LD_LIBRARY_PATH": f"{libraries.parent}:{libraries}",
            "PATH": f"{FOLDER / 'usr' / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin",
        }
        for name in ("state", "spool", *(f"spool/{name}" for name in nodes.names)):
            (folder / name).mkdir(parents=True)
        (folder / "slurm.conf").write_text(
            settings
            + SETTINGS.format(
                head=nodes.address(nodes.head),
                user=USER if nodes.is_user else 0,
                folder=folder,
                plugins=libraries,
                nodes=",".join(nodes.names),
            )
        )
        self._controller = self._daemon(nodes.head, "slurmctld-wlm")
        self._daemons: dict[str, subprocess.Popen[str]] = {}
        assert wait_until(lambda: self._try("scontrol", "ping")), "slurmctld does not answer"
        for name in nodes.names:
            self.start_daemon(name)
        assert wait_until(self.is_ready), self.states()

    def start(
        self, *command: str | Path, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """Starts a command on the head, which finds Slurm's."""
        return self._start(self.nodes.head, *command, env=env, **options)

    def run(self, *command: str | Path, **options: Any) -> str:
        """What a command on the head says. Raises `AssertionError` with it if it fails."""
        with self.start(
            *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
        ) as process:
            out, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{command}: {out}"
        return out

    def start_daemon(self, name: str) -> None:
        step = ("-d", PROGRAMS / "slurmstepd-wlm")
        self._daemons[name] = self._daemon(name, "slurmd-wlm", "-N", name, *step)

    def kill_daemon(self, name: str) -> None:
        """Kills the slurmd of a node, as a node that crashes would; its jobs' processes stay."""
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def states(self) -> dict[str, str]:
        """The state of each node: ``idle``, ``alloc``, ``down*``."""
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %t").splitlines()
        return dict(line.split() for line in lines)

    def is_ready(self) -> bool:
        """Whether all nodes are idle."""
        time.sleep(0.05)  # each look is a process
        return set(self.states().values()) == {"idle"}

    def close(self) -> None:
        for daemon in (*self._daemons.values(), self._controller):
            daemon.kill()
            daemon.wait()

    def _try(self, *command: str) -> bool:
        with self.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            return process.wait(SECONDS) == 0

    def _daemon(self, name: str, program: str, *options: str | Path) -> subprocess.Popen[str]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return self._start(name, PROGRAMS / program, "-D", *options, **quiet)

    def _start(
        self, name: str, *command: str | Path, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        as_user = ("unshare", "--user", f"--map-user={USER}", f"--map-group={USER}", "--")
        return self.nodes.start(
            name,
            *(as_user if self.nodes.is_user else ()),
            *command,
            env={**self.environment, **(env or {})},
            **options,
        )


@contextmanager
def slurm_cluster(
    nodes: SimulatedNodes, folder: Path, settings: str = ""
) -> Iterator[SlurmCluster]:
    """Skips the test, with the reason, where the distribution has not the Slurm that set-up
    unpacks. Where set-up did not run it skips too, and fails in CI."""
    other = FOLDER / "other"
    if other.exists():
        pytest.skip(other.read_text().strip())
    if not (FOLDER / "packages").exists():
        why = f"{FOLDER} has no Slurm: run scripts/set-up --slurm"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    cluster = SlurmCluster(nodes, folder, settings)
    try:
        yield cluster
    finally:
        cluster.close()
