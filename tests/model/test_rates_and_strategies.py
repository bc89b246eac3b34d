from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_curves import model as curve_model
from waywiser.model.messages import MessageTimes
from waywiser.model.rate import CountModel, fit_counts, held_out_deviations
from waywiser.model.strategies import (
    Strategy,
    StrategyStep,
    copy_step,
    crossover_over_counts,
    crossover_over_sizes,
    disagreements,
    fastest,
    measured_step,
    message_step,
    time_of,
)

SIZES = [4 * 2**n for n in range(18)]
GAP, RATE, LIMIT = 0.6e-6, 12e9, 24e9


def one(n: int) -> float:
    return 2e-6 + n / RATE


def limited(count: int, n: int) -> float:
    return max(one(n) + 0.01e-6 * (count - 1), count * n / LIMIT)


def in_turn(count: int, n: int) -> float:
    return one(n) + (count - 1) * (GAP + n / RATE)


def messages(test: str, counts: range) -> list[MessageTimes]:
    time = limited if test == "max-rate" else in_turn
    return [
        MessageTimes("pinned", "pinned", "off-node", test, k, n, (0, 40), (time(k, n),) * 3)
        for k in counts
        for n in SIZES
    ]


def fitted(test: str, counts: range = range(1, 41)) -> CountModel:
    found = fit_counts(messages(test, counts), "pinned", test)
    assert found is not None
    return found


def test_a_planted_injection_limit_is_found() -> None:
    found = fitted("max-rate")
    assert found.limit is not None
    assert found.limit.bytes_per_second == pytest.approx(LIMIT, rel=0.01)
    assert found.limit.interval.low <= LIMIT * 1.01
    prediction = found.predict(33, SIZES[-1])
    assert prediction is not None and prediction.limited
    assert prediction.seconds == pytest.approx(limited(33, SIZES[-1]), rel=0.02)
    small = found.predict(33, 300)
    assert small is not None and not small.limited
    assert small.seconds == pytest.approx(limited(33, 300), rel=0.02)


def test_the_limit_is_above_the_rates_if_messages_have_an_overhead() -> None:
    overhead = 1e-6
    slow = [
        msgspec.structs.replace(each, seconds=tuple(t + overhead for t in each.seconds))
        if each.count * each.bytes / LIMIT > one(each.bytes)
        else each
        for each in messages("max-rate", range(1, 41))
    ]
    found = fit_counts(slow, "pinned", "max-rate")
    assert found is not None and found.limit is not None
    assert found.limit.bytes_per_second == pytest.approx(LIMIT, rel=0.003)
    assert found.limit.overhead == pytest.approx(overhead, rel=0.1)
    total = 40 * SIZES[-4]
    assert found.seconds(40, SIZES[-4]) == pytest.approx(overhead + total / LIMIT, rel=0.003)


def test_too_few_processes_identify_no_limit() -> None:
    assert fitted("max-rate", range(1, 3 + 1)).limit is None


def test_a_planted_start_gap_is_found() -> None:
    found = fitted("messages")
    assert found.limit is None
    assert found.start_gap.latency == pytest.approx(GAP, rel=0.02)
    assert found.start_gap.inverse_rate == pytest.approx(1 / RATE, rel=0.02)
    assert found.seconds(17, 100_000) == pytest.approx(in_turn(17, 100_000), rel=0.02)


def test_held_out_counts_show_what_the_form_does_not_fit() -> None:
    assert max(held_out_deviations(messages("messages", range(1, 9)), "pinned", "messages")) < 1e-6
    assert held_out_deviations([], "pinned", "messages") == []
    assert fit_counts([], "pinned", "messages") is None


def test_nothing_is_said_beyond_the_measured_counts_and_sizes() -> None:
    found = fitted("messages", range(1, 9))
    assert found.predict(9, 64) is None and found.predict(0, 64) is None
    assert found.predict(2, 2 * SIZES[-1]) is None and found.predict(2, 1) is None


@given(st.integers(1, 40), st.integers(4, SIZES[-1]))
def test_a_model_is_the_same_after_json_and_more_messages_take_no_less(count: int, n: int) -> None:
    again = msgspec.json.decode(ENCODED, type=CountModel)
    assert again.seconds(count, n) == MODEL.seconds(count, n)
    assert again.seconds(count, n) <= again.seconds(count + 1, n)


MODEL = fitted("max-rate")
ENCODED = msgspec.json.encode(MODEL)


def plain(name: str, seconds: dict[int, float]) -> Strategy:
    return Strategy(name, (measured_step("all", lambda count, _: seconds.get(count)),))


def test_steps_add_and_independent_intervals_add_as_squares() -> None:
    copy = copy_step("copy", curve_model(one))
    twice = Strategy("twice", (copy, copy))
    single, double = (time_of(Strategy("x", (copy,)), 1, 5000), time_of(twice, 1, 5000))
    assert single is not None and double is not None
    assert double.seconds == pytest.approx(2 * single.seconds)
    half = (single.interval.high - single.seconds) * 2**0.5
    assert double.interval.high - double.seconds == pytest.approx(half)
    assert double.steps == {"copy": pytest.approx(double.seconds)}


def test_a_step_that_is_not_known_leaves_the_strategy_unknown() -> None:
    unknown = Strategy("x", (StrategyStep("none", lambda count, bytes: None),))
    assert time_of(unknown, 1, 1) is None and fastest([unknown], 1, 1) is None


def test_crossovers_are_from_the_first_point_after_which_nothing_changes() -> None:
    slow = plain("slow", dict.fromkeys(range(1, 7), 3.0))
    fast = plain("fast", {1: 5.0, 2: 2.9, 3: 3.1, 4: 2.0, 5: 1.0, 6: 1.0})
    found = crossover_over_counts(slow, fast, range(1, 7), 8)
    assert (found.at, found.may_be_from, found.surely_from) == (4, 2, 4)
    never = crossover_over_counts(fast, slow, range(1, 7), 8)
    assert never.at is None and never.surely_from is None


def test_a_crossover_over_sizes_has_a_range_that_holds_it() -> None:
    direct = Strategy("direct", (message_step("m", fitted("messages")),))
    copied = Strategy("copied", (copy_step("c", curve_model(lambda n: 10e-6 + n / 40e9)),))
    found = crossover_over_sizes(direct, copied, 1, [2**n for n in range(4, 20)])
    assert found.at == 2**18  # 8 us by 17.1 GB/s
    assert found.may_be_from is not None and found.may_be_from <= found.at
    assert found.surely_from is None or found.surely_from >= found.at


def test_a_wrong_choice_is_reported_with_what_it_costs() -> None:
    modelled = [plain("a", {1: 1.0, 2: 1.0}), plain("b", {1: 2.0, 2: 2.0})]
    measured = [plain("a", {1: 1.0, 2: 3.0}), plain("b", {1: 2.0, 2: 2.0})]
    (found,) = disagreements(modelled, measured, [(1, 8), (2, 8), (3, 8)])
    assert (found.count, found.predicted, found.measured) == (2, "a", "b")
    assert found.cost == pytest.approx(0.5) and not found.is_within_interval
