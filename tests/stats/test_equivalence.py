"""Equal, more, less, or not to be told."""

from __future__ import annotations

import random

import pytest
from tests import profiles

from waywiser.records import Samples, Series
from waywiser.stats.between import Between
from waywiser.stats.equivalence import Comparison, Verdict, compare, judged, reach, tost
from waywiser.stats.estimate import Estimate, estimate
from waywiser.stats.order import Interval


def estimated(
    median: float, blocks: int, *, between: float = 0.001, count: int = 12, seed: int = 0
) -> Estimate:
    rng = random.Random(seed)
    what = profiles.workload(profiles.H2D, 2**26)
    visits = tuple(
        profiles.visit(
            what, block, profiles.samples(rng, median * (1 + rng.gauss(0, between)), count)
        )
        for block in range(blocks)
    )
    found = estimate(Series(what, visits))
    assert found is not None
    return found


def related(a: float, b: float, blocks: int, between: float = 0.001, seed: int = 1) -> Comparison:
    return compare(
        estimated(a, blocks, between=between, seed=2 * seed),
        estimated(b, blocks, between=between, seed=2 * seed + 1),
    )


@pytest.mark.parametrize("blocks", [1, 2, 3, 6, 8])
@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "equal"), (1.08, "more"), (1 / 1.08, "less")])
def test_quiet_blocks_are_told_apart_and_told_equal(
    blocks: int, ratio: float, verdict: Verdict
) -> None:
    found = related(ratio, 1.0, blocks)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(ratio, rel=0.01)
    assert found.interval is not None
    assert found.interval.low <= found.ratio <= found.interval.high


@pytest.mark.parametrize(
    ("blocks", "how"),
    [(1, "within blocks"), (2, "pooled blocks"), (5, "pooled blocks"), (6, "ranks of blocks")],
)
def test_it_says_what_it_stands_on(blocks: int, how: str) -> None:
    found = related(1.0, 1.0, blocks)
    assert found.how == how
    assert (found.p_differ is None) == (how == "within blocks")


def test_an_effect_has_the_sign_of_the_first() -> None:
    assert related(1.08, 1.0, 2).effect > 0 > related(1.0, 1.08, 2).effect


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_noisy_blocks_of_equal_paths_are_hardly_ever_told_to_differ(blocks: int) -> None:
    found = [related(1.0, 1.0, blocks, 0.04, seed).verdict for seed in range(200)]
    assert sum(verdict in ("more", "less") for verdict in found) <= 6
    assert "unclear" in found


def test_equality_is_tested_for_and_not_a_difference_that_was_missed() -> None:
    found = [related(1.025, 1.0, 6, 0.01, seed).p_equal for seed in range(200)]
    assert sum(p is not None and p <= 0.05 for p in found) <= 14  # 5 % at the margin itself


def test_other_tools_summaries_tell_nothing() -> None:
    what = profiles.workload(profiles.H2D, 2**26)
    summary = estimate(Series(what, (profiles.visit(what, 0, Samples(span=(1.0,), flags=(4,))),)))
    assert summary is not None
    found = compare(summary, summary)
    assert (found.how, found.verdict, found.interval) == ("medians alone", "unclear", None)
    assert reach(summary) is None
    visits = [profiles.visit(what, n, Samples(span=(1.0 + n / 1e6,), flags=(4,))) for n in range(8)]
    many = estimate(Series(what, tuple(visits)))  # nor do several files of them
    assert many is not None
    assert compare(many, many).interval is None
    assert compare(estimated(2.0, 8), many).verdict == "unclear"


def test_five_samples_reach_as_far_as_their_extremes() -> None:
    few = estimated(1.0, 1, count=5)
    span = reach(few)
    assert few.interval is None
    assert span is not None
    assert span.low < 1.0 < span.high


def test_an_interval_is_judged_alike_upside_down() -> None:
    assert judged(Interval(1.03, 1.04)) == "more"
    assert judged(Interval(1 / 1.04, 1 / 1.03)) == "less"
    assert judged(Interval(1 / 1.02, 1.02)) == "equal"
    assert judged(Interval(1.02, 1.03)) == judged(None) == "unclear"


def test_two_one_sided_tests_take_the_worse_of_both() -> None:
    near, far = [0.0, 0.001, 0.002, 0.003, 0.004, 0.005], [0.03 + n / 1000 for n in range(6)]
    assert tost(near, near, 0.05) < 0.01
    assert tost(near, far, 0.02) > 0.99


def with_medians(medians: list[float]) -> Estimate:
    rng = random.Random(len(medians))
    what = profiles.workload(profiles.H2D, 2**26)
    visits = tuple(
        profiles.visit(what, block, profiles.samples(rng, median, 12, noise=1e-4))
        for block, median in enumerate(medians)
    )
    found = estimate(Series(what, visits))
    assert found is not None
    return found


def test_one_odd_block_hides_nothing_where_others_tell_the_scatter() -> None:
    slow = with_medians([1.05, 1.051, 1.049, 1.05, 1.05, 0.95])
    usual = with_medians([1.0, 1.001, 1.0, 1.0, 0.999, 1.0])
    assert compare(slow, usual).verdict == "unclear"
    found = compare(slow, usual, between=Between(0.001, 50))
    assert found.verdict == "more"
    assert found.ratio == pytest.approx(1.05, abs=0.002)


def test_blocks_of_two_kinds_are_not_told_to_differ() -> None:
    two_kinds = with_medians([1.05, 1.05, 1.05, 1.05, 1.0, 1.0])
    usual = with_medians([1.0, 1.05, 1.0, 1.0, 1.0, 1.05])
    assert compare(two_kinds, usual, between=Between(0.001, 50)).verdict == "unclear"
