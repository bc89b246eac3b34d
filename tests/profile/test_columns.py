from __future__ import annotations

import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.profile.columns import BadColumn, packed, unpacked


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=50))
def test_floats_come_back_to_the_bit(values: list[float]) -> None:
    assert unpacked(packed(values, "d"), len(values), "d") == tuple(values)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_integers_come_back(values: list[int]) -> None:
    assert unpacked(packed(values, "q"), len(values), "q") == tuple(values)


def test_an_integer_beyond_64_bits_is_an_error() -> None:
    with pytest.raises(BadColumn):
        packed([2**63], "q")


@given(st.binary(max_size=60), st.integers(-1, 2**60))
def test_bytes_from_anyone_are_an_error_or_so_many_numbers(data: bytes, count: int) -> None:
    for blob in (data, zlib.compress(data)):
        with suppress(BadColumn):
            assert len(unpacked(blob, count, "d")) == count


def test_what_would_expand_is_not_unpacked() -> None:
    bomb = zlib.compress(bytes(2**27))
    tracemalloc.start()
    try:
        with pytest.raises(BadColumn):
            unpacked(bomb, 4, "d")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
