from __future__ import annotations

import msgspec
import pytest

import profiles
from waywiser.curves.curve import transfer_rates
from waywiser.words import Workload
from waywiser.words.records import Samples

BOTH = Workload.parse(f"{profiles.H2D} of 1000; {profiles.D2H} of 3000")

Times = list[tuple[float, ...]]


def rates(workload: Workload, *blocks: tuple[Times, list[int]]) -> list[float]:
    """A series of blocks, each with the transfers' times and flags."""
    found = []
    for number, (times, flags) in enumerate(blocks):
        spans = tuple(max(seconds) for seconds in times)
        samples = Samples(span=spans, flags=tuple(flags), transfers=tuple(times))
        found.append(profiles.block_of(profiles.visit(workload, number, samples)))
    return list(transfer_rates(workload, [block for block in found if block is not None]))


def test_each_transfer_has_its_own_bytes_over_its_own_median() -> None:
    times: Times = [(1.0, 3.0), (2.0, 2.0), (9.0, 1.0)]
    assert rates(BOTH, (times, [0, 0, 0])) == pytest.approx([500.0, 1500.0])


def test_blocks_count_as_one_each_however_many_samples_they_have() -> None:
    long: Times = [(1.0, 3.0)] * 9
    assert rates(BOTH, (long, [0] * 9), ([(2.0, 6.0)], [0]), ([(4.0, 12.0)], [0])) == pytest.approx(
        [500.0, 500.0]
    )


def test_void_samples_do_not_count() -> None:
    times: Times = [(1.0, 1.0), (100.0, 100.0)]
    assert rates(BOTH, (times, [0, 1])) == pytest.approx([1000.0, 3000.0])
    assert rates(BOTH, (times, [1, 1])) == []


def test_one_transfer_is_the_whole() -> None:
    one = msgspec.structs.replace(BOTH, transfers=BOTH.transfers[:1])
    assert rates(one, ([(1.0,)], [0])) == []
