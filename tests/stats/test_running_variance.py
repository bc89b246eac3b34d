from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import result_and_calls
from waywiser.stats.noise_model import LEAST_VARIANCE, process_variance
from waywiser.stats.running_variance import RunningVariance

values = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.floats(-30, 30)), max_size=60
)


@given(values)
def test_it_is_the_variance_of_all_values_of_the_other_groups(
    found: list[tuple[str, str, float]],
) -> None:
    running = RunningVariance()
    series: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for group, name, value in found:
        running.add(group, name, value)
        series[group, name].append(value)
    for own in "ab":
        others = [all_of for (group, _), all_of in series.items() if group != own]
        expected, variance = process_variance(others, within=0.0), running.without(own)
        assert variance.freedom == expected.freedom
        assert variance.value == pytest.approx(expected.value, rel=1e-9, abs=1e-12)


def test_without_values_it_is_the_least() -> None:
    variance = RunningVariance().without("a")
    assert (variance.value, variance.freedom) == (LEAST_VARIANCE, 0)


def test_a_value_costs_the_same_however_many_came_before() -> None:
    running = RunningVariance()

    def add() -> float:
        running.add("a", "x", 1.0)
        return running.without("b").value

    _, first = result_and_calls(add)
    for number in range(1000):
        running.add("a", str(number % 7), number / 10)
    assert result_and_calls(add)[1] <= first
