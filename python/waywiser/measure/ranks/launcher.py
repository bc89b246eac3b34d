"""The command and the environment with which a launcher starts ranks: the ``mpiexec`` of the MPI
library, ``srun`` in an allocation of Slurm, or a launcher that the user describes."""

from __future__ import annotations

import os
import shlex
import shutil
import string
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from waywiser.measure.probe.environment import (
    NODE_VARIABLE,
    PROCESS_ENVIRONMENT,
    RANKS_VARIABLE,
    worker_environment,
)
from waywiser.measure.ranks.launch_hosts import LaunchHosts, hostfile_of
from waywiser.measure.ranks.leftovers import SHARED_MEMORY, shared_folder
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary
from waywiser.measure.ranks.outer_launcher import without_allocation, without_outer_launcher

_AS_ROOT = (
    *("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"),
    *("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"),
)
"""Open MPI asks users who are root, as in containers, to say so twice."""

_SHARED_FOLDERS = (
    *("OMPI_MCA_btl_sm_backing_directory", "OMPI_MCA_btl_vader_backing_directory"),
    "UCX_POSIX_DIR",
)
"""Where Open MPI, and UCX below any library, make shared memory."""

_FEW_CPUS = {"OMPI_MCA_mpi_yield_when_idle": "1"}
"""Settings of Open MPI for more ranks than CPUs: a rank that waits lets others run."""

_ACROSS = {"SLURM_OVERLAP": "1"}
"""Settings of launches across nodes: without it a step of Slurm waits for the step of the agents,
also one that ``mpiexec`` starts."""

LAUNCH_PARAMETER = "waywiser_launch"
"""A parameter that Open MPI does not know. Like all in its environment, it is on the command line
of the daemons that its launcher starts on other hosts: by it agents find those that did not notice
the end of their launcher."""

_MPIEXEC = ("mpiexec", "mpirun", "orterun", "prterun")
"""Launchers to which options are added."""

_PASSED = ("PYTHONPATH", "XDG_CACHE_HOME", "LD_LIBRARY_PATH")
_PASSED_PREFIX = "WAYWISER_"
"""Variables of this process that mean the same to ranks on other hosts."""

_KEPT = (NODE_VARIABLE, "WAYWISER_CLUSTER_TOKEN", "SLURM_HOSTFILE", "SLURM_NTASKS_PER_NODE")
"""Variables of this process that are not for ranks on other hosts, of which a node may have more
than one."""

_SLURM = (
    "srun --overlap --overcommit --nodelist={hosts} --nodes={nodes} --ntasks={ranks} "
    "--distribution=block --cpu-bind=none --kill-on-bad-exit=0"
)
"""Not ``--distribution=arbitrary``, nor ``SLURM_HOSTFILE``, which means it: a step with it in an
allocation of whole nodes ends the slurmctld of Slurm 22.05 at the next job."""

_SLURM_SECONDS = 20.0
"""Seconds for a step that does nothing."""

_PMI = {"Open MPI": ("pmix",), "MPICH": ("pmi2", "cray_shasta", "pmix")}
"""How the ranks of a library find each other under ``srun``, the best first."""


def launch_command(
    library: MpiLibrary,
    command: Sequence[str],
    ranks: int,
    template: str = "",
    hosts: LaunchHosts | None = None,
    folder: str = "",
    exported: Sequence[str] = (),
) -> list[str]:
    """The words that start so many ranks of a command: by the ``mpiexec`` of the library, or by a
    template such as ``srun -n {ranks} {command}``. Across ``hosts``, of which a file is to be in
    the folder, a template may also have ``{nodes}``, ``{hosts}`` and ``{hostfile}``; the variables
    ``exported`` get to the ranks there. Raises `MpiError`."""
    values = {"ranks": str(ranks), "command": shlex.join(command)}
    if hosts is not None:
        values |= {
            "nodes": str(len(hosts.names)),
            "hosts": ",".join(hosts.names),
            "hostfile": hostfile_of(folder),
        }
        template = template or slurm_template(library, hosts)
    exports = _exports(library, exported) if hosts is not None else []
    if template:
        return _with_options(_filled(template, values), exports)
    if not library.launcher:
        raise MpiError(
            "no mpiexec is beside mpicc",
            where=library.mpicc.path,
            remedy="describe the launcher: --launcher 'mpiexec -n {ranks} {command}'",
        )
    # Ranks bind themselves to the CPUs that they measure.
    own = ["--oversubscribe", "--bind-to", "none"] if library.name == "Open MPI" else []
    if hosts is not None:
        own += ["--hostfile" if library.name == "Open MPI" else "-f", values["hostfile"]]
        own += exports
    return [library.launcher, *own, "-n", str(ranks), *command]


