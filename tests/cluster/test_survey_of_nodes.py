"""A whole survey of a cluster: agents in threads, a simulated transport, the real procedure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as set_fields

from cluster.simulated_transport import SimulatedTransport
from cluster.surveyed_agents import TOKEN, SurveyedAgent
from waywiser.analysis.cluster.host_lines import drain_lines
from waywiser.analysis.cluster.procedure import Round
from waywiser.analysis.cluster.verdict import verdict
from waywiser.cluster.connection.coordinator import Coordinator, Reply
from waywiser.cluster.connection.protocol import AskNode, CheckEnded, NodeNow, RunCheck
from waywiser.cluster.connection.token_proof import TOKEN_VARIABLE
from waywiser.cluster.node.agent import Handler
from waywiser.cluster.node.node_files import NodeFiles
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys import survey as survey_module
from waywiser.cluster.surveys import time_plan
from waywiser.cluster.surveys.survey import ClusterSurveyError, new_plan, survey_cluster
from waywiser.cluster.surveys.survey_hosts import SurveyHosts
from waywiser.cluster.surveys.time_plan import TimePlan
from waywiser.profile.cluster_folder import ClusterFolder, read_cluster
from waywiser.words.cluster import ClusterNode, FinishedTest, NodeState, PlannedTest, Rail

NAMES = tuple(f"n{number}" for number in range(1, 7))

OPTIONS = ClusterSurveyOptions(address="127.0.0.1:0", nodes=len(NAMES))

NO_HOSTS = SurveyHosts()

ABSENT = {"n5": "not reached", "n6": "not reached"}

Start = Callable[[str], None]


class Watching:
    """A watcher that starts agents when they may join."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self.tokens: list[str] = []
        self.states: dict[str, str] = {}
        self.checked: list[str] = []
        self.notes: list[str] = []
        self.rounds: list[tuple[str, TimePlan | None]] = []
        self.tests: list[FinishedTest] = []

    def wait(self, address: str, token: str, hosts: SurveyHosts, nodes: int) -> None:
        self.tokens.append(token)
        self._start(address)

    def join(self, node: ClusterNode) -> None:
        self.states[node.name] = node.state

    def check(self, nodes: Sequence[ClusterNode]) -> None:
        self.checked += [node.name for node in nodes]

    def note(self, line: str) -> None:
        self.notes.append(line)

    def begin_round(self, round: Round, bytes: int, plan: TimePlan | None) -> None:
        self.rounds.append((round.phase, plan))

    def finish(self, test: FinishedTest) -> None:
        self.tests.append(test)

    def lose(self, node: ClusterNode) -> None:
        self.states[node.name] = node.state


class Site:
    """The nodes of a cluster, whose agents join when they may."""

    def __init__(self, stack: ExitStack, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._stack = stack
        self.path = path
        self.monkeypatch = monkeypatch
        self.agents: dict[str, SurveyedAgent] = {}
        self.transport = SimulatedTransport()
        self.versions: dict[str, dict[str, str]] = {}
        self.without_profile: set[str] = set()
        self.absent: set[str] = set()
        self.names: tuple[str, ...] = NAMES
        self.rails = (Rail(0),)
        self.handlers: dict[type, Handler] = {}
        monkeypatch.setattr(survey_module, "make_transport", lambda *_: self.transport)
        monkeypatch.setattr(survey_module, "require_needs", lambda *_: None)
        monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)

    def start(self, address: str) -> None:
        for name in self.names:
            if name in self.absent:
                continue
            files = self._stack.enter_context(NodeFiles())
            agent = SurveyedAgent(
                address,
                name,
                files,
                profile=b"" if name in self.without_profile else f"profile of {name}".encode(),
                versions=self.versions.get(name),
                handlers=self.handlers,
                rails=self.rails,
            )
            self._stack.callback(agent.thread.join)
            self.agents[name] = agent

    def survey(
        self,
        options: ClusterSurveyOptions = OPTIONS,
        hosts: SurveyHosts = NO_HOSTS,
        *,
        resume: bool = False,
        retry: bool = False,
    ) -> Watching:
        watching = Watching(self.start)
        opened = (
            ClusterFolder.resume(self.path)
            if resume
            else ClusterFolder.create(self.path, new_plan(options))
        )
        with opened as folder:
            if retry:
                folder.retry()
            survey_cluster(replace(options, retry=retry), hosts, folder, watching)
        return watching


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(stack, tmp_path / "c", monkeypatch)


