"""A survey of a cluster, from the first agent to the last test.

1. Reach every node, without MPI and NCCL.
2. Survey each node by itself, all at once.
3. Test nodes in pairs and together (`waywiser.cluster.surveys.run`).
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing
from math import inf
from typing import Protocol

from msgspec.structs import replace

from waywiser.analysis.cluster.version_differences import version_differences
from waywiser.cluster.connection.coordinator import Coordinator
from waywiser.cluster.connection.interruptible import run_interruptibly
from waywiser.cluster.connection.protocol import AskNode, NodeNow, RequestFailed
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE, new_run_token
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys.hosts import read_groups
from waywiser.cluster.surveys.node_surveys import faults, survey_nodes, without_profile
from waywiser.cluster.surveys.resumed_nodes import resume_nodes
from waywiser.cluster.surveys.run import ClusterRun, RunWatcher
from waywiser.cluster.surveys.run_time import RunTime
from waywiser.cluster.surveys.survey_hosts import SurveyHosts, started_agents, with_groups
from waywiser.cluster.surveys.survey_needs import require_needs
from waywiser.cluster.surveys.survey_transport import choose_transport, make_transport, unable_nodes
from waywiser.cluster.surveys.time_plan import check_seconds, measured_costs
from waywiser.cluster.transports.transport import Transport
from waywiser.machine.interfaces import new_errors
from waywiser.measure.supervise import Deadline
from waywiser.profile import ClusterFolder, possible_counters
from waywiser.words import (
    ClusterNode,
    ClusterPlan,
    TemporaryFolder,
    WaywiserError,
    compress_hosts,
    count,
    format_seconds,
    grouped,
    parse_bytes,
)

JOIN_SECONDS = 60.0
"""Seconds for nodes to join, by default."""

_ANSWER_SECONDS = 30.0
"""Seconds for nodes to look at themselves again."""

_LEAST_ANSWER_SECONDS = 5.0
"""The same after the deadline."""

_CLOSE_SECONDS = 2.5
"""Seconds for a transport to end what it has started, after a signal."""


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


def survey_cluster(
    options: ClusterSurveyOptions,
    hosts: SurveyHosts,
    folder: ClusterFolder,
    watcher: ClusterWatcher,
) -> None:
    """Runs what is not finished. Raises `WaywiserError`, for what this machine lacks before any
    node is waited for; what is finished is stored."""
    require_needs(options, hosts, folder.plan.transport)
    is_set = bool(os.environ.get(TOKEN_VARIABLE))
    with ExitStack() as stack:
        expected = options.nodes or options.expect_nodes
        coordinator = Coordinator(
            options.address or "", new_run_token(), hosts.names or expected, log=watcher.note
        )
        stack.callback(coordinator.close)
        watcher.wait(coordinator.address, "" if is_set else coordinator.token, hosts, expected)
        _Survey(options, hosts, folder, watcher, coordinator).run(stack)


class _Survey:
    """A survey whose coordinator listens."""

    def __init__(
        self,
        options: ClusterSurveyOptions,
        hosts: SurveyHosts,
        folder: ClusterFolder,
        watcher: ClusterWatcher,
        coordinator: Coordinator,
    ) -> None:
        self._options = options
        self._hosts = hosts
        self._folder = folder
        self._watcher = watcher
        self._coordinator = coordinator
        self._deadline = Deadline(options.deadline or inf)
        self._others: frozenset[str] = frozenset()
        """Nodes that are present and no part of the run."""

    def run(self, stack: ExitStack) -> None:
        """Runs all steps, from the start of the agents on. Raises `WaywiserError`."""
        self._admit(stack)
        self._resume()
        for difference in version_differences(self._joined()):
            self._watcher.note(difference.text)
        self._plan()
        self._exclude_unable()
        for node in self._nodes():
            known = self._folder.nodes.get(node.name)
            self._folder.add_node(replace(node, new_errors=known.new_errors if known else {}))
        self._coordinator.begin_tests()
        if not self._options.no_check:
            self._survey_nodes()
        self._test(stack)
        self._read_errors()

    def _nodes(self) -> list[ClusterNode]:
        """The nodes of the run with their state of now."""
        return [node for node in self._coordinator.nodes() if node.name not in self._others]

    def _joined(self) -> list[ClusterNode]:
        """The nodes that can be tested. Raises `ClusterSurveyError` for fewer than two."""
        joined = [node for node in self._nodes() if node.state == "joined"]
        if len(joined) >= 2:
            return joined
        have = f"only {joined[0].name} can be tested" if joined else "no node can be tested"
        states = grouped((f"{n.state}: {n.reason}", n.name) for n in self._nodes() if n.reason)
        why = "; ".join(f"{compress_hosts(names)} {reason}" for reason, names in states.items())
        raise ClusterSurveyError(
            f"{have}, and a test needs two{f'; {why}' if why else ''}",
            where=self._coordinator.address,
            remedy="see whether the nodes reach this address and have the token, and what excludes "
            "them",
        )

    def _admit(self, stack: ExitStack) -> None:
        """Waits until all nodes have joined, or the time to join is over."""
        seconds = min(self._options.join_seconds or JOIN_SECONDS, self._deadline.left)
        files = stack.enter_context(TemporaryFolder("waywiser-hosts-"))
        agents = started_agents(
            self._hosts, self._coordinator, seconds, str(files.path), self._watcher.note
        )
        if agents is not None:
            stack.enter_context(agents)
            stack.callback(self._coordinator.close)
        nodes = self._coordinator.admit(seconds, self._watcher.join)
        if agents is not None:
            agents.start_no_more()
        for node in nodes:
            if node.state == "not reached":
                self._coordinator.mark(node.name, node.state, node.reason)
                self._watcher.join(node)

    def _resume(self) -> None:
        """Takes over what a former run has found of its nodes."""
        retries = self._options.retry
        self._others = resume_nodes(self._folder, self._coordinator, retries=retries)
        if self._others:
            was, it = ("was", "it is") if len(self._others) == 1 else ("were", "they are")
            self._watcher.note(
                f"{compress_hosts(self._others)} {was} no part of the run when it began: {it} not "
                "tested; resume with --retry, or survey into a new folder, to test all nodes"
            )

    def _plan(self) -> None:
        """Completes the plan before the first nodes are stored. Raises `WaywiserError`."""
        if self._folder.nodes:
            return
        joined = self._joined()
        transport = choose_transport(self._folder.plan.transport or None, joined)
        require_needs(self._options, self._hosts, transport)
        plan = with_groups(self._folder.plan, self._hosts, [node.name for node in joined])
        self._folder.set_plan(replace(plan, transport=transport))

    def _exclude_unable(self) -> None:
        """Excludes nodes whose software cannot exchange messages with that of the others. Raises
        `WaywiserError`."""
        joined = self._joined()
        reasons = unable_nodes(self._folder.plan, self._options, joined)
        for node in joined:
            if reason := reasons.get(node.name):
                self._coordinator.mark(node.name, "excluded", reason)
                self._watcher.join(replace(node, state="excluded", reason=reason))
        self._joined()

    def _survey_nodes(self) -> None:
        """Surveys each node that has no profile yet, and reports what is wrong with nodes."""
        nodes = without_profile(self._folder, self._nodes())
        if not nodes:
            return
        costs = measured_costs(self._folder.plan.transport, len(nodes), self._folder.tests)
        left = self._deadline.left - costs.needed()
        if left < check_seconds(len(nodes)):
            self._watcher.note(
                f"{count(len(nodes), 'node')} skip the survey of each by itself: "
                f"{self._deadline_text()} leaves no time for it"
            )
            return
        self._watcher.check(nodes)
        survey_nodes(self._folder, self._coordinator, nodes, self._watcher.note, Deadline(left))
        for line in faults(self._folder):
            self._watcher.note(line)

    def _test(self, stack: ExitStack) -> None:
        """Tests nodes in pairs and together. Raises `WaywiserError`."""
        transport = make_transport(
            self._folder.plan, self._options, self._hosts, self._coordinator, self._joined()
        )
        # After an error agents end first, and what they have started: no thread waits for answers.
        stack.enter_context(closing(transport))
        stack.callback(self._coordinator.close)
        time = RunTime(self._folder, self._deadline, self._options.test_seconds or 0.0)
        run = ClusterRun(self._folder, self._nodes, transport, self._watcher, time)
        run_interruptibly(run.go, lambda: self._stop(run, transport))
        transport.close()
        if run.skipped:
            were = "test was" if run.skipped == 1 else "tests were"
            self._watcher.note(f"{run.skipped} {were} skipped: {self._deadline_text()} was reached")

    def _deadline_text(self) -> str:
        return f"the deadline of {format_seconds(self._options.deadline or 0.0)}"

    def _stop(self, run: ClusterRun, transport: Transport) -> None:
        """Ends what the transport has started on nodes while their agents are there; those that do
        not answer in time are left."""
        run.stop()
        closes = threading.Thread(target=transport.close, name="close", daemon=True)
        closes.start()
        closes.join(_CLOSE_SECONDS)
        self._coordinator.close()

    def _read_errors(self) -> None:
        """Stores what interfaces have counted by now, and how much of it during the run: an error
        under load is evidence."""
        before = {node.name: node for node in self._nodes() if node.state == "joined"}
        seconds = min(_ANSWER_SECONDS, max(self._deadline.left, _LEAST_ANSWER_SECONDS))
        replies = self._coordinator.ask(dict.fromkeys(before, AskNode()), seconds)
        for name, reply in replies.items():
            if not isinstance(reply, NodeNow):
                if isinstance(reply, RequestFailed):
                    self._watcher.note(f"{name}: its counters are not stored: {reply.reason}")
                continue
            counters = possible_counters(reply.node.counters)
            if wrong := sorted(set(reply.node.counters) - set(counters)):
                self._watcher.note(
                    f"{name}: {count(len(wrong), 'counter')} not stored, which cannot be a count: "
                    f"{wrong[0]}"
                )
            counted = Counter(self._folder.nodes[name].new_errors)
            counted.update(new_errors(before[name].counters, counters))
            errors = possible_counters(counted)
            self._folder.add_node(replace(before[name], counters=counters, new_errors=errors))


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
