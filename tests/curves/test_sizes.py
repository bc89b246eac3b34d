from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.curves.sizes import SizesError, joined, parse_sizes, size_range, thin

SIZE = st.integers(1, 2**40)


def test_a_range_is_powers_of_two() -> None:
    assert parse_sizes("8:1KiB") == (8, 16, 32, 64, 128, 256, 512, 1024)
    assert len(parse_sizes("8:1GiB")) == 28


def test_points_per_octave_and_lists_mix() -> None:
    assert parse_sizes("1MiB, 64:256:2 ,8") == (8, 64, 88, 128, 184, 256, 2**20)


def test_an_end_that_is_no_doubling_is_kept() -> None:
    assert parse_sizes("8:100") == (8, 16, 32, 64, 100)


@pytest.mark.parametrize(
    "text", ["", "8:", "9:8", "8:16:0", "8:16:99", "8:16:x", "1:2:3:4", "0", "1.5", "8,,16", "-8"]
)
def test_what_names_no_sizes_is_one_clear_error(text: str) -> None:
    with pytest.raises(SizesError, match="--sizes") as error:
        parse_sizes(text)
    assert "\n" not in str(error.value) and "write 8:1GiB" in str(error.value)


@given(SIZE, SIZE, st.integers(1, 8))
def test_a_range_holds_its_ends_and_ascends(a: int, b: int, points: int) -> None:
    low, high = sorted((a, b))
    sizes = size_range(low, high, points)
    assert sizes[0] == low and sizes[-1] == high
    assert list(sizes) == sorted(set(sizes))


@given(st.integers(64, 2**30), st.integers(1, 20), st.integers(1, 8))
def test_neighbours_are_a_step_apart(low: int, octaves: int, points: int) -> None:
    sizes = size_range(low, low * 2**octaves, points)
    assert len(sizes) == octaves * points + 1 or low < 64 * points
    assert all(low * 2**octave in sizes for octave in range(octaves + 1))


@given(st.sets(SIZE, min_size=1).map(sorted), st.integers(1, 10))
def test_thinned_sizes_keep_the_top_and_their_distance(sizes: list[int], octaves: int) -> None:
    kept = thin(tuple(sizes), octaves, largest=2**35)
    within = [size for size in sizes if size <= 2**35]
    assert set(kept) <= set(within)
    assert not within or kept[-1] == within[-1]
    assert all(b >= a * 2**octaves for a, b in itertools.pairwise(kept))


def test_a_decimal_unit_is_answered_with_the_binary_one() -> None:
    with pytest.raises(SizesError) as caught:
        parse_sizes("8:1MB")
    assert str(caught.value) == (
        "--sizes '8:1MB': '1MB' has a decimal unit, and sizes are binary (write 1MiB)"
    )


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ((), []),
        ((8,), []),
        ((8, 2**20, 2**26), []),
        ((4096, 8192, 2**20, 2**26, 2**27, 2**28), [(4096, 8192), (2**26, 2**27, 2**28)]),
        ((64, 88, 128, 4096), [(64, 88, 128)]),
    ],
)
def test_neighbours_of_a_sweep_are_joined(sizes: tuple[int, ...], parts: list) -> None:
    assert [sizes[part] for part in joined(sizes)] == parts


def test_all_default_sizes_are_joined_and_thinned_ones_are_not() -> None:
    sizes = parse_sizes("8:1GiB")
    assert joined(sizes) == [slice(0, len(sizes))]
    assert joined(thin(sizes, 2)) == []
