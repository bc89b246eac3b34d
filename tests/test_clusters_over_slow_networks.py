"""Slow nodes, a slow pair and a node that is not reached are found where they are in a survey by a
real MPI, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.slow_networks import SHORT, SlowNetworks, slow_networks
from tests.cluster.surveyed_cluster import findings, standings

pytestmark = pytest.mark.slow


@pytest.fixture
def networks(tmp_path: Path, fake_native_environment: dict[str, str]) -> Iterator[SlowNetworks]:
    with slow_networks(tmp_path, fake_native_environment) as networks:
        yield networks


def test_slow_nodes_a_slow_pair_and_a_node_that_is_not_reached(networks: SlowNetworks) -> None:
    world = networks.world

    def plant(slow: str) -> None:
        world.limit("n2", sending=slow)
        world.limit("n3", receiving=slow)
        world.limit_pair("n6", "n7", slow)
        world.cut("n8")

    found, said = networks.survey(
        plant, lambda cluster: cluster.survey("--hostfile", "hosts", *SHORT, "--join-seconds", "20")
    )
    assert standings(found) == {"n2": "slow", "n3": "slow", "n8": "not reached"}, said
    assert findings(found) == [
        ("slow node", ("n2",), "sending"),
        ("slow node", ("n3",), "receiving"),
        ("slow pair", ("n6", "n7"), "sending"),
    ], said