def _exports(library: MpiLibrary, names: Sequence[str]) -> list[str]:
    """Options of the ``mpiexec`` of Open MPI: the others pass on all variables by themselves."""
    return [word for name in names for word in ("-x", name)] if library.name == "Open MPI" else []


def _with_options(words: list[str], options: Sequence[str]) -> list[str]:
    """The command of a template with more options, if it is an ``mpiexec``."""
    at = next((n for n, word in enumerate(words) if os.path.basename(word) in _MPIEXEC), None)
    return words if at is None else [*words[: at + 1], *options, *words[at + 1 :]]


def exported_variables(
    environment: Mapping[str, str], base: Mapping[str, str] = os.environ
) -> list[str]:
    """The names of the variables of a launch that ranks on other hosts need."""
    own = {name for name, value in environment.items() if base.get(name) != value}
    passed = {name for name in environment if name in _PASSED or name.startswith(_PASSED_PREFIX)}
    return sorted(own | passed | (PROCESS_ENVIRONMENT.keys() & environment.keys()))


def slurm_template(
    library: MpiLibrary, hosts: LaunchHosts, environment: Mapping[str, str] = os.environ
) -> str:
    """How ``srun`` starts the ranks of a launch across nodes beside the step of the agents; empty
    outside of an allocation, if this Slurm cannot start ranks of the library, and if hosts have
    different numbers of ranks. Hosts may come in another order."""
    program = shutil.which("srun", path=environment.get("PATH"))
    if program is None or not environment.get("SLURM_JOB_ID") or len(set(hosts.slots)) != 1:
        return ""
    srun = f"{_SLURM} --ntasks-per-node={hosts.slots[0]}"
    if environment.get("SLURM_MPI_TYPE"):
        return f"{srun} {{command}}"
    own = next((found for name, found in _PMI.items() if name in library.text), _PMI["MPICH"])
    kind = next((each for each in own if _slurm_starts(program, each)), "")
    return f"{srun} --mpi={kind} {{command}}" if kind else ""


@cache
def _slurm_starts(program: str, kind: str) -> bool:
    """Whether ``srun`` starts ranks that find each other so. What it lists need not load."""
    command = [program, "--overlap", "--nodes=1", "--ntasks=1", f"--mpi={kind}", "true"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=_SLURM_SECONDS,
            check=False,
            env=without_outer_launcher(os.environ),
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _filled(template: str, values: Mapping[str, str]) -> list[str]:
    try:
        named = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
        if unknown := named - values.keys():
            raise ValueError(f"there is no {{{min(unknown)}}}")
        if missing := {"ranks", "command"} - named:
            raise ValueError(f"{{{min(missing)}}} is missing")
        return shlex.split(template.format_map(values))
    except ValueError as error:
        raise MpiError(
            f"the launcher cannot be used: {error}",
            where=template,
            remedy="write --launcher 'srun -n {ranks} {command}'",
        ) from error


def launch_environment(
    ranks: int,
    address: str,
    temporary: str,
    base: Mapping[str, str] = os.environ,
    hosts: LaunchHosts | None = None,
    template: str = "",
) -> dict[str, str]:
    """The environment of a launcher, which its ranks inherit: that of a worker, the ``address`` to
    connect back to, and the folders of the launch, which may not be made yet
    (`waywiser.measure.ranks.leftovers.folders`).
    What the user has set for the library stays, and nothing that an outer launcher has set for its
    own ranks. The library's own launcher does not see the allocation if all ranks are here."""
    base = without_outer_launcher(base)
    if hosts is None and not template:
        base = without_allocation(base)
    here = max(hosts.slots) if hosts else ranks
    defaults = dict(_FEW_CPUS) if here > len(os.sched_getaffinity(0)) else {}
    if os.access(SHARED_MEMORY, os.W_OK):
        defaults |= dict.fromkeys(_SHARED_FOLDERS, shared_folder(temporary))
    if os.geteuid() == 0:
        defaults |= dict.fromkeys(_AS_ROOT, "1")
    own = {RANKS_VARIABLE: address, "TMPDIR": temporary}
    if hosts is not None:
        own[f"PRTE_MCA_{LAUNCH_PARAMETER}"] = os.path.basename(temporary)
        if base.get("SLURM_JOB_ID"):
            own |= _ACROSS
        base = {name: value for name, value in base.items() if name not in _KEPT}
    return {**defaults, **worker_environment(base), **own}
