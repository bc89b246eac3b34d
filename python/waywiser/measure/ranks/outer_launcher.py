"""The environment of a process that starts ranks or agents, without what an outer launcher has set
for its own ranks.

Waywiser may itself run as a rank: in a step of Slurm, below an ``mpiexec``, or in a container that
has inherited their variables. A library that sees them takes each new rank for one of the outer
launch. Settings that users make for a library or a launcher stay: ``OMPI_MCA_*``, ``PMIX_MCA_*``,
``I_MPI_*``, ``HYDRA_*``, ``UCX_*``, and what describes an allocation to ``srun``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

_OF_RANKS = re.compile(
    # PMI-1 and PMI-2, of Hydra, Slurm and Cray, without Cray's settings
    r"(?!PMI_(?:MMAP_SYNC_WAIT_TIME|MAX_KVS_ENTRIES|NO_FORK|NO_PREINITIALIZE|FANOUT|CRAY_))PMI2?_"
    # PMIx: of Slurm, of PRRTE and of Open MPI
    r"|PMIX_(?!MCA_|PREFIX$|INSTALL_PREFIX$|DEBUG$)"
    r"|PRTE_(?!MCA_|PREFIX$|ALLOW_RUN_AS_ROOT)"
    # Open MPI 5, and below OMPI_MCA_ what its mpirun sets, that of version 4 too
    r"|OMPI_(?!MCA_|PREFIX$|ALLOW_RUN_AS_ROOT)"
    r"|OMPI_MCA_(?:PREFIXES|num_procs|initial_wdir|cpu_type|pmix|ess(?:_\w+)?|shmem_RUNTIME_\w+)$"
    r"|OMPI_MCA_orte_(?:\w+_uri|ess_\w+|app_num|num_nodes|jobid|precondition_transports"
    r"|bound_at_launch|launch|\w+_session_dir)$"
    # MPICH, Intel MPI, MVAPICH, Cray, IBM, Flux
    r"|HYDI_|MPI_LOCALN?RANK|MPI_(?:APPNUM|UNIVERSE_SIZE)$|I_MPI_INFO_"
    r"|MV2_COMM_WORLD_|MPIRUN_|MPISPAWN_"
    r"|PALS_(?:RANKID|NODEID|LOCAL_|AP|FD$|SPOOL_DIR$)|ALPS_APP_|JSM_|FLUX_TASK_"
    # steps of Slurm and their tasks
    r"|SLURM_(?:PROCID|LOCALID|NODEID|TASK_PID|GTIDS|STEP\w*|LAUNCH_NODE_IPADDR|SRUN_COMM_\w+"
    r"|PMI\w+)$"
)
"""Names of variables that a launcher sets for each of its ranks, or for all of them."""

_OF_STEPS = re.compile(r"SLURM_(?:CPU_BIND|MEM_BIND|DISTRIBUTION)")
"""Variables of a step of Slurm; outside of one they are settings of the user."""

_OF_OPEN_MPI = ("OPAL_PREFIX", "OPAL_USER_PARAMS_GIVEN", "PMIX_PREFIX", "PRTE_PREFIX")
"""What the ``mpirun`` of Open MPI sets besides; without one they are settings of the user."""

_OF_ALLOCATIONS = re.compile(
    r"SLURM_|SLURMD_(?!NODENAME$)|PBS_|LSB_|LS_SUBCWD$|LOADL|COBALT_|PE_HOSTFILE$|SGE_"
)
"""By these ``mpiexec`` finds the nodes of an allocation and how to start ranks there."""

_ALL = {"SLURM_EXPORT_ENV": "ALL"}
"""Lets ``srun`` pass on all variables of its environment. A job that was submitted with
``--export=NONE``, or with names, has set it for its steps, which then lack the address, the token
and the paths of a launch."""


def without_outer_launcher(base: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that an outer launcher has set for its ranks; with ``srun``, it
    passes on the others. Slurm's are left out where there is no ``srun``, as in a container: other
    launchers would start it."""
    in_step = "SLURM_STEP_ID" in base or "SLURM_STEPID" in base
    by_open_mpi = "OMPI_COMM_WORLD_RANK" in base
    with_slurm = shutil.which("srun", path=base.get("PATH")) is not None

    def stays(name: str) -> bool:
        return not (
            _OF_RANKS.match(name)
            or (in_step and _OF_STEPS.match(name))
            or (by_open_mpi and name in _OF_OPEN_MPI)
            or (not with_slurm and name.startswith("SLURM_"))
        )

    return {name: value for name, value in base.items() if stays(name)} | (
        _ALL if with_slurm else {}
    )


def without_allocation(base: Mapping[str, str]) -> dict[str, str]:
    """The variables without those of an allocation: ``mpiexec`` then starts all ranks on this
    machine, and needs no program of the scheduler."""
    return {name: value for name, value in base.items() if not _OF_ALLOCATIONS.match(name)}
