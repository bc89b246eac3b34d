"""How long tests and launches may take."""

from __future__ import annotations

from waywiser.cluster.transports.time_limits import (
    RANK_SECONDS,
    collective_limit,
    pair_limit,
    start_limit,
)
from waywiser.words.cluster import FailedTest, FinishedTest, Phase, PlannedTest
from waywiser.words.records import Failure

LATE = FailedTest(Failure("timeout", "it took too long"))


def finished(
    seconds: float, *, phase: Phase = "pairs", nodes: int = 2, failed: FailedTest | None = None
) -> FinishedTest:
    names = tuple(f"n{number}" for number in range(nodes))
    test = PlannedTest(phase, 0, names)
    return FinishedTest(test, "mpi", 1, "", elapsed_seconds=seconds, failed=failed)


def test_a_pair_has_many_times_what_pairs_took() -> None:
    late = finished(99.0, failed=LATE)
    together = finished(99.0, phase="collective", nodes=9)
    assert pair_limit([]) == pair_limit([late, together]) == 60.0
    assert pair_limit([finished(4.0), finished(6.0), late, together]) == 50.0
    assert pair_limit([finished(0.1)]) == 15.0


def test_a_collective_has_longer_the_more_ranks_it_has() -> None:
    assert collective_limit(16, 2, []) == 60.0 + 16 * RANK_SECONDS
    assert collective_limit(8192, 1024, []) > 300.0
    slow_pairs = [finished(20.0)]
    assert collective_limit(16, 2, slow_pairs) == 200.0 + 16 * RANK_SECONDS


def test_a_collective_has_many_times_what_others_took_for_each_node() -> None:
    took = [finished(40.0, phase="collective", nodes=8)]
    assert collective_limit(4, 4, took) == 400.0
    assert collective_limit(16, 16, took) == 800.0


def test_many_ranks_have_longer_to_connect() -> None:
    assert start_limit(60.0, 8, []) == 60.0 + 8 * RANK_SECONDS
    assert start_limit(60.0, 8, [(8, 1.0), (8, 20.0)]) == 200.0
    assert start_limit(60.0, 80, [(8, 20.0)]) == 2000.0
    assert start_limit(60.0, 4, [(8, 20.0)]) == 200.0
