"""The command and the environment of a launcher."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from waywiser.measure.ranks.launch_hosts import LaunchHosts
from waywiser.measure.ranks.launcher import (
    exported_variables,
    launch_command,
    launch_environment,
    slurm_template,
)
from waywiser.measure.ranks.mpi_library import Mpicc, MpiError, MpiLibrary

COMMAND = ["/usr/bin/python3", "-c", "print('a word')"]


def library(text: str, launcher: str = "/opt/bin/mpiexec") -> MpiLibrary:
    return MpiLibrary(Mpicc("/opt/bin/mpicc", "PATH"), "/b.so", text, launcher, was_cached=True)


MPICH = library("MPICH Version: 5.0.2")
OPEN_MPI = library("Open MPI v5.0.11, package: Open MPI")


def test_ranks_are_started_by_the_librarys_own_launcher() -> None:
    assert launch_command(MPICH, COMMAND, 3) == ["/opt/bin/mpiexec", "-n", "3", *COMMAND]
    words = launch_command(OPEN_MPI, COMMAND, 3)
    assert words[-5:] == ["-n", "3", *COMMAND]
    assert "--oversubscribe" in words, "it refuses more ranks than cores"


def test_a_template_has_named_strings() -> None:
    words = launch_command(MPICH, COMMAND, 3, "srun --mpi=pmi2 -n {ranks} env X='1 2' {command}")
    assert words == ["srun", "--mpi=pmi2", "-n", "3", "env", "X=1 2", *COMMAND]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("srun {command}", r"\{ranks\} is missing"),
        ("srun -n {ranks}", r"\{command\} is missing"),
        ("srun -n {ranks} {hosts} {command}", r"there is no \{hosts\}"),
        ("srun -n {ranks} {} {command}", r"there is no \{\}"),
        ("srun -n {ranks {command}", "the launcher cannot be used"),
        ("srun -n {ranks} '{command}", "No closing quotation|the launcher cannot be used"),
    ],
)
def test_a_template_that_cannot_be_filled_is_one_line(template: str, reason: str) -> None:
    with pytest.raises(MpiError, match=reason) as caught:
        launch_command(MPICH, ["run"], 2, template)
    assert "\n" not in str(caught.value)


def test_without_a_launcher_the_error_names_the_remedy() -> None:
    with pytest.raises(MpiError, match=r"/opt/bin/mpicc: no mpiexec is beside mpicc \(.*--launch"):
        launch_command(library("MPICH Version: 5.0.2", ""), COMMAND, 2)


def test_multicast_stays_off_in_a_launch_whatever_the_caller_set() -> None:
    base = {"NCCL_NVLS_ENABLE": "1", "HOME": "/h"}
    made = launch_environment(2, "1:x", "/t", base)
    assert made["NCCL_NVLS_ENABLE"] == "0"
    assert made["HOME"] == "/h"
    assert made["TMPDIR"] == "/t"


def test_ranks_that_wait_let_others_run_where_cpus_are_few() -> None:
    cpus = len(os.sched_getaffinity(0))
    name = "OMPI_MCA_mpi_yield_when_idle"
    assert launch_environment(cpus + 1, "1:x", "/t", {})[name] == "1"
    assert launch_environment(cpus + 1, "1:x", "/t", {name: "0"})[name] == "0", "the user's stays"
    assert name not in launch_environment(cpus, "1:x", "/t", {})


@pytest.mark.parametrize("user", [0, 1000])
def test_open_mpi_runs_as_root_too(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    made = launch_environment(1, "1:x", "/t", {})
    assert made.get("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == ("1" if user == 0 else None)


HOSTS = LaunchHosts.of("10.0.0.1", [("n1", 2), ("n2", 2)])


def across(library: MpiLibrary, folder: Path, template: str = "") -> str:
    words = launch_command(library, ["run"], 4, template, HOSTS, str(folder), ["A", "B"])
    return " ".join(words).replace(str(folder), "FOLDER")


def test_ranks_across_hosts_are_started_by_a_hostfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mpiexec of Open MPI passes on only variables that are named, in a template too."""
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert across(MPICH, tmp_path) == "/opt/bin/mpiexec -f FOLDER/hosts -n 4 run"
    of_open_mpi = "/opt/bin/mpiexec --oversubscribe --bind-to none --hostfile FOLDER/hosts"
    assert across(OPEN_MPI, tmp_path) == f"{of_open_mpi} -x A -x B -n 4 run"
    template = "sh mpirun --hostfile {hostfile} -H {hosts} -N {nodes} -n {ranks} {command}"
    filled = "--hostfile FOLDER/hosts -H n1,n2 -N 2 -n 4 run"
    assert across(OPEN_MPI, tmp_path, template) == f"sh mpirun -x A -x B {filled}"
    assert across(MPICH, tmp_path, template) == f"sh mpirun {filled}"


