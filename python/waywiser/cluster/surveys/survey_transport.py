"""Which transport a survey uses, and with what."""

from __future__ import annotations

import socket
import sys
from collections import Counter
from collections.abc import Sequence

from waywiser.cluster.connection.coordinator import Coordinator, parse_address
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys.survey_hosts import SurveyHosts
from waywiser.cluster.transports.transport import Transport
from waywiser.measure.ranks.mpi_library import MpiLibrary, find_library
from waywiser.words import ClusterNode, ClusterPlan, WaywiserError

TRANSPORTS = ("nccl", "mpi")


class TransportError(WaywiserError):
    """The nodes have no transport in common."""


def require_transport(named: str | None) -> None:
    """Raises `TransportError` for a name that is none."""
    if named is not None and named not in TRANSPORTS:
        raise TransportError(
            f"there is no transport {named!r}", remedy=f"write one of {', '.join(TRANSPORTS)}"
        )


def choose_transport(named: str | None, nodes: Sequence[ClusterNode]) -> str:
    """``nccl`` if most nodes have GPUs and NCCL, else ``mpi``, unless one is named: a node that has
    lost its GPUs fails its tests, and the others are tested. Raises `TransportError`."""
    having = [node for node in nodes if _has_nccl(node)]
    if named == "nccl" and len(having) < 2:
        raise TransportError(
            f"{len(having)} of {len(nodes)} nodes have GPUs and NCCL, and a test needs two",
            remedy="use --transport mpi",
        )
    return named or ("nccl" if 2 * len(having) > len(nodes) else "mpi")


def _has_nccl(node: ClusterNode) -> bool:
    return "nccl" in node.versions and any(rail.gpu >= 0 for rail in node.rails)


def unable_nodes(
    plan: ClusterPlan, options: ClusterSurveyOptions, nodes: Sequence[ClusterNode]
) -> dict[str, str]:
    """The nodes whose software cannot exchange messages with that of the others, each with the
    reason and the remedy. Raises `WaywiserError`."""
    if plan.transport == "nccl":
        return _without_usual_nccl(nodes)
    if not any("mpi" in node.versions for node in nodes):
        return {}  # none states it
    library = find_library(options.mpicc or "")
    own = f"{library.name} {library.version}".strip()
    return {
        node.name: f"it has {other}, and the coordinator {own}: load the same MPI module on all "
        "nodes"
        for node in nodes
        if (other := node.versions.get("mpi", own)) != own
    }


def _without_usual_nccl(nodes: Sequence[ClusterNode]) -> dict[str, str]:
    """A communicator takes one version of NCCL: that of most nodes. A node that has lost its GPUs
    is tested, and fails."""
    having = {n.name: n.versions.get("nccl", "") for n in nodes if any(r.gpu >= 0 for r in n.rails)}
    versions = Counter(version for version in having.values() if version)
    usual = max(versions, key=lambda version: versions[version], default="")
    return {
        name: f"it has {f'NCCL {version}' if version else 'no NCCL'}, and most nodes NCCL {usual}: "
        "install that version there"
        for name, version in having.items()
        if version != usual
    }


def make_transport(
    plan: ClusterPlan,
    options: ClusterSurveyOptions,
    hosts: SurveyHosts,
    coordinator: Coordinator,
    nodes: Sequence[ClusterNode],
) -> Transport:
    """The transport of the plan. Raises `WaywiserError`."""
    if plan.transport == "nccl":
        from waywiser.cluster.transports.nccl_transport import NcclTransport

        return NcclTransport(coordinator, plan.seed)
    from waywiser.cluster.transports.mpi_transport import MpiTransport

    library = find_library(options.mpicc or "")
    return MpiTransport(
        coordinator,
        library,
        address=parse_address(coordinator.address)[0],
        template=options.launcher or (_one_host(library) if _is_one_host(hosts, nodes) else ""),
        memory=plan.memory or "host",
        seed=plan.seed,
    )


def _is_one_host(hosts: SurveyHosts, nodes: Sequence[ClusterNode]) -> bool:
    """Whether all agents are on this host, of which no launcher of the site knows."""
    addresses = {node.address for node in nodes}
    return hosts.origin != "slurm" and len(addresses) == 1 and _is_here(addresses.pop())


def _is_here(address: str) -> bool:
    """Whether this machine has the address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _one_host(library: MpiLibrary) -> str:
    own = "--oversubscribe --bind-to none" if library.name == "Open MPI" else ""
    program = f"{sys.executable} -m waywiser.cluster.node.one_host"
    return f"{library.launcher} {own} -n {{ranks}} {program} {{hostfile}} {{command}}"
