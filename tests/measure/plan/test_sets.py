from __future__ import annotations

import pytest
from machines import machine

from machine import captured
from waywiser.curves.name import SETS, name_of
from waywiser.curves.terms import GPUS_OF
from waywiser.machine.machine import Machine
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule
from waywiser.words import Workload

pytestmark = pytest.mark.usefixtures("scripted")

MIB = 2**20


def plan(of: Machine, **request: object) -> Plan:
    return make_plan(of, Request(**request))  # type: ignore[arg-type]


def sets(found: Plan) -> dict[str, list[int]]:
    """Names of the sets and the sizes at which each is visited."""
    sizes: dict[str, list[int]] = {}
    for point in found.points:
        if point.curve.name.split()[0] in SETS:
            sizes.setdefault(point.curve.name, []).append(point.size)
    return sizes


NOT_PLANNED = {"one-and-all", "all-to-all"}
"""Sets that only ``--workload`` and imported files have."""


@pytest.mark.parametrize("gpus", [0, 1])
def test_fewer_than_two_gpus_have_no_sets(gpus: int) -> None:
    assert not sets(plan(machine(gpus=gpus)))


def test_each_set_needs_the_stated_number_of_gpus() -> None:
    of_presets = SETS.keys() - NOT_PLANNED
    for gpus in range(5):
        names = {name.split()[0] for name in sets(plan(machine(gpus=gpus)))}
        assert names == {name for name in of_presets if GPUS_OF[name] <= gpus}
    assert {GPUS_OF[name] for name in NOT_PLANNED} == {GPUS_OF["one-to-all"]}


def test_two_gpus_have_those_with_the_host_alone() -> None:
    assert set(sets(plan(machine(gpus=2)))) == {
        "host-to-all pinned@numa:0 -> device@gpu:0,1 by copy-engine",
        "all-to-host device@gpu:0,1 -> pinned@numa:0 by copy-engine",
        "host-and-all pinned@numa:0 <-> device@gpu:0,1 by copy-engine",
        "host-to-all pinned@numa:0 -> device@gpu:0,1 by copy-engine (shared)",
        "all-to-host device@gpu:0,1 -> pinned@numa:0 by copy-engine (shared)",
    }


def test_eight_gpus_have_all_of_them_and_full_takes_each_gpu_as_the_one() -> None:
    standard = sets(plan(machine(gpus=8)))
    assert {name.split()[0] for name in standard} == set(SETS) - NOT_PLANNED
    assert standard["all-to-host device@gpu:0-7 -> pinned@numa:0 by copy-engine (shared)"] == [MIB]
    ones = [name for name in standard if name.startswith("one-to-all")]
    assert ones == ["one-to-all device@gpu:0 -> device@gpu:1-7 by copy-engine"]
    full = sets(plan(machine(gpus=8), preset="full", memory_bytes=2**34))
    assert len([name for name in full if name.startswith("one-to-all")]) == 8
    assert full["ring device@gpu:0-7 -> device@gpu:0-7 by copy-engine"][-1] == 1024 * MIB


def test_each_gpu_is_fed_from_its_own_node_unless_all_share_one_buffer() -> None:
    found = plan(captured.machine("two-socket-4gpu"), only=("host-to-all",))
    own, shared = (next(p for p in found.points if p.curve.shared is s) for s in (False, True))
    assert [t.path.source.place.index for t in own.workload.transfers] == [0, 0, 1, 1]
    assert {t.path.source.place.index for t in shared.workload.transfers} == {0}


def test_an_unknown_node_is_the_first() -> None:
    found = plan(captured.machine("h200-vm-8gpu"), only=("host-to-all",))
    assert {t.path.source.place.index for p in found.points for t in p.workload.transfers} == {0}


def test_the_largest_set_is_just_within_the_default_memory() -> None:
    name = "host-to-all pinned@numa:0 -> device@gpu:0-7 by copy-engine"
    found = plan(machine(gpus=8))
    assert sets(found)[name] == [64 * MIB, 256 * MIB]
    both = name.replace("host-to-all", "host-and-all").replace("->", "<->")
    assert sets(found)[both] == [64 * MIB]
    assert any(r.path == f"{both} of 256 MiB" for r in found.unsupported_paths)


def test_a_shared_buffer_is_counted_once() -> None:
    found = plan(machine(gpus=8), only=("host-to-all shared",))
    assert {p.size: p.buffer_bytes for p in found.points}[64 * MIB] == 9 * 64 * MIB


def test_asked_sizes_hold_for_sets_too() -> None:
    found = plan(machine(gpus=4), only=("ring",), sizes="1MiB")
    assert [point.size for point in found.points] == [MIB]


def test_sets_are_never_skipped_as_saturated() -> None:
    found = plan(machine(gpus=4), only=("ring",))
    assert found.points and not any(point.growing for point in found.points)


def test_gpus_without_peers_meet_in_the_process_without_peer_access() -> None:
    found = plan(captured.machine("two-socket-4gpu"), only=("one-to-all", "ring", "pairs"))
    assert all(len({*map(str, p.workload.transfers)}) > 1 for p in found.points)
    curves = {point.identity: point.curve for point in found.points}
    for order in Schedule(found):
        needed = curves[order.workload.identity].peer_access
        assert needed in (None, order.process.peer_access)


def test_a_planned_set_has_its_name_in_a_profile_too() -> None:
    for point in plan(machine(gpus=4)).points:
        again = Workload.parse(str(point.workload)) if point.workload.transfers else point.workload
        assert again == point.workload and name_of(again) == point.curve.name


def test_both_ways_of_every_path_between_two_places_and_no_other() -> None:
    """Opposites exist for every executor that the registry has, whoever it is."""
    singles = {
        p.curve.text
        for p in plan(machine(gpus=2), preset="full").points
        if len(p.workload.transfers) == 1 and "[" not in p.curve.text and p.workload.cache == "warm"
    }
    pairs = {
        tuple(str(t.path) for t in p.workload.transfers)
        for p in plan(machine(gpus=2), preset="full").points
        if len(p.workload.transfers) == 2 and "<->" in p.curve.name
    }
    for one, other in pairs:
        assert {one, other} <= singles
    unpaired = {t for t in singles if not any(t in pair for pair in pairs)}
    for text in unpaired:
        path = Workload.parse(text).transfers[0].path
        assert path.source == path.destination or str(path.opposite) not in singles
