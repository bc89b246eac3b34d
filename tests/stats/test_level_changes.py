"""Steps of series of nights whose noise is not normal, and losses that are not noise."""

from __future__ import annotations

import numpy as np
import pytest

from waywiser.stats.level_changes import FittedSeries, SeriesOfNights, fit_series

NIGHTS = 60


def fitted(rows: np.ndarray) -> list[FittedSeries]:
    days = list(map(float, range(rows.shape[1])))
    surveys = [1] * len(days)
    found = fit_series([SeriesOfNights(row.tolist(), days, surveys, "all") for row in rows], 0.03)
    return [each for each in found if each is not None]


def confirmed(fits: list[FittedSeries]) -> int:
    return sum(change.confirmed for fit in fits for change in fit.changes)


@pytest.mark.parametrize("share", [0.2, 0.35, 0.5])
def test_a_series_that_has_one_or_the_other_of_two_levels_each_night_has_no_change(
    share: float,
) -> None:
    rng = np.random.default_rng(int(100 * share))
    rows = rng.normal(0, 0.01, (40, NIGHTS)) - 0.08 * (rng.random((40, NIGHTS)) < share)
    assert confirmed(fitted(rows)) == 0


def test_a_loss_of_the_last_three_nights_is_no_noise_of_its_own_series() -> None:
    rows = np.random.default_rng(3).normal(0, 0.01, (60, 15))
    rows[:4, -3:] -= 0.06
    found = fitted(rows)
    assert confirmed(found[:4]) == 4 and confirmed(found[4:]) == 0
    assert {fit.changes[0].start for fit in found[:4]} <= {11, 12, 13}


def test_two_odd_nights_are_no_level_with_one_beside_them() -> None:
    rows = np.random.default_rng(4).normal(0, 0.01, (20, 40))
    rows[:, [37, 38]] -= 0.2
    assert confirmed(fitted(rows)) == 0
