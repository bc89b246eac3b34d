"""A slow group and a node whose ranks crash are found where they are in a survey by a real MPI, and
nothing else is. Its file is another one, so that both are surveyed at the same time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.slow_networks import ALL, SHORT, SlowNetworks, slow_networks
from tests.cluster.surveyed_cluster import SurveyedCluster, findings, finish, standings

pytestmark = pytest.mark.slow


@pytest.fixture
def networks(tmp_path: Path, fake_native_environment: dict[str, str]) -> Iterator[SlowNetworks]:
    with slow_networks(tmp_path, fake_native_environment) as networks:
        yield networks


def test_a_slow_group_and_a_node_whose_ranks_crash(networks: SlowNetworks) -> None:
    def survey(cluster: SurveyedCluster) -> tuple[int, str]:
        agents = cluster.start_agents(*ALL)
        script = Path(__file__).parent / "cluster" / "faulty_rank.py"
        faulty = f"{cluster.launcher} {sys.executable} {script} n8 crash {{command}}"
        ended = cluster.survey("--nodes", str(len(ALL)), *SHORT, launcher=faulty)
        assert [finish(agent)[0] for agent in agents.values()] == [0] * len(ALL)
        return ended

    found, said = networks.survey(lambda slow: networks.world.limit_group("b", slow), survey)
    group = ("n3", "n4", "n5")
    assert standings(found) == {**dict.fromkeys(group, "slow"), "n8": "failed"}, said
    assert findings(found) == [
        ("failed node", ("n8",), "both"),
        ("slow group", group, "both"),
    ], said
