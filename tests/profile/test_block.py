from __future__ import annotations

import random

import pytest

import profiles
from profiles import block_of
from waywiser.profile.block import counted
from waywiser.stats.order import Interval
from waywiser.words.records import SUMMARY, Samples

WHAT = profiles.workload(profiles.H2D, 2**20)


def test_void_samples_are_kept_out_and_counted() -> None:
    taken = Samples(span=(1.0,) * 8 + (9.0,) * 20, flags=(0,) * 8 + (1, 3) * 10)
    block = block_of(profiles.visit(WHAT, 0, taken))
    assert block is not None
    assert (block.median, block.count, block.void) == (1.0, 8, 20)
    assert block.below_resolution == 0
    assert counted(taken) == list(range(8))


def test_samples_without_flags_all_count() -> None:
    assert counted(Samples(span=(1.0, 2.0))) == [0, 1]


def test_a_block_of_void_samples_or_of_none_has_no_estimate() -> None:
    void = profiles.samples(random.Random(1), 1e-3, flags=1)
    assert block_of(profiles.visit(WHAT, 0, void)) is None
    assert block_of(profiles.visit(WHAT, 0)) is None


def test_batches_report_no_quantiles() -> None:
    rng = random.Random(1)
    single = block_of(profiles.visit(WHAT, 0, profiles.samples(rng, 1e-3)))
    batched = block_of(profiles.visit(WHAT, 0, profiles.samples(rng, 1e-3, repetitions=4)))
    assert single is not None and batched is not None
    assert single.quantiles is not None
    assert list(single.quantiles) == ["p0", "p5", "p25", "p75", "p95", "p100"]
    assert batched.quantiles is None


def test_an_interval_is_never_narrower_than_a_tick() -> None:
    equal = Samples(span=(5e-6,) * 20, repetitions=(1,) * 20)
    block = block_of(profiles.visit(WHAT, 0, equal, mode="device"))
    assert block is not None and block.interval is not None
    assert block.interval.width == pytest.approx(block.tick)
    assert block.interval == Interval(pytest.approx(4.75e-6), pytest.approx(5.25e-6))


def test_what_the_application_sees_is_beside_it() -> None:
    block = block_of(profiles.visit(WHAT, 0, profiles.samples(random.Random(1), 1e-3)))
    assert block is not None and block.host_median is not None
    assert block.host_median > block.median
    bare = block_of(profiles.visit(WHAT, 0, Samples(span=(1.0,) * 6)))
    assert bare is not None and bare.host_median is None


def test_a_summary_counts_and_gives_no_interval_however_many_there_are() -> None:
    block = block_of(
        profiles.visit(WHAT, 0, profiles.samples(random.Random(1), 1e-3, flags=SUMMARY))
    )
    assert block is not None and block.summary
    assert block.count >= 6
    assert (block.interval, block.host_interval, block.quantiles) == (None, None, None)
