from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import machine

from effort import result_and_calls
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.points import PlannedPoint, Priority
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.rounds import coverage_rounds
from waywiser.measure.plan.schedule import Schedule, is_for_time
from waywiser.words import Path, Transfer
from waywiser.words.records import KILLED, Failure, Order, Process, Samples, Visit

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
    """The orders, the visits and the skips of a schedule to its end."""
    orders: list[Order] = []
    visits: list[Visit] = []
    skipped: list[Visit] = []
    schedule = Schedule(of, finished=finished or (), on_skip=skipped.append)
    for order in schedule:
        orders.append(order)
        visits.append(visit(order, seconds(order)))
        schedule.record(visits[-1])
    return orders, visits, skipped


def test_a_size_for_which_the_kernel_killed_a_worker_is_not_tried_again() -> None:
    of = plan(0, only=("h2h",), sizes="1MiB,16MiB,64MiB", preset="full")
    killing = {of.points[0].curve.text, of.points[-1].curve.text}
    tried: list[tuple[str, int]] = []
    skipped: list[Visit] = []
    schedule = Schedule(of, on_skip=skipped.append)
    for order in schedule:
        measured = visit(order, growing(order))
        if order.workload.curve in killing and order.workload.bytes >= 16 * MIB:
            tried.append((order.workload.curve, order.workload.bytes))
            failure = Failure(KILLED, "a node was full")
            measured = msgspec.structs.replace(measured, samples=Samples(), failure=failure)
        schedule.record(measured)
    # The larger size may come first; nothing is tried twice.
    assert len(tried) == len(set(tried)) <= 2 * len(killing)
    reasons = [each.failure.reason for each in skipped if each.failure]
    again = [reason for reason in reasons if reason.startswith("not tried again")]
    assert again and all("killed the worker at 16 MiB" in reason for reason in again)
    assert all(each.workload.curve in killing for each in skipped)


def test_after_a_resume_a_size_that_cost_its_worker_is_not_tried_again() -> None:
    of = plan(0, only=("h2h",), sizes="16MiB,64MiB")
    first = next(iter(Schedule(of)))
    failure = Failure(KILLED, "a node was full")
    before = msgspec.structs.replace(visit(first, 1.0), samples=Samples(), failure=failure)
    orders, _, _ = run(of, growing, finished=[before])
    again = {
        order.workload.bytes for order in orders if order.workload.curve == first.workload.curve
    }
    assert all(size < first.workload.bytes for size in again)
    assert {order.workload.curve for order in orders} - {first.workload.curve}


def sizes(orders: list[Order]) -> list[int]:
    return [order.workload.bytes for order in orders]


def test_every_visit_is_ordered_once_or_skipped() -> None:
    standard = plan(2)
    orders, _, skipped = run(standard, growing)
    keys = [o.key for o in orders] + [(v.workload.identity, v.block) for v in skipped]
    assert len(set(keys)) == len(keys) == standard.visits
    conditional = {point.identity for point in standard.points if point.conditional}
    assert conditional <= {visit.workload.identity for visit in skipped}
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
        "skipped", "the bandwidth has saturated: 9.994, 9.997, 9.999 GB/s at 16 MiB, 32 MiB, 64 MiB"
    )


def test_without_enough_rates_nothing_is_skipped() -> None:
    schedule = Schedule(plan(only=("pinned*copy-engine",), preset="quick"))
    ordered = [order.workload.bytes for order in schedule]  # no visit is ever recorded
    assert max(ordered) == 256 * MIB


def test_a_resumed_schedule_orders_only_what_is_missing_and_knows_the_rates() -> None:
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
    workers = [(peer, block) for block in range(4) for peer in (True, False)]
    assert list(dict.fromkeys(stretches)) == workers
    changes = sum(a != b for a, b in itertools.pairwise(stretches))
    assert changes == len(workers) - 1


def test_full_orders_each_block_in_its_own_process() -> None:
    orders, _, _ = run(plan(preset="full", only=("pinned@numa:0 -> device*engine",)), saturating)
    assert {o.block for o in orders} == set(range(6))
    assert all(o.block == o.process.block for o in orders)


def test_orders_carry_their_cost_and_a_generous_timeout() -> None:
    orders, _, _ = run(plan(preset="quick"), growing)
    for order in orders:
        assert order.timeout_seconds >= 30.0 + order.buffer_bytes / 10e6
        assert order.expected_seconds > 0
        assert order.buffer_bytes == 2 * order.workload.bytes


