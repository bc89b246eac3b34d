"""What a launch inherits from a launcher of which this process is itself a rank."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.plan.machines import machine
from mpi_wheels import mpicc_of
from waywiser.machine import native
from waywiser.measure.ranks.launcher import launch_environment
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.measure.ranks.outer_launcher import without_allocation, without_outer_launcher
from waywiser.measure.ranks.tries import try_one
from waywiser.words import Memory, Place

SET_BY_LAUNCHERS = (
    *("PMI_RANK", "PMI_FD", "PMI_SIZE", "PMI_PORT", "PMI_ID", "PMI_KVSNAME", "PMI2_RANK"),
    *("PMIX_RANK", "PMIX_NAMESPACE", "PMIX_SERVER_URI41", "PMIX_GDS_MODULE", "PMIX_HOSTNAME"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_UNIVERSE_SIZE", "OMPI_MCA_num_procs", "OMPI_MCA_PREFIXES"),
    *("OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_vpid", "OMPI_FILE_LOCATION"),
    *("PRTE_LAUNCHED", "PRTE_SHARED_FS", "HYDI_CONTROL_FD", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    *("MV2_COMM_WORLD_LOCAL_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK", "FLUX_TASK_RANK"),
    *("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_ID", "SLURM_STEPID"),
    *("SLURM_GTIDS", "SLURM_SRUN_COMM_PORT", "SLURM_PMIXP_ABORT_AGENT_PORT"),
)
SET_BY_USERS = (
    *("OMPI_MCA_btl", "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_tmpdir_base", "PMIX_MCA_gds"),
    *("PRTE_MCA_plm", "OMPI_ALLOW_RUN_AS_ROOT", "HYDRA_IFACE", "HYDRA_LAUNCHER", "OPAL_PREFIX"),
    *("I_MPI_FABRICS", "I_MPI_ROOT", "MPIR_CVAR_CH4_OFI_ENABLE_TAGGED", "UCX_TLS", "MPICH_OFI"),
    *("PMI_NO_FORK", "PMI_MMAP_SYNC_WAIT_TIME", "PATH", "LD_LIBRARY_PATH", "FI_PROVIDER"),
)
ALLOCATION = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_CPU_BIND": "none"}


@pytest.fixture
def with_srun(tmp_path: Path) -> dict[str, str]:
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    return {"PATH": str(tmp_path), **ALLOCATION}


@given(
    ranks=st.sets(st.sampled_from(SET_BY_LAUNCHERS)), users=st.sets(st.sampled_from(SET_BY_USERS))
)
def test_variables_of_outer_ranks_go_and_settings_of_users_stay(
    ranks: set[str], users: set[str]
) -> None:
    base = dict.fromkeys(ranks - {"OMPI_COMM_WORLD_RANK"} | users, "1")
    assert without_outer_launcher(base) == dict.fromkeys(users, "1")
    again = without_outer_launcher(without_outer_launcher(base))
    assert again == without_outer_launcher(base)


def test_a_prefix_that_an_outer_open_mpi_has_set_is_not_for_another() -> None:
    base = {"OPAL_PREFIX": "/another", "OMPI_COMM_WORLD_RANK": "0", "OMPI_MCA_btl": "self"}
    assert without_outer_launcher(base) == {"OMPI_MCA_btl": "self"}


def test_steps_get_all_variables_whatever_the_job_was_submitted_with(
    with_srun: dict[str, str],
) -> None:
    for submitted in ("NONE", "PATH,HOME", "ALL"):
        made = without_outer_launcher({**with_srun, "SLURM_EXPORT_ENV": submitted})
        assert made == {**with_srun, "SLURM_EXPORT_ENV": "ALL"}


def test_the_binding_of_an_outer_step_is_not_that_of_ranks(with_srun: dict[str, str]) -> None:
    inside = {**with_srun, "SLURM_STEP_ID": "0", "SLURM_CPU_BIND": "quiet,mask_cpu:0x1"}
    assert "SLURM_CPU_BIND" not in without_outer_launcher(inside)


def test_variables_of_slurm_without_srun_start_no_srun() -> None:
    assert without_outer_launcher({"PATH": "/nowhere", **ALLOCATION}) == {"PATH": "/nowhere"}


def test_ranks_of_one_machine_see_the_allocation_by_a_described_launcher_alone(
    with_srun: dict[str, str],
) -> None:
    base = {**with_srun, "PBS_NODEFILE": "/nodes", "SLURMD_NODENAME": "n1", "LSB_HOSTS": "n1 n2"}
    own = launch_environment(2, "1:x", "/t", base)
    assert not {name for name in own if name.startswith(("SLURM_", "PBS_", "LSB_"))}
    assert own["SLURMD_NODENAME"] == "n1"
    described = launch_environment(2, "1:x", "/t", base, template="srun -n {ranks} {command}")
    assert described["SLURM_JOB_ID"] == "7" and described["SLURM_EXPORT_ENV"] == "ALL"
    assert without_allocation({"JOB": "1", "SLURMD_NODENAME": "n1"}).keys() == {
        *("JOB", "SLURMD_NODENAME")
    }


AS_A_RANK = {
    "mpich": {"PMIX_NAMESPACE": "prterun-1@1", "PMIX_RANK": "0", "PMIX_SERVER_URI2": "x;tcp4://"},
    "openmpi": {
        "PMI_FD": "7", "PMI_RANK": "0", "PMI_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_MCA_ess": "env", "PRTE_LAUNCHED": "1", "PMIX_NAMESPACE": "1", "PMIX_RANK": "0",
    },
}  # fmt: skip
IN_A_CONTAINER = {
    "SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NNODES": "2",
    "SLURM_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_TASKS_PER_NODE": "1(x2)",
    "SLURM_NODEID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_STEP_ID": "0",
}  # fmt: skip
"""Slurm's variables, and neither srun nor nodes with these names."""


@pytest.mark.slow
@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_ranks_start_below_an_outer_launcher(
    name: str, monkeypatch: pytest.MonkeyPatch, fake_native_environment: dict[str, str]
) -> None:
    monkeypatch.setenv(native.MODULE_VARIABLE, fake_native_environment[native.MODULE_VARIABLE])
    for variable, value in {**AS_A_RANK[name], **IN_A_CONTAINER}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PATH", os.defpath)
    memory = Memory("pageable", Place.parse("numa:0"), {})
    found = try_one(find_library(mpicc_of(name)), machine(), "send", (memory, memory))
    assert found.right is True, found.reason
