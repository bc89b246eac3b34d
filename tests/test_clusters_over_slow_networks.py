"""Surveys of simulated nodes by a real MPI: faults of the network are found where they are, and
nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import SimulatedNodes, simulated_nodes
from tests.cluster.surveyed_cluster import SurveyedCluster, findings, finish, standings

GROUPS = ("a", "a", "b", "b", "b", "c", "c", "c")
ALL = tuple(f"n{number}" for number in range(1, len(GROUPS) + 1))

SHORT = ("--no-check", "--size", "32KiB")
"""The simulated networks are slow: a test of larger messages takes seconds."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    with simulated_nodes(tmp_path_factory.mktemp("world") / "nodes", GROUPS) as world:
        yield world


@pytest.fixture
def cluster(
    world: SimulatedNodes, tmp_path: Path, fake_native_environment: dict[str, str]
) -> Iterator[SurveyedCluster]:
    yield SurveyedCluster(world, tmp_path, fake_native_environment, "mpich")
    world.heal()


def test_slow_nodes_and_one_that_is_not_reached(cluster: SurveyedCluster) -> None:
    cluster.nodes.limit("n2", sending="50mbit")
    cluster.nodes.limit("n3", receiving="50mbit")
    cluster.nodes.cut("n8")
    code, said = cluster.survey("--hostfile", "hosts", *SHORT, "--join-seconds", "20")
    assert code == 1, said
    found = cluster.verdict()
    assert standings(found) == {"n2": "slow", "n3": "slow", "n8": "not reached"}, said
    assert findings(found) == [
        ("slow node", ("n2",), "sending"),
        ("slow node", ("n3",), "receiving"),
    ], said
    cluster.await_nothing()


def test_a_slow_group_and_a_node_whose_ranks_crash(cluster: SurveyedCluster) -> None:
    cluster.nodes.limit_group("b", "50mbit")
    agents = cluster.start_agents(*ALL)
    script = Path(__file__).parent / "cluster" / "faulty_rank.py"
    faulty = f"{cluster.launcher} {sys.executable} {script} n8 crash"
    nodes = ("--nodes", str(len(ALL)))
    code, said = cluster.survey(*nodes, *SHORT, launcher=f"{faulty} {{command}}")
    assert code == 1, said
    found = cluster.verdict()
    group = ("n3", "n4", "n5")
    assert standings(found) == {**dict.fromkeys(group, "slow"), "n8": "failed"}, said
    assert findings(found) == [
        ("failed node", ("n8",), "both"),
        ("slow group", group, "both"),
    ], said
    assert [finish(agent)[0] for agent in agents.values()] == [0] * len(ALL)
    cluster.await_nothing()
