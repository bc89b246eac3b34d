"""A predicted time that falls with the size says so."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from waywiser.model.count_table import CountKey
from waywiser.model.curve import CurveTimes, fit_curves
from waywiser.model.falling_times import LEAST_FALL, drop_text, longer_before
from waywiser.model.messages import MessageTimes
from waywiser.model.rate import fit_all_counts, fit_counts, held_out_deviations
from waywiser.stats.scatter import CurveBlocks

SIZES = [4 * 2**n for n in range(16)]
FACTORS = st.lists(st.floats(0.4, 2.5), min_size=len(SIZES), max_size=len(SIZES))


def expected(size: float) -> float:
    return 2e-6 + size / 12e9


def requested(seed: int) -> list[int]:
    draws = np.random.default_rng(seed).uniform(np.log(4), np.log(SIZES[-1]), 30)
    return sorted({*SIZES, *np.exp(draws).astype(int).tolist()})


@settings(max_examples=40, deadline=None)
@example([1.0] * 12 + [0.9375, 1.15625, 1.5625, 1.0], 178)
@given(FACTORS, st.integers(0, 1000))
def test_curves_rise_or_say_so(factors: list[float], seed: int) -> None:
    times = [{0: expected(n) * factor} for n, factor in zip(SIZES, factors, strict=True)]
    blocks = CurveBlocks(SIZES, times, [0.0] * len(SIZES))
    (model,) = fit_curves([CurveTimes("x", "link", blocks)], 2)
    longest = 0.0
    for size in requested(seed):
        seconds = model.seconds(size)
        if seconds < (1 - 2 * LEAST_FALL) * longest:
            found = longer_before(model.times_at, model.sizes, size)
            assert found is not None and found.bytes < size
            assert "falls with the size" in found.text(size, seconds)
        longest = max(longest, seconds)


@settings(max_examples=12, deadline=None)
@given(FACTORS, st.integers(2, 9), st.integers(0, 1000))
def test_several_messages_rise_or_say_so(factors: list[float], count: int, seed: int) -> None:
    messages = [
        MessageTimes("pinned", "pinned", "off-node", "messages", n, size, (0, 6),
                     (n * expected(size) * factor,))
        for size, factor in zip(SIZES, factors, strict=True) for n in range(1, 10)
    ]  # fmt: skip
    model = fit_counts(messages, "pinned", "messages")
    assert model is not None
    longest = 0.0
    for size in requested(seed):
        seconds = model.seconds(count, size)
        if seconds < (1 - 2 * LEAST_FALL) * longest:
            times = partial(model.times_at, count)
            assert longer_before(times, model.sizes, size) is not None
        longest = max(longest, seconds)


def split(sizes: list[int], most: int, jobs: int) -> list[MessageTimes]:
    """Messages of whole and of divided sizes: most of the latter have one number of messages."""
    keys = {(size, n) for size in sizes for n in range(1, most + 1)}
    keys |= {(4 * (size // 4 // n), n) for size in sizes for n in range(1, most + 1)
             if size // 4 >= n}  # fmt: skip
    return [
        MessageTimes("pinned", "pinned", "off-node", "messages", n, size, (0, 6),
                     tuple(n * expected(size) * (1 + 0.05 * job) for job in range(jobs)))
        for size, n in sorted(keys)
    ]  # fmt: skip


@pytest.mark.parametrize("most", range(4, 14))
@pytest.mark.parametrize("jobs", [1, 3])
def test_sizes_of_one_count_do_not_spoil_the_others(most: int, jobs: int) -> None:
    messages = split(SIZES, most, jobs)
    model = fit_counts(messages, "pinned", "messages")
    assert model is not None
    assert max(held_out_deviations(messages, CountKey("pinned", "messages"))) < 1e-6
    assert set(SIZES) <= set(model.sizes) and set(model.sizes).isdisjoint(model.skipped)
    usual = 1 + 0.05 * (jobs // 2)
    for size in requested(most):
        for n in range(1, most + 1):
            assert model.seconds(n, size) == pytest.approx(n * expected(size) * usual, rel=0.06)


@pytest.mark.parametrize("seed", range(20))
def test_intervals_hold_times_of_other_jobs(seed: int) -> None:
    draws = np.random.default_rng(seed)
    factors = np.exp(draws.normal(0, 0.1, (len(SIZES), 9, 12)))
    messages = [
        MessageTimes("pinned", "pinned", "off-node", "messages", n, size, (0, 6),
                     tuple((n * expected(size) * factors[row, n - 1, :6]).tolist()))
        for row, size in enumerate(SIZES) for n in range(1, 10)
    ]  # fmt: skip
    (model,) = fit_all_counts(messages)
    inside = [
        found.interval.contains(n * expected(size) * factors[row, n - 1, job])
        for row, size in enumerate(SIZES) for n in range(1, 10)
        if (found := model.predict(n, size)) is not None for job in range(6, 12)
    ]  # fmt: skip
    assert 0.9 < np.mean(inside) < 0.995


@pytest.mark.parametrize("at", range(1, len(SIZES)))
def test_a_drop_is_named_by_its_first_size(at: int) -> None:
    times = [expected(n) * (0.5 if row >= at else 1.0) for row, n in enumerate(SIZES)]
    found = drop_text(SIZES, times)
    is_drop = times[at] < 0.97 * times[at - 1]
    assert found.startswith("faster from ") is is_drop
    assert drop_text(SIZES, [expected(n) for n in SIZES]) == ""
