"""A curve of several lines comes apart where they meet, and no other does."""

from __future__ import annotations

import random

import pytest

from waywiser.stats.postal import describes, protocol_ranges

SIZES = tuple(2**n for n in range(3, 31))


def test_two_protocols_are_distinguished() -> None:
    seconds = [2e-6 + n / 5e9 if n < 2**18 else 30e-6 + n / 20e9 for n in SIZES]
    first, second = protocol_ranges(SIZES, seconds)
    assert (first.low, first.high, second.low, second.high) == (8, 2**17, 2**18, 2**30)
    assert first.latency == pytest.approx(2e-6, rel=1e-3)
    assert 1 / first.inverse_rate == pytest.approx(5e9, rel=1e-3)
    assert second.latency == pytest.approx(30e-6, rel=1e-3)
    assert 1 / second.inverse_rate == pytest.approx(20e9, rel=1e-3)


def test_three_are_reported_with_noise() -> None:
    rng = random.Random(1)
    true = [
        1e-6 + n / 1e9 if n < 2**12 else 9e-6 + n / 8e9 if n < 2**22 else 90e-6 + n / 50e9
        for n in SIZES
    ]
    found = protocol_ranges(SIZES, [each * (1 + rng.gauss(0, 0.01)) for each in true])
    assert [each.low for each in found] == [8, 2**12, 2**22]


def test_what_no_three_lines_describe_is_not_reported() -> None:
    rng = random.Random(2)
    assert protocol_ranges(SIZES, [1e-6 * rng.uniform(1, 9) for _ in SIZES]) == ()


def test_few_sizes_are_no_two_lines() -> None:
    assert protocol_ranges(SIZES[:7], [1.0, 1.0, 1.0, 1.0, 9.0, 18.0, 36.0]) == ()


def test_what_describes_is_near_everywhere() -> None:
    assert describes([0.01, -0.02, 0.14, 0.0, 0.03])
    assert not describes([0.01, -0.02, 0.16, 0.0, 0.03])
    assert not describes([0.06, -0.06, 0.06, 0.0, 0.0])
    assert describes([0.0, 0.0, 0.06, -0.06]), "the median of an even number is the mean of two"