def test_a_healthy_cluster(site: Site) -> None:
    watching = site.survey()
    assert watching.states == dict.fromkeys(NAMES, "joined")
    assert sorted(watching.checked) == sorted(NAMES)
    result = read_cluster(site.path)
    assert {name: path.read_bytes() for name, path in result.profiles.items()} == {
        name: f"profile of {name}".encode() for name in NAMES
    }
    assert result.plan.transport == "mpi" and result.plan.bytes
    phases = [phase for phase, _ in watching.rounds]
    assert phases[:2] == ["hangs", "hangs"] and phases[-1] == "collective"
    pairs = {frozenset(test.test.nodes) for test in result.tests if test.test.phase == "pairs"}
    assert len(pairs) == 15
    found = verdict(result.nodes, result.plan, result.tests)
    assert found.complete and set(found.of("ok")) == set(NAMES)
    assert site.transport.is_closed
    assert [agent.error for agent in site.agents.values()] == [None] * len(NAMES)
    assert watching.tokens == [""]


def test_what_interfaces_counted_in_the_end_is_stored(site: Site) -> None:
    site.survey()
    nodes = read_cluster(site.path).nodes
    assert [node.counters for node in nodes] == [{"eth0 rx_errors": 7}] * len(NAMES)
    assert {node.state for node in nodes} == {"joined"}


def test_counters_that_cannot_be_counts_are_not_stored(site: Site) -> None:
    fallen = {"mlx5_0 symbol_error": 2**64 - 1, "mlx5_0 link_downed": 2}
    site.handlers = {AskNode: lambda _: NodeNow(ClusterNode("n1", counters=fallen))}
    watching = site.survey()
    result = read_cluster(site.path)
    assert result.damaged == ()
    assert [node.counters for node in result.nodes] == [{"mlx5_0 link_downed": 2}] * len(NAMES)
    assert (
        "n1: 1 counter not stored, which cannot be a count: mlx5_0 symbol_error" in watching.notes
    )


def test_a_slow_node_is_found(site: Site) -> None:
    site.transport.slow_senders = {"n4": 1.3}
    site.survey()
    result = read_cluster(site.path)
    found = verdict(result.nodes, result.plan, result.tests)
    assert found.of("slow") == ("n4",)
    assert "alone" in {test.test.phase for test in result.tests}


def test_time_left_becomes_less(site: Site) -> None:
    plans = [plan for _, plan in site.survey().rounds]
    rounds = [plan.rounds for plan in plans if plan is not None]
    assert rounds[0] > 10 and rounds[-1] == 1
    assert rounds == sorted(rounds, reverse=True)


def test_a_node_that_does_not_join_is_not_reached_and_the_rest_goes_on(site: Site) -> None:
    site.absent = {"n2"}
    options = ClusterSurveyOptions(address="127.0.0.1:0", join_seconds=1.0)
    watching = site.survey(options, SurveyHosts(NAMES, "hostfile"))
    assert watching.states["n2"] == "not reached"
    result = read_cluster(site.path)
    found = verdict(result.nodes, result.plan, result.tests)
    assert found.of("not reached") == ("n2",) and len(found.of("ok")) == 5
    assert all("n2" not in test.test.nodes for test in result.tests)


def test_nobody_waits_for_a_node_that_was_given_up(site: Site) -> None:
    """It would wait for the whole hour."""
    site.absent = {"n2"}
    options = ClusterSurveyOptions(address="127.0.0.1:0", join_seconds=3600.0, no_check=True)

    def give_up(hosts, coordinator, *others):  # type: ignore[no-untyped-def]
        coordinator.mark("n2", "not reached", "the launcher started no agent there")

    site.monkeypatch.setattr(survey_module, "started_agents", give_up)
    site.survey(options, SurveyHosts(NAMES, "hostfile", "launcher"))
    states = {node.name: node for node in read_cluster(site.path).nodes}
    assert states["n2"].reason == "the launcher started no agent there"


