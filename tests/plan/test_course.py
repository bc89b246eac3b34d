from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from machines import machine

from waywiser.plan.course import KEPT, Course, is_for_time
from waywiser.plan.plan import Plan, Request, make_plan
from waywiser.records import Failure, Order, Samples, Visit

pytestmark = pytest.mark.usefixtures("scripted")

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
MIB = 2**20


def plan(gpus: int = 1, **request: object) -> Plan:
    return make_plan(machine(gpus=gpus), Request(**request))  # type: ignore[arg-type]


def visit(order: Order, seconds: float) -> Visit:
    samples = Samples(
        span=(seconds,) * 6 + (9.0,),
        host=(seconds,) * 7,
        skew=(0.0,) * 7,
        repetitions=(1,) * 7,
        flags=(0,) * 6 + (1,),  # the last is void and must not count
        transfers=((seconds,),) * 7,
    )
    return Visit(order.workload, order.block, "converged", "2026-01-01T00:00:00", samples=samples)


def saturating(order: Order) -> float:
    """10 GB/s beyond a microsecond of latency."""
    return 1e-6 + order.workload.bytes / 10e9


def growing(order: Order) -> float:
    """Each doubling gains rate."""
    return (order.workload.bytes / 10e9) ** 0.9


def run(
    of: Plan, seconds: Callable[[Order], float], finished: list[Visit] | None = None
) -> tuple[list[Order], list[Visit], list[Visit]]:
    """The orders, the visits and the skips of a course to its end."""
    orders: list[Order] = []
    visits: list[Visit] = []
    skipped: list[Visit] = []
    course = Course(of, finished=finished or (), on_skip=skipped.append)
    for order in course:
        orders.append(order)
        visits.append(visit(order, seconds(order)))
        course.record(visits[-1])
    return orders, visits, skipped


def sizes(orders: list[Order]) -> list[int]:
    return [order.workload.bytes for order in orders]


def test_every_visit_is_ordered_once_or_skipped() -> None:
    standard = plan(2)
    orders, _, skipped = run(standard, growing)
    keys = [o.key for o in orders] + [(v.workload.identity, v.block) for v in skipped]
    assert len(set(keys)) == len(keys) == standard.visits
    conditional = {p.workload.identity for p in standard.points if p.conditional}
    assert {v.workload.identity for v in skipped} == conditional
    assert orders


def test_sizes_up_to_64_mib_are_shuffled_and_larger_ones_come_in_waves() -> None:
    quick = plan(only=("pinned@numa:0 -> device*copy-engine",), preset="quick")
    orders = [order for order in run(quick, growing)[0] if len(order.workload.transfers) == 1]
    small = [size for size in sizes(orders) if size <= 64 * MIB]
    assert sizes(orders)[: len(small)] == small != sorted(small)
    assert sizes(orders)[len(small) :] == [128 * MIB, 256 * MIB]


def test_a_saturated_curve_is_skipped_up_to_its_largest_size_and_says_why() -> None:
    orders, _, skipped = run(plan(only=(f"{H2D}*",), sizes=""), saturating)
    block = [o.workload.bytes for o in orders if o.block == 0 and str(o.workload).startswith(H2D)]
    assert max(block) == 2**30 and 2**29 not in block
    mine = [v for v in skipped if v.workload.curve == H2D and v.block == 0]
    assert [v.workload.bytes for v in mine] == [128 * MIB, 256 * MIB, 512 * MIB]
    assert mine[0].stop == "skipped"
    assert mine[0].failure == Failure(
        "skipped", "the rate has saturated: 9.994, 9.997, 9.999 GB/s at 16 MiB, 32 MiB, 64 MiB"
    )


def test_without_enough_rates_nothing_is_skipped() -> None:
    course = Course(plan(only=("pinned*copy-engine",), preset="quick"))
    ordered = [order.workload.bytes for order in course]  # no visit is ever recorded
    assert max(ordered) == 256 * MIB


