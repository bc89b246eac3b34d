"""How far times of other jobs and processes are from the usual one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from model_curves import curve
from waywiser.model.curve import fit_curves
from waywiser.model.job_scatter import block_of, job_of, of_processes, of_sizes, with_others

RNG_SIZES = 12


def times(deviation: float, processes: int, seed: int) -> list[dict[int, float]]:
    rng = np.random.default_rng(seed)
    return [
        dict(enumerate(np.exp(deviation * rng.standard_normal(processes)).tolist()))
        for _ in range(RNG_SIZES)
    ]


def test_blocks_are_numbered_by_pair_and_job() -> None:
    assert [job_of(block_of(pair, job)) for pair in (0, 7) for job in (0, 3)] == [0, 3, 0, 3]


@pytest.mark.parametrize("processes", [2, 3, 6])
@pytest.mark.parametrize("deviation", [0.01, 0.1])
def test_a_further_process_is_within_the_scatter_of_processes(
    processes: int, deviation: float
) -> None:
    inside = []
    for seed in range(40):
        known = times(deviation, processes, seed)
        (found,) = of_processes([known], ["link"])
        further = [abs(math.log(each[0])) for each in times(deviation, 1, 1000 + seed)]
        inside += [off <= most for off, most in zip(further, found, strict=True)]
    assert 0.91 <= np.mean(inside) <= 0.99


def test_curves_without_a_second_process_have_the_usual_scatter_of_their_kind() -> None:
    noisy, single = times(0.05, 2, 1), times(0.05, 1, 2)
    found = of_processes([noisy, single, single], ["link", "link", "host"])
    assert len(found[1]) == RNG_SIZES and min(found[1]) > 0.02
    assert found[2] == ()


def test_two_jobs_that_are_alike_have_what_the_others_show() -> None:
    alike = [{block_of(0, 0): 1.0, block_of(0, 1): 1.0001}] * RNG_SIZES
    apart = [{block_of(0, 0): 1.0, block_of(0, 1): 1.1}] * RNG_SIZES
    own = [of_sizes(alike, job_of), of_sizes(apart, job_of)]
    first, second = with_others(own, [2, 2], [alike, apart])
    assert max(own[0]) < 0.001 and min(first) > 0.05
    assert second == own[1]
    assert with_others(own, [5, 5], [alike, apart]) == own, "five jobs show it themselves"


def test_a_model_has_the_scatter_of_its_processes() -> None:
    """Two processes that differ by 10 % at all sizes make the interval so wide."""
    one = curve(lambda n: 1e-6 + n / 1e10)
    blocks = [{0: own[0], 1: 1.1 * own[0]} for own in one.blocks.blocks]
    two = one._replace(blocks=one.blocks._replace(blocks=blocks))
    halves = []
    for each in (one, two):
        (model,) = fit_curves([each], 2)
        found = model.predict(each.blocks.bytes[4] + 1)
        assert found is not None
        halves.append(math.log(found.interval.high / found.interval.low) / 2)
    assert halves[1] > halves[0] + 0.05
