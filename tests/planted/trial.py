"""Trials: machines, comparisons and fleets made, asked and scored, all from seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from planted.checks import CHECKS
from planted.noise import Pool
from planted.planted_machine import BLOCKS, Planted, planted
from planted.planted_model import LARGE, Model, Truth
from planted.score import Hypothesis
from planted.synthetic_nodes import PlannedSeries, checked, surveyed, without
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.fleet import Fleet, HostVerdict, assess_fleet
from waywiser.analysis.comparison.path_change import ProfileComparison
from waywiser.curves.subject import LoadedLink, Subject

MIB = 2**20

SURVEY_SIZES = (8, 4096, 2**18, MIB, 16 * MIB, LARGE)
"""Sizes of a survey that is compared: latency, medium, and bandwidth."""
SURVEY_BLOCKS = 2
"""The number as in `standard`, and as recorded surveys do."""

COMPARED_BLOCKS = 4
"""Processes that each survey of a comparison has."""

HOSTS = 400
FIRST, AGAIN = "2026-11-20T03:00:00.000+00:00", "2026-11-20T09:00:00.000+00:00"

HALF, SLOWER, GONE = "a link at half width", "a link 5 % slower", "a GPU missing"
ILL = ((HALF, 10), (SLOWER, 10), (GONE, 2))
"""How many hosts of a fleet have what."""


def hypotheses(seeds: Iterable[int], pool: Pool, blocks: int = BLOCKS) -> Iterator[Hypothesis]:
    """Every question asked of one machine for each seed."""
    for seed in seeds:
        machine = planted(seed, pool, blocks)
        yield from hypotheses_on(machine, machine.subject)


def hypotheses_on(machine: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """Every question asked of one machine."""
    for check in CHECKS:
        yield from check(machine, subject)


@cache
def visited(truth: Truth | None = None, sizes: tuple[int, ...] = (LARGE,)) -> PlannedSeries:
    """What is surveyed of a machine with one truth or none."""
    return checked(Model(sockets="one", truths=(truth,) if truth else ()), sizes)


def surveyed_twice(seed: int, pool: Pool, truth: Truth | None = None) -> ProfileComparison:
    """Two fresh surveys of one machine compared, to which ``truth`` has happened in between."""
    rng = np.random.default_rng((seed, 3))
    before = surveyed(visited(sizes=SURVEY_SIZES), rng, pool, COMPARED_BLOCKS)
    after = surveyed(visited(truth, SURVEY_SIZES), rng, pool, COMPARED_BLOCKS)
    return compare([before], [after])


@dataclass
class FleetTrial:
    """A fleet checked after one survey of each host, and after suspects were surveyed again."""

    ill: dict[str, tuple[str, int]]
    """Host -> what it has, and at which GPU."""
    first: Fleet
    second: Fleet
    found: dict[str, int] = field(init=False)
    """For each kind of damage, the hosts that are bad in the end, with the right device named."""

    def __post_init__(self) -> None:
        self.found = {kind: 0 for kind, _ in ILL}
        for host in self.second.of("bad"):
            if host.host in self.ill:
                kind, gpu = self.ill[host.host]
                self.found[kind] += _names(host, kind, gpu)

    @property
    def wrongly_suspected(self) -> list[str]:
        return [host.host for host in self.first.of("bad", "suspect") if host.host not in self.ill]

    @property
    def wrongly_flagged(self) -> list[str]:
        """The final result."""
        return [host.host for host in self.second.of("bad") if host.host not in self.ill]


def fleet(seed: int, pool: Pool, blocks: int = 1, *, healthy: bool = False) -> FleetTrial:
    """`HOSTS` hosts with what `ILL` says, or all of them ``healthy``."""
    rng = np.random.default_rng((seed, 4))
    names = [f"n{number:03}" for number in range(HOSTS)]
    order = iter(rng.permutation(names).tolist())
    ill = {}
    for kind, count in () if healthy else ILL:
        ill.update({next(order): (kind, int(rng.integers(8))) for _ in range(count)})
    nodes = [_host(name, ill.get(name), rng, pool, blocks, FIRST) for name in names]
    first = assess_fleet(nodes)
    suspects = [host.host for host in first.of("suspect")]
    again = [_host(name, ill.get(name), rng, pool, blocks, AGAIN) for name in suspects]
    return FleetTrial(ill, first, assess_fleet([*nodes, *again]))


def few_hosts(
    seed: int, pool: Pool, hosts: int, gpus: int, loss: float = 0.0
) -> tuple[Fleet, str, int]:
    """A fleet of a few hosts with all sizes of a survey; with the host and the GPU whose link has
    lost this share of its bandwidth."""
    rng = np.random.default_rng((seed, hosts, gpus, 5))
    ill, gpu = int(rng.integers(hosts)), int(rng.integers(gpus))
    made = []
    for number in range(hosts):
        truths = (Truth("slow host link", loss / (1 - loss), (gpu,)),) if number == ill else ()
        plan = checked(
            Model(count=gpus, sockets="one", truths=truths if loss else ()), SURVEY_SIZES
        )
        made.append(surveyed(plan, rng, pool, SURVEY_BLOCKS, host=f"n{number:03}"))
    return assess_fleet(made), f"n{ill:03}", gpu


def _host(
    name: str,
    has: tuple[str, int] | None,
    rng: np.random.Generator,
    pool: Pool,
    blocks: int,
    created: str,
) -> Subject:
    kind, gpu = has or ("", 0)
    effect = {HALF: 1.0, SLOWER: 0.05}.get(kind)
    truth = Truth("slow host link", effect, (gpu,)) if effect else None
    links = {gpu: LoadedLink(5, 8)} if kind == HALF else {}
    node = surveyed(visited(truth), rng, pool, blocks, host=name, created=created, links=links)
    return without(node, gpu) if kind == GONE else node


def _names(host: HostVerdict, kind: str, gpu: int) -> bool:
    """Whether the device is named by its address, and no other as the reason for the same."""
    pci = f"0000:{gpu + 1:02x}:00.0"
    expected = {HALF: "link", SLOWER: "slow", GONE: "missing GPU"}[kind]
    named = [device.pci for each in host.faults if each.id == expected for device in each.devices]
    return named == [pci]
