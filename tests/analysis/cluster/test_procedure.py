"""The procedure on small simulated clusters: what is planted is found, and nothing else."""

from collections import Counter

import numpy as np
import pytest
from msgspec.structs import replace

from analysis.cluster.simulated_clusters import (
    SECONDS,
    SimulatedCluster,
    SurveyedCluster,
    failure,
    survey,
)
from waywiser.analysis.cluster.procedure import Round, next_round
from waywiser.analysis.cluster.texts import ratio_of
from waywiser.analysis.cluster.verdict import verdict
from waywiser.words.cluster import FailedTest, FinishedTest, PlannedTest


def surveyed(nodes: int, seed: int = 0, **planted: object) -> SurveyedCluster:
    cluster = SimulatedCluster(nodes, np.random.default_rng(seed), **planted)  # type: ignore[arg-type]
    return survey(cluster, cluster.plan())


def standings(done: SurveyedCluster) -> dict[str, str]:
    return {each.node: each.verdict for each in done.verdict.nodes if each.verdict != "ok"}


@pytest.mark.parametrize("nodes", [3, 4, 5, 8, 9, 16])
def test_a_healthy_cluster_has_no_finding(nodes: int) -> None:
    done = surveyed(nodes)
    assert standings(done) == {}
    assert done.verdict.findings == ()
    assert done.verdict.complete
    assert 1.03 < done.verdict.smallest_found < 1.08


def test_two_nodes_are_a_pair() -> None:
    done = surveyed(2, slow={(1, -1, 0): 0.5})
    assert standings(done) == {"n0": "pair", "n1": "pair"}


@pytest.mark.parametrize(("way", "direction"), [(0, "sending"), (1, "receiving")])
@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_a_node_that_is_slow_in_one_direction(nodes: int, way: int, direction: str) -> None:
    done = surveyed(nodes, slow={(1, -1, way): 0.5})
    assert standings(done) == {"n1": "slow"}
    (finding,) = done.verdict.findings
    assert (finding.id, finding.nodes, finding.where.direction) == ("slow node", ("n1",), direction)
    assert finding.interval.low <= finding.effect <= finding.interval.high
    assert 1.4 < ratio_of(finding) < 1.6


def test_a_slow_rail() -> None:
    done = surveyed(6, rails=4, slow={(2, 3, 0): 0.2, (2, 3, 1): 0.2})
    (finding,) = done.verdict.findings
    assert (finding.id, finding.nodes, finding.where.rail) == ("slow node", ("n2",), 3)
    assert finding.where.direction == "both"


def test_traffic_that_delays_every_test_makes_no_node_slow() -> None:
    traffic = {"noise": 0.01, "disturbed": 1.0, "disturbance": 0.1}
    done = surveyed(6, seed=212, **traffic)
    assert done.verdict.suspects == ("n4",)
    assert standings(done) == {}
    slow = {(1, -1, way): 0.5 for way in (0, 1)}
    assert standings(surveyed(6, seed=212, slow=slow, **traffic)) == {"n1": "slow"}


@pytest.mark.parametrize(("seconds", "found"), [(1.02, {"n2": "slow"}), (0.98, {})])
def test_tests_alone_that_reach_the_usual_time_confirm_nothing(
    seconds: float, found: dict[str, str]
) -> None:
    cluster = SimulatedCluster(5, np.random.default_rng(6), slow={(2, -1, 0): 0.3})
    done = survey(cluster, cluster.plan())
    alone = next(each for each in done.finished if each.test.phase == "alone")
    times = tuple(replace(each, seconds=seconds * SECONDS) for each in alone.times)
    finished = [replace(each, times=times) if each is alone else each for each in done.finished]
    result = verdict(cluster.members, cluster.plan(), finished)
    assert {each.node: each.verdict for each in result.nodes if each.verdict != "ok"} == found


def test_two_of_four_nodes_are_slow() -> None:
    done = surveyed(4, slow={(2, -1, 1): 0.5, (3, -1, 0): 0.3})
    assert standings(done) == {"n2": "slow", "n3": "slow"}