def test_sizes_of_the_user_keep_the_deadline() -> None:
    clock = iter(range(0, 10**6, 100)).__next__
    requested = plan(preset="quick", sizes="1KiB")
    assert list(Schedule(requested, clock=clock)) == []
    assert len(list(Schedule(requested, clock=lambda: 0.0))) == requested.visits


LAST = 3
"""The block of the last planned process of standard."""

OTHER = "pinned@numa:0 -> device@gpu:1 by copy-engine"


def slower(path: str, size: int, factor: float) -> Callable[[Order], float]:
    """Growing, and one path slower at one size."""

    def seconds(order: Order) -> float:
        it = order.workload.curve == path and order.workload.bytes == size
        return growing(order) * (factor if it else 1.0)

    return seconds


def test_equal_paths_are_measured_at_few_sizes_and_the_rest_is_reported() -> None:
    orders, _, skipped = run(plan(2, only=("pinned -> device copy-engine",)), growing)
    texts = {(o.workload.curve, o.workload.bytes) for o in orders}
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
        sizes = {o.workload.bytes for o in orders if o.workload.curve == path and o.block == LAST}
        assert len(sizes) == (24 if again else 3)


def test_conditional_sizes_come_last() -> None:
    orders, _, _ = run(plan(2, only=("pinned -> device copy-engine",)), slower(OTHER, MIB, 2.0))
    block = [o.workload for o in orders if o.block == LAST]
    others = [
        n for n, w in enumerate(block) if w.curve == OTHER and w.bytes not in (8, MIB, 64 * MIB)
    ]
    assert others == list(range(len(block) - len(others), len(block)))


def test_what_differed_in_one_process_is_measured_in_the_last() -> None:
    def once(order: Order) -> float:
        return slower(OTHER, MIB, 2.0 if order.block == 0 else 1.0)(order)

    orders, _, _ = run(plan(2, only=("pinned -> device copy-engine",)), once)
    assert (
        len({o.workload.bytes for o in orders if o.block == LAST and o.workload.curve == OTHER})
        == 24
    )


class Played:
    """A survey played with a clock: each visit takes ``factor`` of what is expected unmeasured, and
    a start of ``together`` processes as long as that of one."""

    def __init__(
        self, of: Plan, factor: Callable[[PlannedPoint], float], together: int = 1
    ) -> None:
        self.now = 0.0
        self.orders: list[Order] = []
        self.visits: list[Visit] = []
        self.skipped: list[Visit] = []
        points = {point.identity: point for point in of.points}
        self.starts: list[list[Process]] = []
        started: set[Process] = set()
        schedule = Schedule(
            of, on_skip=self.skipped.append, clock=lambda: self.now, together=together
        )
        for order in schedule:
            seconds = points[order.workload.identity].unmeasured_seconds
            seconds *= factor(points[order.workload.identity])
            self.now += seconds
            if order.process not in started:
                self.starts.append(list(schedule.coming()))
                started.update([order.process, *self.starts[-1]])
                self.now += of.worker_seconds
            self.orders.append(order)
            made = visit(order, saturating(order))
            self.visits.append(msgspec.structs.replace(made, elapsed_seconds=seconds))
            schedule.record(self.visits[-1])

    @property
    def keys(self) -> list[tuple[str, int]]:
        return [o.key for o in self.orders] + [(v.workload.identity, v.block) for v in self.skipped]

    def for_time(self, of: Plan) -> set[Priority]:
        """The priorities of what had no time."""
        points = {point.identity: point for point in of.points}
        return {
            points[visit.workload.identity].priority
            for visit in self.skipped
            if visit.failure and is_for_time(visit.failure.reason)
        }


PACES = st.lists(st.floats(0.2, 5.0), min_size=7, max_size=7)


