"""The noise between surveys, by what all paths of a machine show."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.distributions import student_quantile
from waywiser.stats.noise_model import (
    ASSUMED,
    ASSUMED_PATHS,
    FEWEST_PATHS,
    Contrast,
    Surveys,
    between_sides,
    noise_between_surveys,
    within_side,
)

Random = np.random.Generator


def changes(rng: Random, paths: int, deviation: float, added: float = 0.0) -> list[float]:
    """Changes between two surveys, whose processes add a variance."""
    return list(map(float, rng.normal(0, math.sqrt(2 * deviation**2 + added), paths)))


def contrasts(values: list[float], added: float = 0.0) -> list[Contrast]:
    """Those of changes between two surveys."""
    return list(between_sides(values, [2.0] * len(values), [added] * len(values)))


def estimated(values: list[float], added: float = 0.0) -> float:
    return noise_between_surveys(contrasts(values, added)).variance.deviation


@pytest.mark.parametrize("deviation", [0.003, 0.02, 0.1])
@pytest.mark.parametrize("added", [0.0, 1e-4])
def test_the_noise_that_paths_share_is_found(deviation: float, added: float) -> None:
    rng = np.random.default_rng(1)
    if deviation**2 < added:
        deviation = math.sqrt(added)
    found = [estimated(changes(rng, 40, deviation, added), added) ** 2 for _ in range(200)]
    assert math.sqrt(np.mean(found)) == pytest.approx(deviation, rel=0.06)


@pytest.mark.parametrize("slow", [1, 12, 18])
@pytest.mark.parametrize("loss", [0.2, -0.4])
def test_faults_of_nearly_half_of_the_paths_do_not_widen_it(slow: int, loss: float) -> None:
    rng = np.random.default_rng(2)
    found = []
    for _ in range(100):
        made = changes(rng, 40, 0.01)
        ill = [each + loss for each in made[:slow]]
        found.append(estimated([*ill, *made[slow:]]))
    assert np.median(found) == pytest.approx(0.01, rel=0.15)


def test_a_change_of_all_paths_is_no_noise() -> None:
    made = changes(np.random.default_rng(3), 30, 0.004)
    moved = [each + 0.3 for each in made]
    assert estimated(moved) == pytest.approx(estimated(made))


@given(st.lists(st.floats(-1, 1), max_size=FEWEST_PATHS - 1))
def test_few_changes_show_nothing(values: list[float]) -> None:
    found = noise_between_surveys(contrasts(values))
    assert found.contrasts == 0
    assert found.variance.deviation == ASSUMED
    assert found.variance.freedom == ASSUMED_PATHS


@given(st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=40), st.randoms())
def test_the_order_of_paths_does_not_matter(values: list[float], order: random.Random) -> None:
    other = list(values)
    order.shuffle(other)
    assert estimated(other) == pytest.approx(estimated(values))


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=8))
def test_surveys_of_a_side_are_one_contrast_less(medians: list[float]) -> None:
    found = list(within_side(Surveys([[each] for each in medians]), 0.0))
    assert sum(each.number for each in found) == len(medians) - 1
    for each in found:
        assert each.value == pytest.approx(np.std(np.log(medians), ddof=1), abs=1e-9)


@pytest.mark.parametrize("paths", [10, 29])
def test_what_a_path_shows_beside_the_others_is_as_rare_as_student_says(paths: int) -> None:
    """The own contrast of a path is not in the noise that it is held against."""
    rng = np.random.default_rng(4)
    beyond = tested = 0
    for _ in range(400):
        made = contrasts(changes(rng, paths, 0.01))
        machine = noise_between_surveys(made)
        for each in made[:5]:
            noise = machine.without([each])
            limit = student_quantile(noise.freedom, 0.99) * noise.deviation * math.sqrt(2)
            beyond += each.value > limit
            tested += 1
    assert 0.004 < beyond / tested < 0.017
