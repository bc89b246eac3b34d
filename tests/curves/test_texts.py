"""Phrases that several answers share."""

from __future__ import annotations

import pytest

from waywiser.curves.texts import named, of_pairs, percent, size_ranges
from waywiser.stats.order import Interval


@pytest.mark.parametrize(
    ("effect", "interval", "text"),
    [
        (0.0512, None, "5.1 %"),
        (-0.0512, Interval(-0.06, -0.04), "5.1 % (4.0–6.0)"),
        (0.42, Interval(0.4, 0.45), "42 % (40–45)"),
        (0.0012, Interval(-0.001, 0.003), "0.12 % (0.00–0.30)"),
    ],
)
def test_percent(effect: float, interval: Interval | None, text: str) -> None:
    assert percent(effect, interval) == text


def test_counts_in_words() -> None:
    assert of_pairs(1, 1, "pair") == "the only pair"
    assert of_pairs(8, 8, "GPU") == "all 8 GPUs"
    assert of_pairs(3, 8, "GPU") == "3 of 8 GPUs"
    assert named(["a", "b"]) == "a, b"
    assert named([str(n) for n in range(10)]).endswith("7 and 2 more")


def test_sizes_that_follow_one_another_are_one_range() -> None:
    sizes = [2**n for n in range(10, 16)]
    assert size_ranges(sizes[1:3] + sizes[5:], sizes) == "2 KiB to 4 KiB, 32 KiB"
    assert size_ranges([], sizes) == ""
