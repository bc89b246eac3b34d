"""Surveys of simulated nodes by a real MPI: faults of the network are found where they are, and
nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import SimulatedNodes, simulated_nodes
from tests.cluster.surveyed_cluster import SurveyedCluster, findings, finish, standings

from waywiser.analysis.cluster.verdict_values import ClusterVerdict

GROUPS = ("a", "a", "b", "b", "b", "c", "c", "c")
ALL = tuple(f"n{number}" for number in range(1, len(GROUPS) + 1))

SHORT = ("--no-check", "--size", "32KiB")
"""The simulated networks are slow: a test of larger messages takes seconds."""

RATES = (64, 16, 4)
"""Mbit/s of all interfaces, one after the other, until a run finds what is planted. Processes that
wait for a CPU are late by the same time on all of them."""

PLANTED = 3
"""What is planted takes so many times as long as usual."""

LARGEST_FOUND = 2.0
"""A run that finds no smaller slowness is repeated with slower interfaces."""

pytestmark = [pytest.mark.slow, pytest.mark.quiet]

Survey = Callable[[SurveyedCluster], tuple[int, str]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    folder = tmp_path_factory.mktemp("world") / "nodes"
    with simulated_nodes(folder, GROUPS, f"{RATES[0]}mbit") as world:
        yield world


class Networks:
    """Surveys the same nodes, over slower and slower interfaces."""

    def __init__(self, world: SimulatedNodes, folder: Path, environment: dict[str, str]) -> None:
        self.world, self._folder, self._environment = world, folder, environment

    def survey(self, plant: Callable[[str], None], survey: Survey) -> tuple[ClusterVerdict, str]:
        """The verdict of the first run that can find what is planted, and what it printed.
        ``plant`` has the rate of what is slow."""
        for rate in RATES:
            self.world.slow_down(f"{rate}mbit")
            plant(f"{1000 * rate // PLANTED}kbit")
            folder = self._folder / f"{rate}"
            folder.mkdir()
            cluster = SurveyedCluster(self.world, folder, self._environment, "mpich")
            code, said = survey(cluster)
            assert code == 1, said
            found = cluster.verdict()
            cluster.await_nothing()
            print(f"{rate} Mbit/s: the smallest slowness found is {found.smallest_found:.2f}")
            if 0 < found.smallest_found <= LARGEST_FOUND:
                return found, said
        pytest.fail(f"the noise is too large, {found.smallest_found:.2f} at {rate} Mbit/s: {said}")


@pytest.fixture
def networks(
    world: SimulatedNodes, tmp_path: Path, fake_native_environment: dict[str, str]
) -> Iterator[Networks]:
    yield Networks(world, tmp_path, fake_native_environment)
    world.end_started()


def test_slow_nodes_a_slow_pair_and_a_node_that_is_not_reached(networks: Networks) -> None:
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


def test_a_slow_group_and_a_node_whose_ranks_crash(networks: Networks) -> None:
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
