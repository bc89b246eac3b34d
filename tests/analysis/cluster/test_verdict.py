"""The verdict on larger simulated clusters, and what it says beside the nodes."""

import numpy as np
import pytest
from msgspec.structs import replace

from analysis.cluster.planted_faults import NETWORKS, Network, outcome, plant, simulated
from analysis.cluster.simulated_clusters import BYTES, SECONDS, SimulatedCluster, survey
from waywiser.analysis.cluster.procedure import next_round
from waywiser.analysis.cluster.texts import ratio_of
from waywiser.analysis.cluster.verdict import verdict
from waywiser.words.cluster import ClusterNode, FinishedTest, Interface, Rail

BY_NAME = {each.name: each for each in NETWORKS}


def found(network: Network, nodes: int, kind: str, amount: float, seed: int) -> tuple[bool, bool]:
    cluster = simulated(network, nodes, seed)
    plan = cluster.plan(groups=network.knows_groups, uplink_pairs=network.uplink_pairs, seed=seed)
    expected = plant(cluster, kind, amount)
    done = outcome(survey(cluster, plan).verdict, expected, amount)
    return done.right, done.innocent


@pytest.mark.parametrize(
    ("network", "nodes", "kind", "amount"),
    [
        *(("no limit", 48, *each) for each in (("healthy", 0), ("nodes", 0.05), ("pair", 0.12))),
        *(("no limit, groups", 64, *each) for each in (("node", 0.1), ("switch", 0.1))),
        *(("1:1, groups", 40, *each) for each in (("healthy", 0), ("broken", 0), ("pair", 0.3))),
        *(("2:1, groups", 32, *each) for each in (("node", 0.1), ("pair", 0.15), ("flaky", 0))),
        *(("2:1, groups", 20, *each) for each in (("healthy", 0), ("hang", 0))),
        *(("2:1", 32, *each) for each in (("healthy", 0), ("flaky", 0))),
        ("2:1, shuffled", 32, "pair", 0.3),
    ],
)
def test_what_is_planted_is_found_and_nothing_else(
    network: str, nodes: int, kind: str, amount: float
) -> None:
    assert found(BY_NAME[network], nodes, kind, amount, 3) == (True, False)


def test_a_fifth_of_the_nodes_behind_narrow_uplinks() -> None:
    assert found(BY_NAME["2:1, groups"], 48, "nodes", 0.2, 1) == (True, False)


@pytest.mark.parametrize("seed", [15, 38, 82])
def test_a_slow_switch_that_the_run_has_to_find(seed: int) -> None:
    """Some cuts between switches are found at a wrong place (seed 15), most tests of a good
    switch are with the slow one (38), or most tests across are slow (82)."""
    assert found(BY_NAME["2:1"], 64, "switch", 0.2, seed) == (True, False)


def test_a_large_cluster() -> None:
    assert found(BY_NAME["no limit, groups"], 144, "switch", 0.2, 1) == (True, False)


def test_noise_that_hides_a_slow_node_is_said() -> None:
    quiet, noisy = (
        survey(cluster := SimulatedCluster(64, np.random.default_rng(1), noise=n), cluster.plan())
        for n in (0.015, 0.05)
    )
    assert quiet.verdict.smallest_found < 1.06
    assert noisy.verdict.smallest_found > 1.08


def test_a_rail_without_tests_hides_no_smallest_slowness() -> None:
    cluster = SimulatedCluster(5, np.random.default_rng(8))
    done = survey(cluster, cluster.plan())
    members = cluster.members
    members[3] = replace(members[3], rails=(Rail(0), Rail(1), Rail(2)))
    result = verdict(members, cluster.plan(), done.finished)
    assert {each.rail for each in result.detectable} == {0}
    assert result.smallest_found == done.verdict.smallest_found > 1.03


def test_nodes_that_are_not_reached_do_not_make_few_tested_nodes_many() -> None:
    slow = {(node, -1, 0): 0.2 for node in range(3)}
    cluster = SimulatedCluster(7, np.random.default_rng(40), slow=slow)
    away = [ClusterNode(f"x{n}", state="not reached") for n in range(13)]
    members, plan = [*cluster.members, *away], cluster.plan()
    finished: list[FinishedTest] = []
    while following := next_round(members, plan, finished):
        finished += cluster.run(following.tests)
    result = verdict(members, plan, finished)
    assert result.of("slow") == ("n0", "n1", "n2")
    assert 1.03 < result.smallest_found < 1.1

    alone = [
        each.test.nodes
        for each in finished
        if each.test.phase == "alone" and {"n0", "n1", "n2"} & set(each.test.nodes)
    ]
    assert len(alone) == 3 * 5, "so few nodes cross no switch that the run does not know"


