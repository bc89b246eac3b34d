"""Surveys of simulated nodes by a real MPI, over interfaces that are slow enough for a planted
fault to stand out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.simulated_nodes import SimulatedNodes, simulated_nodes
from tests.cluster.surveyed_cluster import SurveyedCluster

from waywiser.analysis.cluster.verdict_values import ClusterVerdict

GROUPS = ("a", "a", "b", "b", "b", "c", "c", "c")
ALL = tuple(f"n{number}" for number in range(1, len(GROUPS) + 1))

SHORT = ("--no-check", "--size", "32KiB")
"""The simulated networks are slow: a test of larger messages takes seconds."""

RATES = (128, 32, 8)
"""Mbit/s of all interfaces, one after the other, until a run finds what is planted. Processes that
wait for a CPU are late by the same time on all of them."""

PLANTED = 3
"""What is planted takes so many times as long as usual."""

LARGEST_FOUND = 2.5
"""A run that finds no smaller slowness is repeated with slower interfaces."""

Survey = Callable[[SurveyedCluster], tuple[int, str]]


class SlowNetworks:
    """Surveys the same nodes, over slower and slower interfaces."""

    def __init__(self, world: SimulatedNodes, folder: Path, environment: Mapping[str, str]) -> None:
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


@contextmanager
def slow_networks(folder: Path, environment: Mapping[str, str]) -> Iterator[SlowNetworks]:
    """Nodes of three groups, which end with all that runs on them."""
    with simulated_nodes(folder / "nodes", GROUPS, f"{RATES[0]}mbit") as world:
        yield SlowNetworks(world, folder, environment)
