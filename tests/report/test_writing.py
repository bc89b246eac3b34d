"""Values as a report writes them."""

from __future__ import annotations

import pytest

import profiles
from waywiser.profile.estimate import estimate, rate
from waywiser.render.writing import percent, spread, spread_or_processes, value
from waywiser.stats.order import Interval, relative
from waywiser.words.records import Samples, Series


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


def test_a_rate_and_its_time_have_the_same_deviation() -> None:
    time = Interval(0.8, 1.4)
    found = rate(10**9, 1.0, time)
    assert found is not None and found.interval is not None
    shown = value(found.value, "B/s", found.interval)
    assert shown.endswith(" ±30 %")
    assert value(1.0, "s", time).endswith(" ±30 %")
    assert relative(found.value, found.interval, of_rate=True) == pytest.approx(0.3)
    assert relative(0.0, time) is None
    assert relative(1.0, Interval(0.0, 1.0), of_rate=True) is None


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, ""), (0.0004, "±<0.1 %"), (0.002, "±0.2 %"), (0.3, "±30 %"), (2.0, "±>100 %")],
)
def test_half_an_interval_has_its_sign(share: float | None, text: str) -> None:
    assert spread(share) == text


@pytest.mark.parametrize(("blocks", "text"), [(1, "one process"), (3, "3 processes")])
def test_samples_that_depend_on_each_other_have_no_deviation(blocks: int, text: str) -> None:
    rising = Samples(span=tuple(1e-3 + n * 1e-6 for n in range(40)))
    what = profiles.workload(profiles.H2D, 2**20)
    visits = tuple(profiles.visit(what, n, rising) for n in range(blocks))
    found = estimate(Series(what, visits))
    assert found is not None and found.relative is None
    assert spread_or_processes(found, found.relative, column=True) == text
    assert spread_or_processes(found, found.relative) == f"{blocks} proc."
    few = estimate(Series(what, (profiles.visit(what, 0, Samples(span=(1e-3,) * 5)),)))
    assert few is not None and few.relative is None
    assert spread_or_processes(few, None) == ""
    assert spread_or_processes(few, None, column=True) == "—"
    assert spread_or_processes(few, 0.006) == spread_or_processes(few, 0.006, column=True)
