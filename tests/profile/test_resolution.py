from __future__ import annotations

import pytest

from profiles import block_of_times
from waywiser.profile.series_frame import EVENT_TICK_SECONDS, HOST_TICK_SECONDS
from waywiser.stats.order import Interval, at_least


def test_a_devices_tick_is_read_off_its_samples() -> None:
    spans = [n * 32e-9 for n in (100, 101, 103, 101, 100)]
    assert block_of_times(spans).tick == pytest.approx(32e-9)
    batched = block_of_times([span / 16 for span in spans], [16] * 5)
    assert batched.tick == pytest.approx(2e-9)


def test_equal_samples_fall_back_on_the_documented_resolution() -> None:
    assert block_of_times([5e-6] * 10, [4] * 10).tick == EVENT_TICK_SECONDS / 4


def test_rounding_of_the_event_clock_is_no_tick() -> None:
    found = block_of_times([1e-3, 1e-3 + 1e-11, 1e-3 + 64e-9])
    assert found.tick == pytest.approx(64e-9, rel=1e-3)


def test_the_hosts_tick_is_a_nanosecond() -> None:
    assert block_of_times([1e-6, 2e-6], mode="host").tick == HOST_TICK_SECONDS


def test_an_interval_is_widened_only_where_it_is_narrower() -> None:
    assert at_least(Interval(1.0, 2.0), 1.5, 0.5) == Interval(1.0, 2.0)
    assert at_least(Interval(1.5, 1.5), 1.5, 0.5) == Interval(1.25, 1.75)
    assert at_least(Interval(0.1, 0.1), 0.1, 1.0) == Interval(0.0, 0.6)