def test_one_node_is_too_few(site: Site) -> None:
    site.absent = set(NAMES[1:])
    options = ClusterSurveyOptions(address="127.0.0.1:0", join_seconds=1.0, nodes=6)
    with pytest.raises(ClusterSurveyError, match="only n1 can be tested, and a test needs two"):
        site.survey(options)
    assert site.agents["n1"].thread.join() is None and site.agents["n1"].error is None


def test_a_node_whose_own_survey_fails_is_tested(site: Site) -> None:
    site.without_profile = {"n3"}
    watching = site.survey()
    assert "n3: its own survey failed: the GPU is gone" in watching.notes
    result = read_cluster(site.path)
    assert set(result.profiles) == set(NAMES) - {"n3"}
    assert any("n3" in test.test.nodes for test in result.tests)


def test_other_versions_are_listed_first(site: Site) -> None:
    site.versions = {name: {"nccl": "2.28.9"} for name in NAMES} | {"n5": {"nccl": "2.27.3"}}
    watching = site.survey()
    assert watching.notes[0] == "nccl: 2.28.9 on 5 nodes, 2.27.3 on n5"


@pytest.mark.parametrize("after", [0, 1, 20])
def test_a_resume_goes_on_where_the_run_was(after: int, site: Site) -> None:
    def interrupt(count: int, test: PlannedTest) -> None:
        if count == after:
            raise KeyboardInterrupt

    first = site.transport
    first.on_test = interrupt
    with pytest.raises(KeyboardInterrupt):
        site.survey()
    assert first.is_closed
    for agent in site.agents.values():
        agent.thread.join()
        assert agent.error is None  # the end was orderly
    stored = read_cluster(site.path).tests
    assert len(stored) == after
    site.transport = SimulatedTransport()
    watching = site.survey(resume=True)
    result = read_cluster(site.path)
    assert result.tests[:after] == stored
    assert len({test.test for test in result.tests}) == len(result.tests)
    assert verdict(result.nodes, result.plan, result.tests).complete
    assert watching.checked == []
    assert [agent.checks for agent in site.agents.values()] == [0] * len(NAMES)


def test_failed_nodes_are_tested_again_only_if_that_is_requested(site: Site) -> None:
    site.transport.failures = {"n6": "crash"}
    site.survey()
    result = read_cluster(site.path)
    assert verdict(result.nodes, result.plan, result.tests).of("failed") == ("n6",)
    site.transport = SimulatedTransport()
    site.survey(resume=True)
    assert site.transport.count == 0
    site.survey(resume=True, retry=True)
    result = read_cluster(site.path)
    found = verdict(result.nodes, result.plan, result.tests)
    assert set(found.of("ok")) == set(NAMES) and found.complete
    assert not any(test.failed for test in result.tests)


def test_a_node_that_was_not_reached_joins_only_if_that_is_requested(site: Site) -> None:
    site.absent = {"n2"}
    hosts = SurveyHosts(NAMES, "hostfile")
    options = ClusterSurveyOptions(address="127.0.0.1:0", join_seconds=1.0)
    site.survey(options, hosts)
    site.absent = set()
    site.survey(options, hosts, resume=True)
    assert {n.name: n.state for n in read_cluster(site.path).nodes}["n2"] == "not reached"
    site.survey(options, hosts, resume=True, retry=True)
    result = read_cluster(site.path)
    found = verdict(result.nodes, result.plan, result.tests)
    assert set(found.of("ok")) == set(NAMES) and found.complete


def states(site: Site) -> dict[str, str]:
    return {node.name: node.state for node in read_cluster(site.path).nodes}


