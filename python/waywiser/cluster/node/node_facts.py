"""What this node is, as its agent states it to the coordinator."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from waywiser.machine import Machine, find_interfaces
from waywiser.machine.environment import environment
from waywiser.machine.interfaces import rails, read_errors
from waywiser.measure.ranks.mpi_library import MpiError, find_library
from waywiser.measure.scope import nccl_version
from waywiser.words import CacheError, ClusterNode

_OF_SLURM = "SLURMD_NODENAME"
"""The name of the node in a step of Slurm."""


def node_name(given: str = "", variables: Mapping[str, str] = os.environ) -> str:
    """The name that was given, else Slurm's, else that of the host."""
    return given or variables.get(_OF_SLURM, "") or socket.gethostname()


def node_of(name: str, machine: Machine, mpicc: str = "") -> ClusterNode:
    """The node with this machine, now. Looks for NCCL and MPI, which may take seconds."""
    found = find_interfaces()
    gpus = [(gpu.index, gpu.pci) for gpu in machine.gpus]
    return ClusterNode(
        name,
        rails=rails(gpus, found),
        versions=_versions(machine, mpicc),
        counters=read_errors(found),
    )


def _versions(machine: Machine, mpicc: str) -> dict[str, str]:
    known = environment()
    versions = {name: str(known.get(name, "")) for name in ("waywiser", "kernel", "driver")}
    if machine.gpus:
        versions["nccl"] = nccl_version()
    versions["mpi"] = _mpi(mpicc)
    return {name: version for name, version in versions.items() if version}


def _mpi(mpicc: str) -> str:
    try:
        library = find_library(mpicc)
    except (MpiError, CacheError):
        return ""
    return f"{library.name} {library.version}".strip()
