from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine import pcie


@pytest.mark.parametrize(
    ("generation", "width", "gb_per_s"),
    [(1, 16, 4.0), (2, 8, 4.0), (3, 16, 15.754), (4, 16, 31.508), (5, 16, 63.015), (6, 16, 121.0)],
)
def test_what_a_link_carries(generation: int, width: int, gb_per_s: float) -> None:
    assert pcie.bytes_per_second(generation, width) / 1e9 == pytest.approx(gb_per_s, rel=1e-4)


def test_the_text_says_what_it_is_made_of() -> None:
    assert pcie.describe(5, 16) == "PCIe 5 x16: 16 lanes × 32 GT/s × 128/130 / 8 = 63.0 GB/s"


@given(st.integers(1, 6), st.integers(1, 16))
def test_a_link_grows_with_width_and_generation(generation: int, width: int) -> None:
    rate = pcie.bytes_per_second(generation, width)
    assert pcie.bytes_per_second(generation, 2 * width) == pytest.approx(2 * rate)
    assert generation == 6 or pcie.bytes_per_second(generation + 1, width) > 1.8 * rate


@pytest.mark.parametrize(
    ("text", "generation"),
    [("32.0 GT/s PCIe", 5), ("2.5 GT/s PCIe", 1), ("Unknown", 0), (None, 0), ("7 GT/s", 0)],
)
def test_the_kernels_speed_is_a_generation(text: str | None, generation: int) -> None:
    assert pcie.generation_of_speed(text) == generation


def test_an_unknown_link_carries_nothing_known() -> None:
    assert pcie.bytes_per_second(0, 16) == 0
    assert pcie.bytes_per_second(5, 0) == 0
