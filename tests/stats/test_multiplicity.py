"""Holm's correction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.stats.decision import holm

P = st.floats(0.0, 1.0)


def test_the_smallest_counts_for_all_the_next_for_one_less() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_none_is_above_one_and_none_asks_nothing() -> None:
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(P, min_size=1, max_size=20))
def test_it_raises_every_value_keeps_their_order_and_is_within_bonferroni(
    values: list[float],
) -> None:
    adjusted = holm(values)
    for own, raised in zip(values, adjusted, strict=True):
        assert own <= raised <= min(1.0, own * len(values)) + 1e-12
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


def test_families_of_nulls_are_rarely_rejected_and_one_true_effect_is_found_beside_them() -> None:
    random = np.random.default_rng(4)
    nulls = random.uniform(size=(2000, 30))
    assert np.mean([min(holm(row)) <= 0.05 for row in nulls]) < 0.06
    assert holm([1e-4, *nulls[0, 1:]])[0] <= 0.05