def test_a_resumed_course_orders_only_what_is_missing_and_knows_the_rates() -> None:
    quick = plan(only=("pinned@numa:0 -> device*",), preset="quick")
    first, visits, _ = run(quick, saturating)
    half = len(first) // 2
    rest, _, skipped = run(quick, saturating, finished=visits[:half])
    assert not {o.key for o in rest} & {o.key for o in first[:half]}
    assert {o.key for o in rest} | {o.key for o in first[:half]} == {o.key for o in first}
    assert {v.workload.bytes for v in skipped} == {128 * MIB, 256 * MIB}


def test_a_finished_skip_is_not_skipped_again() -> None:
    quick = plan(only=("pinned@numa:0 -> device*",), preset="quick")
    _, visits, skipped = run(quick, saturating)
    assert skipped
    assert run(quick, saturating, finished=[*visits, *skipped]) == ([], [], [])


def test_the_seed_decides_the_order_and_the_bytes() -> None:
    def keys(seed: int) -> list[tuple[str, int, int]]:
        orders, _, _ = run(plan(only=("pinned device",), preset="quick", seed=seed), growing)
        return [(*order.key, order.seed) for order in orders]

    assert keys(1) == keys(1) != keys(2)
    assert len({seed for *_, seed in keys(1)}) == len(keys(1))


def test_each_block_has_fresh_processes_and_no_worker_is_started_twice() -> None:
    orders, _, _ = run(plan(2), saturating)
    stretches = [(o.process.peer_access, o.block) for o in orders]
    assert list(dict.fromkeys(stretches)) == [(True, 0), (False, 0), (True, 1), (False, 1)]
    changes = sum(a != b for a, b in itertools.pairwise(stretches))
    assert changes == 3


def test_full_orders_each_block_in_its_own_process() -> None:
    orders, _, _ = run(plan(preset="full", only=("pinned@numa:0 -> device*engine",)), saturating)
    assert {o.block for o in orders} == set(range(6))
    assert all(o.block == o.process.block for o in orders)


def test_orders_carry_their_cost_and_a_generous_timeout() -> None:
    orders, _, _ = run(plan(preset="quick"), growing)
    for order in orders:
        assert order.timeout_seconds >= max(30.0, 10 * order.expected_seconds)
        assert order.buffer_bytes == 2 * order.workload.bytes


def test_quick_skips_what_it_has_no_time_for_and_says_so() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    skipped: list[Visit] = []
    quick = plan(preset="quick")
    orders = list(Course(quick, on_skip=skipped.append, clock=clock))
    assert len(orders) == 25
    assert len(skipped) == quick.visits - 25
    assert {v.failure for v in skipped} == {Failure("skipped", "the 25 s of quick were over")}


def test_asked_sizes_have_no_deadline() -> None:
    clock = iter(range(0, 10**6, 100)).__next__
    asked = plan(preset="quick", sizes="1KiB")
    assert len(list(Course(asked, clock=clock))) == asked.visits


OTHER = "pinned@numa:0 -> device@gpu:1 by copy-engine"


def slower(path: str, size: int, factor: float) -> Callable[[Order], float]:
    """Growing, and one path slower at one size."""

    def seconds(order: Order) -> float:
        it = order.workload.curve == path and order.workload.bytes == size
        return growing(order) * (factor if it else 1.0)

    return seconds


def test_equal_paths_are_measured_at_few_sizes_and_the_rest_is_told() -> None:
    orders, _, skipped = run(plan(2, only=("pinned -> device copy-engine",)), growing)
    texts = [(o.workload.curve, o.workload.bytes) for o in orders if o.block == 0]
    assert [size for text, size in sorted(texts) if text == OTHER] == [8, MIB, 64 * MIB]
    assert len([size for text, size in texts if text == H2D]) == 28
    reasons = {v.failure.reason for v in skipped if v.failure and v.workload.curve == OTHER}
    assert reasons == {
        f"equal to {H2D} at 8 B, 1 MiB, 64 MiB, within 5 % (under 1 MiB 20 %)",
    }


