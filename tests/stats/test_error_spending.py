"""What looks spend of an error probability."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.error_spending import Spending, level, to_accuse, to_clear

SPENDINGS = [to_accuse, to_clear]


@pytest.mark.parametrize("spending", SPENDINGS)
@given(probability=st.floats(1e-6, 0.2), looks=st.integers(1, 20))
def test_all_looks_together_spend_the_whole(
    spending: Spending, probability: float, looks: int
) -> None:
    spent = [level(spending, probability, look, looks) for look in range(1, looks + 1)]
    assert min(spent) >= 0
    assert math.fsum(spent) == pytest.approx(probability, rel=1e-6, abs=1e-12)
    assert level(spending, probability, looks + 1, looks) == 0


def test_the_figures_of_the_literature() -> None:
    """Lan and DeMets, 1983, at five looks with one probability of 5 % on both sides."""
    half = [to_accuse(0.05, share) for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
    assert half == pytest.approx([1.17e-5, 0.00194, 0.0114, 0.0284, 0.05], rel=0.02)
    assert [to_clear(0.05, share) for share in (0.2, 0.6)] == pytest.approx(
        [0.0148, 0.0354], rel=0.01
    )


def test_early_looks_clear_more_than_they_accuse() -> None:
    assert level(to_clear, 0.05, 3, 8) > 5 * level(to_accuse, 0.05, 3, 8)
