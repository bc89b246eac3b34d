"""The search finds what is known to be the best, of landscapes with noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from landscapes import AXES, STORES, THREADS, Landscape, play, settings_of

from waywiser.measure.tune.search import (
    Configuration,
    Search,
    SearchAxis,
    Timing,
    configurations,
    ratio,
)

GRID = len(list(configurations(AXES)))
ENOUGH = 0.97
"""The share of the best bandwidth that a winner has to have."""


def share_of_best(search: Search, landscape: Landscape) -> float:
    """The bandwidth of the winner over that of the best of the grid, without noise."""
    best = min(landscape.seconds(settings_of(search, c)) for c in configurations(search.axes))
    return best / landscape.seconds(settings_of(search, search.winner))


def unimodal(chunk: float, slots: float, threads: float, streaming: float) -> Landscape:
    """A peak at these values (powers of two), the less steep the farther."""

    def seconds(s: Mapping[str, str]) -> float:
        far = abs(math.log2(int(s["chunk"])) - chunk) * 0.15
        far += abs(int(s["slots"]) - slots) * 0.08
        far += abs(math.log2(int(s["threads"])) - threads) * 0.25
        return (1 + far) * (streaming if s["stores"] == "streaming" else 1.0)

    return Landscape(seconds)


@settings(max_examples=40)
@given(
    st.integers(0, 4),
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from([0.8, 1.0, 1.3]),
    st.integers(0, 10_000),
)
def test_the_peak_of_a_unimodal_landscape_is_found(
    chunk: int, slots: int, threads: int, streaming: float, seed: int
) -> None:
    landscape = unimodal(chunk, slots, threads, streaming)
    landscape.seed = seed
    landscape.__post_init__()
    search = Search(AXES, seed=str(seed))
    play(search, landscape)
    assert share_of_best(search, landscape) >= ENOUGH
    assert search.measured < GRID / 2
    assert len(landscape.visits) < 0.75 * GRID


def test_a_plateau_before_the_peak_does_not_end_the_walk() -> None:
    def seconds(s: Mapping[str, str]) -> float:
        return {"1": 1.0, "2": 1.0, "4": 1.0, "8": 0.99, "16": 0.5}[s["threads"]]

    search = Search((THREADS,))
    play(search, Landscape(seconds))
    assert settings_of(search, search.winner) == {"threads": "16"}


def test_a_flat_landscape_keeps_few_contenders_and_loses_nothing() -> None:
    landscape = Landscape(lambda s: 1.0)
    search = Search(AXES)
    play(search, landscape)
    assert share_of_best(search, landscape) == 1.0
    assert len(landscape.visits) < GRID / 2


def test_the_default_wins_if_nothing_differs_at_all() -> None:
    search = Search(AXES)
    play(search, Landscape(lambda s: 1.0, noise=0.0, between=0.0))
    assert search.winner == search.default


def test_of_two_winners_one_is_found() -> None:
    def seconds(s: Mapping[str, str]) -> float:
        few, many = abs(int(s["threads"]) - 2), abs(int(s["threads"]) - 16)
        return 1 + 0.2 * min(few if s["stores"] == "ordinary" else 9, many)

    landscape = Landscape(seconds)
    search = Search((THREADS, STORES))
    play(search, landscape)
    assert share_of_best(search, landscape) >= ENOUGH


def test_a_configuration_that_fails_is_no_winner_and_is_measured_once() -> None:
    landscape = unimodal(2, 3, 4, 1.0)
    landscape.fails = lambda s: s["threads"] == "16"
    search = Search(AXES)
    play(search, landscape)
    assert settings_of(search, search.winner)["threads"] == "8"
    failed = [c for _, c in landscape.visits if settings_of(search, c)["threads"] == "16"]
    assert len(failed) == len(set(failed))


def test_defaults_that_fail_end_the_search() -> None:
    landscape = Landscape(lambda s: 1.0, fails=lambda s: True)
    search = Search(AXES)
    play(search, landscape)
    assert search.failed and search.is_decided
    assert len(landscape.visits) == 1


def test_what_the_machine_does_not_support_is_not_measured() -> None:
    landscape = unimodal(2, 3, 4, 1.0)
    search = Search(AXES, possible=lambda c: c[2] != "16")
    play(search, landscape)
    assert all(settings_of(search, c)["threads"] != "16" for _, c in landscape.visits)


@pytest.mark.parametrize("most", [1, 2, 5, 12])
def test_a_search_without_time_has_the_best_of_what_it_measured(most: int) -> None:
    landscape = unimodal(4, 1, 4, 0.5)
    search = Search(AXES)
    play(search, landscape, most=most)
    assert len(landscape.visits) == most
    measured = {c for _, c in landscape.visits}
    assert search.winner in measured
    known = [landscape.seconds(settings_of(search, c)) for c in measured]
    assert landscape.seconds(settings_of(search, search.winner)) <= min(known) * 1.05


def test_a_neighbour_starts_from_the_winner_and_measures_less() -> None:
    first, second = unimodal(4, 1, 4, 0.8), unimodal(4, 1, 4, 0.8)
    cold = Search(AXES)
    play(cold, first)
    warm = Search(AXES, start=cold.winner)
    play(warm, second)
    assert share_of_best(warm, second) >= ENOUGH
    assert len(second.visits) < len(first.visits)


def test_drift_does_not_choose_the_winner() -> None:
    landscape = unimodal(1, 4, 3, 1.2)
    landscape.drift = 0.003
    search = Search(AXES)
    play(search, landscape)
    assert share_of_best(search, landscape) >= ENOUGH


def test_every_round_measures_the_default_and_all_contenders_once() -> None:
    landscape = unimodal(2, 2, 2, 1.0)
    search = Search(AXES)
    play(search, landscape)
    for number in range(4):
        measured = [c for process, c in landscape.visits if process == number]
        assert search.default in measured
        assert len(measured) == len(set(measured))


def test_a_subset_grows_by_the_member_that_helps_most() -> None:
    relays = SearchAxis("relays", "subset", ("all", "1", "2", "3", "4"))
    rates = {"1": 10.0, "2": 30.0, "3": 20.0, "4": -5.0}

    def seconds(s: Mapping[str, str]) -> float:
        members = rates if s["relays"] == "all" else s["relays"].split("+")
        return 1 / (20 + sum(rates[member] for member in members))

    search = Search((relays,))
    landscape = Landscape(seconds)
    play(search, landscape)
    assert settings_of(search, search.winner) == {"relays": "1+2+3"}
    assert len(relays.all_values) == 1 + 4 + 6 + 4


def test_a_search_is_a_function_of_what_was_measured() -> None:
    first, second = unimodal(3, 2, 1, 0.9), unimodal(3, 2, 1, 0.9)
    for landscape in (first, second):
        play(Search(AXES, seed="a"), landscape)
    assert first.visits == second.visits


def test_a_ratio_has_an_interval_from_three_processes_on() -> None:
    slow = {n: Timing(2.0 + 0.01 * n, 0.001) for n in range(4)}
    fast = {n: Timing(1.0 + 0.005 * n, 0.001) for n in range(4)}
    found = ratio(slow, fast)
    assert found is not None and found.interval is not None
    assert found.value == pytest.approx(2.0)
    assert found.interval.low < 2.0 < found.interval.high < 2.02
    for few in (1, 2):
        by_few = ratio({n: slow[n] for n in range(few)}, fast)
        assert by_few is not None and by_few.interval is None
        assert by_few.value == pytest.approx(2.0)
    three = ratio({n: slow[n] for n in range(3)}, fast)
    assert three is not None and three.interval is not None
    assert ratio({0: Timing(2.0)}, {1: Timing(1.0)}) is None


def test_all_members_are_tried_again_where_another_parameter_is_better() -> None:
    """The number of relays changes the time of small chunks alone."""
    relays = SearchAxis("relays", "subset", ("all", "1", "2", "3"))

    def seconds(s: Mapping[str, str]) -> float:
        number = 3 if s["relays"] == "all" else len(s["relays"].split("+"))
        chunk = int(s["chunk"])
        return (0.99 if s["relays"] == "2" else 1.0) if chunk >= 4 else chunk / (4 * number)

    search = Search((relays, SearchAxis("chunk", "ordered", ("8", "1", "2", "4"))))
    play(search, Landscape(seconds))
    assert settings_of(search, search.winner) == {"relays": "all", "chunk": "1"}


def test_a_visit_that_is_disturbed_loses_no_winner() -> None:
    def seconds(s: Mapping[str, str]) -> float:
        return 16 / int(s["threads"])

    class Disturbed(Landscape):
        def measure(
            self, axes: tuple[SearchAxis, ...], configuration: Configuration, process: int
        ) -> Timing | None:
            found = super().measure(axes, configuration, process)
            if found is not None and process == 0 and configuration == ("16",):
                return Timing(3 * found.seconds)
            return found

    search = Search((THREADS,))
    play(search, Disturbed(seconds))
    assert settings_of(search, search.winner) == {"threads": "16"}


@pytest.mark.parametrize("seed", range(10))
def test_a_pair_of_values_that_is_fast_only_together_is_found(seed: int) -> None:
    """Ordinary stores are slower, but for many threads, and these only with small chunks."""

    def seconds(s: Mapping[str, str]) -> float:
        many, ordinary = int(s["threads"]) >= 16, s["stores"] == "ordinary"
        if many and ordinary and int(s["chunk"]) <= 4:
            return 1.0
        return (1.15 if s["chunk"] == "8" else 1.35) + 0.1 * ordinary

    stores = SearchAxis("stores", "choice", ("streaming", "ordinary"))
    landscape = Landscape(seconds, noise=0.03, seed=seed)
    search = Search((*AXES[:3], stores), seed=str(seed))
    play(search, landscape)
    assert share_of_best(search, landscape) >= ENOUGH


@pytest.mark.parametrize("seed", range(10))
def test_a_search_of_a_small_grid_takes_few_visits(seed: int) -> None:
    """Also if noise hides which configuration is the best."""
    landscape = Landscape(lambda s: 1 + 1 / int(s["threads"]), noise=0.05, seed=seed)
    search = Search((THREADS, STORES), seed=str(seed))
    play(search, landscape, rounds=6)
    assert len(landscape.visits) <= 10 + 5 * 3
    assert share_of_best(search, landscape) >= 0.9
