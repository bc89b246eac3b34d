"""The command and the environment of a launcher."""

from __future__ import annotations

import os

import pytest

from waywiser.measure.ranks.launcher import launch_command, launch_environment
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
