"""The noise of a series of nights, by itself and by equivalent series."""

from __future__ import annotations

import numpy as np
import pytest

from waywiser.stats.night_noise import (
    DEVIATIONS,
    ROUNDS,
    UNKNOWN_NOISE,
    least_sizes,
    own_noise,
    own_weights,
    usual_noise,
)


@pytest.mark.parametrize(("freedom", "t"), [(5.0, 3.0), (9.0, 6.0), (40.0, 5.0)])
def test_a_lone_series_has_students_t(freedom: float, t: float) -> None:
    from scipy import stats

    noise = own_noise(UNKNOWN_NOISE, freedom * 0.02**2, freedom)
    assert noise.deviation == pytest.approx(0.02, rel=0.01)
    expected = 2 * stats.t.sf(t, freedom)
    assert noise.chance(t * 0.02 * 0.6, 0.36) == pytest.approx(expected, rel=0.05)


def test_least_sizes_have_their_chance() -> None:
    shares = np.array([0.1, 0.4, 1.0, 1.3, 0.34] * 300)
    noises = [
        own_noise(UNKNOWN_NOISE, freedom * deviation**2, freedom)
        for freedom, deviation in [(2.0, 0.01), (12.0, 0.01), (12.0, 0.3), (60.0, 1e-4), (1.0, 0.9)]
    ] * 300
    sizes = least_sizes(np.array([each.weights for each in noises]), 1e-6, shares)
    for noise, share, size in zip(noises[:5], shares, sizes, strict=False):
        assert noise.chance(size, share) == pytest.approx(1e-6, rel=1e-3)
    assert np.array_equal(sizes, np.tile(sizes[:5], 300)), "whatever is looked at together"


@pytest.mark.parametrize("together", [1, 2, 3, 7, 8, 50])
def test_a_least_size_is_the_same_to_the_last_digit_whatever_is_beside_it(together: int) -> None:
    random = np.random.default_rng(together)
    freedom = random.uniform(3, 60, 400)
    squares = freedom * np.exp(random.normal(-4.6, 0.5, 400)) ** 2
    weights, _ = own_weights(UNKNOWN_NOISE.weights, squares, freedom)
    shares = random.uniform(0.3, 1.3, 400)
    whole = least_sizes(weights, 1e-7, shares)
    parts = [slice(n, n + together) for n in range(0, 400, together)]
    alone = [least_sizes(weights[part], 1e-7, shares[part]) for part in parts]
    assert np.array_equal(np.concatenate(alone), whole)


@pytest.mark.parametrize("chance", [1.0, 1.5])
def test_any_difference_has_a_chance_of_one(chance: float) -> None:
    assert least_sizes(UNKNOWN_NOISE.weights[None], chance, np.array([0.4])).tolist() == [0.0]


def test_equal_peers_show_the_noise_of_a_series_of_few_nights() -> None:
    squares = np.random.default_rng(1).chisquare(9, 200) * 0.01**2
    usual = usual_noise(squares, np.full(200, 9.0))
    for own in (0.006, 0.01, 0.015):
        assert own_noise(usual, 9 * own**2, 9).deviation == pytest.approx(0.01, rel=0.12)
    lone = own_noise(UNKNOWN_NOISE, 9 * 0.01**2, 9)
    shared = own_noise(usual, 9 * 0.01**2, 9)
    assert shared.chance(0.04, 0.4) < lone.chance(0.04, 0.4) / 100


def test_a_path_may_be_one_of_the_few_with_more_noise() -> None:
    """A path whose few nights happen to agree may be one too."""
    rng = np.random.default_rng(2)
    deviations = np.where(np.arange(200) % 10 == 0, 0.04, 0.01)
    usual = usual_noise(rng.chisquare(40, 200) * deviations**2, np.full(200, 40.0))
    quiet = usual_noise(rng.chisquare(40, 200) * 0.01**2, np.full(200, 40.0))
    own = 4 * 0.015**2, 4.0
    assert own_noise(usual, *own).chance(0.06, 0.5) > 10 * own_noise(quiet, *own).chance(0.06, 0.5)
    noisy = own_noise(usual, 40 * 0.04**2, 40.0)
    assert noisy.deviation == pytest.approx(0.04, rel=0.1)


def test_series_without_noise_have_the_least() -> None:
    usual = usual_noise(np.zeros(3), np.full(3, 9.0))
    noise = own_noise(usual, 0.0, 9.0)
    assert 1e-4 <= noise.deviation < 2e-4


def test_many_series_show_what_few_with_the_same_noise_do() -> None:
    """Nearly equal variances count as one, as often as there are, in whatever order they come."""
    rng = np.random.default_rng(3)
    freedom = rng.choice([9.0, 12.0, 40.0], 5000)
    squares = rng.chisquare(freedom) * rng.choice([0.01, 0.01, 0.03], 5000) ** 2
    usual = usual_noise(squares, freedom)
    order = rng.permutation(5000)
    assert np.array_equal(usual_noise(squares[order], freedom[order]).weights, usual.weights)
    apart = UNKNOWN_NOISE.weights
    likely = np.exp(
        -freedom[:, None] * np.log(DEVIATIONS)
        - np.maximum(squares, 0)[:, None] / (2 * DEVIATIONS**2)
        + (freedom / 2 * (1 + np.log(squares / freedom)))[:, None]
    )
    for _ in range(ROUNDS):
        held = apart * ((1 / (likely @ apart)) @ likely)
        apart = (held + UNKNOWN_NOISE.weights) / 5001
    assert usual.weights == pytest.approx(apart, rel=1e-2, abs=1e-5)
