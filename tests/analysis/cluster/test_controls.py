"""What a suspect is compared with: good nodes in the same phase, and no partner that is slow."""

import numpy as np
import pytest

from analysis.cluster.planted_faults import NETWORKS, outcome, plant, simulated
from analysis.cluster.simulated_clusters import SimulatedCluster, SurveyedCluster, survey


def surveyed(nodes: int, seed: int, **planted: object) -> SurveyedCluster:
    cluster = SimulatedCluster(nodes, np.random.default_rng(seed), **planted)  # type: ignore[arg-type]
    return survey(cluster, cluster.plan())


@pytest.mark.parametrize("load", [0.3, 1.0])
@pytest.mark.parametrize(("noise", "seed"), [(0.015, 11), (0.03, 12)])
def test_a_load_that_begins_after_the_rounds_makes_no_node_slow(
    load: float, noise: float, seed: int
) -> None:
    slow_pairs = {(0, 1): 0.8, (0, 3): 0.8}
    done = surveyed(5, seed, noise=noise, slow_pairs=slow_pairs, load={"alone": load, "pair": load})
    assert done.verdict.suspects == ("n0",)
    assert done.verdict.of("ok") == tuple(f"n{n}" for n in range(5))
    assert {each.id for each in done.verdict.findings} == {"slow pair"}


def test_a_slow_node_is_found_beside_a_load_and_its_slowness_is_its_own() -> None:
    done = surveyed(8, 3, slow={(2, -1, 0): 0.3}, load={"alone": 0.5})
    assert done.verdict.of("slow") == ("n2",)
    (finding,) = done.verdict.findings
    assert finding.interval.low < 0.3 < finding.interval.high + 0.03
    assert finding.effect < 0.4


def test_a_suspect_is_tested_alone_with_partners_that_it_was_not_slow_with() -> None:
    done = surveyed(5, 11, slow_pairs={(0, 1): 0.4, (0, 3): 0.4})
    alone = [t.nodes for each in done.rounds if each.phase == "alone" for t in each.tests]
    partners = {name for nodes in alone if "n0" in nodes for name in nodes} - {"n0"}
    assert partners == {"n2", "n4"}
    assert [nodes for nodes in alone if "n0" not in nodes], "controls"


@pytest.mark.parametrize(("nodes", "seed"), [(7, 5), (40, 2)])
def test_no_suspect_is_confirmed_without_as_many_controls(nodes: int, seed: int) -> None:
    done = surveyed(nodes, seed, slow={(1, -1, way): 0.3 for way in (0, 1)})
    slow = done.verdict.of("slow")
    alone = [t.nodes for each in done.rounds if each.phase == "alone" for t in each.tests]
    own = [pair for pair in alone if slow[0] in pair]
    assert len(slow) == 1
    assert len(alone) - len(own) >= len(own) >= 5


BUSY = {"noise": 0.02, "disturbed": 1.0, "disturbance": 0.3}
HEAVY = {"noise": 0.1, "disturbed": 0.3, "disturbance": 0.5}


@pytest.mark.parametrize(
    ("nodes", "traffic", "seeds"),
    [(3, HEAVY, (2, 20, 26, 48, 50)), (3, BUSY, (0, 8, 12, 31, 37)), (4, BUSY, (6, 42, 59))],
)
def test_scattered_times_of_few_nodes_accuse_nobody(
    nodes: int, traffic: dict[str, float], seeds: tuple[int, ...]
) -> None:
    for seed in seeds:
        cluster = SimulatedCluster(nodes, np.random.default_rng([seed, nodes]), **traffic)  # type: ignore[arg-type]
        result = survey(cluster, cluster.plan(seed=seed)).verdict
        assert not result.of("slow")
        assert not [each for each in result.findings if each.id.startswith("slow")]


def test_shared_uplinks_of_unknown_groups_accuse_nobody() -> None:
    (network,) = [each for each in NETWORKS if each.name == "2:1"]
    cluster = simulated(network, 48, 1)
    plan = cluster.plan(seed=1)
    expected = plant(cluster, "nodes", 0.2)
    assert not outcome(survey(cluster, plan).verdict, expected).innocent
