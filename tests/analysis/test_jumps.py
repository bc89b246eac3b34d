"""Blocks that jump at all sizes of a curve at once do not make two equal curves differ."""

from __future__ import annotations

import pytest
from tests.analysis.jumping import null_pair

from planted.score import REJECTED, Share

LARGE = tuple(2**n for n in range(22, 30))


def told_to_differ(asked: int, **how: float) -> Share:
    share = Share()
    for seed in range(asked):
        share.add(null_pair(seed, sizes=LARGE, **how).verdict == "different")  # type: ignore[arg-type]
    return share


@pytest.mark.parametrize("blocks", [2, 3, 6])
@pytest.mark.parametrize("jump", [0.02, 0.05, 0.10])
def test_a_pair_whose_blocks_jump_is_hardly_ever_told_to_differ(jump: float, blocks: int) -> None:
    found = told_to_differ(300, jump=jump, blocks=blocks)
    assert found.chance_of_so_many(REJECTED) >= 0.01


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_its_steady_twins_do_not_lend_it_their_steadiness(blocks: int) -> None:
    found = told_to_differ(60, jump=0.05, steady=0.0, blocks=blocks, pairs=8)
    assert found.chance_of_so_many(REJECTED) >= 0.01


def test_nor_are_all_of_them_told_to_differ_where_all_jump() -> None:
    found = told_to_differ(100, jump=0.05, blocks=2, pairs=8)
    assert found.chance_of_so_many(REJECTED) >= 0.01


@pytest.mark.parametrize(("blocks", "pairs", "least"), [(2, 8, 0.8), (3, 1, 0.9), (6, 1, 0.98)])
def test_five_percent_are_found_where_blocks_jump_by_half_a_percent(
    blocks: int, pairs: int, least: float
) -> None:
    found = told_to_differ(60, jump=0.005, blocks=blocks, pairs=pairs, slower=1.05)
    assert found.value >= least