@pytest.mark.parametrize(("nodes", "slow"), [(6, (1, 3)), (8, (1, 3, 5)), (20, tuple(range(6)))])
def test_slow_nodes_are_no_noise_in_the_smallest_slowness(
    nodes: int, slow: tuple[int, ...]
) -> None:
    for seed in (1, 4):
        cluster = SimulatedCluster(nodes, np.random.default_rng(seed))
        for n in slow:
            cluster.make_slow(n, 0.2 if n % 2 else 0.5)
        result = survey(cluster, cluster.plan()).verdict
        assert set(result.of("slow")) == {cluster.names[n] for n in slow}
        assert 1.03 < result.smallest_found < 1.1


def test_a_node_is_slow_to_as_many_nodes_as_it_is() -> None:
    slow = {(1, -1, way): 0.5 for way in (0, 1)}
    fast = {(1, 0): 1 / 1.5 - 1}
    for nodes, said in ((4, "2 of 3"), (7, "5 of 6"), (10, "8 of 9")):
        cluster = SimulatedCluster(nodes, np.random.default_rng(2), slow=slow, slow_pairs=fast)
        result = survey(cluster, cluster.plan()).verdict
        (finding,) = result.findings
        assert (finding.id, finding.nodes) == ("slow node", ("n1",))
        assert result.of("slow") == ("n1",)
        assert f"slow to {said} nodes" in finding.text


@pytest.mark.parametrize("state", ["not reached", "lost"])
def test_where_only_two_of_several_nodes_were_compared_neither_is_ok(state: str) -> None:
    cluster = SimulatedCluster(4, np.random.default_rng(1), slow={(1, -1, 0): 0.5})
    members, plan = cluster.members, cluster.plan()
    finished: list[FinishedTest] = []
    while following := next_round(members, plan, finished):
        finished += cluster.run(following.tests)
        if following.phase == "hangs":  # the others pass one test, and are gone
            members[2:] = [replace(each, state=state) for each in members[2:]]  # type: ignore[arg-type]
    result = verdict(members, plan, finished)
    assert result.of("pair") == ("n0", "n1")
    assert not result.of("ok")
    (finding,) = result.findings
    assert "neither can be blamed" in finding.text


def test_a_node_of_which_no_round_has_a_test_is_not_decided() -> None:
    cluster = SimulatedCluster(5, np.random.default_rng(1))
    done = survey(cluster, cluster.plan())
    kept = [
        each for each in done.finished if each.test.phase != "pairs" or "n4" not in each.test.nodes
    ]
    result = verdict(cluster.members, cluster.plan(), kept)
    assert result.of("not decided") == ("n4",)
    assert result.of("ok") == ("n0", "n1", "n2", "n3")


def test_a_node_that_is_in_every_test_is_not_decided() -> None:
    cluster = SimulatedCluster(3, np.random.default_rng(1))
    done = survey(cluster, cluster.plan())
    kept = [each for each in done.finished if set(each.test.nodes) != {"n1", "n2"}]
    result = verdict(cluster.members, cluster.plan(), kept)
    (first,) = [each for each in result.nodes if each.node == "n0"]
    assert (first.verdict, first.reason.split(" to ")[0]) == (
        "not decided",
        "there is no test between two other nodes",
    )


def test_groups_are_discovered_from_times() -> None:
    cluster = SimulatedCluster(64, np.random.default_rng(4), group_size=16)
    done = survey(cluster, cluster.plan())
    assert [each.nodes for each in done.verdict.groups] == list(cluster.groups.values())
    assert all(1.02 < each.ratio < 1.05 for each in done.verdict.groups)
    assert done.verdict.groups_from == "times"


def test_two_nodes_compare_their_rails() -> None:
    cluster = SimulatedCluster(2, np.random.default_rng(1), rails=2, slow={(1, 1, 0): 0.3})
    (finding,) = survey(cluster, cluster.plan()).verdict.findings
    assert (finding.id, finding.nodes, finding.where.rail) == ("slow pair", ("n1", "n0"), 1)
    assert "neither can be blamed" in finding.text


