"""A survey of a cluster, from the first agent to the last test.

1. Reach every node, without MPI and NCCL.
2. Survey each node by itself, all at once.
3. Test nodes in pairs and together (`waywiser.cluster.run`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import Protocol

from msgspec.structs import replace

from waywiser.analysis.cluster.version_differences import version_differences
from waywiser.cluster.coordinator import Coordinator
from waywiser.cluster.hosts import read_groups
from waywiser.cluster.interruptible import run_interruptibly
from waywiser.cluster.node_surveys import faults, survey_nodes, without_profile
from waywiser.cluster.protocol import (
    TOKEN_VARIABLE,
    AskNode,
    NodeNow,
    new_token,
    token_of,
)
from waywiser.cluster.run import FINAL_STATES, ClusterRun, RunWatcher
from waywiser.cluster.survey_hosts import SurveyHosts, started_agents, with_groups
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.survey_transport import choose_transport, make_transport
from waywiser.cluster.time_plan import check_seconds, measured_costs
from waywiser.cluster.transport import Transport
from waywiser.profile.cluster_folder import ClusterFolder
from waywiser.words import WaywiserError, parse_bytes
from waywiser.words.cluster import ClusterNode, ClusterPlan
from waywiser.words.temporary_folder import TemporaryFolder

JOIN_SECONDS = 60.0
"""Seconds for nodes to join, by default."""

_ANSWER_SECONDS = 30.0
"""Seconds for nodes to look at themselves again."""


class ClusterSurveyError(WaywiserError):
    """A survey of a cluster that cannot be made."""


class ClusterWatcher(RunWatcher, Protocol):
    """Is informed while a survey runs."""

    def wait(self, address: str, token: str, hosts: SurveyHosts, nodes: int) -> None:
        """Agents may join. ``token`` is empty if the user has set it."""

    def join(self, node: ClusterNode) -> None:
        """A node joined, or may not take part."""

    def check(self, nodes: Sequence[ClusterNode]) -> None:
        """Nodes are surveyed, each by itself."""

    def note(self, line: str) -> None:
        """Anything else that happened."""


def survey_cluster(
    options: ClusterSurveyOptions,
    hosts: SurveyHosts,
    folder: ClusterFolder,
    watcher: ClusterWatcher,
) -> None:
    """Runs what is not finished. Raises `WaywiserError`; what is finished is stored."""
    deadline = time.monotonic() + options.deadline if options.deadline else None
    is_set = bool(os.environ.get(TOKEN_VARIABLE))
    token = token_of() if is_set else new_token()
    with ExitStack() as stack:
        coordinator = Coordinator(
            options.address or "", token, hosts.names or _expected(options), log=watcher.note
        )
        stack.callback(coordinator.close)
        watcher.wait(coordinator.address, "" if is_set else token, hosts, _expected(options))
        nodes = _admitted(options, hosts, coordinator, token, stack, watcher)
        _keep_out(options, folder, coordinator, nodes)
        joined = _joined(coordinator)
        for difference in version_differences(joined):
            watcher.note(difference.text)
        _plan(hosts, folder, joined)
        for node in coordinator.nodes():
            folder.add_node(node)
        coordinator.begin_tests()
        if not options.no_check:
            _survey_nodes(folder, coordinator, watcher, deadline)
        transport = make_transport(folder.plan, options, hosts, coordinator, joined)
        # After an error agents end first, and what they have started: nobody waits for answers.
        stack.enter_context(closing(transport))
        stack.callback(coordinator.close)
        limit = options.test_seconds or 0.0
        run = ClusterRun(
            folder, coordinator.nodes, transport, watcher, deadline=deadline, limit_seconds=limit
        )
        run_interruptibly(run.go, lambda: _stop(run, coordinator, transport))
        transport.close()
        _read_errors(folder, coordinator)


def _stop(run: ClusterRun, coordinator: Coordinator, transport: Transport) -> None:
    run.stop()
    coordinator.close()
    transport.close()


def _expected(options: ClusterSurveyOptions) -> int:
    return options.nodes or options.expect_nodes


def _admitted(
    options: ClusterSurveyOptions,
    hosts: SurveyHosts,
    coordinator: Coordinator,
    token: str,
    stack: ExitStack,
    watcher: ClusterWatcher,
) -> list[ClusterNode]:
    """The nodes after all have joined, or the time to join is over."""
    seconds = options.join_seconds or JOIN_SECONDS
    files = stack.enter_context(TemporaryFolder("waywiser-hosts-"))
    agents = started_agents(hosts, coordinator, token, seconds, str(files.path), watcher.note)
    if agents is not None:
        stack.enter_context(agents)
        stack.callback(coordinator.close)
    nodes = coordinator.admit(seconds, watcher.join)
    if agents is not None:
        agents.start_no_more()
    for node in nodes:
        if node.state == "not reached":
            coordinator.mark(node.name, node.state, node.reason)
            watcher.join(node)
    return nodes


def _keep_out(
    options: ClusterSurveyOptions,
    folder: ClusterFolder,
    coordinator: Coordinator,
    nodes: Sequence[ClusterNode],
) -> None:
    """Leaves nodes of a former run as they were found, unless they are tried again."""
    if options.retry:
        return
    for node in nodes:
        known = folder.nodes.get(node.name)
        if known is not None and known.state in FINAL_STATES and node.state == "joined":
            coordinator.mark(node.name, known.state, known.reason)
        if known is None and folder.tests and node.state == "joined":
            coordinator.mark(node.name, "excluded", "it was not part of the run when it began")


def _joined(coordinator: Coordinator) -> list[ClusterNode]:
    """Raises `ClusterSurveyError` for fewer than two."""
    joined = [node for node in coordinator.nodes() if node.state == "joined"]
    if len(joined) < 2:
        have = f"only {joined[0].name} has joined" if joined else "no node has joined"
        raise ClusterSurveyError(
            f"{have}, and a test needs two",
            where=coordinator.address,
            remedy="see whether the nodes reach this address, and have the token",
        )
    return joined


def _plan(hosts: SurveyHosts, folder: ClusterFolder, joined: Sequence[ClusterNode]) -> None:
    """Completes the plan before the first nodes are stored. Raises `WaywiserError`."""
    if folder.nodes:
        return
    transport = choose_transport(folder.plan.transport or None, joined)
    plan = with_groups(folder.plan, hosts, [node.name for node in joined])
    folder.set_plan(replace(plan, transport=transport))


def new_plan(options: ClusterSurveyOptions) -> ClusterPlan:
    """What is known before nodes have joined; no transport if none is named. Raises
    `WaywiserError`."""
    return ClusterPlan(
        transport=options.transport or "",
        seed=options.seed,
        groups=read_groups(options.groups) if options.groups else {},
        groups_from="file" if options.groups else "",
        uplink_pairs=options.uplink_pairs,
        bytes=parse_bytes(options.size) if options.size else 0,
    )


def _survey_nodes(
    folder: ClusterFolder,
    coordinator: Coordinator,
    watcher: ClusterWatcher,
    deadline: float | None,
) -> None:
    """Surveys each node that has no profile yet, and reports what is wrong with nodes."""
    nodes = without_profile(folder, coordinator.nodes())
    if not nodes:
        return
    if deadline is not None:
        costs = measured_costs(folder.plan.transport, len(nodes), folder.tests)
        if deadline - time.monotonic() < check_seconds(len(nodes)) + costs.needed():
            watcher.note("no time to survey each node by itself")
            return
    watcher.check(nodes)
    survey_nodes(folder, coordinator, nodes, watcher.note)
    for line in faults(folder):
        watcher.note(line)


def _read_errors(folder: ClusterFolder, coordinator: Coordinator) -> None:
    """Stores what interfaces have counted by now: an error under load is evidence."""
    names = [node.name for node in coordinator.nodes() if node.state == "joined"]
    replies = coordinator.ask(dict.fromkeys(names, AskNode()), _ANSWER_SECONDS)
    for name, reply in replies.items():
        if isinstance(reply, NodeNow):
            folder.add_node(replace(folder.nodes[name], counters=reply.node.counters))
