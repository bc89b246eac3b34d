"""How many tests a run needs and how long it takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cluster.simulated_transport import SimulatedTransport, nodes
from waywiser.analysis.cluster.procedure import next_round
from waywiser.cluster.surveys.time_plan import (
    RoundCosts,
    check_seconds,
    encoded,
    expected_rounds,
    has_time,
    measured_costs,
    skipped,
    time_plan,
)
from waywiser.words.cluster import ClusterPlan, FinishedTest, PlannedTest

PLAN = ClusterPlan("mpi", seed=3, bytes=1 << 20)


def test_the_rounds_are_those_that_a_healthy_cluster_has() -> None:
    known = nodes(10)
    expected = [(each.phase, each.tests) for each in expected_rounds(known, PLAN, ())]
    transport, finished, ran = SimulatedTransport(), list[FinishedTest](), []
    while following := next_round(known, PLAN, finished):
        ran.append((following.phase, following.tests))
        transport.run(following.tests, PLAN.bytes, 60.0, finished.append)
    assert expected == ran


def test_what_is_finished_is_not_planned_again() -> None:
    known, finished = nodes(10), list[FinishedTest]()
    transport = SimulatedTransport()
    before = expected_rounds(known, PLAN, ())
    for each in before[:4]:
        transport.run(each.tests, PLAN.bytes, 60.0, finished.append)
    assert expected_rounds(known, PLAN, finished) == before[4:]


@pytest.mark.parametrize(("count", "seconds"), [(32, 180.0), (1024, 1200.0)])
@pytest.mark.parametrize("transport", ["mpi", "nccl"])
def test_a_run_fits_into_its_time(count: int, seconds: float, transport: str) -> None:
    plan = replace(PLAN, transport=transport)
    rounds = expected_rounds(nodes(count), plan, ())
    planned = time_plan(rounds, RoundCosts(transport, count), check_seconds(count))
    assert planned.seconds < seconds
    assert planned.rounds == len(rounds)
    assert planned.tests == sum(len(each.tests) for each in rounds)
    assert encoded(planned)["seconds"] == planned.seconds


def test_costs_are_measured_set_up_included() -> None:
    costs = RoundCosts("mpi", 8)
    assumed = costs.of("pairs")
    assert costs.of("collective") == 2 * assumed
    for seconds in (3.0, 9.0, 4.0):
        costs.add("pairs", seconds)
    assert costs.of("pairs") == 4.0
    assert costs.of("alone") == 4.0, "as other rounds of pairs"
    assert costs.of("collective") == 8.0
    costs.add("collective", 1.5)
    assert costs.of("collective") == 1.5
    tests = [
        FinishedTest(PlannedTest("pairs", number, pair), "mpi", 1, "", setup, elapsed)
        for number, pair, setup, elapsed in (
            (0, ("a", "b"), 1.0, 2.0), (0, ("c", "d"), 1.0, 5.0), (1, ("a", "c"), 2.0, 2.0)
        )
    ]  # fmt: skip
    assert measured_costs("mpi", 4, tests).of("pairs") == 5.0


def test_pairs_end_first_if_time_is_short() -> None:
    costs = RoundCosts("mpi", 4, {"pairs": [2.0], "alone": [3.0], "collective": [5.0]})
    assert has_time("pairs", costs, 16.0) and not has_time("pairs", costs, 15.9)
    assert has_time("cover", costs, 16.5) and not has_time("cover", costs, 16.4)
    assert has_time("alone", costs, 3.0) and not has_time("alone", costs, 2.9)
    assert has_time("collective", costs, 5.0) and not has_time("collective", costs, 4.9)


def test_what_has_no_time_counts_as_done_and_accuses_nobody() -> None:
    known, finished = nodes(6), list[FinishedTest]()
    transport = SimulatedTransport()
    while following := next_round(known, PLAN, finished):
        if following.phase == "pairs" and following.number >= 5:
            finished += (skipped(test, PLAN) for test in following.tests)
        else:
            transport.run(following.tests, PLAN.bytes, 60.0, finished.append)
    phases = {test.test.phase for test in finished if not test.failed}
    assert phases == {"hangs", "pairs", "collective"}
    assert transport.count < len(finished)
