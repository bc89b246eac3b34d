"""Slowness that no node can be blamed for: of links between groups, and of a rail of all nodes."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from analysis.cluster.planted_faults import NETWORKS, outcome, plant, simulated
from analysis.cluster.simulated_clusters import SimulatedCluster, SurveyedCluster, survey
from waywiser.analysis.cluster.texts import answer, has_finding, ratio_of, severity_of
from waywiser.analysis.cluster.verdict import verdict
from waywiser.curves.answer import Finding
from waywiser.words.cluster import Interface, Rail


def surveyed(nodes: int, seed: int, *, groups: bool = True, **planted: object) -> SurveyedCluster:
    cluster = SimulatedCluster(nodes, np.random.default_rng([seed, nodes]), **planted)  # type: ignore[arg-type]
    return survey(cluster, cluster.plan(groups=groups, seed=seed))


def only(done: SurveyedCluster) -> Finding:
    """The one finding; it accuses no node, and the answer is not that all is well."""
    (finding,) = done.verdict.findings
    assert finding.nodes == () and not done.verdict.of("slow")
    assert has_finding(done.verdict) and severity_of(done.verdict) == "warning"
    assert answer(done.verdict).startswith(finding.text)
    assert finding.interval.low <= finding.effect <= finding.interval.high
    return finding


@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("slowness", [0.1, 0.4])
def test_of_two_groups_crossing_is_slow(slowness: float, groups: bool) -> None:
    done = surveyed(26, 1, groups=groups, group_size=13, slow_groups={1: slowness})
    finding = only(done)
    assert finding.id == "slow crossing"
    assert finding.text.startswith("crossing is slow: tests between ")
    assert ratio_of(finding) == pytest.approx((1 + slowness) * np.exp(0.03), abs=0.03)


@pytest.mark.parametrize("groups", [True, False])
def test_links_between_all_groups_may_be_slow(groups: bool) -> None:
    finding = only(surveyed(36, 2, groups=groups, group_size=12, crossing=0.3))
    assert finding.id == "slow crossing"
    assert "between all 3 groups" in finding.text


@pytest.mark.parametrize("crossing", [0.0, 0.03, 0.045])
def test_another_switch_is_no_slow_crossing(crossing: float) -> None:
    for seed, size in ((3, 10), (4, 5)):
        done = surveyed(20, seed, group_size=size, crossing=crossing)
        assert done.verdict.findings == ()


@pytest.mark.parametrize("rails", [2, 5])
def test_a_rail_that_is_slow_on_every_node(rails: int) -> None:
    slow = {(node, 1, way): 0.12 for node in range(10) for way in (0, 1)}
    finding = only(surveyed(10, 5, rails=rails, slow=slow, group_size=20))
    assert (finding.id, finding.where.rail) == ("slow rail", 1)
    assert "on every node" in finding.text
    assert ratio_of(finding) == pytest.approx(1.12, abs=0.02)


def test_a_rail_with_a_slower_interface_says_so() -> None:
    slow = {(node, 2, way): 1.0 for node in range(6) for way in (0, 1)}
    cluster = SimulatedCluster(6, np.random.default_rng(6), rails=3, slow=slow)
    done = survey(cluster, cluster.plan())
    rates = (25e9, 25e9, 12.5e9)
    rails = tuple(Rail(n, interface=Interface(f"mlx5_{n}", "infiniband", r))
                  for n, r in enumerate(rates))  # fmt: skip
    members = [replace(each, rails=rails) for each in cluster.members]
    result = verdict(members, cluster.plan(), done.finished)
    (finding,) = [each for each in result.findings if each.id == "slow rail"]
    assert finding.text.startswith("rail 2 (mlx5_2) is ")
    assert finding.text.endswith("its interfaces have 12.5 GB/s, the others 25.0 GB/s")


def test_a_slow_rail_of_one_node_is_that_node() -> None:
    done = surveyed(8, 7, rails=3, slow={(2, 1, 0): 0.3, (2, 1, 1): 0.3}, group_size=20)
    assert [(each.id, each.nodes) for each in done.verdict.findings] == [("slow node", ("n2",))]


def test_links_that_rounds_share_do_not_put_nodes_below_the_rate_of_their_interface() -> None:
    """Half of all pairs at once saturate the up-links of groups that the run does not know."""
    shuffled = next(each for each in NETWORKS if each.name == "2:1, shuffled")
    cluster = simulated(shuffled, 512, 2900003, 0.015, 1)
    plan = cluster.plan(seed=2900003)
    found = survey(cluster, plan).verdict
    assert "below interface rate" not in {each.id for each in found.findings}
    assert all(each.share > 0.7 for each in found.rails)


def test_a_node_that_was_tested_with_slow_ones_is_not_below_its_rate() -> None:
    """Two of the three tests alone of one node are with slow nodes."""
    shuffled = next(each for each in NETWORKS if each.name == "2:1, shuffled")
    cluster = simulated(shuffled, 1024, 2900037, 0.03, 4)
    expected = plant(cluster, "nodes", 0.05)
    found = survey(cluster, cluster.plan(seed=2900037)).verdict
    slow = {name for _, names in expected for name in names}
    below = [set(each.nodes) for each in found.findings if each.id == "below interface rate"]
    assert below and all(each <= slow and len(each) > len(slow) / 2 for each in below)
    assert not outcome(found, expected).innocent
