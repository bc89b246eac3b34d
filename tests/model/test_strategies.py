"""Times of strategies: sums of steps, with intervals where all steps have one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_curves import model as curve_model
from waywiser.model.strategies import (
    StepTime,
    Strategy,
    StrategyStep,
    StrategyTimes,
    of_curve,
    time_of,
)
from waywiser.stats.order import Interval


def copy() -> StrategyStep:
    curve = curve_model(lambda n: 2e-6 + n / 12e9)
    return StrategyStep("copy", lambda count, bytes: of_curve(curve, count * bytes))


def constant(name: str, found: StepTime | None) -> StrategyStep:
    return StrategyStep(name, lambda count, bytes: found)


def test_steps_add_and_independent_intervals_add_as_squares() -> None:
    single = time_of(Strategy("x", (copy(),)), 1, 5000)
    double = time_of(Strategy("twice", (copy(), copy())), 1, 5000)
    assert single is not None and double is not None
    assert single.interval is not None and double.interval is not None
    assert double.seconds == pytest.approx(2 * single.seconds)
    half = (single.interval.high - single.seconds) * 2**0.5
    assert double.interval.high - double.seconds == pytest.approx(half)
    assert double.steps == {"copy": pytest.approx(double.seconds)}


TIMES = st.builds(
    lambda seconds, width, is_known, has_scatter, is_measured: StepTime(
        seconds,
        Interval(seconds * (1 - width), seconds * (1 + width)) if is_known else None,
        has_scatter,
        is_measured,
    ),
    st.floats(1e-6, 1.0), st.floats(0, 0.5), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


@given(st.lists(st.none() | TIMES, min_size=1, max_size=4))
def test_what_one_step_does_not_know_the_strategy_does_not(steps: list[StepTime | None]) -> None:
    found = time_of(
        Strategy("x", tuple(constant(f"{n}", each) for n, each in enumerate(steps))), 1, 8
    )
    known = [each for each in steps if each is not None]
    assert (found is None) is (len(known) < len(steps))
    if found is None:
        return
    assert found.seconds == pytest.approx(sum(each.seconds for each in known))
    assert (found.interval is None) is any(each.interval is None for each in known)
    assert found.has_scatter is all(each.has_scatter for each in known)
    assert found.is_measured is all(each.is_measured for each in known)
    if found.interval is not None:
        widest = max(each.interval.width for each in known if each.interval is not None)
        assert found.interval.width >= widest * (1 - 1e-9)
        assert found.interval.contains(found.seconds)
    assert (found.sure_interval is None) is (found.interval is None or not found.has_scatter)


def test_times_are_computed_once_and_ordered() -> None:
    calls: list[tuple[int, int]] = []

    def cost(count: int, bytes: int) -> StepTime | None:
        calls.append((count, bytes))
        return StepTime(2.0, None, False)

    slow = Strategy("slow", (StrategyStep("all", cost),))
    fast = Strategy("fast", (constant("all", StepTime(1.0, None, False)),))
    times = StrategyTimes([slow, fast, Strategy("none", (constant("all", None),))])
    assert [each.name for each in times.at(1, 8)] == ["fast", "slow"]
    assert [each.name for each in times.at(1, 8)] == ["fast", "slow"]
    assert calls == [(1, 8)] and times.of("unknown", 1, 8) is None
