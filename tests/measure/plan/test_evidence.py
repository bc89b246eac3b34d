from __future__ import annotations

from itertools import pairwise

import msgspec

from measure.plan.machines import machine
from waywiser.machine.machine import NumaNode
from waywiser.measure.plan.evidence import LOCATED_CPUS, located_cpus, located_memories
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"


def plan(preset: str = "standard", **options: object) -> Plan:
    return make_plan(machine(gpus=2), Request(preset=preset, **options))  # type: ignore[arg-type]


def watched_of(found: Plan) -> dict[str, list[int]]:
    sizes: dict[str, list[int]] = {}
    for point in found.points:
        if point.workload.identity in found.watched:
            sizes.setdefault(point.curve.text, []).append(point.size)
    return sizes


def test_one_size_of_each_usual_curve_with_a_gpu_is_watched() -> None:
    found = watched_of(plan())
    assert found[H2D] in ([16 << 20], [64 << 20])
    assert all(len(sizes) == 1 for sizes in found.values())
    assert not any("gpu:" not in curve for curve in found)
    assert f"{H2D}[api=sync]" not in found
    off = [curve for curve in found if "peer=off" in curve]
    assert off, "the question of peer access off is the way itself"


def test_without_the_best_size_the_nearest_is_watched() -> None:
    assert watched_of(plan(only=(H2D,), sizes="8,2MiB,16MiB,1GiB"))[H2D] == [16 << 20]
    assert watched_of(plan(only=(H2D,), sizes="8,64KiB")) == {}


def test_a_survey_that_has_to_end_in_time_looks_at_no_links_unless_it_is_of_a_part() -> None:
    assert not plan("quick").watched
    assert plan("quick", only=(H2D,)).watched


def test_links_are_looked_at_in_the_first_block_only() -> None:
    found = plan(only=(H2D,))
    orders = list(Schedule(found))
    looked = [(order.workload.identity, order.block) for order in orders if order.evidence]
    assert sorted(looked) == sorted((identity, 0) for identity in found.watched)


def test_blocks_are_page_locked_where_a_gpu_can_show_them() -> None:
    assert [str(m) for m in located_memories(machine(gpus=1))] == ["pinned@numa:0"]
    assert [str(m) for m in located_memories(machine(gpus=0))] == ["pageable@numa:0"]
    assert len(located_memories(machine(gpus=2, nodes=8))) == 2


def test_cores_that_read_are_few_and_spread() -> None:
    node = NumaNode(0, tuple(range(96)), 2**30, 0)
    wide = msgspec.structs.replace(machine(gpus=1), numa=(node,))
    cpus = located_cpus(wide)
    assert len(cpus) == LOCATED_CPUS
    assert min(b - a for a, b in pairwise(cpus)) >= 10
    few = msgspec.structs.replace(wide, numa=(NumaNode(0, (3, 5), 2**30, 0),))
    assert located_cpus(few) == (3, 5)
