"""The scatter of blocks that move several sizes at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from waywiser.stats.between import Between, variance_of_median
from waywiser.stats.clustered import Apart, Clustered, apart, clustered, parts

LEAST = 1e-6


def curve(
    rng: np.random.Generator, jump: float, own: float, blocks: int, sizes: int = 5
) -> dict[int, dict[int, float]]:
    table = jump * rng.standard_normal(blocks) + own * rng.standard_normal((sizes, blocks))
    return {2**n: dict(enumerate(row)) for n, row in enumerate(table.tolist())}


def test_what_a_block_has_in_common_is_told_from_what_each_size_has_alone() -> None:
    found = parts([{1: {0: 0.1, 1: 0.3}, 2: {0: 7.0, 1: 7.4}}])
    assert found.common == [pytest.approx([-0.15, 0.15])]
    assert found.own == [pytest.approx([0.05, -0.05]), pytest.approx([-0.05, 0.05])]
    assert found.left == 0.5


def test_sizes_of_a_single_block_tell_nothing() -> None:
    assert parts([{1: {0: 0.1}}]) == ([], [], 0.0)
    assert clustered(apart([{1: {0: 0.1}}], LEAST), []) is None


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_the_common_part_has_as_few_degrees_of_freedom_as_blocks(blocks: int) -> None:
    rng = np.random.default_rng(1)
    found = apart([curve(rng, 0.05, 0.002, blocks) for _ in range(2)], LEAST)
    assert found.common is not None and found.own is not None
    free = 2 * (blocks - 1)
    half = 1 if blocks < 6 else 2  # of most blocks: known half as well
    assert (found.common.freedom, found.own.freedom) == (free // half, 4 * (free * 5 // half) // 5)


@pytest.mark.parametrize("blocks", [3, 8])
def test_both_parts_together_are_the_scatter_of_a_size(blocks: int) -> None:
    rng = np.random.default_rng(2)
    found = apart([curve(rng, 0.03, 0.04, blocks) for _ in range(4000)], LEAST)
    assert found.common is not None and found.own is not None
    both = math.hypot(found.common.deviation, found.own.deviation)
    assert both == pytest.approx(0.05, rel=0.05)


def test_with_one_part_alone_it_is_students() -> None:
    common = Between(0.01, 4)
    for one in (Clustered(common, None), Clustered(common, Between(1e-12, 9))):
        assert one.p_value(0.03, 1.0) == pytest.approx(2 * scipy_stats.t.sf(3, 4), rel=1e-4)
        assert one.around(0.03, 1.0).width / 2 == pytest.approx(0.01 * scipy_stats.t.ppf(0.975, 4))
    own = Clustered(Between(1e-12, 1), Between(0.01, 9))
    assert own.p_value(0.03, 1.0) == pytest.approx(2 * scipy_stats.t.sf(3, 9), rel=1e-4)


def test_the_interval_ends_where_chance_is_as_large_as_it_says() -> None:
    scatter = Clustered(Between(0.01, 2), Between(0.02, 12))
    half = scatter.around(0.0, 0.7).high
    assert scatter.p_value(half, 0.7) == pytest.approx(0.05, rel=1e-6)
    assert scatter.p_value(0.0, 0.7) == 1.0


def test_many_sizes_are_many_chances_of_their_own_part_and_one_of_the_common() -> None:
    jumping = Clustered(Between(0.01, 4), Between(1e-12, 9))
    assert jumping.p_value(0.05, 1.0, among=8) == pytest.approx(jumping.p_value(0.05, 1.0))
    apiece = Clustered(Between(1e-12, 4), Between(0.01, 9))
    assert apiece.p_value(0.05, 1.0, among=8) == pytest.approx(8 * apiece.p_value(0.05, 1.0))
    assert apiece.p_value(0.001, 1.0, among=8) == 1.0
    far_apart = Clustered(Between(0.01, 4), None)
    assert far_apart.p_value(0.05, 1.0, among=8) == pytest.approx(8 * far_apart.p_value(0.05, 1.0))


@pytest.mark.parametrize("blocks", [2, 3, 5])
@pytest.mark.parametrize("jump", [0.0, 0.005, 0.01, 0.03, 0.1])
def test_its_intervals_keep_their_word_however_much_is_in_common(jump: float, blocks: int) -> None:
    """At the middle one of five sizes, of two equal curves on their own."""
    rng = np.random.default_rng(round(jump * 1000) + blocks)
    covered = 0
    for _ in range(1500):
        pair = [curve(rng, jump, 0.01, blocks) for _ in range(2)]
        scatter = clustered(apart(pair, LEAST), [])
        assert scatter is not None
        a, b = (np.median(list(each[4].values())) for each in pair)
        span = scatter.around(float(a - b), 2 * variance_of_median(blocks))
        covered += span.low <= 0 <= span.high
    assert covered / 1500 >= 0.94


def test_others_lend_what_they_know_but_not_to_one_that_jumps() -> None:
    rng = np.random.default_rng(6)
    others = [apart([curve(rng, 0.001, 0.001, 2)], LEAST) for _ in range(20)]
    like = clustered(apart([curve(rng, 0.001, 0.001, 2) for _ in range(2)], LEAST), others)
    assert like is not None and like.common.freedom > 8
    jumping = apart([curve(rng, 0.2, 0.001, 2) for _ in range(2)], LEAST)
    assert jumping.common is not None and jumping.common.deviation > 0.02
    alone = clustered(jumping, others)
    assert alone is not None and alone.common == jumping.common


def test_few_lend_nothing() -> None:
    found = Apart(Between(0.01, 2), Between(0.02, 8))
    assert clustered(found, [found] * 4) == Clustered(Between(0.01, 2), Between(0.02, 8))