def paced(paces: list[float]) -> Callable[[PlannedPoint], float]:
    """Each curve with a pace of its own."""
    return lambda point: paces[int(point.identity, 16) % len(paces)]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    PACES,
    st.floats(5.0, 300.0),
    st.sampled_from(["quick", "standard", "check"]),
    st.sampled_from([1, 3, 99]),
)
def test_a_deadline_is_kept_and_every_planned_visit_is_made_or_skipped_once(
    paces: list[float], deadline: float, preset: str, together: int
) -> None:
    of = plan(2, preset=preset, deadline_seconds=deadline)
    played = Played(of, paced(paces), together)
    longest = max(5 * point.unmeasured_seconds for point in of.points) + of.worker_seconds
    assert played.now <= deadline + longest
    assert len(set(played.keys)) == len(played.keys)
    planned = of.preset.processes
    made = Counter(identity for identity, block in played.keys if block < planned)
    replaced = [v for v in played.skipped if v.failure and "takes longer" in v.failure.reason]
    for point in of.points:
        assert made[point.identity] == point.processes or replaced


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.floats(0.3, 3.0), st.floats(10.0, 120.0))
def test_what_falls_away_falls_away_by_priority(pace: float, deadline: float) -> None:
    """The factor for the time of all visits."""
    of = plan(2, deadline_seconds=deadline)
    short = Played(of, lambda _: pace).for_time(of) - {Priority.CONDITIONAL}
    # What is decided before anything has been measured may be wrong about the least of two.
    assert not short or max(short) is Priority.REST
    if pace < 1 and Priority.HEADLINE in short:
        assert Priority.REPRESENTATIVE in short


def test_representative_sizes_are_in_four_processes_spread_over_the_survey() -> None:
    standard = plan(2)
    played = Played(standard, lambda _: 0.1)
    blocks: dict[str, set[int]] = {}
    for order in played.orders:
        blocks.setdefault(order.workload.identity, set()).add(order.block)
    for point in standard.points:
        if point.priority <= Priority.REPRESENTATIVE:
            assert blocks[point.identity] == {0, 1, 2, 3}
        elif point.priority is Priority.REST and point.identity in blocks:
            assert len(blocks[point.identity]) == 1
    rest = Counter(o.block for o in played.orders if len(blocks[o.workload.identity]) == 1)
    assert set(rest) == {0, 1, 2, 3}
    assert {p.curve.text for p in standard.points} == {v.workload.curve for v in played.visits}


def test_sizes_of_a_curve_that_one_process_measures_are_in_the_same_process() -> None:
    played = Played(plan(), lambda _: 0.1)
    sizes_of: dict[str, set[int]] = {}
    repeated = Counter(order.workload.identity for order in played.orders)
    for order in played.orders:
        if repeated[order.workload.identity] == 1:
            sizes_of.setdefault(order.workload.curve, set()).add(order.block)
    assert sizes_of and all(len(blocks) == 1 for blocks in sizes_of.values())


def test_time_up_to_a_deadline_is_used_for_further_processes() -> None:
    def processes(deadline: float) -> int:
        played = Played(plan(2, deadline_seconds=deadline), lambda _: 0.5)
        assert played.now <= deadline
        return len({order.process for order in played.orders})

    assert processes(140.0) > processes(100.0) > 8


