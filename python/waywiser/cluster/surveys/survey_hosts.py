"""Which nodes a survey is of, and how their agents are started."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from msgspec.structs import replace

from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys.agent_launch import SLURM, AgentLaunch, from_template, join_command
from waywiser.cluster.surveys.hosts import (
    groups_among,
    read_groups,
    read_hostfile,
    slurm_groups,
    slurm_hosts,
)
from waywiser.words import ClusterPlan, Value, WaywiserError


class HostsUnknown(WaywiserError):
    """No option and no allocation names the nodes of a survey."""


class SurveyHosts(Value, frozen=True):
    """The hosts of a survey."""

    names: tuple[str, ...] = ()
    """Empty if those that join are surveyed."""
    origin: Literal["hostfile", "slurm", ""] = ""
    template: str = ""
    """The launcher of the agents; empty if the user starts them."""


def survey_hosts(
    options: ClusterSurveyOptions, variables: Mapping[str, str] = os.environ
) -> SurveyHosts:
    """The hosts of ``--hostfile``, else those of the Slurm allocation, else none. Raises
    `WaywiserError`, also for a file of groups that is none: before anything is started."""
    if options.groups:
        read_groups(options.groups)  # an error comes before anything starts
    if options.hostfile:
        names = read_hostfile(options.hostfile)
        return SurveyHosts(names, "hostfile", options.launcher or "")
    if variables.get("SLURM_JOB_ID") and (names := slurm_hosts(variables)):
        if options.launcher or shutil.which("srun", path=variables.get("PATH")):
            return SurveyHosts(names, "slurm", options.launcher or SLURM)
        if not options.nodes:
            raise HostsUnknown(
                "SLURM_JOB_ID is set, but srun, which starts the agents, is not in PATH",
                remedy="add the folder of srun to PATH, name another launcher with --launcher, or "
                "start the agents yourself: --nodes N",
            )
    if not options.nodes and not options.expect_nodes:
        raise HostsUnknown(
            "the nodes to survey are not known",
            remedy="run it in a Slurm allocation, or name the hosts with --hostfile FILE, or how "
            "many nodes will join with --nodes N",
        )
    return SurveyHosts()


def with_groups(plan: ClusterPlan, hosts: SurveyHosts, nodes: Collection[str]) -> ClusterPlan:
    """The plan with the groups of these nodes: its own, else those of Slurm's topology, if there
    are any. Raises `HostsError`."""
    if plan.groups_from:
        return replace(plan, groups=groups_among(plan.groups, nodes))
    if hosts.origin == "slurm" and (found := groups_among(slurm_groups(), nodes)):
        return replace(plan, groups=found, groups_from="slurm")
    return plan


def started_agents(
    hosts: SurveyHosts,
    coordinator: Coordinator,
    seconds: float,
    folder: str,
    log: Callable[[str], None],
) -> AgentLaunch | None:
    """Starts the agents; None if the user does. ``folder`` is for files of hosts. Raises
    `WaywiserError`."""
    if not hosts.template:
        return None
    command = join_command(coordinator.address, seconds)

    def missing() -> list[str]:
        return [name for name in hosts.names if not coordinator.is_connected(name)]

    def has_joined(name: str) -> bool:
        return any(n.name == name and n.state != "not reached" for n in coordinator.nodes())

    def give_up(name: str, reason: str) -> None:
        coordinator.mark(name, "not reached", reason)

    return AgentLaunch(
        from_template(hosts.template, command, folder),
        hosts.names,
        coordinator.token,
        address=coordinator.address,
        missing=missing,
        has_joined=has_joined,
        give_up=give_up,
        log=log,
    )


def join_line(address: str, variable: str = "", token: str = "") -> str:
    """The command that the user starts on each node."""
    words = shlex.join(["waywiser", "cluster", "join", address])
    return f"{variable}={token} {words}" if token else words
