from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waywiser.plan.catalogue import Parameter
from waywiser.plan.vary import MOST_COMBINATIONS, combinations, useful_values

THREADS = Parameter("threads", "", "ordered", ("1", "2", "4", "8", "16", "32"))
STORES = Parameter("stores", "", "choice", ("ordinary", "streaming"))


def test_an_ordered_parameter_is_tried_at_its_ends_and_middle() -> None:
    assert useful_values(THREADS) == ("2", "8", "32")
    assert useful_values(STORES) == ("streaming",)


def test_single_varies_one_at_a_time_from_the_defaults() -> None:
    assert combinations([THREADS, STORES], "single") == [
        {},
        {"threads": "2"},
        {"threads": "8"},
        {"threads": "32"},
        {"stores": "streaming"},
    ]
    assert combinations([THREADS, STORES], "none") == [{}]


def test_the_product_holds_every_combination() -> None:
    settings = combinations([THREADS, STORES], "product")
    assert len(settings) == 12
    assert {"threads": "8", "stores": "streaming"} in settings


@given(st.lists(st.integers(1, 12), max_size=6))
def test_the_product_is_bounded_distinct_and_starts_at_the_defaults(sizes: list[int]) -> None:
    parameters = [
        Parameter(f"p{i}", "", "choice", tuple(map(str, range(n)))) for i, n in enumerate(sizes)
    ]
    settings = combinations(parameters, "product")
    assert settings[0] == {}
    assert len(settings) <= MOST_COMBINATIONS
    assert len({tuple(sorted(s.items())) for s in settings}) == len(settings)
    assert list(map(len, settings)) == sorted(map(len, settings))