@pytest.mark.parametrize("together", [1, 3, 8, 99])
def test_processes_that_start_together_are_the_next_ones(together: int) -> None:
    played = Played(plan(2), lambda _: 0.1, together)
    turns = list(dict.fromkeys(order.process for order in played.orders))
    assert len(turns) == 8
    assert list(itertools.chain(*played.starts)) == turns
    assert [len(start) for start in played.starts[:-1]] == [together] * (len(played.starts) - 1)
    assert len(played.starts) == -(-len(turns) // together)


def test_no_more_processes_start_together_than_have_time() -> None:
    """Processes that are planned, and those that use the time up to a deadline."""
    played = Played(plan(2, deadline_seconds=5.0), lambda _: 3.0, 99)
    assert len(played.starts[0]) < 8
    played = Played(plan(2, deadline_seconds=140.0), lambda _: 0.5, 99)
    turns = {order.process for order in played.orders}
    assert len(turns) > 8
    assert sum(map(len, played.starts)) <= len(turns) + 2


def test_starting_together_leaves_more_time_for_visits() -> None:
    def visits(together: int) -> int:
        of = replace(plan(2, deadline_seconds=60.0), worker_seconds=5.0)
        played = Played(of, lambda _: 1.0, together)
        assert played.now <= 60.0 + 5.0
        return len(played.visits)

    assert visits(4) > visits(1)


def test_a_resumed_survey_uses_no_more_than_the_rest_of_its_deadline() -> None:
    of = plan(2, deadline_seconds=100.0)
    visits = Played(of, lambda _: 0.1).visits
    assert len({visit.block for visit in visits}) > 4
    clock = itertools.count(step=0.05).__next__
    again = list(Schedule(of, finished=visits, clock=clock))
    former = max(visit.block for visit in visits)
    assert {order.block for order in again} <= {former, former + 1}


def test_the_preset_alone_ends_when_its_processes_have_measured_everything() -> None:
    standard = plan(2)
    played = Played(standard, lambda _: 0.1)
    assert played.now < 0.5 * standard.deadline_seconds
    assert {order.block for order in played.orders} == {0, 1, 2, 3}


def test_what_visits_took_decides_and_not_what_was_expected() -> None:
    """On a machine three times slower than expected, the time goes to what matters most."""
    standard = plan(2, deadline_seconds=60.0)
    played = Played(standard, lambda _: 3.0)
    made = Counter(order.workload.identity for order in played.orders)
    headline = [p for p in standard.points if p.priority is Priority.HEADLINE]
    assert all(made[point.identity] == 4 for point in headline)
    assert played.now <= 60.0 + 10.0


def test_a_representative_that_is_too_slow_gives_way_to_a_smaller_size() -> None:
    def seconds(order: Order) -> float:
        return 1e-6 + order.workload.bytes / (0.1e9 if "[api" in order.workload.curve else 10e9)

    standard = plan()
    orders, _, skipped = run(standard, seconds)
    curve = f"{H2D}[api=sync]"
    found = {(o.workload.bytes, o.block) for o in orders if o.workload.curve == curve}
    assert {block for size, block in found if size == 16 * MIB} == {0}
    assert {block for size, block in found if size == 512 * 1024} >= {1, 2, 3}
    result = {v.failure.reason for v in skipped if v.failure and v.workload.curve == curve}
    assert "one execution takes longer than the 0.11 s that standard allows" in result


def test_a_very_slow_device_is_measured_once_in_each_process() -> None:
    def seconds(order: Order) -> float:
        slow = all(place.kind == "gpu" and place.index == 1 for place in order.workload.places)
        return 1e-6 + order.workload.bytes / (5e6 if slow else 10e9)

    orders, visits, skipped = run(plan(2), seconds)
    keys = [o.key for o in orders] + [(v.workload.identity, v.block) for v in skipped]
    assert len(keys) == len(set(keys))
    assert all(visit.failure and visit.failure.reason for visit in skipped)
    # Interrupted anywhere, the rest is measured, and nothing twice.
    for stop in range(0, len(visits), len(visits) // 7):
        again, _, more = run(plan(2), seconds, finished=visits[:stop])
        done = [(v.workload.identity, v.block) for v in (*visits[:stop], *more)]
        done += [order.key for order in again]
        assert len(done) == len(set(done))


def test_noisy_processes_loosen_the_rule_of_others_and_never_of_themselves() -> None:
    def noisy(path: str) -> Callable[[Order], float]:
        return lambda order: (
            saturating(order)
            * (1 + 0.05 * (order.block % 2) if order.workload.curve != path else 1)
        )

    def targets(path: str) -> list[float]:
        orders, _, _ = run(plan(4, only=("pinned -> device copy-engine",)), noisy(path))
        return [o.rule.target for o in orders if o.workload.curve == H2D and o.block == LAST]

    usual = plan().preset.rule.target
    assert min(targets(H2D)) > usual  # its equals differ, it does not
    quiet = run(
        plan(4, only=("pinned -> device copy-engine",)),
        lambda order: (
            saturating(order) * (1 + 0.05 * (order.block % 2) if order.workload.curve == H2D else 1)
        ),
    )[0]
    assert {o.rule.target for o in quiet if o.workload.curve == H2D} == {usual}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("the 90 s of standard were over", True),
        ("those of the 90 s of standard that no other block needs were over", True),
        (f"equal to {H2D} at 64 MiB, within 3 %", False),
    ],
)
def test_what_is_skipped_for_time_is_known_by_its_reason(reason: str, expected: bool) -> None:
    assert is_for_time(reason) is expected


def test_without_anything_to_compare_the_rest_is_skipped_with_that_reason() -> None:
    skipped: list[Visit] = []
    list(
        Schedule(
            plan(2, only=("pinned@numa:0 -> device@gpu:? by copy-engine",)), on_skip=skipped.append
        )
    )
    reasons = {v.failure.reason for v in skipped if v.failure}
    assert reasons == {f"not compared: no size was measured of both it and {H2D}"}


