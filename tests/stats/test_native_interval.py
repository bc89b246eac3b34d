"""The sampler and the analysis must speak of the same interval: that of the exact distribution."""

from __future__ import annotations

import pytest

from waywiser.stats.order import lower_rank

native = pytest.importorskip("waywiser._native")


def test_ranks_are_those_of_the_binomial_distribution() -> None:
    from scipy import stats as scipy_stats

    for count in (*range(6, 301), 999, 1074, 1075, 2000, 5000):
        median, low, high = native.median_interval([float(i) for i in range(1, count + 1)])
        assert median == (count + 1) / 2
        assert low == lower_rank(count)
        assert high == count + 1 - low
        assert scipy_stats.binom.cdf(low - 1, count, 0.5) <= 0.025
        assert scipy_stats.binom.cdf(low, count, 0.5) > 0.025