@pytest.mark.parametrize("nodes", [4, 8])
def test_a_slow_pair(nodes: int) -> None:
    done = surveyed(nodes, slow_pairs={(0, 2): 0.4})
    assert standings(done) == {}
    (finding,) = done.verdict.findings
    assert (finding.id, finding.nodes) == ("slow pair", ("n0", "n2"))


def test_slow_pairs_of_a_node_that_is_fast_alone() -> None:
    done = surveyed(5, seed=11, slow_pairs={(0, 1): 0.4, (0, 3): 0.4})
    assert done.verdict.suspects == ("n0",)
    assert standings(done) == {}
    found = {(each.id, each.nodes) for each in done.verdict.findings}
    assert found == {("slow pair", ("n0", "n1")), ("slow pair", ("n0", "n3"))}


@pytest.mark.parametrize("late", [0.0, 0.1, 1.0])
def test_a_slow_group(late: float) -> None:
    """Also if its nodes are slow in the tests among themselves: the rounds have tests of them."""
    done = surveyed(8, group_size=5, slow_groups={1: 0.5}, crossing=0.0, load={"among": late})
    assert standings(done) == dict.fromkeys(("n5", "n6", "n7"), "slow")
    (finding,) = done.verdict.findings
    assert (finding.id, finding.nodes) == ("slow group", ("n5", "n6", "n7"))


def test_a_slow_group_of_which_most_pairs_are_tested_once() -> None:
    """A test that is a little late, and not by as much as its nodes are slow, shows a fast pair."""
    slow = {"group_size": 16, "shuffled": True, "slow_groups": {1: 0.5}, "crossing": 0.0}
    done = surveyed(20, seed=3, **slow, load={"among": 0.1})
    tested = Counter(frozenset(each.test.nodes) for each in done.finished)
    among = {frozenset(t.nodes) for r in done.rounds if r.phase == "among" for t in r.tests}
    assert sum(tested[each] == 1 for each in among) > len(among) / 2
    (finding,) = done.verdict.findings
    assert (finding.id, len(finding.nodes)) == ("slow group", 4)


def test_of_two_halves_neither_is_blamed() -> None:
    done = surveyed(4, group_size=2, slow_groups={1: 0.5}, crossing=0.0)
    assert standings(done) == {}
    (finding,) = done.verdict.findings
    assert finding.nodes == ("n0", "n1", "n2", "n3")
    assert "n0–n1 and n2–n3 are each fast among themselves" in finding.text
    assert 1.4 < ratio_of(finding) < 1.6


