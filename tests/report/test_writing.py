"""Values as a report writes them."""

from __future__ import annotations

import pytest

from waywiser.report.writing import percent
from waywiser.stats.order import Interval


@pytest.mark.parametrize(
    ("part", "interval", "result"),
    [
        (0.0521, None, "+5.2 %"),
        (-0.31, Interval(-0.35, -0.28), "−31 % (−35 % to −28 %)"),
        (0.27, Interval(0.2681, 0.2712), "+27 %"),
        (36.6, None, "×38"),
    ],
)
def test_an_effect_has_digits_that_say_something(
    part: float, interval: Interval | None, result: str
) -> None:
    assert percent(part, interval) == result
