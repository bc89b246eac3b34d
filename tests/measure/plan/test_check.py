from __future__ import annotations

import itertools

import pytest
from machines import machine

from machine import captured
from waywiser.machine.machine import Machine
from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule

pytestmark = pytest.mark.usefixtures("scripted")


def check(of: Machine, **request: object) -> Plan:
    return make_plan(of, Request(preset="check", **request))  # type: ignore[arg-type]


EIGHT = [
    *(f"pinned@numa:0 -> device@gpu:{g} by copy-engine" for g in range(8)),
    *(f"device@gpu:{g} -> pinned@numa:0 by copy-engine" for g in range(8)),
    *(f"pinned@numa:0 <-> device@gpu:{g} by copy-engine" for g in range(8)),
    *(
        f"device@gpu:{a} -> device@gpu:{b} by copy-engine"
        for a in range(8)
        for b in range(8)
        if a != b
    ),
    "host-to-all pinned@numa:0 -> device@gpu:0-7 by copy-engine",
    "all-to-host device@gpu:0-7 -> pinned@numa:0 by copy-engine",
    "host-and-all pinned@numa:0 <-> device@gpu:0-7 by copy-engine",
    "pairs-unidirectional device@gpu:0,2,4,6 -> device@gpu:1,3,5,7 by copy-engine",
    "pairs-bidirectional device@gpu:0,2,4,6 <-> device@gpu:1,3,5,7 by copy-engine",
]


def test_eight_gpus_are_checked_whole_and_in_time() -> None:
    found = check(captured.machine("h200-vm-8gpu"))
    assert sorted(point.curve.name for point in found.points) == sorted(EIGHT)
    assert found.skipped == 0 and not found.unsupported_paths
    assert outlook(found).seconds <= found.deadline_seconds <= 25


def test_as_many_processes_measure_as_the_time_allows() -> None:
    for gpus, expected in ((1, 8), (2, 8), (4, 6)):
        assert outlook(check(machine(gpus=gpus))).processes >= expected
    eight = outlook(check(captured.machine("h200-vm-8gpu")))
    assert 3 <= eight.processes < 8 and eight.skipped


def test_pairs_of_eight_gpus_take_turns_and_sets_are_in_all_processes() -> None:
    found = check(captured.machine("h200-vm-8gpu"))
    points = {point.identity: point for point in found.points}
    made: dict[str, list[int]] = {}
    clock = itertools.count()
    for order in Schedule(found, clock=lambda: next(clock) / 100):
        made.setdefault(order.workload.identity, []).append(order.block)
    blocks = {block for each in made.values() for block in each}
    pairs = [i for i, p in points.items() if p.processes == 2]
    assert len(pairs) == 56 and {len(made[pair]) for pair in pairs} == {2}
    assert len(blocks) > 2 and len({tuple(made[pair]) for pair in pairs}) > 1
    for identity in points.keys() - set(pairs):
        assert set(made[identity]) == blocks


def test_a_check_samples_long_enough_for_a_reading_under_load() -> None:
    rule = check(machine(gpus=1)).preset.rule
    assert rule.minimum >= 6 and rule.slow_minimum >= 6 and rule.minimum_seconds >= 0.03


def test_one_gpu_has_its_link_alone() -> None:
    names = [point.curve.name for point in check(machine(gpus=1)).points]
    assert names == [EIGHT[0], EIGHT[8], EIGHT[16]]


def test_each_gpu_is_checked_from_its_own_node() -> None:
    found = check(captured.machine("two-socket-4gpu"))
    nodes = {
        t.path.destination.place.index: t.path.source.place.index
        for p in found.points
        for t in p.workload.transfers
        if t.path.source.place.kind == "numa"
    }
    assert nodes == {0: 0, 1: 0, 2: 1, 3: 1}


def test_without_a_gpu_the_nodes_are_checked_and_the_links_not_supported_with_the_reason() -> None:
    found = check(machine(nodes=2))
    assert {point.curve.name for point in found.points} == {
        f"pageable@numa:{a} -> pageable@numa:{b} by cpu" for a in (0, 1) for b in (0, 1)
    }
    assert "no driver is loaded; install one" in {
        unsupported.reason for unsupported in found.unsupported_paths
    }
    assert outlook(found).seconds <= 25


@pytest.mark.parametrize("name", captured.ALL)
def test_every_captured_machine_is_checked_in_time(name: str) -> None:
    found = check(captured.machine(name))
    assert found.points and outlook(found).seconds <= 25
