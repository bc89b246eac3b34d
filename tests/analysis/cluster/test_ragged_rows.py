"""Statistics of rows of any length are those of each row by itself, in memory by their values."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.analysis.cluster.levels import quantile
from waywiser.analysis.cluster.ragged_rows import RaggedRows, rows_of
from waywiser.analysis.cluster.verdict import verdict
from waywiser.words.cluster import (
    ClusterNode,
    ClusterPlan,
    FinishedTest,
    PlannedTest,
    Rail,
    RailTime,
)

ROWS = 5


@st.composite
def drawn(draw: st.DrawFn) -> tuple[list[int], np.ndarray]:
    """The row of each value, and the values: some are missing, and rows may be empty."""
    rows = draw(st.lists(st.integers(0, ROWS - 1), max_size=30))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    y = rng.choice([0.1, 0.2, 0.3, 0.7, np.nan], (len(rows), 2, 2))
    return rows, y


def ragged(rows: list[int], y: np.ndarray) -> RaggedRows:
    return rows_of(np.array(rows, dtype=np.int64), y, ROWS)


@given(drawn(), st.sampled_from([0.0, 0.05, 0.25, 0.5, 1.0]), st.booleans())
def test_quantiles_are_those_of_each_row(
    values: tuple[list[int], np.ndarray], q: float, lower: bool
) -> None:
    rows, y = values
    found = ragged(rows, y).quantile(q, lower=lower)
    for n in range(ROWS):
        own = y[[row == n for row in rows]].reshape(-1, 2, 2)
        np.testing.assert_array_equal(found[n], quantile(own, q, axis=0, lower=lower))


@given(drawn())
def test_counts_and_places_are_those_of_each_row(values: tuple[list[int], np.ndarray]) -> None:
    rows, y = values
    found = ragged(rows, y)
    counts, last = found.count(found.y > 0.15), found.at(np.maximum(found.lengths - 1, 0))
    for n in range(ROWS):
        own = y[[row == n for row in rows]].reshape(-1, 2, 2)
        assert found.lengths[n] == len(own)
        np.testing.assert_array_equal(counts[n], np.sum(own > 0.15, axis=0))
        ordered = np.sort(own, axis=0)
        expected = ordered[-1] if len(own) else np.full((2, 2), np.nan)
        np.testing.assert_array_equal(last[n], expected)


def finished(a: int, b: int, number: int, rails: int) -> FinishedTest:
    names = (f"n{a}", f"n{b}")
    times = tuple(
        RailTime(
            rail, sender, seconds := 1e-3 * (1 + 1e-4 * ((a + b + rail) % 7)), seconds, seconds, 5
        )
        for sender in names
        for rail in range(rails)
    )
    started = "2026-01-02T03:04:05+00:00"
    return FinishedTest(PlannedTest("pairs", number, names), "mpi", 2**20, started, times=times)


def peak_bytes(pairs: list[tuple[int, int]], nodes: int, rails: int) -> int:
    """The most memory that a verdict about tests of these pairs takes."""
    known = [ClusterNode(f"n{n}", rails=tuple(map(Rail, range(rails)))) for n in range(nodes)]
    tests = [finished(a, b, n // 50, rails) for n, (a, b) in enumerate(pairs)]
    tracemalloc.start()
    verdict(known, ClusterPlan("mpi", 1, bytes=2**20), tests)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    "partner",
    [lambda n, of: (n % of, (n + 1 + n // of) % of), lambda n, of: (0, 1 + n % (of - 1))],
    ids=["all with others", "all with one"],
)
def test_the_memory_of_a_verdict_is_linear_in_the_tests(partner: object) -> None:
    assert callable(partner)
    few, many = (peak_bytes([partner(n, 200) for n in range(of)], 200, 4) for of in (300, 1200))
    assert many < 6 * few
    assert many < 1200 * 4 * 2 * 8 * 60, "some sixty times the times themselves"
