"""The constants of `waywiser.stats.level_shift`."""

from __future__ import annotations

import pytest

from waywiser.stats.distributions import student_quantile
from waywiser.stats.level_shift import ALMOST, FEWEST, MOST, QUANTILES


def test_the_quantiles_are_those_of_students_t() -> None:
    numbers = range(FEWEST, MOST + 1)
    exact = [student_quantile(n - 3, 1 - ALMOST / n) for n in numbers]
    assert list(QUANTILES) == pytest.approx(exact)
