"""Boundaries between levels, all series together: each as a plain calculation of one says it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from waywiser.stats.level_boundaries import (
    CONFIRMING,
    FALSE_ALARM,
    FEW_NIGHTS,
    LEAST_BEFORE,
    LEAST_SHARE,
    prune,
    segments_of,
    settled_squares,
    squares_around,
)
from waywiser.stats.night_noise import UNKNOWN_NOISE, own_noise, usual_noise
from waywiser.stats.night_rows import MOST_ODD
from waywiser.stats.noise_model import are_outliers
from waywiser.stats.order import median

LIMIT = 0.03


def begins_of(cuts: list[set[int]], nights: int) -> np.ndarray:
    found = np.zeros((len(cuts), nights), bool)
    found[:, 0] = True
    for row, own in enumerate(cuts):
        found[row, sorted(own)] = True
    return found


def parts_of(row: np.ndarray, begins: np.ndarray) -> list[np.ndarray]:
    ends = [*np.flatnonzero(begins), len(row)]
    return [row[a:b] for a, b in pairwise(ends)]


def drawn(nights: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with steps, odd nights and short levels, and where segments may begin."""
    random = np.random.default_rng(seed)
    rows = random.normal(0, 0.01, (60, nights))
    cuts: list[set[int]] = []
    for row in rows:
        places = random.choice(np.arange(CONFIRMING, nights - CONFIRMING + 1), 3)
        cuts.append({int(place) for place in places[: random.integers(0, 4)]})
        for place in cuts[-1]:
            row[place:] += random.choice([0.0, 0.02, -0.05, 0.1])
        row[random.integers(nights)] += random.choice([0.0, 0.0, 0.4])
    return rows, begins_of(cuts, nights)


@pytest.mark.parametrize("nights", [6, 9, 24, 61])
def test_medians_and_squares_are_those_of_each_segment(nights: int) -> None:
    rows, begins = drawn(nights, nights)
    medians = [median(p.tolist()) for row, own in zip(rows, begins, strict=True)
               for p in parts_of(row, own)]  # fmt: skip
    assert segments_of(rows, begins).medians.tolist() == medians
    squares, freedom = squares_around(rows, begins)
    for n, (row, own) in enumerate(zip(rows, begins, strict=True)):
        parts = parts_of(row, own)
        out = are_outliers(np.concatenate([part - np.median(part) for part in parts]).tolist())
        kept = ~np.array(out)
        if kept.sum() < nights - max(1, int(MOST_ODD * nights)):
            kept[:] = True
        chosen = [p[k] for p, k in zip(parts, parts_of(kept, own), strict=True) if k.any()]
        assert squares[n] == pytest.approx(sum(((p - p.mean()) ** 2).sum() for p in chosen))
        assert freedom[n] == sum(len(part) - 1 for part in chosen)


def test_a_drift_takes_a_degree_of_freedom_and_the_last_nights_none() -> None:
    rows, begins = drawn(20, 1)
    drifting = np.arange(len(rows)) % 2 == 0
    squares, freedom = settled_squares(rows, begins, drifting)
    plain = squares_around(rows[:, :-2], begins[:, :-2])
    assert squares.tolist() == plain[0].tolist()
    assert freedom.tolist() == np.maximum(plain[1] - drifting, 1).tolist()


def pruned_alone(clipped: np.ndarray, raw: np.ndarray, begins: np.ndarray) -> list[int]:
    """The nights of the boundaries that are left of one series."""
    begins, count = begins.copy(), len(raw)
    while True:
        found = settled_squares(raw[None], begins[None], np.zeros(1))
        noise = own_noise(UNKNOWN_NOISE, float(found[0][0]), float(found[1][0]))
        ends = [*np.flatnonzero(begins).tolist(), count]
        weak = []
        for a, b, c in zip(ends, ends[1:], ends[2:], strict=False):
            before, after = clipped[a:b], clipped[b:c]
            by_mean, by_median = (f(after) - f(before) for f in (np.mean, np.median))
            size = min(by_mean, by_median, key=abs)
            p = noise.chance(size, 1 / (b - a) + 1 / (c - b))
            shown = raw[b:c] - before.mean()
            least = max(LIMIT / 2, abs(np.median(shown)) * LEAST_SHARE)
            sign = np.sign(size)
            as_far = ((raw[a:b] - before.mean()) * sign >= np.median(shown) * sign).sum()
            stands_out = (shown * sign).min() >= least and as_far <= max(1, MOST_ODD * (b - a))
            is_odd = c - b <= FEW_NIGHTS and not stands_out
            places = count if c == count else count**2
            is_early = a == 0 and b < LEAST_BEFORE
            if is_early or is_odd or p * places > FALSE_ALARM or abs(size) <= LIMIT:
                weak.append((p, -abs(size), -b))
        if not weak:
            return ends[1:-1]
        begins[-max(weak)[2]] = False


@pytest.mark.parametrize("nights", [12, 25, 40])
def test_boundaries_are_removed_as_those_of_each_series(nights: int) -> None:
    rows, begins = drawn(nights, nights + 1)
    clipped = np.clip(rows, *np.quantile(rows, [0.05, 0.95], axis=1)[..., None])
    expected = [pruned_alone(*each) for each in zip(clipped, rows, begins, strict=True)]
    usual = np.array([UNKNOWN_NOISE.weights] * len(rows))
    weights, deviations = prune(clipped, rows, begins, usual, np.zeros(len(rows), bool), LIMIT)
    assert [np.flatnonzero(own)[1:].tolist() for own in begins] == expected
    assert any(expected) and not all(expected)
    for n, own in enumerate(zip(*settled_squares(rows, begins, np.zeros(len(rows))), strict=True)):
        noise = own_noise(UNKNOWN_NOISE, *own)
        assert deviations[n] == pytest.approx(noise.deviation)
        assert weights[n] == pytest.approx(noise.weights)


def test_each_series_is_pruned_by_the_noise_of_its_own_peers() -> None:
    """A step that is large for the noise of quiet peers is none if peers have as much noise."""
    freedom = np.full(400, 20.0)
    quiet, loud = (usual_noise(freedom * deviation**2, freedom) for deviation in (0.003, 0.1))
    row = np.random.default_rng(3).normal(0, 0.002, 12)
    row[6:] -= 0.05
    rows, begins = np.array([row, row]), begins_of([{6}, {6}], 12)
    prune(rows, rows, begins, np.array([quiet.weights, loud.weights]), np.zeros(2, bool), LIMIT)
    assert begins[:, 6].tolist() == [True, False]
