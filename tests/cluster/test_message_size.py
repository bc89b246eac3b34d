"""The size of messages, from the first tests."""

from __future__ import annotations

import pytest

from waywiser.cluster.connection.message_size import choose_size
from waywiser.words.cluster import FailedTest, FinishedTest, PlannedTest, RailTime
from waywiser.words.records import Failure


def finished(rate: float, failed: FailedTest | None = None) -> FinishedTest:
    seconds = 1e6 / rate
    times = () if failed else (RailTime(0, "a", seconds, seconds, seconds, 9),)
    test = PlannedTest("hangs", 0, ("a", "b"))
    return FinishedTest(test, "mpi", 10**6, "", 0.1, 0.5, times, failed)


FAILED = finished(1.0, FailedTest(Failure("timeout", "it took too long")))


@pytest.mark.parametrize(
    ("rates", "size"),
    [
        ([12.5e6], 128 * 1024),
        ([1e9, 1e9, 1e3], 16 * 2**20),
        ([1e5], 64 * 1024),
        ([400e9], 16 * 2**20),
        ([100e6], 1024 * 1024),
    ],
)
def test_a_message_takes_about_10_ms(rates: list[float], size: int) -> None:
    assert choose_size([FAILED, *map(finished, rates)]) == size


def test_without_times_no_size_is_chosen() -> None:
    assert choose_size([]) == choose_size([FAILED]) == 0
