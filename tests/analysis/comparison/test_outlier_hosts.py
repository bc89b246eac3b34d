"""Who stands apart in a table: whatever the tails, and whoever is missing."""

from __future__ import annotations

import numpy as np
import pytest

from waywiser.analysis.comparison.column_scale import LEAST_SCALE, columns_of, pooled_columns
from waywiser.analysis.comparison.outliers import outliers, tail_of


def test_one_that_is_far_is_found_among_many_and_no_other() -> None:
    table = np.random.default_rng(1).normal(0, 0.002, (200, 50))
    table[17, 3] += 0.05
    found = outliers(table, columns_of(table), 0.03, 0.05)
    assert [(each.row, each.column) for each in found] == [(17, 3)]
    assert found[0].difference == pytest.approx(0.05, abs=0.01)


def test_heavy_tails_are_no_outliers() -> None:
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(10):
        table = 0.01 * rng.standard_t(3, (200, 50))
        false += bool(outliers(table, columns_of(table), 0.03, 0.05))
    assert false <= 2


def test_tails_are_read_off_the_values() -> None:
    rng = np.random.default_rng(3)
    assert tail_of(rng.normal(size=20_000)) >= 15
    assert tail_of(rng.standard_t(3, 20_000)) <= 4
    assert tail_of(rng.normal(size=90)) == 5


def test_faster_ones_and_small_differences_are_none() -> None:
    table = np.random.default_rng(4).normal(0, 1e-5, (50, 20))
    table[3, 3], table[4, 4] = -0.5, 0.02
    assert not outliers(table, columns_of(table), 0.03, 0.05)


def test_missing_values_are_skipped() -> None:
    table = np.random.default_rng(5).normal(0, 0.002, (50, 4))
    table[:, 2] = np.nan
    table[:47, 3] = np.nan  # three hosts have it: nobody can say who stands apart
    table[48, 3] = 5.0
    table[9, 1] = 0.3
    columns = columns_of(table)
    assert [column.hosts for column in columns] == [50, 50, 0, 3]
    assert [(each.row, each.column) for each in outliers(table, columns, 0.03, 0.05)] == [(9, 1)]


def test_hosts_that_agree_to_the_bit_have_a_scale() -> None:
    assert columns_of(np.ones((10, 1)))[0].scale == LEAST_SCALE
    assert columns_of(np.empty((0, 0))) == []
    assert outliers(np.empty((0, 0)), [], 0.03, 0.05) == []


@pytest.mark.parametrize(("common", "least", "most"), [(0.0, 5, 24), (0.02, 2, 2.2)])
def test_equivalent_columns_pool_their_scale_but_not_what_their_hosts_have_in_common(
    common: float, least: float, most: float
) -> None:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(40):
        table = rng.normal(0, 0.002, (4, 12)) + rng.normal(0, common, (4, 1))
        table[2, 5] += 0.1
        scales = pooled_columns(table, ["same"] * 12, 1e-9)
        found.append(np.median([(each.scale, each.freedom) for each in scales], axis=0))
    scale, freedom = np.median(found, axis=0)
    assert scale == pytest.approx(np.hypot(0.002, common), rel=0.35)
    assert least <= freedom <= most


def test_a_column_that_is_much_wider_than_its_equivalents_keeps_its_scale() -> None:
    table = np.random.default_rng(7).normal(0, 0.002, (6, 8))
    table[:, 3] *= 50
    scales = pooled_columns(table, ["same"] * 8, 1e-9)
    assert scales[3].scale > 10 * scales[0].scale
