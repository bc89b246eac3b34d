"""The one decision: what it says, and what it must not depend on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser.stats.decision import THRESHOLD, Effect, decide
from waywiser.stats.noise_model import Variance

few = settings(max_examples=50)
effects = st.builds(
    Effect,
    st.floats(-0.3, 0.3),
    st.builds(Variance, st.floats(1e-7, 1e-3), st.floats(1.0, 50.0)),
    st.booleans(),
    st.just(THRESHOLD),
    st.integers(1, 4),
)


def one(log_ratio: float, deviation: float, freedom: float = 20.0) -> Effect:
    return Effect(log_ratio, Variance(deviation**2, freedom), headline=True)


@pytest.mark.parametrize(
    ("log_ratio", "deviation", "verdict"),
    [
        (0.05, 0.005, "different"),
        (0.02, 0.001, "equivalent"),  # significant, and within the threshold
        (0.05, 0.05, "no change found"),
        (0.0, 0.05, "no change found"),
    ],
)
def test_verdicts(log_ratio: float, deviation: float, verdict: str) -> None:
    (found,) = decide([one(log_ratio, deviation)])
    assert found.outcome == verdict


def test_without_degrees_of_freedom_nothing_is_decided_and_much_is_suspected() -> None:
    little, much = decide([one(0.05, 0.02, 0), one(0.2, 0.02, 0)])
    assert {little.outcome, much.outcome} == {"no change found"}
    assert (little.suspected, much.suspected) == (False, True)
    assert (much.p, much.interval, much.detectable) == (None, None, None)


@few
@given(st.lists(effects, min_size=1, max_size=8))
def test_a_difference_is_significant_and_exceeds_the_threshold(tested: list[Effect]) -> None:
    for effect, found in zip(tested, decide(tested), strict=True):
        assert found.p is not None and found.p_corrected is not None
        assert found.p <= found.p_corrected * (1 + 1e-9)
        if found.outcome == "different":
            assert abs(1 / found.ratio - 1) > THRESHOLD or abs(found.ratio - 1) > THRESHOLD
            assert found.interval is not None and not found.interval.low <= 1 <= found.interval.high
        usual = effect.detectable()
        assert found.detectable is not None and usual is not None
        assert found.detectable >= usual > 0
        if found.outcome != "different":  # no larger effect stands beside it without a verdict
            assert 1 - min(found.ratio, 1 / found.ratio) <= found.detectable


@few
@given(st.floats(0.04, 0.3), st.integers(1, 500))
def test_effects_that_are_not_given_count_as_asked(log_ratio: float, among: int) -> None:
    """Decisions of headline effects without any difference."""
    effect = one(log_ratio, 0.01)
    nothing = [one(0.0, 0.01)] * (among - 1)
    (short,) = decide([effect], among=among)
    assert short == decide([effect, *nothing])[0]
