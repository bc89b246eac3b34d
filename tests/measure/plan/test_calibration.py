"""The sets that ``survey --model`` adds: few, for every pair of GPUs, and random ones apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest
from machines import machine

from kept import RESULTS, unpacked
from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.measure.plan.calibration import (
    CALIBRATING_BYTES,
    MODEL_SECONDS,
    MOST_PAIRS,
    VALIDATION_BYTES,
    VALIDATION_PROCESSES,
    VALIDATION_SETS,
)
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.points import PlannedPoint, Priority
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule
from waywiser.profile import Profile
from waywiser.words import Workload
from waywiser.words.records import Samples, Visit

VISIT_SECONDS = 0.01

FOUR = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"


def plan(of: Machine, preset: str = "standard", *, model: bool = True, seed: int = 1) -> Plan:
    return make_plan(of, Request(preset=preset, model=model, seed=seed))


def added(with_it: Plan, without: Plan) -> list[PlannedPoint]:
    known = {point.identity for point in without.points}
    return [point for point in with_it.points if point.identity not in known]


def ends(workload: Workload) -> frozenset[str]:
    return frozenset(
        f"{a} -> {b}" for a, b in (transfer.path.places for transfer in workload.transfers)
    )


@pytest.mark.usefixtures("scripted")
def test_no_gpu_needs_no_sets() -> None:
    assert plan(machine(gpus=0)).points == plan(machine(gpus=0), model=False).points
    assert not plan(machine(gpus=0)).validation


@pytest.mark.usefixtures("scripted")
def test_one_gpu_has_sets_of_both_directions() -> None:
    found = plan(machine(gpus=1))
    assert len(set(found.validation)) == VALIDATION_SETS
    chosen = [p.workload for p in found.points if p.identity in found.validation]
    both = frozenset({"numa:0 -> gpu:0", "gpu:0 -> numa:0"})
    assert any(ends(each) == both for each in chosen)
    assert all(len(each.transfers) > 1 for each in chosen)
    measured = {ends(p.workload) for p in found.points if p.size == CALIBRATING_BYTES}
    assert both in measured


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("preset", ["standard", "quick", "check"])
def test_every_pair_of_gpus_is_measured_in_both_directions(preset: str) -> None:
    found = plan(machine(gpus=4), preset)
    measured = {ends(point.workload) for point in found.points}
    for a, b in combinations(range(4), 2):
        assert frozenset({f"numa:0 -> gpu:{a}", f"numa:0 -> gpu:{b}"}) in measured
        assert frozenset({f"gpu:{a} -> numa:0", f"gpu:{b} -> numa:0"}) in measured
    for gpu in range(4):
        assert frozenset({f"numa:0 -> gpu:{gpu}", f"gpu:{gpu} -> numa:0"}) in measured
    half = {"numa:0 -> gpu:0", "numa:0 -> gpu:1", "gpu:2 -> numa:0", "gpu:3 -> numa:0"}
    assert frozenset(half) in measured


@pytest.mark.usefixtures("scripted")
def test_no_series_is_measured_twice() -> None:
    found = plan(machine(gpus=4))
    assert max(Counter(point.identity for point in found.points).values()) == 1


@pytest.mark.usefixtures("scripted")
def test_many_gpus_have_a_limited_number_of_pairs() -> None:
    found = added(plan(machine(gpus=16)), plan(machine(gpus=16), model=False))
    to_two = [
        point
        for point in found
        if len(point.workload.transfers) == 2
        and all(str(each).startswith("numa:0 -> ") for each in ends(point.workload))
        and point.size == CALIBRATING_BYTES
    ]
    assert len(to_two) == MOST_PAIRS


@pytest.mark.usefixtures("scripted")
def test_validation_sets_are_random_and_follow_from_the_seed() -> None:
    first, again, other = (plan(machine(gpus=4), seed=seed) for seed in (1, 1, 2))
    assert len(set(first.validation)) == VALIDATION_SETS
    assert first.validation == again.validation
    assert not set(first.validation) & set(other.validation)
    chosen = [p for p in first.points if p.identity in first.validation]
    assert len(chosen) == VALIDATION_SETS
    for point in chosen:
        sizes = [transfer.bytes for transfer in point.workload.transfers]
        assert len(sizes) >= 2 and sum(sizes) <= VALIDATION_BYTES
        assert all(2**16 <= size <= 2**28 and size % 4096 == 0 for size in sizes)
        assert len(ends(point.workload)) > 1 or len(set(sizes)) > 1
    assert any(len({t.bytes for t in point.workload.transfers}) > 1 for point in chosen)
    directions = [{each.split(":")[0] for each in ends(point.workload)} for point in chosen]
    assert any(len(each) > 1 for each in directions)


@pytest.mark.usefixtures("scripted")
def test_calibrating_sets_are_in_all_processes_and_validation_sets_in_two() -> None:
    with_it = plan(machine(gpus=4))
    found = added(with_it, plan(machine(gpus=4), model=False))
    for point in found:
        is_validation = point.identity in with_it.validation
        assert point.processes == (VALIDATION_PROCESSES if is_validation else 4)
    assert {point.priority for point in found} == {Priority.HEADLINE}
    assert {point.processes for point in added(
        plan(machine(gpus=4), "quick"), plan(machine(gpus=4), "quick", model=False)
    )} == {1}  # fmt: skip


@pytest.mark.usefixtures("scripted")
def test_the_deadline_of_a_preset_grows_and_one_of_the_user_does_not() -> None:
    usual = plan(machine(gpus=4), model=False).deadline_seconds
    assert plan(machine(gpus=4)).deadline_seconds == usual + MODEL_SECONDS
    fixed = make_plan(machine(gpus=4), Request(model=True, deadline_seconds=60.0))
    assert fixed.deadline_seconds == 60.0


@pytest.mark.usefixtures("scripted")
def test_the_schedule_measures_every_set_in_each_of_its_processes() -> None:
    found = plan(machine(gpus=4))
    expected = {p.identity: p.processes for p in added(found, plan(machine(gpus=4), model=False))}
    blocks: defaultdict[str, set[int]] = defaultdict(set)
    now = 0.0
    schedule = Schedule(found, clock=lambda: now)
    for order in schedule:
        now += VISIT_SECONDS
        spans = (order.workload.bytes / 1e10 + 1e-5,) * 6
        samples = Samples(spans, spans, spans, repetitions=(1,) * 6, flags=(0,) * 6)
        visit = Visit(order.workload, order.block, "converged", "", samples=samples,
                      elapsed_seconds=VISIT_SECONDS)  # fmt: skip
        blocks[order.workload.identity].add(order.block)
        schedule.record(visit)
    assert {identity: len(blocks[identity]) for identity in expected} == expected


def test_what_a_model_adds_takes_less_than_30_seconds_on_four_h200s(tmp_path: Path) -> None:
    """Each set takes as long as three of four recorded ones of as many transfers, or more, and of
    as many bytes, with memory of the host, which is slow to set up."""
    with Profile.open(unpacked(FOUR, tmp_path / "four.wwp")) as profile:
        of = profile.machine
        visits = [visit for visit in profile.visits() if visit.stop != "skipped"]
    recorded: defaultdict[int, list[float]] = defaultdict(list)
    for visit in visits:
        workload = visit.workload
        kinds = {memory.kind for t in workload.transfers for memory in t.path.ends}
        if kinds == {"pinned", "device"} and workload.bytes <= VALIDATION_BYTES:
            recorded[len(workload.transfers)].append(visit.elapsed_seconds)
    usual = {count: sorted(known)[3 * len(known) // 4] for count, known in recorded.items()}
    native.load()
    found = added(plan(of), plan(of, model=False))
    assert VALIDATION_SETS < len(found) < 3 * VALIDATION_SETS
    seconds = 0.0
    for point in found:
        count = min(len(point.workload.transfers), max(usual))
        nearest = min(known for known in usual if known >= count)
        seconds += point.processes * usual[nearest]
    assert 5 < seconds < MODEL_SECONDS


@pytest.mark.usefixtures("scripted")
def test_explicit_sizes_leave_the_sets_for_a_model_as_they_are() -> None:
    usual = plan(machine(gpus=4))
    sized = make_plan(machine(gpus=4), Request(model=True, sizes="1MiB"))
    assert sized.validation == usual.validation
    sets = {point.identity for point in added(usual, plan(machine(gpus=4), model=False))}
    assert sets <= {point.identity for point in sized.points}