def interrupted(site: Site, after: int) -> None:
    """A survey that is interrupted after so many tests."""

    def interrupt(count: int, test: PlannedTest) -> None:
        if count == after:
            raise KeyboardInterrupt

    site.transport.on_test = interrupt
    with pytest.raises(KeyboardInterrupt):
        site.survey()
    site.transport = SimulatedTransport()


def test_nodes_of_another_allocation_are_left_out_and_accused_of_nothing(site: Site) -> None:
    interrupted(site, 5)
    site.names = ("n1", "n2", "n3", "n4", "n7", "n8")
    watching = site.survey(resume=True)
    assert states(site) == {
        **dict.fromkeys(NAMES[:4], "joined"),
        "n5": "not reached",
        "n6": "not reached",
    }
    (note,) = [line for line in watching.notes if "no part of the run" in line]
    assert note.startswith("n[7-8] were no part of the run when it began: they are not tested")
    result = read_cluster(site.path)
    found = verdict(result.nodes, result.plan, result.tests)
    assert found.complete and set(found.of("not reached")) == {"n5", "n6"}
    assert {node.reason for node in result.nodes if node.state != "joined"} == {
        "it did not join again"
    }
    assert all(node.rails for node in result.nodes), "what is known of them stays"
    assert not {"n7", "n8"}.intersection(n for test in result.tests for n in test.test.nodes)


def test_hosts_of_another_list_are_no_nodes_of_the_run(site: Site) -> None:
    interrupted(site, 5)
    site.absent = {"n5", "n6"}
    options = ClusterSurveyOptions(address="127.0.0.1:0", join_seconds=1.0)
    site.survey(options, SurveyHosts((*NAMES, "n8", "n9"), "slurm"), resume=True)
    assert states(site) == {
        **dict.fromkeys(NAMES[:4], "joined"),
        "n5": "not reached",
        "n6": "not reached",
    }


@pytest.mark.parametrize("state", ["stuck", "lost", "excluded"])
@pytest.mark.parametrize("joins", [True, False])
def test_what_was_found_of_a_node_stays_until_it_is_tried_again(
    state: NodeState, joins: bool, site: Site
) -> None:
    interrupted(site, 5)
    with ClusterFolder.resume(site.path) as folder:
        folder.add_node(set_fields(folder.nodes["n3"], state=state, reason="the evidence"))
    site.absent = set() if joins else {"n3"}
    options = ClusterSurveyOptions(address="127.0.0.1:0", join_seconds=1.0)
    hosts = SurveyHosts(NAMES, "hostfile")
    site.survey(options, hosts, resume=True)
    (node,) = [node for node in read_cluster(site.path).nodes if node.name == "n3"]
    assert (node.state, node.reason) == (state, "the evidence") and node.rails
    site.transport = SimulatedTransport()
    site.survey(options, hosts, resume=True, retry=True)
    assert states(site)["n3"] == ("joined" if joins else "not reached")


def test_a_node_with_another_nccl_is_excluded_and_not_accused(site: Site) -> None:
    site.versions = {name: {"nccl": "2.28.9"} for name in NAMES} | {"n5": {"nccl": "2.27.3"}}
    site.rails = (Rail(0, gpu=0),)
    watching = site.survey(replace(OPTIONS, transport="nccl"))
    assert watching.notes[0] == "nccl: 2.28.9 on 5 nodes, 2.27.3 on n5"
    result = read_cluster(site.path)
    (node,) = [node for node in result.nodes if node.name == "n5"]
    assert node.state == "excluded"
    assert node.reason == (
        "it has NCCL 2.27.3, and most nodes NCCL 2.28.9: install that version there"
    )
    found = verdict(result.nodes, result.plan, result.tests)
    assert found.complete and found.of("excluded") == ("n5",) and not found.of("failed")
    assert [line for line in drain_lines(found) if not line.startswith("#")] == []
    assert not any("n5" in test.test.nodes for test in result.tests)


