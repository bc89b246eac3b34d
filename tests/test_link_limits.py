"""What limits a relay copy, decided from measurements of machines whose limits are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from script_module import script_module
from waywiser.model.share import Demand, max_min_rates

FILE = Path(__file__).parents[1] / "benchmarks" / "link_limits.py"
ROUNDS = 7
GB = 1e9


limits = script_module(FILE)


@dataclass
class PlantedMachine:
    """Eight GPUs on two sockets; capacities in GB/s. What is not given limits nothing."""

    link: float = 55.0
    memory: float = 1e4
    """Bandwidth of the memory of each socket."""
    interconnect: float = 1e4
    engine: float = 1e4
    """Bandwidth of each relay: bytes from the host and to the target together."""
    nvlink: float = 1e4
    """Into the target."""
    efficiency: float = 0.98
    """Part of its limits that the relay copy reaches."""
    noise: float = 0.005
    order: Sequence[int] = field(default_factory=lambda: (0, 4, 1, 5, 2, 6, 3, 7))

    def lanes(
        self, used: Sequence[int], *, own: bool, peers: bool = False, relay: bool = False
    ) -> float:
        """Max-min fair bandwidth of the links at once."""
        demands = []
        for gpu in used:
            side, other = ("A", "B") if gpu < 4 else ("B", "A")
            local = 1.0 if own else 0.5
            loads = {f"memory {side}": local / self.memory}
            if not own:
                loads |= {f"memory {other}": 0.5 / self.memory}
                loads |= {f"{other} to {side}": 0.5 / self.interconnect}
            if (peers or relay) and gpu != used[0]:
                loads[f"engine {gpu}"] = 2 / self.engine
            if relay and gpu != used[0]:
                loads["nvlink"] = 1 / self.nvlink
            demands.append(Demand(1, self.link, loads=loads))
        return sum(max_min_rates(demands)[0])

    def measure(self, links: int, seed: int) -> Any:
        used = self.order[:links]
        truth: dict[str, float] = {limits.LINK: self.link * links}
        if links > 1:
            truth |= {
                limits.HOST_MEMORY: self.lanes(used, own=True),
                limits.INTERCONNECT: self.lanes(used, own=False),
                limits.COPY_ENGINE: self.lanes(used, own=False, peers=True),
                limits.NVLINK: min(self.nvlink, 390.0 * (links - 1)) + self.link,
            }
        relay = self.lanes(used, own=False, relay=True) * self.efficiency
        random = np.random.default_rng([seed, links])

        def rounds(rate: float) -> list[float]:
            return list(rate * GB * np.exp(random.normal(0, self.noise, ROUNDS)))

        bounds: Mapping[str, list[float]] = {name: rounds(rate) for name, rate in truth.items()}
        return limits.find_limit(links, rounds(relay), bounds)


PLANTED = {
    limits.LINK: PlantedMachine(),
    limits.HOST_MEMORY: PlantedMachine(memory=160),
    limits.INTERCONNECT: PlantedMachine(interconnect=70),
    limits.COPY_ENGINE: PlantedMachine(engine=72),
    limits.NVLINK: PlantedMachine(nvlink=150),
}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limit", PLANTED)
def test_the_planted_limit_is_named(limit: str, seed: int) -> None:
    found = PLANTED[limit].measure(8, seed)
    assert found.limits == (limit,)
    assert found.reached == pytest.approx(0.98, abs=0.02) and not found.above_bound


def test_the_limit_changes_with_the_links() -> None:
    """Each link alone is its own limit; four fill the interconnect, as eight do."""
    machine = PlantedMachine(interconnect=40, memory=250)
    named = [machine.measure(links, 1).limits for links in (1, 2, 4, 8)]
    assert named == [(limits.LINK,), (limits.LINK,), (limits.INTERCONNECT,), (limits.INTERCONNECT,)]


def test_two_limits_that_nearly_coincide_are_named_once() -> None:
    """Host memory is 1 % above the interconnect: the chain has fallen there already."""
    machine = PlantedMachine(memory=160, interconnect=79.2)
    assert machine.measure(8, 3).limits == (limits.HOST_MEMORY,)


def test_rounds_that_do_not_separate_two_limits_name_both() -> None:
    """The interconnect is the limit, and host memory 5 % above it: no noisy rounds decide that."""
    machine = PlantedMachine(memory=168, interconnect=80, noise=0.03)
    named = [machine.measure(8, seed).limits for seed in range(40)]
    both = (limits.HOST_MEMORY, limits.INTERCONNECT)
    assert sum(set(both) <= set(each) for each in named) > 10
    assert all(set(each) & set(both) for each in named)


def test_a_copy_far_below_all_bounds_has_a_limit_that_was_not_measured() -> None:
    found = PlantedMachine(efficiency=0.7).measure(8, 1)
    assert found.limits == (limits.NOT_MEASURED,)
    assert found.lowest in limits.LIMITS and found.reached == pytest.approx(0.7, abs=0.03)


def test_a_copy_above_a_bound_says_that_the_bound_does_not_fit() -> None:
    found = limits.find_limit(
        2, [120.0] * 7, {limits.LINK: [110.0] * 7, limits.NVLINK: [100.0] * 7}
    )
    assert found.above_bound
    assert "but the copy exceeds the bound" in limits.limit_table("H2D", [found])[-1]


def test_a_table_has_a_row_for_each_number_of_links() -> None:
    machine = PLANTED[limits.NVLINK]
    lines = limits.limit_table("H2D", [machine.measure(links, 1) for links in (1, 8)])
    assert lines[0].startswith("| H2D, links | relay, GB/s | link | host memory |")
    assert lines[2].startswith("| 1 | 5") and lines[2].endswith("| link |")
    assert lines[3].startswith("| 8 | ") and lines[3].endswith("| NVLink |")
    assert len({line.count("|") for line in lines}) == 1


def test_measurements_without_a_partner_are_an_error() -> None:
    with pytest.raises(ValueError, match="one bandwidth for each round"):
        limits.find_limit(1, [1.0, 1.0], {limits.LINK: [1.0]})
    with pytest.raises(ValueError, match="unknown"):
        limits.find_limit(1, [1.0], {"cable": [1.0]})
    assert limits.find_limit(1, [1.0], {limits.LINK: [1.0]}).interval is None
    assert set(limits.SHOWN_BY) == set(limits.LIMITS)
