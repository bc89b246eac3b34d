from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.model.count_table import CountKey
from waywiser.model.messages import MessageTimes
from waywiser.model.rate import CountModel, fit_counts, held_out_deviations

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
    assert (
        max(held_out_deviations(messages("messages", range(1, 9)), CountKey("pinned", "messages")))
        < 1e-6
    )
    assert held_out_deviations([], CountKey("pinned", "messages")) == []
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
