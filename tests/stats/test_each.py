from __future__ import annotations

import msgspec
import pytest

import profiles
from waywiser.records import Samples, Series
from waywiser.stats.each import transfer_rates
from waywiser.words import Workload

BOTH = Workload.parse(f"{profiles.H2D} of 1000; {profiles.D2H} of 3000")


def series(workload: Workload, times: list[tuple[float, ...]], flags: list[int]) -> Series:
    spans = tuple(max(seconds) for seconds in times)
    samples = Samples(span=spans, flags=tuple(flags), transfers=tuple(times))
    return Series(workload, (profiles.visit(workload, 0, samples),))


def test_each_transfer_has_its_own_bytes_over_its_own_median() -> None:
    times = [(1.0, 3.0), (2.0, 2.0), (9.0, 1.0)]
    assert list(transfer_rates(series(BOTH, times, [0, 0, 0]))) == pytest.approx([500.0, 1500.0])


def test_void_samples_do_not_count() -> None:
    times = [(1.0, 1.0), (100.0, 100.0)]
    assert list(transfer_rates(series(BOTH, times, [0, 1]))) == pytest.approx([1000.0, 3000.0])
    assert list(transfer_rates(series(BOTH, times, [1, 1]))) == []


def test_one_transfer_is_the_whole() -> None:
    one = msgspec.structs.replace(BOTH, transfers=BOTH.transfers[:1])
    assert list(transfer_rates(series(one, [(1.0,)], [0]))) == []
