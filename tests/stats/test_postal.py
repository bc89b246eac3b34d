"""Latency and rate come back from curves that were made of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import result_and_calls
from waywiser.stats.order import INTERVAL_SAMPLES
from waywiser.stats.postal import fit_all
from waywiser.stats.scatter import CurveBlocks

SIZES = tuple(2**n for n in range(3, 31))


def points(
    latency: float,
    rate: float,
    sizes: Sequence[int] = SIZES,
    blocks: int = 2,
    noise: float = 0.0,
    seed: int = 1,
) -> CurveBlocks:
    rng = random.Random(seed)
    return CurveBlocks(
        sizes,
        [
            {n: (latency + size / rate) * (1 + rng.gauss(0, noise)) for n in range(blocks)}
            for size in sizes
        ],
    )


@given(latency=st.floats(1e-7, 1e-3), rate=st.floats(1e8, 5e12), blocks=st.integers(1, 7))
@settings(max_examples=40)
def test_an_exact_line_is_found_exactly(latency: float, rate: float, blocks: int) -> None:
    (fit,) = fit_all([points(latency, rate, blocks=blocks)], draws=20)
    assert fit is not None
    reached = SIZES[-1] / rate > 0.1 * latency
    assert fit.latency == pytest.approx(latency, rel=1e-3)
    if reached:
        assert fit.inverse_rate == pytest.approx(1 / rate, rel=1e-3)
        assert fit.half_peak == pytest.approx(latency * rate, rel=1e-2)
    assert max(map(abs, fit.deviations)) < 1e-3
    assert fit.over == ("blocks" if blocks >= INTERVAL_SAMPLES else "blocks and sizes")


@given(factor=st.floats(0.01, 100.0), scale=st.integers(1, 64))
@settings(max_examples=30)
def test_units_do_not_matter(factor: float, scale: int) -> None:
    made = points(5e-6, 50e9, noise=0.01)
    other = CurveBlocks(
        [size * scale for size in made.bytes],
        [{n: factor * t for n, t in each.items()} for each in made.blocks],
    )
    (fit,), (scaled,) = fit_all([made]), fit_all([other])
    assert fit is not None and scaled is not None
    assert scaled.latency == pytest.approx(factor * fit.latency, rel=1e-6)
    assert scaled.inverse_rate == pytest.approx(factor / scale * fit.inverse_rate, rel=1e-6)


@pytest.mark.parametrize("blocks", [2, 6])
def test_intervals_hold_the_truth_about_as_often_as_they_say(blocks: int) -> None:
    made = [points(5e-6, 50e9, blocks=blocks, noise=0.02, seed=seed) for seed in range(200)]
    fits = [fit for fit in fit_all(made) if fit is not None]
    latencies = [fit.latency_interval for fit in fits]
    rates = [fit.inverse_rate_interval for fit in fits]
    least = 0.8  # of six blocks a bootstrap sees too little scatter, as it always does of few
    assert sum(each.low <= 5e-6 <= each.high for each in latencies) >= least * len(fits)
    assert sum(each.low <= 1 / 50e9 <= each.high for each in rates) >= least * len(fits)
    assert all(each.width < 0.05 * 5e-6 for each in latencies)


def test_one_bad_size_does_not_bend_the_line() -> None:
    made = points(5e-6, 50e9)
    dipped = [dict(each) for each in made.blocks]
    dipped[14] = {n: 2 * seconds for n, seconds in dipped[14].items()}
    (fit,) = fit_all([CurveBlocks(made.bytes, dipped)])
    assert fit is not None
    assert fit.latency == pytest.approx(5e-6, rel=0.01)
    assert fit.inverse_rate == pytest.approx(1 / 50e9, rel=0.01)
    *rest, worst = sorted(map(abs, fit.deviations))
    assert worst == pytest.approx(1.0, rel=0.05)
    assert max(rest) < 0.01


def test_a_size_that_one_block_skipped_counts_with_the_others() -> None:
    made = points(5e-6, 50e9)
    blocks = [*made.blocks[:-1], {0: made.blocks[-1][0]}]
    (fit,) = fit_all([CurveBlocks(made.bytes, blocks)])
    assert fit is not None and fit.inverse_rate == pytest.approx(1 / 50e9, rel=1e-3)


@pytest.mark.parametrize("sizes", [SIZES[:5], (8, 9, 10, 11, 12, 13), SIZES[:2]])
def test_too_few_sizes_or_too_near_ones_give_no_fit(sizes: Sequence[int]) -> None:
    assert fit_all([points(5e-6, 50e9, sizes)]) == [None]


def test_what_falls_with_size_has_no_negative_rate() -> None:
    made = CurveBlocks(SIZES, [{0: 1e-5 / (n + 1)} for n in range(len(SIZES))])
    (fit,) = fit_all([made])
    assert fit is not None
    assert fit.inverse_rate == 0.0 and fit.half_peak is None and fit.half_peak_interval is None


def test_the_draws_of_a_full_profile_are_fitted_together() -> None:
    """It takes 100,000 calls; the 36,000 draws one by one would take millions."""
    made = [points(5e-6, 50e9, blocks=6, noise=0.01, seed=seed) for seed in range(180)]
    fit_all(made[:1])  # numpy is loaded
    fits, calls = result_and_calls(lambda: fit_all(made))
    assert calls < 200_000
    assert fits == fit_all(made)  # and the draws are seeded
