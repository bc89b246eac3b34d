"""Dips and drops are found where they are, and nowhere else."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.stats.irregular import Irregularity, irregularities
from waywiser.stats.scatter import CurveBlocks

SIZES = tuple(2**n for n in range(3, 31))


def curve(
    seconds: Callable[[int], float],
    *,
    sigma: float = 0.003,
    blocks: int = 2,
    seed: int = 1,
    sizes: Sequence[int] = SIZES,
    dips: dict[int, float] | None = None,
) -> CurveBlocks:
    """Blocks with noise at each size, and a level of each block's own."""
    rng = random.Random(seed)
    levels = [rng.gauss(0, sigma) for _ in range(blocks)]

    def block(size: int, level: float) -> float:
        return seconds(size) * (1 + (dips or {}).get(size, 0)) * math.exp(rng.gauss(level, sigma))

    return CurveBlocks(
        sizes,
        [
            {
                n: seconds(size)
                * (1 + (dips or {}).get(size, 0))
                * math.exp(rng.gauss(level, sigma))
                for n, level in enumerate(levels)
            }
            for size in sizes
        ],
        [sigma / 4] * len(sizes),
    )


def line(size: int) -> float:
    return 5e-6 + size / 50e9


def found(measured: CurveBlocks) -> tuple[Irregularity, ...]:
    return irregularities([measured])[0]


@pytest.mark.parametrize("at", SIZES[2:-2])
def test_a_dip_of_five_percent_is_found_at_any_size(at: int) -> None:
    hits = [found(curve(line, seed=seed, dips={at: 0.05})) for seed in range(10)]
    assert sum(any(each.low <= at <= each.high for each in hit) for hit in hits) >= 9
    (sure,) = found(curve(line, sigma=0.001, dips={at: 0.05}))
    assert (sure.kind, sure.low, sure.high) == ("dip", at, at)
    assert sure.depth == pytest.approx(0.05, abs=0.01)
    assert sure.interval.low < 0.05 < sure.interval.high + 0.005
    assert (sure.blocks, sure.of) == (2, 2) and sure.p_value <= 0.01


@pytest.mark.parametrize("width", [2, 3, 4])
def test_a_dip_of_several_sizes_is_one(width: int) -> None:
    sizes = SIZES[18 : 18 + width]
    (result,) = found(curve(line, dips=dict.fromkeys(sizes, 0.08)))
    assert (result.low, result.high) == (sizes[0], sizes[-1])


def test_a_sag_wider_than_any_window_is_found_where_rates_have_saturated() -> None:
    sizes = SIZES[20:26]
    (result,) = found(curve(line, dips=dict.fromkeys(sizes, 0.2)))
    assert result.kind == "dip" and result.low <= sizes[0] and result.high == sizes[-1]


ORDINARY: dict[str, Callable[[int], float]] = {
    "a line": line,
    "latency hidden by the pipeline": lambda size: max(5e-6, size / 50e9),
    "a smooth knee": lambda size: ((5e-6) ** 3 + (size / 50e9) ** 3) ** (1 / 3),
    "a power law": lambda size: 1e-7 * size**0.6,
    "a better protocol from some size on": lambda size: min(2e-6 + size / 9e9, 7e-6 + size / 50e9),
    "a jump to a better protocol": lambda size: line(size) * (1.6 if size < 2**20 else 1.0),
    "a rate that creeps up": lambda size: 5e-6 + size / 50e9 * (1 + (2**18 / size) ** 0.5),
}


@pytest.mark.parametrize("shape", ORDINARY)
def test_ordinary_shapes_have_no_dips(shape: str) -> None:
    made = [
        curve(ORDINARY[shape], seed=seed, sigma=sigma, blocks=blocks)
        for seed in range(12)
        for sigma in (0.001, 0.003, 0.006)
        for blocks in (1, 2, 6)
    ]
    flagged = [result for each in made if (result := found(each))]
    assert len(flagged) <= 1  # of 108, each as if it were a profile of its own


@given(st.integers(0, 10**6), st.floats(0.0005, 0.03), st.integers(1, 7))
@settings(max_examples=60)
def test_noise_of_any_size_is_no_dip(seed: int, sigma: float, blocks: int) -> None:
    made = [curve(line, seed=seed * 4 + n, sigma=sigma, blocks=blocks) for n in range(4)]
    assert sum(map(bool, irregularities(made))) <= 1


def test_one_disturbed_block_is_no_dip() -> None:
    made = curve(line, blocks=2)
    blocks = [dict(each) for each in made.blocks]
    blocks[15][0] *= 1.3
    assert found(CurveBlocks(made.bytes, blocks, made.within)) == ()


def test_a_rough_curve_has_no_dips() -> None:
    rng = random.Random(3)
    rough = {size: rng.uniform(0.0, 0.3) for size in SIZES}
    assert found(curve(line, dips=rough)) == ()


def test_a_drop_stays() -> None:
    (result,) = found(curve(lambda size: line(size) * (1.4 if size >= 2**26 else 1.0)))
    assert (result.kind, result.low, result.high) == ("drop", 2**26, SIZES[-1])
    assert result.reference < 2**26
    assert result.depth == pytest.approx(0.38, abs=0.05)


def test_the_largest_size_alone_is_no_drop() -> None:
    assert found(curve(line, dips={SIZES[-1]: 0.3})) == ()


def test_few_or_distant_sizes_show_nothing() -> None:
    dip = {2**20: 0.5}
    assert found(curve(line, sizes=SIZES[15:20], dips=dip)) == ()
    far = SIZES[::4]
    assert found(curve(line, sizes=far, dips={far[3]: 0.5})) == ()


def test_curves_of_a_class_show_their_scatter_together() -> None:
    def made(seed: int, dips: dict[int, float] | None = None) -> CurveBlocks:
        return curve(line, sigma=0.008, seed=seed, dips=dips)._replace(alike="pinned to GPU")

    class_of_eight = [made(0, {2**24: 0.06}), *(made(seed) for seed in range(1, 8))]
    first, *others = irregularities(class_of_eight)
    assert [each.low for each in first] == [2**24]
    assert not any(others)


def test_a_block_that_left_a_size_out_does_not_count_there() -> None:
    made = curve(line, blocks=3, dips={2**24: 0.1})
    blocks = [dict(each) for each in made.blocks]
    del blocks[21][2]
    (result,) = found(CurveBlocks(made.bytes, blocks, made.within))
    assert (result.low, result.of) == (2**24, 2)