def test_ranks_on_other_hosts_get_what_is_theirs_and_no_token(tmp_path: Path) -> None:
    (tmp_path / "srun").touch(mode=0o755)
    base = {
        "HOME": "/h",
        "PATH": str(tmp_path),
        "WAYWISER_NODE": "head",
        "WAYWISER_CLUSTER_TOKEN": "token",
        "WAYWISER_OTHER": "1",
        "SLURM_JOB_ID": "1",
    }
    made = launch_environment(4, "10.0.0.1:1:x", str(tmp_path), base, HOSTS)
    assert made["SLURM_OVERLAP"] == "1", "or mpiexec waits for the step of the agents"
    assert "token" not in made.values() and "WAYWISER_NODE" not in made
    names = exported_variables(made, base)
    assert {"WAYWISER_RANKS", "TMPDIR", "WAYWISER_OTHER", "NCCL_NVLS_ENABLE"} <= set(names)
    assert "HOME" not in names


SRUN = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$*" in *--mpi=pmix*) exit 1;; esac
"""


def test_srun_starts_ranks_beside_the_step_of_the_agents_as_it_can(tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text(SRUN.format(folder=tmp_path))
    srun.chmod(0o755)
    allocation = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"}
    template = slurm_template(MPICH, HOSTS, allocation)
    assert template.startswith("srun --overlap ") and template.endswith(" --mpi=pmi2 {command}")
    assert slurm_template(OPEN_MPI, HOSTS, allocation) == "", "its own mpiexec knows Slurm"
    chosen = slurm_template(OPEN_MPI, HOSTS, allocation | {"SLURM_MPI_TYPE": "pmix_v4"})
    assert chosen.startswith("srun --overlap ") and "--mpi" not in chosen
    assert slurm_template(MPICH, HOSTS, {"PATH": allocation["PATH"]}) == "", (
        "there is no allocation"
    )


def test_slurm_places_ranks_by_a_list_of_nodes(tmp_path: Path) -> None:
    """An arbitrary distribution ends the slurmctld of Slurm 22.05."""
    program = tmp_path / "srun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    inside = {"PATH": str(tmp_path), "SLURM_JOB_ID": "7"}
    hosts = LaunchHosts.of("10.0.0.1", [("n3", 2), ("n1", 2)])
    template = slurm_template(MPICH, hosts, inside)
    assert "arbitrary" not in template
    assert "--nodelist={hosts}" in template and "--ntasks-per-node=2" in template
    assert template.endswith(" --mpi=pmi2 {command}")
    site = slurm_template(MPICH, hosts, {**inside, "SLURM_MPI_TYPE": "pmix"})
    assert "--mpi" not in site
    unequal = LaunchHosts.of("10.0.0.1", [("n3", 2), ("n1", 1)])
    assert slurm_template(MPICH, unequal, inside) == ""
    assert slurm_template(MPICH, hosts, {"PATH": str(tmp_path)}) == ""
    base = {**inside, "SLURM_HOSTFILE": "tasks"}
    own = launch_environment(4, "10.0.0.1:1", str(tmp_path), base, hosts)
    assert "SLURM_HOSTFILE" not in own
    assert own["SLURM_OVERLAP"] == "1"
