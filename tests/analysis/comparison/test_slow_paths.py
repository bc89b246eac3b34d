"""A link is classified by all paths over it if single paths are too noisy."""

from __future__ import annotations

import random

import nodes

from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.curves.subject import Subject
from waywiser.words import Workload

HOSTS = 200


def odd(host: str, survey: int, slow: nodes.Slow = lambda _: 1.0) -> nodes.Slow:
    """One path in fifty takes 6 to 12 % longer, another one in each survey."""

    def factor(what: Workload) -> float:
        rng = random.Random(f"{host} {survey} {what.curve}")
        return slow(what) * (rng.uniform(1.06, 1.12) if rng.random() < 0.02 else 1.0)

    return factor


def surveyed(survey: int, host: str, slow: nodes.Slow = lambda _: 1.0) -> Subject:
    created = f"2026-11-20T0{survey}:00:00.000+00:00"
    return nodes.node(survey, host, slow=odd(host, survey, slow), created=created)


def test_a_slow_link_is_suspected_and_seen_again_among_paths_that_are_often_off() -> None:
    slow = nodes.slow_host_link(5, 1.05)
    fleet_nodes = [surveyed(1, f"n{n:03}") for n in range(HOSTS)]
    fleet_nodes[7] = surveyed(1, "n007", slow)
    first = assess_fleet(fleet_nodes)
    (ill,) = [host for host in first.of("bad", "suspect") if host.host == "n007"]
    assert [device.place for fault in ill.faults for device in fault.devices] == ["gpu:5"]
    assert len(first.of("bad", "suspect")) <= 2
    again = [surveyed(2, h.host, slow if h is ill else lambda _: 1.0) for h in first.of("suspect")]
    second = assess_fleet([*fleet_nodes, *again])
    assert [host.host for host in second.of("bad")] == ["n007"]


def test_peers_of_one_gpu_that_are_slow_together_name_it() -> None:
    def slow(what: Workload) -> float:
        ends = what.transfers[0].path
        peers = ends.source.place.kind == ends.destination.place.kind == "gpu"
        return 1.05 if peers and 3 in (ends.source.place.index, ends.destination.place.index) else 1

    fleet_nodes = [surveyed(1, f"n{n:03}") for n in range(HOSTS)]
    fleet_nodes[11] = surveyed(1, "n011", slow)
    found = {host.host: host for host in assess_fleet(fleet_nodes).of("suspect")}
    assert next(d.place for fault in found["n011"].faults for d in fault.devices) == "gpu:3"
    assert len(found) <= 2
