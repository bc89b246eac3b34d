"""What remote memory costs, with processes as replicates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from waywiser.stats.decision import Effect
from waywiser.stats.distributions import student_quantile
from waywiser.stats.remote_penalty import SidesOfProcess, remote_penalty

COST = math.log(1.05)
GPUS = 8


def processes(
    rng: np.random.Generator, count: int, *, varies: float = 0.02, one_sided: bool = False
) -> list[SidesOfProcess]:
    """Each lands on a side by lot, is slower or faster as a whole, and pays a cost of its own for
    being far, which deviates by ``varies``. GPUs differ by 1 % anyhow; the first half of them is on
    one side, or, ``one_sided``, all are."""
    gpus = 0.01 * rng.standard_normal(GPUS)
    group = np.arange(GPUS) >= (GPUS if one_sided else GPUS // 2)
    found = []
    for _ in range(count):
        far = group != (rng.random() < 0.5)
        cost = COST + varies * rng.standard_normal()
        times = gpus + 0.05 * rng.standard_normal() + 0.002 * rng.standard_normal(GPUS) + far * cost
        result = {f"gpu:{n}": float(time) for n, time in enumerate(times)}
        found.append(
            SidesOfProcess(
                {gpu: result[gpu] for gpu, is_far in zip(result, far, strict=True) if not is_far},
                {gpu: result[gpu] for gpu, is_far in zip(result, far, strict=True) if is_far},
            )
        )
    return found


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("count", [2, 3, 6, 12])
def test_its_intervals_keep_their_word_over_processes(count: int, one_sided: bool) -> None:
    rng = np.random.default_rng(count)
    result = [remote_penalty(processes(rng, count, one_sided=one_sided)) for _ in range(2500)]
    known = [each for each in result if each is not None and each.variance.freedom > 0]
    assert len(known) > 1000 or (count == 2 and one_sided)
    assert sum(covers(each, COST) for each in known) >= 0.94 * len(known)


def covers(effect: Effect, truth: float) -> bool:
    """Whether the 95 % interval holds it."""
    variance = effect.variance
    half = student_quantile(variance.freedom, 0.975) * variance.deviation
    return abs(effect.log_ratio - truth) <= half


def test_what_makes_a_process_slow_is_no_cost_of_being_far() -> None:
    slow = SidesOfProcess({"a": 0.5, "b": 0.5}, {"c": 0.6, "d": 0.6})
    fast = SidesOfProcess({"c": 0.0, "d": 0.0}, {"a": 0.1, "b": 0.1})
    found = remote_penalty([slow, fast])
    assert found is not None and found.variance.freedom > 0
    assert found.log_ratio == pytest.approx(0.1)
    assert found.variance.deviation < 0.001


def test_what_curves_differ_by_cancels_between_a_pattern_and_its_opposite() -> None:
    """The second GPU takes 0.2 longer wherever its memory is."""
    here = SidesOfProcess({"a": 0.0}, {"b": 0.3})
    there = SidesOfProcess({"b": 0.2}, {"a": 0.1})
    found = remote_penalty([here, here, here, there])
    assert found is not None and found.variance.freedom > 0
    assert found.log_ratio == pytest.approx(0.1)
    assert covers(found, 0.1)


def test_where_always_the_same_curves_were_near_nothing_is_sure() -> None:
    here = SidesOfProcess({"a": 0.0}, {"b": 0.3})
    found = remote_penalty([here] * 6)
    assert found is not None
    assert (found.log_ratio, found.variance.freedom) == (pytest.approx(0.3), 0)


def test_processes_of_one_side_each_are_held_against_one_another() -> None:
    near, far = SidesOfProcess({"a": 0.0, "b": 0.0}, {}), SidesOfProcess({}, {"a": 0.1, "b": 0.1})
    found = remote_penalty([near, far, near, far])
    assert found is not None and found.variance.freedom > 0
    assert found.log_ratio == pytest.approx(0.1)
    single = remote_penalty([near, far])
    assert single is not None and single.variance.freedom == 0


def test_one_side_alone_costs_nothing_that_is_known() -> None:
    assert remote_penalty([]) is None
    assert remote_penalty([SidesOfProcess({"a": 0.0}, {})] * 3) is None
