"""Steps of series of nights whose noise is not normal, and losses that are not noise."""

from __future__ import annotations

import numpy as np
import pytest

from waywiser.stats.level_changes import FittedSeries, SeriesOfNights, fit_series

NIGHTS = 60


def fitted(rows: np.ndarray) -> list[FittedSeries]:
    days = np.arange(float(rows.shape[1]))
    surveys = np.ones(len(days), int)
    found = fit_series([SeriesOfNights(rows, days, surveys, ["all"] * len(rows))], 0.03)
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


@pytest.mark.parametrize("after", [3, 4, 6, 7, 10])
@pytest.mark.parametrize("before", [4, 5, 8, 16, 30])
def test_a_loss_of_five_deviations_begins_at_its_first_night(before: int, after: int) -> None:
    """In 95 % of the series, whatever the number of nights on either side."""
    rows = np.random.default_rng(1000 * before + after).normal(0, 0.01, (240, before + after))
    rows[::8, before:] -= 0.05  # one of eight equivalent paths
    fits = [fit for n in range(0, 240, 8) for fit in fitted(rows[n : n + 8])[:1]]
    starts = [fit.changes[-1].start for fit in fits if fit.changes]
    assert sum(start == before for start in starts) >= 0.9 * len(starts)
    # three nights after four or five show less than a change of six deviations of their means
    assert len(starts) >= (0.6 if after == 3 and before < 6 else 0.9) * len(fits)


def test_a_loss_among_few_nights_divides_them_where_it_begins() -> None:
    rates = 55.3, 55.3, 56.1, 56.05, 47.1, 47.7, 47.6, 48.2
    (fit,) = fitted(np.log([rates]))
    (change,) = fit.changes
    assert change.start == 4
    assert np.exp(fit.level) == pytest.approx(47.65, abs=0.1)
    assert fit.noise.deviation < 0.015, "the loss is no noise"


@pytest.mark.parametrize("nights", range(3, 16))
def test_a_loss_that_was_found_is_found_each_night_after(nights: int) -> None:
    rows = np.random.default_rng(6).normal(0, 0.01, (8, 8 + 15))
    rows[0, 8:] -= 0.07
    (change,) = fitted(rows[:, : 8 + nights])[0].changes
    assert change.confirmed and change.start == 8


@pytest.mark.parametrize("odd", [-1, -2, -3, -5])
@pytest.mark.parametrize("nights", [7, 8, 10, 14])
def test_a_single_odd_night_ends_no_loss(nights: int, odd: int) -> None:
    rows = np.random.default_rng(10 * nights - odd).normal(0, 0.01, (12, 40 + nights))
    rows[:, 40:] -= 0.1
    rows[:, odd] += 0.1
    starts = [[each.start for each in fit.changes if each.confirmed] for fit in fitted(rows)]
    assert sum(start in ([40], [39], [41]) for start in starts) >= 11


def test_an_improvement_that_is_not_confirmed_moves_no_level() -> None:
    rows = np.random.default_rng(8).normal(0, 0.01, (20, 33))
    rows[:, -3:] += 0.04
    some = [fit for fit in fitted(rows) if not any(each.confirmed for each in fit.changes)]
    assert some and all(abs(fit.level) < 0.012 for fit in some)
