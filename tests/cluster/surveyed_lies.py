"""Whole surveys over scripted rails, in which one of four nodes lies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from cluster.lying_agents import TOKEN, Lie, LyingAgent
from waywiser.analysis.cluster.procedure import Round
from waywiser.analysis.cluster.verdict import verdict
from waywiser.cluster.connection.coordinator import Coordinator, OnReply, Reply
from waywiser.cluster.connection.protocol import Request
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys import survey as survey_module
from waywiser.cluster.surveys.survey import new_plan, survey_cluster
from waywiser.cluster.surveys.survey_hosts import SurveyHosts
from waywiser.cluster.surveys.time_plan import TimePlan
from waywiser.cluster.transports.nccl_transport import NcclTransport
from waywiser.profile.cluster_folder import ClusterFolder, read_cluster
from waywiser.words import WaywiserError
from waywiser.words.cluster import ClusterNode, FinishedTest

NAMES = ("n1", "n2", "n3", "n4")
LIAR = "n4"

SHORT = 0.3
"""Seconds in which the liar answers after all others have."""

MOST_TESTS = 400
"""A survey of four nodes has fewer."""


@dataclass
class SurveyedLie:
    """What came of a survey."""

    path: Path
    lie: Lie | None
    agents: dict[str, LyingAgent] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    error: BaseException | None = None

    def wait(self, address: str, token: str, hosts: SurveyHosts, nodes: int) -> None:
        for name in NAMES:
            lie = self.lie if name == LIAR else None
            self.agents[name] = LyingAgent(address, name, lie, b"a profile of 24 bytes, no")

    def join(self, node: ClusterNode) -> None:
        self.states[node.name] = node.state

    def check(self, nodes: Sequence[ClusterNode]) -> None:
        pass

    def note(self, line: str) -> None:
        self.notes.append(line)

    def begin_round(self, round: Round, bytes: int, plan: TimePlan | None) -> None:
        assert round.number < MOST_TESTS, "the survey does not end"

    def finish(self, test: FinishedTest) -> None:
        pass

    def lose(self, node: ClusterNode) -> None:
        self.states[node.name] = node.state

    def standings(self) -> dict[str, str]:
        found = read_cluster(self.path)
        known = verdict(found.nodes, found.plan, found.tests)
        return {each.node: each.verdict for each in known.nodes}

    def is_liar_named(self) -> bool:
        """Whether the survey says that something is wrong with the liar."""
        said = any(LIAR in note and "cannot be read" not in note for note in self.notes)
        return said or self.standings().get(LIAR) not in ("ok", "not decided")

    def wrong(self) -> list[str]:
        """What should not be so after a survey in which one node lies."""
        found = read_cluster(self.path)
        wrong = [f"a line is damaged: {line}" for line in found.damaged]
        passed = {n for t in found.tests if not t.failed for n in t.test.nodes}
        for name in set(NAMES) - {LIAR}:
            state = next((node.state for node in found.nodes if node.name == name), "absent")
            if state != "joined" or name not in passed:
                wrong.append(f"{name} is {state}, and has {'' if name in passed else 'no '}tests")
            if name not in found.profiles:
                wrong.append(f"{name} has no profile")
            if self.standings().get(name) in ("failed", "stuck", "excluded", "not reached"):
                wrong.append(f"{name} is {self.standings()[name]}")
        if any(part.name.endswith(".part") for part in self.path.rglob("*")):
            wrong.append("a half-written file is left")
        return wrong


def survey_with(path: Path, lie: Lie | None) -> SurveyedLie:
    """Surveys the nodes into a new folder."""
    found = SurveyedLie(path, lie)
    options = ClusterSurveyOptions(
        address="127.0.0.1:0", nodes=len(NAMES), transport="nccl", join_seconds=20.0, size="64KiB"
    )
    with _patched(), ClusterFolder.create(path, new_plan(options)) as folder:
        try:
            survey_cluster(options, SurveyHosts(), folder, found)
        except WaywiserError as error:
            found.error = error
    for agent in found.agents.values():
        agent.thread.join()
    return found


@contextmanager
def _patched() -> Iterator[None]:
    """The real coordinator and transport; the liar, who may never answer, has little time, and no
    honest node depends on the load of the machine."""
    ask = Coordinator.ask

    def patient(
        self: Coordinator,
        requests: Mapping[str, Request],
        seconds: float,
        on_reply: OnReply = lambda name, reply: None,
    ) -> dict[str, Reply]:
        honest = {name: each for name, each in requests.items() if name != LIAR}
        lying = {name: each for name, each in requests.items() if name == LIAR}
        replies = ask(self, honest, 300.0 if seconds else 0.0, on_reply)
        replies |= ask(self, lying, min(seconds, SHORT), on_reply)
        return {name: replies[name] for name in requests}

    with ExitStack() as stack:
        patch = stack.enter_context
        patch(mock.patch.object(Coordinator, "ask", patient))
        patch(mock.patch.object(survey_module, "require_needs", lambda *_: None))
        patch(
            mock.patch.object(
                survey_module,
                "make_transport",
                lambda plan, options, hosts, coordinator, nodes: NcclTransport(
                    coordinator, plan.seed
                ),
            )
        )
        patch(mock.patch.dict(os.environ, {TOKEN_VARIABLE: TOKEN}))
        yield