@pytest.mark.parametrize(
    ("size", "factor", "again"),
    [
        (MIB, 1.04, False),
        (MIB, 1.07, True),
        (64 * MIB, 0.9, True),
        (8, 1.15, False),
        (8, 1.3, True),
    ],
)
def test_the_whole_class_is_measured_again_when_one_differs(
    size: int, factor: float, again: bool
) -> None:
    standard = plan(3, only=("pinned -> device copy-engine",))
    orders, _, _ = run(standard, slower(OTHER, size, factor))
    third = "pinned@numa:0 -> device@gpu:2 by copy-engine"
    for path in (OTHER, third):
        sizes = {o.workload.bytes for o in orders if o.workload.curve == path and o.block == 0}
        assert len(sizes) == (24 if again else 3)


def test_conditional_sizes_come_last() -> None:
    orders, _, _ = run(plan(2, only=("pinned -> device copy-engine",)), slower(OTHER, MIB, 2.0))
    block = [o.workload for o in orders if o.block == 0]
    others = [
        n for n, w in enumerate(block) if w.curve == OTHER and w.bytes not in (8, MIB, 64 * MIB)
    ]
    assert others == list(range(len(block) - len(others), len(block)))


def test_what_differed_in_a_block_is_measured_again_in_the_next() -> None:
    def once(order: Order) -> float:
        return slower(OTHER, MIB, 2.0 if order.block == 0 else 1.0)(order)

    orders, _, _ = run(plan(2, only=("pinned -> device copy-engine",)), once)
    assert (
        len({o.workload.bytes for o in orders if o.block == 1 and o.workload.curve == OTHER}) == 24
    )


def test_what_differs_does_not_take_the_time_of_the_blocks_to_come() -> None:
    """On a machine as quick as expected, but for every path that differs from the first."""
    standard = plan(3, only=("pinned device copy-engine",))
    certain = [point for point in standard.points if not point.conditional]
    both = standard.worker_seconds + 2 * sum(point.expected_seconds for point in certain)
    others = sum(point.seconds for point in standard.points if point.conditional)
    standard = replace(standard, deadline_seconds=both + others / 2)
    points = {point.workload.identity: point for point in standard.points}
    now = 0.0
    orders: list[Order] = []
    skipped: list[Visit] = []
    course = Course(standard, on_skip=skipped.append, clock=lambda: now)
    for order in course:
        orders.append(order)
        point = points[order.workload.identity]
        now += point.seconds if point.conditional else point.expected_seconds
        factor = 1.0 if "gpu:0" in order.workload.curve else 2.0
        course.record(visit(order, factor * growing(order)))
    keys = {order.key for order in orders}
    assert {(p.workload.identity, block) for p in certain for block in (0, 1)} <= keys
    kept = [v for v in skipped if v.failure and v.failure.reason.startswith(KEPT)]
    assert kept and {v.block for v in kept} == {0}
    assert {v.failure.reason for v in kept if v.failure} == {
        f"only what later blocks need was left of the {standard.deadline_seconds:g} s of standard"
    }
    assert any(points[order.workload.identity].conditional for order in orders)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("the 90 s of standard were over", True),
        ("those of the 90 s of standard that no other block needs were over", True),
        ("only what later blocks need was left of the 90 s of standard", True),
        (f"equal to {H2D} at 64 MiB, within 3 %", False),
    ],
)
def test_what_is_left_out_for_time_is_known_by_its_reason(reason: str, expected: bool) -> None:
    assert is_for_time(reason) is expected


def test_without_anything_to_compare_the_rest_is_skipped_with_that_reason() -> None:
    skipped: list[Visit] = []
    list(
        Course(
            plan(2, only=("pinned@numa:0 -> device@gpu:? by copy-engine",)), on_skip=skipped.append
        )
    )
    reasons = {v.failure.reason for v in skipped if v.failure}
    assert reasons == {f"not compared: nothing was measured of it and of {H2D}"}
