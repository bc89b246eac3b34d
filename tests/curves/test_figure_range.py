from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import profiles
from waywiser.curves.curve import Point
from waywiser.curves.figure_range import range_of, range_text
from waywiser.curves.overview import overview
from waywiser.profile import Profile
from waywiser.stats.order import Interval
from waywiser.words.number_format import format_rate, format_time


@pytest.mark.parametrize(
    ("ordered", "text"),
    [
        ([], ""),
        (["55.2"], "55.2"),
        (["55.2", "55.4", "55.6"], "55.2–55.6"),
        (["88%", "88%"], "88%"),
        (["2.2 µs", "8.6 µs"], "2.2–8.6 µs"),
        (["900 ns", "1.2 µs"], "900 ns–1.2 µs"),
        (["8 B", "64 KiB"], "8 B–64 KiB"),
        (["64 MiB", "256 MiB"], "64–256 MiB"),
        (["76%", "88%"], "76–88%"),
    ],
)
def test_a_range_has_its_unit_once(ordered: list[str], text: str) -> None:
    assert range_text(ordered) == text


def rate(point: Point) -> float | None:
    return point.estimate.rate.value if point.estimate and point.estimate.rate else None


def point(points: dict[str, Point], workload: str, scale: float) -> Point:
    """A line whose median time is so many times that of another."""
    found = points[workload]
    assert found.estimate is not None and found.estimate.interval is not None
    low, high = (scale * end for end in (found.estimate.interval.low, found.estimate.interval.high))
    return msgspec.structs.replace(
        found,
        estimate=msgspec.structs.replace(
            found.estimate, median=scale * found.estimate.median, interval=Interval(low, high)
        ),
    )


def test_each_end_has_its_own_digits_unless_they_hide_the_order(tmp_path: Path) -> None:
    with Profile.open(profiles.write(tmp_path / "a.wwp")) as profile:
        points = {point.text: point for point in overview(profile).series}
    sharp, wide = f"{profiles.H2D} of {2**30}", f"{profiles.HOST} of {2**20}"
    assert range_of([points[sharp]], rate, format_rate) == "55.01"
    assert range_of([points[wide], points[sharp]], rate, format_rate) == "10–55.0"
    assert range_of([points["empty-interval@gpu:0"]], rate, format_rate) == ""
    first, second = points[sharp].estimate, points[wide].estimate
    assert first is not None and second is not None
    low = point(points, sharp, 20.3e-3 / first.median)
    high = point(points, wide, 20.48e-3 / second.median)
    assert range_of([high], seconds, format_time) == "20 ms"
    assert range_of([low, high], seconds, format_time) == "20.3–20.5 ms"


def seconds(point: Point) -> float | None:
    return point.estimate.median if point.estimate else None
