"""Borrowed noise: as much as the others agree, and never more."""

from __future__ import annotations

import math
import random

import pytest

from waywiser.stats.noise import NOTHING, fit_prior


def variances(rng: random.Random, deviations: list[float], freedom: int) -> list[float]:
    return [
        sum(rng.gauss(0, deviation) ** 2 for _ in range(freedom)) / freedom
        for deviation in deviations
    ]


def test_series_that_scatter_alike_lend_all_that_they_know() -> None:
    prior = fit_prior(variances(random.Random(1), [0.01] * 200, 8), [8.0] * 200)
    assert math.sqrt(prior.variance) == pytest.approx(0.01, rel=0.1)
    assert prior.freedom > 20


def test_few_series_that_agree_lend_their_mean_and_no_less() -> None:
    assert fit_prior([1e-4] * 5, [8.0] * 5).variance == pytest.approx(1e-4, rel=0.14)
    many = [fit_prior(variances(random.Random(n), [0.01] * 6, 4), [4.0] * 6) for n in range(400)]
    mean = sum(math.log(prior.variance) for prior in many) / len(many)
    assert mean == pytest.approx(math.log(1e-4), abs=0.1)


def test_series_that_differ_lend_little() -> None:
    rng = random.Random(2)
    deviations = [0.001 * 10 ** rng.uniform(0, 2) for _ in range(200)]
    prior = fit_prior(variances(rng, deviations, 2), [2.0] * 200)
    assert prior.freedom < 3


def test_a_lucky_variance_is_drawn_towards_the_usual_one() -> None:
    prior = fit_prior(variances(random.Random(3), [0.01] * 50, 2), [2.0] * 50)
    noise = prior.lend(1e-10, 2)
    assert noise.deviation > 0.006
    assert noise.freedom > 5


def test_few_series_lend_nothing_and_one_stands_on_its_own() -> None:
    assert fit_prior([1e-4] * 4, [2.0] * 4) == NOTHING
    noise = NOTHING.lend(1e-4, 2)
    assert (noise.deviation, noise.freedom) == (pytest.approx(0.01), 2)
    with pytest.raises(ValueError, match="neither"):
        NOTHING.lend(0.0, 0)


def test_borrowed_noise_keeps_its_word() -> None:
    """Of true null hypotheses 5 % are rejected at 5 %, though variances differ between series."""
    rng = random.Random(4)
    rejected = total = 0
    for _ in range(40):
        deviations = [0.01 * math.exp(rng.gauss(0, 0.5)) for _ in range(50)]
        blocks = [[rng.gauss(0, d) for _ in range(4)] for d in deviations]
        own = [((a - b) ** 2 + (c - d) ** 2) / 4 for a, b, c, d in blocks]
        prior = fit_prior(own, [2.0] * len(own))
        for (a, b, c, d), variance in zip(blocks, own, strict=True):
            noise = prior.lend(variance, 2)
            rejected += noise.p_value((c + d) / 2 - (a + b) / 2, 1.0) <= 0.05
            total += 1
    assert 0.03 < rejected / total < 0.07