@pytest.mark.parametrize(("nodes", "rails"), [(2, 1), (3, 2), (8, 1)])
def test_times_of_pairs_are_multiples_of_the_usual_time_that_is_shown(
    nodes: int, rails: int
) -> None:
    """Messages of one node take longer, so that the median is not the usual time."""
    slow = {(0, rail, 0): 0.25 for rail in range(rails)}
    cluster = SimulatedCluster(nodes, np.random.default_rng(4), rails=rails, slow=slow)
    found = survey(cluster, cluster.plan()).verdict
    assert found.pairs and max(each.ratio for each in found.pairs) > 1.1
    for each in found.pairs:
        assert each.seconds == pytest.approx(each.ratio * found.usual_seconds[each.rail])


def test_all_rails_below_the_rate_of_their_interface() -> None:
    cluster = SimulatedCluster(4, np.random.default_rng(1))
    done = survey(cluster, cluster.plan())
    rate = BYTES / SECONDS
    for share, kinds in ((0.9, []), (0.5, ["below interface rate"])):
        rail = Rail(0, interface=Interface("mlx5_0", "infiniband", rate / share))
        members = [replace(each, rails=(rail,)) for each in cluster.members]
        result = verdict(members, cluster.plan(), done.finished)
        assert [each.id for each in result.findings] == kinds
        assert result.of("ok") == tuple(cluster.names)


def test_errors_and_bytes_that_took_another_path_are_evidence() -> None:
    cluster = SimulatedCluster(3, np.random.default_rng(1))
    done = survey(cluster, cluster.plan())
    members = cluster.members
    members[1] = replace(members[1], counters={"mlx5_0 symbol_error": 7, "mlx5_0 link_downed": 0})
    first = next(each for each in done.finished if "n2" in each.test.nodes)
    elsewhere = replace(
        first,
        times=tuple(replace(each, crossed=0.01) for each in first.times if each.sender == "n2"),
    )
    result = verdict(members, cluster.plan(), [*done.finished, elsewhere])
    kinds = {(each.id, each.nodes) for each in result.findings}
    assert kinds == {("errors counted", ("n1",)), ("not over interface", ("n2",))}
    assert result.errors_counted == {"n1": {"mlx5_0 symbol_error": 7}}


def test_bytes_that_took_another_path_are_one_finding_and_none_between_nodes_of_one_host() -> None:
    cluster = SimulatedCluster(3, np.random.default_rng(1))
    done = survey(cluster, cluster.plan())
    elsewhere = [
        replace(each, times=tuple(replace(time, crossed=0.02) for time in each.times))
        for each in done.finished
        if each.test.phase == "pairs"
    ]
    for addresses, found in (
        (("10.0.0.1", "10.0.0.2", "10.0.0.3"), [("n0", "n1", "n2")]),
        (("10.0.0.1", "10.0.0.1", "10.0.0.1"), []),
        (("10.0.0.1", "10.0.0.1", "10.0.0.3"), [("n0", "n1", "n2")]),
        (("", "", ""), [("n0", "n1", "n2")]),
    ):
        members = [
            replace(node, address=address)
            for node, address in zip(cluster.members, addresses, strict=True)
        ]
        result = verdict(members, cluster.plan(), elsewhere)
        other = [each for each in result.findings if each.id == "not over interface"]
        assert [each.nodes for each in other] == found
        assert all("2% of the bytes that every node sent" in each.text for each in other)


def test_bytes_of_several_rails_that_took_another_path_are_one_finding() -> None:
    cluster = SimulatedCluster(4, np.random.default_rng(1), rails=3)
    done = survey(cluster, cluster.plan())
    shares = {0: 0.02, 1: 0.3, 2: 1.0}
    crossed = [
        replace(each, times=tuple(replace(t, crossed=shares[t.rail]) for t in each.times))
        for each in done.finished
        if each.test.phase == "pairs"
    ]
    result = verdict(cluster.members, cluster.plan(), crossed)
    (finding,) = [each for each in result.findings if each.id == "not over interface"]
    assert finding.text.startswith("2% to 30% of the bytes that every node sent on their rails")
    assert (finding.where.rail, len(finding.evidence)) == (-1, 2)
    assert ratio_of(finding) == pytest.approx(0.02)
    assert finding.tests == 2 * 2 * len(crossed)


def test_an_empty_run_has_a_verdict() -> None:
    cluster = SimulatedCluster(3, np.random.default_rng(1))
    result = verdict(cluster.members, cluster.plan(), [])
    assert result.of("not decided") == tuple(cluster.names)
    assert not result.complete
