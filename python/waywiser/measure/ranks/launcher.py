"""The command and the environment with which a launcher starts ranks: the ``mpiexec`` of the MPI
library, or a launcher that the user describes."""

from __future__ import annotations

import os
import shlex
import string
from collections.abc import Mapping, Sequence

from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.ranks.greeting import VARIABLE
from waywiser.measure.ranks.leftovers import shared_folder
from waywiser.measure.ranks.mpi_library import MpiError, MpiLibrary

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


def launch_command(
    library: MpiLibrary, command: Sequence[str], ranks: int, template: str = ""
) -> list[str]:
    """The words that start so many ranks of a command on this machine: by the ``mpiexec`` of the
    library, or by a template such as ``srun -n {ranks} {command}``. Raises `MpiError`."""
    if template:
        return _filled(template, command, ranks)
    if not library.launcher:
        raise MpiError(
            "no mpiexec is beside mpicc",
            where=library.mpicc.path,
            remedy="describe the launcher: --launcher 'mpiexec -n {ranks} {command}'",
        )
    # Ranks bind themselves to the CPUs that they measure.
    own = ["--oversubscribe", "--bind-to", "none"] if library.name == "Open MPI" else []
    return [library.launcher, *own, "-n", str(ranks), *command]


def _filled(template: str, command: Sequence[str], ranks: int) -> list[str]:
    values = {"ranks": str(ranks), "command": shlex.join(command)}
    try:
        named = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
        if unknown := named - values.keys():
            raise ValueError(f"there is no {{{min(unknown)}}}")
        if named != values.keys():
            raise ValueError(f"{{{min(values.keys() - named)}}} is missing")
        return shlex.split(template.format_map(values))
    except ValueError as error:
        raise MpiError(
            f"the launcher cannot be used: {error}",
            where=template,
            remedy="write --launcher 'srun -n {ranks} {command}'",
        ) from error


def launch_environment(
    ranks: int, address: str, temporary: str, base: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a launcher, which its ranks inherit: that of a worker, the ``address`` to
    connect back to, and the folders of the launch (`waywiser.measure.ranks.leftovers.folders`).
    What the user has set for the library stays."""
    defaults = dict(_FEW_CPUS) if ranks > len(os.sched_getaffinity(0)) else {}
    if os.path.isdir(shared := shared_folder(temporary)):
        defaults |= dict.fromkeys(_SHARED_FOLDERS, shared)
    if os.geteuid() == 0:
        defaults |= dict.fromkeys(_AS_ROOT, "1")
    own = {VARIABLE: address, "TMPDIR": temporary}
    return {**defaults, **worker_environment(base), **own}
