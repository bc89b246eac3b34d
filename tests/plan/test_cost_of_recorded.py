"""The estimate against what visits really took, in surveys of machines with one and four H200s."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.plan.catalogue import Catalogue
from waywiser.plan.cost import Cost
from waywiser.plan.evidence import looks_seconds
from waywiser.plan.paths import with_hypothetical_gpu
from waywiser.plan.plan import Request, make_plan
from waywiser.profile import Profile
from waywiser.words import Workload

CATALOGUE = RESULTS / "2026-11-20-h200-catalogue"
BETWEEN_SECONDS = 0.0026
"""From an answer to the next order, which no visit's own clock sees: the median of both surveys."""


def kind(workload: Workload) -> str:
    if workload.operation is not None:
        return "operations"
    executors = {transfer.path.executor for transfer in workload.transfers}
    moved = len(workload.transfers) > 2
    return "sets" if moved else "by " + " and ".join(sorted(executors))


@pytest.mark.parametrize(
    ("name", "within", "least"),
    [("one-gpu", 0.1, 0.7), ("four-gpus", 0.1, 0.7), ("four-gpus-busy", 0.25, 0.6)],
)
def test_visits_take_what_is_expected_of_them(
    name: str, within: float, least: float, tmp_path: Path
) -> None:
    file = unpacked(CATALOGUE / name / "standard.wwp.xz", tmp_path / "standard.wwp")
    taken: defaultdict[str, float] = defaultdict(float)
    expected: defaultdict[str, float] = defaultdict(float)
    with Profile.open(file) as profile:
        machine = profile.machine
        plan = make_plan(machine, Request())
        points = {point.workload.identity: point for point in plan.points}
        cost = Cost(machine, Catalogue(with_hypothetical_gpu(machine)))
        for visit in profile.visits():
            if visit.stop == "skipped":
                continue
            group = kind(visit.workload)
            taken[group] += visit.elapsed_seconds + BETWEEN_SECONDS
            expected[group] += cost.visit_seconds(visit.workload, plan.preset.rule)
            point = points.get(visit.workload.identity)
            if visit.evidence is not None and point is not None:
                expected[group] += looks_seconds([point], machine)
    assert sum(expected.values()) == pytest.approx(sum(taken.values()), rel=within)
    for group, seconds in taken.items():
        if seconds > 0.05 * sum(taken.values()):
            assert least < expected[group] / seconds < 1.5, group
