from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine.catalogue import Parameter
from waywiser.measure.plan.curves import MOST_COMBINATIONS, combinations, useful_values
from waywiser.measure.plan.preset import Depth

THREADS = Parameter("threads", "", "ordered", ("1", "2", "4", "8", "16", "32"))
STORES = Parameter("stores", "", "choice", ("ordinary", "streaming"))


def test_an_ordered_parameter_is_tried_at_its_ends_and_middle() -> None:
    assert useful_values(THREADS) == ("2", "8", "32")
    assert useful_values(STORES) == ("streaming",)


def test_single_varies_one_at_a_time_from_the_defaults() -> None:
    assert combinations([THREADS, STORES], Depth.SINGLE) == [
        {},
        {"threads": "2"},
        {"threads": "8"},
        {"threads": "32"},
        {"stores": "streaming"},
    ]
    assert combinations([THREADS, STORES], Depth.DEFAULTS) == [{}]


def test_pairs_are_every_value_alone_and_useful_values_together() -> None:
    settings = combinations([THREADS, STORES], Depth.PAIRS)
    assert [s["threads"] for s in settings if list(s) == ["threads"]] == ["2", "4", "8", "16", "32"]
    together = [s["threads"] for s in settings if len(s) == 2]
    assert together == ["2", "8", "32"]


def test_no_three_settings_are_away_from_their_defaults_at_once() -> None:
    side = Parameter("side", "", "choice", ("pull", "push"))
    settings = combinations([THREADS, STORES, side], Depth.PAIRS)
    assert max(map(len, settings)) == 2
    assert {"stores": "streaming", "side": "push"} in settings


@given(st.lists(st.integers(1, 12), max_size=6))
def test_pairs_are_bounded_distinct_and_start_at_the_defaults(sizes: list[int]) -> None:
    parameters = [
        Parameter(f"p{i}", "", "choice", tuple(map(str, range(n)))) for i, n in enumerate(sizes)
    ]
    settings = combinations(parameters, Depth.PAIRS)
    assert settings[0] == {}
    assert len(settings) <= MOST_COMBINATIONS
    assert len({tuple(sorted(s.items())) for s in settings}) == len(settings)
    assert list(map(len, settings)) == sorted(map(len, settings))
