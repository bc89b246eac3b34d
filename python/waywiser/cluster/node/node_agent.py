"""The agent of this node: what ``waywiser cluster join`` runs."""

from __future__ import annotations

from collections.abc import Callable

from waywiser.cluster.connection.joining import Joining
from waywiser.cluster.connection.protocol import RunCheck
from waywiser.cluster.connection.token_proof import token_of
from waywiser.cluster.node.agent import Agent, run_as_process
from waywiser.cluster.node.node_check import NodeCheck
from waywiser.cluster.node.node_facts import node_name, node_of
from waywiser.cluster.node.node_files import NodeFiles
from waywiser.cluster.node.node_handlers import node_handlers
from waywiser.cluster.node.rail_handlers import rail_handlers
from waywiser.cluster.node.rail_workers import RailWorkers
from waywiser.cluster.survey_options import ClusterJoinOptions
from waywiser.measure.ranks.nccl_group import NcclGroup
from waywiser.measure.scope import working_machine

JOIN_SECONDS = 600.0
"""Seconds to reach the coordinator, by default."""


def join_survey(options: ClusterJoinOptions, log: Callable[[str], None]) -> None:
    """Joins, does what the coordinator requests, and returns after the orderly end. Raises
    `WaywiserError`."""
    token = token_of()
    machine = working_machine()
    mpicc = options.mpicc or ""
    node = node_of(node_name(options.node_name or ""), machine, mpicc)
    with (
        NodeFiles() as files,
        RailWorkers(lambda: machine, node.rails, NcclGroup) as workers,
    ):
        handlers = {
            **node_handlers(node, machine, files, mpicc),
            **rail_handlers(workers),
            RunCheck: NodeCheck(files).run,
        }
        joining = Joining(options.coordinator, token, node)
        agent = Agent(joining, handlers, on_end=workers.close, log=log)
        run_as_process(agent, options.join_seconds or JOIN_SECONDS)
