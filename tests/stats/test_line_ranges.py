"""Lines over ranges of sizes are the best of all, also of curves without one of their sizes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.stats.line_ranges import (
    SIZES_OF_LINE,
    LineRanges,
    ProtocolRange,
    describes,
)

times = st.floats(1e-7, 1e-1)


@st.composite
def curves(draw: st.DrawFn, least: int, most: int) -> tuple[list[list[int]], list[list[float]]]:
    """Some curves with equally many sizes."""
    width = draw(st.integers(least, most))
    sizes, seconds = [], []
    for _ in range(draw(st.integers(1, 3))):
        own = draw(st.sets(st.integers(0, 2**34), min_size=width, max_size=width))
        sizes.append(sorted(own))
        seconds.append(draw(st.lists(times, min_size=width, max_size=width)))
    return sizes, seconds


def ranges_of(sizes: Sequence[Sequence[int]], seconds: Sequence[Sequence[float]]) -> LineRanges:
    return LineRanges(np.array(sizes, float), np.array(seconds))


def best_ranges(n: Sequence[int], t: Sequence[float], count: int) -> tuple[ProtocolRange, ...]:
    return ranges_of([n], [t]).best(count)[0]


def protocol_ranges(n: Sequence[int], t: Sequence[float]) -> tuple[ProtocolRange, ...]:
    return ranges_of([n], [t]).describing()[0]


def off(line: tuple[float, float], n: Sequence[int], t: Sequence[float]) -> float:
    """The deviations from a line of all these sizes together."""
    fitted = [max(line[0] + line[1] * each, 1e-3 * time) for each, time in zip(n, t, strict=True)]
    return sum(abs(math.log(each / time)) for each, time in zip(fitted, t, strict=True))


def least_off(n: Sequence[int], t: Sequence[float]) -> float:
    """The same from the best line through two of the points."""
    found = []
    for i, j in itertools.combinations(range(len(n)), 2):
        rate = (t[j] - t[i]) / (n[j] - n[i])
        found.append(off((t[i] - rate * n[i], rate), n, t))
    return min(found)


def least_of_all(n: Sequence[int], t: Sequence[float], count: int) -> float:
    """The same from so many lines, of all divisions into ranges."""
    inner = itertools.combinations(range(SIZES_OF_LINE, len(n) - SIZES_OF_LINE + 1), count - 1)
    costs = []
    for starts in inner:
        edges = [0, *starts, len(n)]
        if all(b - a >= SIZES_OF_LINE for a, b in itertools.pairwise(edges)):
            costs.append(sum(least_off(n[a:b], t[a:b]) for a, b in itertools.pairwise(edges)))
    return min(costs)


def cost_of(lines: Sequence[ProtocolRange], n: Sequence[int], t: Sequence[float]) -> float:
    total = 0.0
    for line in lines:
        within = [k for k, size in enumerate(n) if line.low <= size <= line.high]
        total += off(
            (line.latency, line.inverse_rate), [n[k] for k in within], [t[k] for k in within]
        )
    return total


@settings(max_examples=25)
@given(curves(8, 13), st.integers(1, 3))
def test_no_lines_over_ranges_are_better(
    given: tuple[list[list[int]], list[list[float]]], count: int
) -> None:
    for n, t, lines in zip(*given, ranges_of(*given).best(count), strict=True):
        if len(n) < count * SIZES_OF_LINE:
            assert lines == ()
            continue
        assert len(lines) == count
        assert sum(line.low <= size <= line.high for size in n for line in lines) == len(n)
        assert cost_of(lines, n, t) == pytest.approx(least_of_all(n, t, count), rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(curves(5, 16), st.integers(1, 3))
def test_a_size_that_is_held_out_is_as_if_it_had_not_been_measured(
    given: tuple[list[list[int]], list[list[float]]], count: int
) -> None:
    found = ranges_of(*given).held_out(count)
    for n, t, seconds, exist in zip(*given, found.seconds, found.exist, strict=True):
        for held in range(1, len(n) - 1):
            lines = best_ranges(n[:held] + n[held + 1 :], t[:held] + t[held + 1 :], count)
            assert bool(lines) == exist[held]
            own = [line for line in lines if line.low < n[held] < line.high]
            expected = [line.latency + line.inverse_rate * n[held] for line in own]
            assert (not own) == np.isnan(seconds[held])
            assert all(seconds[held] == pytest.approx(each, rel=1e-9) for each in expected)
        assert not exist[0] and not exist[-1]


def test_curves_are_fitted_together_as_alone() -> None:
    rng = np.random.default_rng(1)
    sizes = np.cumsum(rng.integers(1, 2**20, (5, 20)), axis=1).astype(float)
    seconds = 1e-6 + sizes / 1e10 * rng.uniform(0.5, 2.0, (5, 20))
    together = LineRanges(sizes, seconds)
    for count in (1, 2, 3):
        alone = [best_ranges(n, t, count) for n, t in zip(sizes, seconds, strict=True)]
        assert together.best(count) == alone


SIZES = tuple(2**n for n in range(3, 31))


def test_two_protocols_are_distinguished() -> None:
    seconds = [2e-6 + n / 5e9 if n < 2**18 else 30e-6 + n / 20e9 for n in SIZES]
    first, second = protocol_ranges(SIZES, seconds)
    assert (first.low, first.high, second.low, second.high) == (8, 2**17, 2**18, 2**30)
    assert first.latency == pytest.approx(2e-6, rel=1e-3)
    assert 1 / first.inverse_rate == pytest.approx(5e9, rel=1e-3)
    assert second.latency == pytest.approx(30e-6, rel=1e-3)
    assert 1 / second.inverse_rate == pytest.approx(20e9, rel=1e-3)


def test_three_are_reported_with_noise() -> None:
    rng = random.Random(1)
    true = [
        1e-6 + n / 1e9 if n < 2**12 else 9e-6 + n / 8e9 if n < 2**22 else 90e-6 + n / 50e9
        for n in SIZES
    ]
    found = protocol_ranges(SIZES, [each * (1 + rng.gauss(0, 0.01)) for each in true])
    assert [each.low for each in found] == [8, 2**12, 2**22]


def test_what_no_three_lines_describe_is_not_reported() -> None:
    rng = random.Random(2)
    assert protocol_ranges(SIZES, [1e-6 * rng.uniform(1, 9) for _ in SIZES]) == ()


def test_few_sizes_are_no_two_lines() -> None:
    assert protocol_ranges(SIZES[:7], [1.0, 1.0, 1.0, 1.0, 9.0, 18.0, 36.0]) == ()


def test_what_describes_is_near_everywhere() -> None:
    assert describes([0.01, -0.02, 0.14, 0.0, 0.03])
    assert not describes([0.01, -0.02, 0.16, 0.0, 0.03])
    assert not describes([0.06, -0.06, 0.06, 0.0, 0.0])
    assert describes([0.0, 0.0, 0.06, -0.06]), "the median of an even number is the mean of two"