def test_a_survey_of_which_too_few_nodes_are_left_says_why(site: Site) -> None:
    site.names = NAMES[:2]
    site.versions = {"n1": {"nccl": "2.28.9"}, "n2": {"nccl": "2.27.3"}}
    site.rails = (Rail(0, gpu=0),)
    with pytest.raises(ClusterSurveyError, match=r"only n1 can be .*n2 excluded: it has NCCL 2"):
        site.survey(replace(OPTIONS, nodes=2, transport="nccl"))


def test_errors_that_are_counted_during_the_run_are_evidence(site: Site) -> None:
    """Each agent counts 7 more at the end of each run."""
    interrupted(site, 5)
    for _ in range(2):
        site.survey(resume=True)
        site.transport = SimulatedTransport()
    nodes = read_cluster(site.path).nodes
    assert {node.new_errors["eth0 rx_errors"] for node in nodes} == {14}


def test_a_deadline_limits_the_surveys_of_nodes(site: Site) -> None:
    """None of them answers in time, which is no fault of a node."""
    given: list[float] = []

    def late(request: RunCheck) -> CheckEnded:
        given.append(request.seconds)
        return CheckEnded(-1, printed="the survey took longer", is_late=True)

    site.handlers = {RunCheck: late}
    watching = site.survey(replace(OPTIONS, deadline=200.0))
    assert len(given) == len(NAMES) and max(given) < 200.0
    (note,) = [line for line in watching.notes if "by itself" in line]
    assert note.startswith("n[1-6]: no survey of each by itself: the deadline left ")
    assert not any("failed" in line for line in watching.notes)
    result = read_cluster(site.path)
    assert verdict(result.nodes, result.plan, result.tests).complete


def test_a_deadline_that_is_too_near_skips_tests_and_says_how_many(site: Site) -> None:
    site.monkeypatch.setattr(time_plan, "_ROUND_SECONDS", {"mpi": (1000.0, 0.0)})
    watching = site.survey(replace(OPTIONS, deadline=300.0))
    skips = "6 nodes skip the survey of each by itself: the deadline of 5 min 00 s leaves no time"
    assert watching.notes[0].startswith(skips)
    result = read_cluster(site.path)
    assert result.tests == ()
    said = r"\d\d tests were skipped: the deadline of 5 min 00 s was reached"
    assert re.fullmatch(said, watching.notes[-1])
    found = verdict(result.nodes, result.plan, result.tests)
    assert not found.complete and set(found.good) == set(NAMES)


def test_a_transport_can_reach_the_nodes_when_a_signal_ends_the_run(site: Site) -> None:
    """What it has started there is ended by their agents, which are still there."""
    found: list[Reply] = []

    class Reaching(SimulatedTransport):
        agents: Coordinator

        def close(self) -> None:
            if not self.is_closed:
                found.extend(self.agents.ask({"n3": AskNode()}, 60.0).values())
            super().close()

    def make(_: object, __: object, ___: object, agents: Coordinator, ____: object) -> Reaching:
        site.transport = Reaching()
        site.transport.agents = agents
        return site.transport

    def interrupt(run: Callable[[], None], end: Callable[[], None]) -> None:
        end()
        raise KeyboardInterrupt

    site.monkeypatch.setattr(survey_module, "make_transport", make)
    site.monkeypatch.setattr(survey_module, "run_interruptibly", interrupt)
    with pytest.raises(KeyboardInterrupt):
        site.survey()
    assert [type(reply) for reply in found] == [NodeNow]
    assert [agent.thread.join() or agent.error for agent in site.agents.values()] == [None] * 6


def test_groups_are_those_of_the_file_however_often_the_run_begins(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "groups").write_text("a: n[1-3]\nb: n[4-6],n9\n")
    options = replace(OPTIONS, groups=str(tmp_path / "groups"))
    site.absent = set(NAMES)
    with pytest.raises(ClusterSurveyError):
        site.survey(replace(options, join_seconds=1.0))
    site.absent = set()
    (tmp_path / "groups").unlink()
    site.survey(OPTIONS, resume=True)
    plan = read_cluster(site.path).plan
    assert plan.groups == {"a": ("n1", "n2", "n3"), "b": ("n4", "n5", "n6")}
    assert plan.groups_from == "file"
