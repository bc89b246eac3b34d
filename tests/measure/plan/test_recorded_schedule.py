"""The schedule of a standard survey, played with what visits took on machines with H200s."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import msgspec
import pytest

from kept import RESULTS, unpacked
from waywiser.curves.sizes import GROWING, LATENCY_BELOW
from waywiser.machine import native
from waywiser.machine.machine import Machine
from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.points import PlannedPoint, Priority
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule, is_for_time
from waywiser.profile import Profile
from waywiser.words import Workload
from waywiser.words.records import Order, Rule, Samples, Visit

CATALOGUE = RESULTS / "2026-11-20-h200-catalogue"

BETWEEN_SECONDS = 0.0026
"""Seconds from an answer to the next order: the median of the recorded surveys."""

WORKER_SECONDS = 0.7
"""Seconds from the last answer of a worker to the first order of the next, with one GPU."""


class Recorded:
    """A recorded survey: its machine, and its visits that were measured."""

    def __init__(self, file: Path) -> None:
        with Profile.open(file) as profile:
            self.machine: Machine = profile.machine
            visits = [visit for visit in profile.visits() if visit.stop != "skipped"]
        self.series: defaultdict[str, list[Visit]] = defaultdict(list)
        self.curves: defaultdict[str, list[Visit]] = defaultdict(list)
        for visit in visits:
            self.series[visit.workload.identity].append(visit)
            self.curves[visit.workload.curve].append(visit)

    def played(self, order: Order, point: PlannedPoint) -> Visit:
        """What a visit would have come to. Sizes that were not recorded take what the nearest size
        of their curve took, in proportion to the bytes. Lists with a contiguous side take as long
        as lists that are scattered on both sides by the same executor."""
        identity, curve = order.workload.identity, point.curve.text
        layout = point.curve.layout
        if layout is not None and layout.scattered and not self.curves[curve]:
            (transfer,) = order.workload.transfers
            usual = msgspec.structs.replace(layout, settings={"piece": layout.settings["piece"]})
            scattered = Workload((msgspec.structs.replace(transfer, layout=usual),))
            identity, curve = scattered.identity, scattered.curve
        if same := self.series[identity]:
            visit = same[order.block % len(same)]
            seconds = visit.elapsed_seconds - visit.sampling_seconds + sampling(visit, order.rule)
            return msgspec.structs.replace(
                visit, workload=order.workload, block=order.block, elapsed_seconds=seconds
            )
        near = self.curves[curve]
        if not near:
            return made(order, point.unmeasured_seconds, 1e-5)
        visit = min(near, key=lambda v: abs(math.log2(max(size(v), 1) / max(point.size, 1))))
        share = point.size / max(size(visit), 1)
        each = visit.sampling_seconds / max(len(visit.samples), 1)
        around = visit.elapsed_seconds - visit.sampling_seconds
        seconds = max(around * share, 0.008) + order.rule.minimum * each * share
        middle = sorted(visit.samples.span)[len(visit.samples) // 2] if visit.samples.span else 0.0
        return made(order, seconds, max(middle * share, 1e-6))


def size(visit: Visit) -> int:
    return visit.workload.transfers[0].bytes if visit.workload.transfers else 0


def made(order: Order, seconds: float, span: float) -> Visit:
    samples = Samples(*(((span,) * 6,) * 3), repetitions=(1,) * 6, flags=(0,) * 6)
    return Visit(order.workload, order.block, "converged", "", samples=samples,
                 elapsed_seconds=seconds)  # fmt: skip


def sampling(visit: Visit, rule: Rule) -> float:
    """Seconds of sampling until the rule is content with the samples in their order."""
    spans = [s for s, f in zip(visit.samples.span, visit.samples.flags, strict=True) if not f & 1]
    if not spans:
        return visit.sampling_seconds
    each = visit.sampling_seconds / len(visit.samples)
    slow = sorted(spans)[len(spans) // 2] > rule.slow_seconds
    count = rule.slow_minimum if slow else rule.minimum
    while count < len(spans):
        median, low, high = native.load().median_interval(spans[:count])
        within, seconds = (high - low) / 2 / median, count * each
        if seconds >= rule.hard_seconds:
            break
        enough = rule.target if seconds >= rule.soft_seconds else rule.wanted
        if seconds >= rule.minimum_seconds and within <= enough:
            break
        count += max(1, count // 10)
    return min(count, len(spans)) * each


class Play:
    """A survey of the recorded machine by the plan of today."""

    def __init__(self, recorded: Recorded, deadline_seconds: float = 0.0) -> None:
        request = Request(deadline_seconds=deadline_seconds)
        self.plan: Plan = make_plan(recorded.machine, request)
        self.seconds = 0.0
        self.skipped: list[Visit] = []
        self.blocks: defaultdict[str, set[int]] = defaultdict(set)
        self.starts: list[float] = []
        points = {point.identity: point for point in self.plan.points}
        schedule = Schedule(self.plan, on_skip=self.skipped.append, clock=lambda: self.seconds)
        process = None
        for order in schedule:
            if order.process != process:
                self.starts.append(self.seconds)
                self.seconds += WORKER_SECONDS
                process = order.process
            visit = recorded.played(order, points[order.workload.identity])
            self.seconds += visit.elapsed_seconds + BETWEEN_SECONDS
            self.blocks[order.workload.identity].add(order.block)
            schedule.record(visit)

    def skipped_for(self, reason: str) -> Counter[str]:
        """Visits by series that were skipped for a reason with these words."""
        return Counter(
            visit.workload.identity
            for visit in self.skipped
            if visit.failure and reason in visit.failure.reason
        )

    @property
    def too_slow(self) -> Counter[str]:
        """Visits by series that were skipped because one execution takes long."""
        return self.skipped_for("takes longer")


@pytest.fixture(scope="module", params=["standard", "standard-again"])
def one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    file = tmp_path_factory.mktemp("one") / "a.wwp"
    return Recorded(unpacked(CATALOGUE / "one-gpu" / f"{request.param}.wwp.xz", file))


@pytest.fixture(scope="module")
def standard(one: Recorded) -> Play:
    return Play(one)


def test_one_h200_is_surveyed_in_two_minutes_with_all_curves_and_sizes(
    one: Recorded, standard: Play
) -> None:
    play = standard
    assert play.seconds <= 117
    result = [visit.failure.reason for visit in play.skipped if visit.failure]
    assert not [reason for reason in result if is_for_time(reason)]
    assert {point.curve.text for point in play.plan.points} == {
        point.curve.text for point in play.plan.points if point.identity in play.blocks
    }
    planned = {point.identity for point in play.plan.points}
    saturated = {v.workload.identity for v in play.skipped if v.failure
                 and "saturated" in v.failure.reason}  # fmt: skip
    measured = {identity for identity, visits in one.series.items()
                if any(len(visit.samples) for visit in visits)}  # fmt: skip
    lost = measured - play.blocks.keys() - saturated
    assert measured <= planned
    # Memory that a driver copies page by page takes 0.15 s for one execution of 64 MiB.
    assert len(lost) <= 1 and lost <= play.too_slow.keys()


def test_representative_sizes_are_in_four_processes_over_the_whole_survey(standard: Play) -> None:
    play = standard
    for point in play.plan.points:
        if point.priority <= Priority.REPRESENTATIVE and not point.curve.is_sized:
            made = len(play.blocks[point.identity]) + play.too_slow[point.identity]
            assert made == 4, point.workload
    assert len(play.starts) == 4
    parts = [b - a for a, b in zip(play.starts, [*play.starts[1:], play.seconds], strict=True)]
    assert max(parts) < 2 * min(parts)


def test_sizes_that_all_processes_measure_take_long_enough_to_time(standard: Play) -> None:
    """Contiguous copies within the memory of a GPU: 16 MiB take 7 µs."""
    local = [
        point
        for point in standard.plan.points
        if point.curve.text.startswith("device") and "-> device" in point.curve.text
        and point.curve.layout is None and point.processes > 1 and point.size > LATENCY_BELOW
    ]  # fmt: skip
    assert len(local) > 10
    assert {point.size for point in local} == {GROWING}


def test_more_time_gives_more_processes_and_less_time_fewer_sizes(one: Recorded) -> None:
    longer, shorter = Play(one, 180.0), Play(one, 60.0)
    assert 165 < longer.seconds <= 181 and shorter.seconds <= 61
    assert len(longer.starts) >= 7
    headline = [p for p in shorter.plan.points if p.priority is Priority.HEADLINE]
    assert all(
        len(shorter.blocks[p.identity]) + shorter.too_slow[p.identity] == 4 for p in headline
    )
    assert {visit.workload.curve for visit in shorter.skipped if visit.failure
            and is_for_time(visit.failure.reason)}  # fmt: skip
    curves = {p.curve.text for p in shorter.plan.points if p.identity in shorter.blocks}
    assert curves >= {p.curve.text for p in shorter.plan.points if not p.curve.is_sized}


def test_the_expected_time_is_near_what_it_takes(standard: Play) -> None:
    assert outlook(standard.plan).seconds == pytest.approx(standard.seconds, rel=0.1)
