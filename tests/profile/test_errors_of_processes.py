"""The errors of a process' median by its samples: as they are, and as if they were independent."""

from __future__ import annotations

import numpy as np
import pytest

import profiles
from waywiser.analysis.comparison.path_parts import parts_of
from waywiser.curves.curve import Point, points_of
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words.records import Samples, Series


def summary(correlation: float, processes: int, count: int = 200) -> Point:
    """A series of 1 ms whose samples deviate by 2 % and follow their neighbours."""
    rng = np.random.default_rng(3)
    steps = rng.standard_normal((processes, count))
    for n in range(1, count):
        steps[:, n] = (
            correlation * steps[:, n - 1] + np.sqrt(1 - correlation**2) * steps[:, n]
        )  # fmt: skip
    spans = 1e-3 * (1 + 0.02 * steps)
    visits = tuple(
        profiles.visit(profiles.WHAT, block, Samples(span=tuple(own.tolist())))
        for block, own in enumerate(spans)
    )
    return points_of(SeriesFrame.of([Series(profiles.WHAT, visits)]))[0]


@pytest.mark.parametrize("correlation", [0.7, 0.9])
def test_dependent_samples_have_a_larger_error_than_independent_ones(correlation: float) -> None:
    for block in summary(correlation, 4).blocks:
        times = (1 + correlation) / (1 - correlation)
        ratio = block.standard_error / block.independent_error
        assert 0.4 * np.sqrt(times) < ratio < 2.5 * np.sqrt(times)


def test_independent_samples_have_nearly_one_error() -> None:
    for block in summary(0.0, 4).blocks:
        assert block.independent_error <= block.standard_error < 1.5 * block.independent_error


def test_processes_that_agree_are_not_widened_by_dependence_within_them() -> None:
    several, one = summary(0.9, 6), summary(0.9, 1)

    def noise(series: Point) -> float:
        sides = {series.identity: [(0, series)]}
        return parts_of(sides, sides)[0].own_noise.process.value

    between = np.var(np.log([block.median for block in several.blocks]), ddof=1)
    assert noise(several) == pytest.approx(float(between), rel=0.5)
    assert noise(one) == pytest.approx(one.blocks[0].standard_error ** 2)
