"""Calculations on rows say the same as plain ones on each row."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from waywiser.stats import night_rows
from waywiser.stats.night_rows import (
    best_drifts,
    best_stretches,
    outlier_rows,
    row_medians,
    row_slopes,
    running_medians,
)
from waywiser.stats.noise_model import are_outliers

LEAST = 3


def rows_of(nights: int, rows: int = 24) -> np.ndarray:
    """Noise, of which some rows have a step, an odd value, or equal values."""
    found = np.random.default_rng(nights).normal(0, 0.01, (rows, nights))
    found[::4, nights // 2 :] -= 0.06
    found[1::4, nights // 3] += 0.5
    found[2::8] = np.round(found[2::8], 2)
    return found


@pytest.mark.parametrize("nights", [6, 7, 12, 33])
def test_medians_and_outliers_are_those_of_each_row(nights: int) -> None:
    rows = rows_of(nights)
    assert row_medians(rows).tolist() == np.median(rows, axis=1).tolist()
    assert outlier_rows(rows).tolist() == [list(are_outliers(row)) for row in rows.tolist()]
    around = [[np.median(row[max(0, min(n - 2, nights - 5)) :][:5]) for n in range(nights)]
              for row in rows]  # fmt: skip
    assert running_medians(rows).tolist() == around


@pytest.mark.parametrize("count", [1, 24])
@pytest.mark.parametrize("nights", [6, 7, 12, 33])
def test_the_best_stretch_is_the_best_of_all(nights: int, count: int) -> None:
    rows = rows_of(nights)[:count]
    places = [0, *range(LEAST, nights - LEAST + 1), nights]
    pairs = [(a, b) for a, b in combinations(places, 2) if LEAST <= b - a < nights]
    scores = []
    for row in rows:
        means = [(row[a:b].mean(), np.delete(row, range(a, b)).mean(), b - a) for a, b in pairs]
        scores.append([abs(i - o) * (s * (nights - s) / nights) ** 0.5 for i, o, s in means])
    best = np.max(scores, axis=1)
    score, first, last = best_stretches(rows, LEAST, 0.99 * best)
    assert score == pytest.approx(best)
    for own, a, b in zip(scores, first.tolist(), last.tolist(), strict=True):
        assert own[pairs.index((a, b))] == pytest.approx(max(own))
    score, *_ = best_stretches(rows, LEAST, 1.01 * best)
    assert not (score > 1.01 * best).any() or len(rows) <= night_rows.FEW_ROWS


@pytest.mark.parametrize("nights", [13, 14, 33])
def test_the_best_drift_is_the_best_of_all_hinges(nights: int) -> None:
    rows = rows_of(nights)
    days = np.cumsum(np.random.default_rng(1).uniform(0.5, 2, rows.shape), axis=1)
    days[3] = 5.0
    slope, onset, score = best_drifts(days, rows, 14)
    for n, row in enumerate(rows):
        best = 0.0, 0.0
        for start in range(nights - 14 + 1):
            hinge = np.maximum(0.0, days[n] - days[n, start])
            hinge -= hinge.mean()
            if (squares := (hinge**2).sum()) > 0:
                shared = (hinge * (row - row.mean())).sum()
                best = max(best, (abs(shared) / squares**0.5, shared / squares))
        assert (score[n], slope[n]) == pytest.approx(best, rel=1e-6, abs=1e-12)
        assert 0 <= onset[n] <= max(0, nights - 14)


def test_a_slope_of_one_moment_is_zero() -> None:
    days = np.array([[0.0, 1.0, 2.0], [4.0, 4.0, 4.0]])
    assert row_slopes(days, np.array([[1.0, 3.0, 5.0]] * 2)).tolist() == [2.0, 0.0]
