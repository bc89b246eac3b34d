"""What being far costs, with processes as replicates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from waywiser.stats import ranks
from waywiser.stats.far import FarCost, Found, far_cost

COST = math.log(1.05)
GPUS = 8


def processes(
    rng: np.random.Generator, count: int, *, varies: float = 0.02, one_sided: bool = False
) -> list[Found]:
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
        told = {f"gpu:{n}": float(time) for n, time in enumerate(times)}
        found.append(
            Found(
                {gpu: told[gpu] for gpu, is_far in zip(told, far, strict=True) if not is_far},
                {gpu: told[gpu] for gpu, is_far in zip(told, far, strict=True) if is_far},
            )
        )
    return found


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("count", [2, 3, 6, 12])
def test_its_intervals_keep_their_word_over_processes(count: int, one_sided: bool) -> None:
    rng = np.random.default_rng(count)
    told = [far_cost(processes(rng, count, one_sided=one_sided)) for _ in range(2500)]
    spans = [each.interval for each in told if each is not None and each.interval is not None]
    assert len(spans) > 1000 or (count == 2 and one_sided)
    covered = sum(span.low <= COST <= span.high for span in spans)
    assert covered >= 0.94 * len(spans)


def test_curves_as_replicates_would_not_keep_it() -> None:
    """All GPUs of one side, so that a process is near or far as a whole."""
    rng = np.random.default_rng(9)
    asked = covered = 0
    for _ in range(300):
        found = processes(rng, 6, one_sided=True)
        near = [time for each in found for time in each.near.values()]
        far = [time for each in found for time in each.far.values()]
        span = ranks.shift_interval(far, near)
        if span is not None:
            asked += 1
            covered += span.low <= COST <= span.high
    assert asked > 200
    assert covered < 0.7 * asked


def test_what_makes_a_process_slow_is_no_cost_of_being_far() -> None:
    slow = Found({"a": 0.5, "b": 0.5}, {"c": 0.6, "d": 0.6})
    fast = Found({"c": 0.0, "d": 0.0}, {"a": 0.1, "b": 0.1})
    found = far_cost([slow, fast])
    assert found is not None and found.interval is not None
    assert found.difference == pytest.approx(0.1)
    assert found.interval.width == pytest.approx(0.0, abs=1e-9)


def test_what_curves_differ_by_cancels_between_a_pattern_and_its_opposite() -> None:
    """The second GPU takes 0.2 longer wherever its memory is."""
    here = Found({"a": 0.0}, {"b": 0.3})
    there = Found({"b": 0.2}, {"a": 0.1})
    found = far_cost([here, here, here, there])
    assert found is not None and found.interval is not None
    assert found.difference == pytest.approx(0.1)
    assert found.interval.low < 0.1 < found.interval.high


def test_where_always_the_same_curves_were_near_nothing_is_sure() -> None:
    here = Found({"a": 0.0}, {"b": 0.3})
    assert far_cost([here] * 6) == FarCost(pytest.approx(0.3), None)


def test_processes_of_one_side_each_are_held_against_one_another() -> None:
    near, far = Found({"a": 0.0, "b": 0.0}, {}), Found({}, {"a": 0.1, "b": 0.1})
    found = far_cost([near, far, near, far])
    assert found is not None and found.interval is not None
    assert found.difference == pytest.approx(0.1)
    assert far_cost([near, far]) == FarCost(pytest.approx(0.1), None)


def test_one_side_alone_costs_nothing_that_is_known() -> None:
    assert far_cost([]) is None
    assert far_cost([Found({"a": 0.0}, {})] * 3) is None
