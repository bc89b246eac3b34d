from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_curves import SIZES, curve, model
from waywiser.model.curve import MOST_BEYOND, CurveModel, fit_curves

LATENCY, RATE = 2e-6, 50e9


def line(n: int) -> float:
    return LATENCY + n / RATE


def test_a_line_is_predicted_at_every_size_and_has_identified_parameters() -> None:
    found = model(line)
    assert found.is_line and found.lines == ()
    assert found.latency.value == pytest.approx(LATENCY, rel=1e-2)
    assert found.inverse_rate.value == pytest.approx(1 / RATE, rel=1e-2)
    assert found.latency.interval is not None and found.inverse_rate.interval is not None
    for n in (12, 5000, 3 * 2**20, 2**29 + 1):
        assert found.seconds(n) == pytest.approx(line(n), rel=2e-3)


def test_sizes_that_deviate_in_turn_are_a_line_since_neighbours_repeat_the_deviation() -> None:
    found = model(lambda n: line(n) * (1.05 if n.bit_length() % 2 else 0.95))
    assert found.form == "line"
    assert found.seconds(100_000) == pytest.approx(line(100_000), rel=0.02)
    assert found.error == pytest.approx(0.05, abs=0.01)


def switched(n: int) -> float:
    return 1e-6 + n / 5e9 if n < 8192 else 6e-6 + n / 20e9


def test_a_change_of_protocol_is_found_and_reported() -> None:
    found = model(switched)
    assert not found.is_line
    assert [each.low for each in found.lines] == [8, 8192]
    assert found.latency.value == pytest.approx(1e-6, rel=0.01)
    assert found.inverse_rate.value == pytest.approx(1 / 20e9, rel=0.01)
    for n in (3000, 12_000, 100_000):
        assert found.seconds(n) == pytest.approx(switched(n), rel=0.01)


def cached(n: int) -> float:
    return 3e-6 + n / (8e12 if n < 40 * 2**20 else 2e12)


def test_between_two_sizes_a_jump_is_neither_line_alone() -> None:
    sizes = [n for n in SIZES if n != 2**25]
    found = model(cached, sizes)
    middle = found.seconds(2**25)
    assert cached(2**25) < middle < 0.75 * (found.seconds(2**24) + found.seconds(2**26))
    prediction = found.predict(2**25)
    assert prediction is not None and not prediction.is_measured
    assert prediction.interval.low < cached(2**25) < prediction.interval.high


def test_a_time_that_falls_with_the_size_identifies_no_rate() -> None:
    found = model(lambda n: 1e-5 - 1e-6 * math.log2(n) / 40)
    assert found.inverse_rate.value is None and found.inverse_rate.reason
    assert found.inverse_rate.interval is None


def test_few_sizes_identify_nothing_and_still_predict() -> None:
    found = model(line, [8, 2**20, 2**26])
    assert found.latency.value is None and "too few" in found.latency.reason
    assert found.seconds(2**22) == pytest.approx(line(2**22), rel=1e-3)


def test_nothing_is_said_far_beyond_the_measured_sizes() -> None:
    found = model(line)
    assert found.predict(SIZES[-1] * MOST_BEYOND) is not None
    assert found.predict(SIZES[-1] * MOST_BEYOND + 1) is None
    assert found.predict(1) is None
    beyond = found.predict(2 * SIZES[-1])
    assert beyond is not None and beyond.extrapolated
    assert beyond.seconds == pytest.approx(line(2 * SIZES[-1]), rel=2e-3)


def test_a_curve_of_few_sizes_borrows_the_shape_of_its_class() -> None:
    few = [8, 2**14, 2**26]
    first = curve(switched, text="first", alike="class")
    second = curve(lambda n: 1.1 * switched(n), few, text="second", alike="class")
    _, found = fit_curves([first, second])
    assert found.borrowed_from == "first" and found.sizes == tuple(few)
    for n in (4096, 2**18, 2**22):
        assert found.seconds(n) == pytest.approx(1.1 * switched(n), rel=0.01)
    (alone,) = fit_curves([second])
    assert abs(alone.seconds(4096) / switched(4096) / 1.1 - 1) > 0.2


def test_a_measured_size_is_marked_and_the_interval_holds_it() -> None:
    prediction = model(switched).predict(2**20)
    assert prediction is not None and prediction.is_measured
    assert prediction.interval.low < switched(2**20) < prediction.interval.high


times = st.floats(1e-9, 1e3, allow_nan=False)


@given(st.lists(st.tuples(st.integers(1, 2**40), times), min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_curve_gives_positive_times_and_a_json_form(points: list[tuple[int, float]]) -> None:
    known = dict(points)
    sizes = sorted(known)
    found = model(lambda n: known[n], sizes)
    assert msgspec.json.decode(msgspec.json.encode(found), type=CurveModel) == found
    for n in (sizes[0], sizes[-1], (sizes[0] + sizes[-1]) // 2, 4 * sizes[-1]):
        prediction = found.predict(n)
        assert prediction is not None
        assert 0 < prediction.interval.low <= prediction.seconds <= prediction.interval.high
        assert math.isfinite(prediction.interval.high)


def test_where_six_neighbours_take_the_same_time_it_is_their_median() -> None:
    times = {8: 2.0, 32: 2.1, 128: 2.02, 512: 2.0, 2048: 2.04, 8192: 2.15, 2**20: 9.0}
    found = model(lambda n: times[n] * 1e-6, sorted(times))
    assert found.seconds(256) == pytest.approx(2.03e-6, rel=1e-3)
    assert found.seconds(2**16) > 2.15e-6
    assert found.seconds(512) == pytest.approx(2.0e-6, rel=1e-3)