def rounds_of(sizes: dict[str, tuple[int, ...]], **like: str) -> list[int]:
    """The sizes of the plain H2D copy between 8 B and 64 MiB in the order in which they come, if
    other curves of such sizes are planned."""
    plain = next(point for point in plan().points if point.curve.text == H2D)
    points = []
    for text, planned in {H2D: tuple(2**n for n in range(3, 27)), **sizes}.items():
        transfer = Transfer(Path.parse(text))
        curve = replace(plain.curve, transfers=(transfer,), principal=text == H2D)
        for size in planned:
            is_first = text == H2D and size in (8, 64 * MIB)
            priority = Priority.HEADLINE if is_first else Priority.REST
            points.append(
                replace(
                    plain,
                    curve=curve,
                    size=size,
                    workload=curve.at(size),
                    priority=priority,
                    like=like.get("like", "") if text != H2D else "",
                )
            )
    rounds = coverage_rounds(points)
    own = [p for p in points if p.curve.text == H2D and p.priority is Priority.REST]
    return [point.size for point in sorted(own, key=lambda point: rounds[point.identity])]


def test_sizes_of_another_method_come_earlier_but_all_sizes_are_covered() -> None:
    usual = rounds_of({})
    shared = rounds_of({H2D.replace("copy-engine", "staged"): (MIB, 4 * MIB, 16 * MIB)})
    assert set(usual) == set(shared)
    assert usual[:3] == [16 * 1024, MIB, 256]
    assert shared[:2] == [MIB, 2048]
    assert shared.index(4 * MIB) < usual.index(4 * MIB)


def test_sizes_of_equivalent_paths_come_first() -> None:
    other = H2D.replace("gpu:0", "gpu:1")
    assert rounds_of({other: (8, MIB, 64 * MIB)}, like=H2D)[0] == MIB
    assert rounds_of({other: (8, 2 * MIB, 64 * MIB)}, like=H2D)[0] == 2 * MIB


def test_an_order_costs_the_same_however_many_came_before() -> None:
    """A day of noisy visits is planned as quickly as its first hour was, visit by visit."""

    def calls(deadline: float) -> tuple[int, int]:
        of = plan(preset="quick", only=("h2d",), deadline_seconds=deadline)
        played, made = result_and_calls(lambda: Played(of, lambda _: 1.0))
        return len(played.orders), made

    (few, of_few), (many, of_many) = calls(100.0), calls(800.0)
    assert many > 6 * few
    assert of_many / many < 1.3 * of_few / few


def test_settled_curves_are_not_measured_again() -> None:
    """After two rounds one curve is settled, after three all are: with a deadline far away the
    survey ends then, and says of each missing visit why."""
    of = plan(preset="check", deadline_seconds=1000.0)
    curves = sorted({point.curve.text for point in of.points})
    rounds: list[int] = []

    def settle(done: int) -> dict[str, str]:
        rounds.append(done)
        named = curves[:1] if done == 2 else curves if done == 3 else []
        return dict.fromkeys(named, f"settled after {done} processes")

    skips: list[Visit] = []
    schedule = Schedule(of, on_skip=skips.append, clock=lambda: 0.0, settle=settle)
    visited: Counter[str] = Counter()
    for order in schedule:
        visited[order.workload.curve] += 1
        schedule.record(visit(order, saturating(order)))
    assert rounds == [1, 2, 3]
    assert visited == {curve: 2 if curve == curves[0] else 3 for curve in curves}
    reasons = {skip.failure.reason for skip in skips if skip.failure}
    assert reasons == {"settled after 2 processes", "settled after 3 processes"}
    planned = sum(point.processes for point in of.points)
    assert len(skips) == planned - visited.total()


def test_a_round_that_measures_nothing_is_the_last() -> None:
    """A curve whose worker the kernel killed is not tried again; with all others settled nothing is
    left, although the deadline is far."""
    of = plan(preset="check", deadline_seconds=1000.0)
    curves = sorted({point.curve.text for point in of.points})
    skips: list[Visit] = []
    rounds: list[int] = []

    def settle(done: int) -> dict[str, str]:
        rounds.append(done)
        assert done < 100
        return dict.fromkeys(curves[1:], "settled after 3 processes") if done >= 3 else {}

    schedule = Schedule(of, on_skip=skips.append, clock=lambda: 0.0, settle=settle)
    for order in schedule:
        found = visit(order, saturating(order))
        if order.workload.curve == curves[0] and order.block == 1:
            failure = Failure(KILLED, "killed")
            found = Visit(order.workload, order.block, "failed", found.started, failure=failure)
        schedule.record(found)
    assert len(rounds) <= of.preset.processes + 1