@pytest.mark.parametrize("given", [1, 2])
def test_few_nodes_in_given_groups_keep_to_the_limit_of_their_uplinks(given: int) -> None:
    cluster = SimulatedCluster(6, np.random.default_rng(7), group_size=3, uplinks=given)
    done = survey(cluster, cluster.plan(groups=True, uplink_pairs=given))
    crossing = [
        sum(cluster.names.index(t.nodes[0]) // 3 != cluster.names.index(t.nodes[1]) // 3 for t in r)
        for r in (each.tests for each in done.rounds if each.phase == "pairs")
    ]
    assert 0 < max(crossing) <= given
    assert standings(done) == {}
    assert done.verdict.complete


def _fails(node: str, kind: str, *, named: bool) -> dict[str, object]:
    def fail(test: PlannedTest) -> FailedTest | None:
        return failure(kind, node if named else "", 3) if node in test.nodes else None

    return {"fail": fail}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("nodes", [4, 7, 40])
def test_a_node_that_fails(nodes: int, named: bool) -> None:
    name = "n1" if nodes < 10 else "n01"
    done = surveyed(nodes, **_fails(name, "timeout", named=named))
    assert standings(done) == {name: "failed"}
    assert done.verdict.complete
    tests = [each for each in done.finished if name in each.test.nodes]
    assert len(tests) <= 3, "a node that fails costs few time-outs"


@pytest.mark.parametrize("nodes", [3, 5, 6])
def test_where_everything_fails_no_node_is_blamed(nodes: int) -> None:
    done = surveyed(nodes, fail=lambda test: failure("timeout"))
    assert set(standings(done).values()) == {"not decided"}
    kinds = {each.id for each in done.verdict.findings}
    assert kinds == {"failed pair", "collective failed"}
    assert done.verdict.complete


def test_a_pair_that_fails() -> None:
    def fail(test: PlannedTest) -> FailedTest | None:
        return failure("timeout") if set(test.nodes) == {"n2", "n3"} else None

    done = surveyed(4, fail=fail)
    assert standings(done) == {}
    (finding,) = done.verdict.findings
    assert (finding.id, finding.nodes) == ("failed pair", ("n2", "n3"))


def test_a_collective_that_fails_is_bisected() -> None:
    def fail(test: PlannedTest) -> FailedTest | None:
        is_bad = test.phase == "collective" and "n5" in test.nodes
        return failure("timeout") if is_bad else None

    done = surveyed(8, fail=fail)
    (finding,) = done.verdict.findings
    assert finding.id == "collective failed"
    assert finding.nodes in (("n4", "n5"), ("n5",))
    last = done.verdict.collectives[-1]
    assert last.seconds > 0
    assert "n5" not in last.nodes


def _collectives(rounds: list[Round]) -> list[list[tuple[str, ...]]]:
    return [[t.nodes for t in each.tests] for each in rounds if each.phase == "collective"]


def test_a_node_that_collectives_blame_is_left_out_of_the_next() -> None:
    def fail(test: PlannedTest) -> FailedTest | None:
        is_bad = test.phase == "collective" and "n4" in test.nodes
        return failure("crash", "n4", 1) if is_bad else None

    done = surveyed(7, fail=fail)
    assert done.verdict.complete
    assert standings(done) == {"n4": "failed"}
    planned = _collectives(done.rounds)
    assert len(planned) <= 4
    assert planned[-1] == [("n0", "n1", "n2", "n3", "n5", "n6")]


def test_the_good_nodes_run_again_without_a_node_that_is_lost() -> None:
    cluster = SimulatedCluster(6, np.random.default_rng(2))
    cluster.fail = lambda test: failure("timeout") if len(test.nodes) == 6 else None
    plan, members = cluster.plan(), cluster.members
    finished: list[FinishedTest] = []
    rounds: list[Round] = []
    while following := next_round(members, plan, finished):
        rounds.append(following)
        finished += cluster.run(following.tests)
        if following.phase == "collective":
            members[0] = replace(members[0], state="lost", reason="its connection ended")
        assert len(rounds) < 100
    assert _collectives(rounds) == [[tuple(cluster.names)], [tuple(cluster.names[1:])]]


def test_a_collective_without_time_has_not_failed() -> None:
    def fail(test: PlannedTest) -> FailedTest | None:
        return failure("skipped") if test.phase == "collective" else None

    done = surveyed(6, fail=fail)
    assert done.verdict.findings == ()
    assert done.verdict.complete
    assert _collectives(done.rounds) == [[tuple(f"n{n}" for n in range(6))]]


def test_an_interrupted_run_repeats_nothing() -> None:
    """Stops after every number of finished tests, and goes on."""
    cluster = SimulatedCluster(5, np.random.default_rng(3), slow={(1, -1, 0): 0.5})
    plan = cluster.plan()
    whole = survey(cluster, plan)
    for kept in range(len(whole.finished)):
        finished = whole.finished[:kept]
        following = next_round(cluster.members, plan, finished)
        assert following is not None
        planned = {(each.round, each.nodes) for each in following.tests}
        assert not planned & {(each.test.round, each.test.nodes) for each in finished}
        expected = whole.finished[kept].test
        assert (expected.round, expected.nodes) in planned


def test_nodes_that_are_not_reached_are_not_tested() -> None:
    cluster = SimulatedCluster(5, np.random.default_rng(3))
    members = cluster.members
    members[2] = replace(members[2], state="not reached", reason="no answer in 60 s")
    following = next_round(members, cluster.plan(), [])
    assert following is not None
    assert all("n2" not in each.nodes for each in following.tests)
