"""What an agent answers for its node, besides the tests: facts, files, and the end of processes."""

from __future__ import annotations

from waywiser.cluster.connection.protocol import (
    AskMachine,
    AskNode,
    FindBridge,
    KillLaunch,
    KillProcesses,
    MachineNow,
    NodeNow,
    PutBridge,
    ReadPart,
)
from waywiser.cluster.connection.rail_requests import CountBytes
from waywiser.cluster.node.agent import Handlers
from waywiser.cluster.node.node_facts import node_of
from waywiser.cluster.node.node_files import NodeFiles, find_bridge, put_bridge
from waywiser.cluster.node.node_processes import kill_launch, kill_processes
from waywiser.cluster.node.watched_interfaces import count_bytes
from waywiser.machine import Machine
from waywiser.words import ClusterNode


def node_handlers(
    node: ClusterNode, machine: Machine, files: NodeFiles, mpicc: str = ""
) -> Handlers:
    """Handlers of the agent of ``node``; those of tests and of the check are added to them."""
    return {
        AskNode: lambda request: NodeNow(node_of(node.name, machine, mpicc)),
        AskMachine: lambda request: MachineNow(machine),
        ReadPart: files.read,
        KillProcesses: kill_processes,
        KillLaunch: kill_launch,
        CountBytes: count_bytes,
        FindBridge: find_bridge,
        PutBridge: put_bridge,
    }
