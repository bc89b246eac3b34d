"""Pairs of paths in one survey: what is found, what is not, and what must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planted.score import REJECTED, Share
from waywiser.stats.noise_model import ASSUMED_PATHS
from waywiser.stats.pairwise import (
    GroupDecisions,
    PairGroup,
    Regimes,
    SizeRatios,
    decide_groups,
)

SIZES = tuple(2**n for n in range(24, 31))
MEDIUM = (2**20, 2**22)

few = settings(max_examples=25)


def pair(
    rng: np.random.Generator,
    processes: int,
    jump: float = 0.005,
    effect: float = 0.0,
    dips: tuple[int, ...] = (),
    dip: float = 0.0,
    replicated: tuple[int, ...] = SIZES,
) -> Regimes:
    """All sizes of a process move together by ``jump``. Sizes that are not ``replicated`` are
    measured in the first process alone."""
    jumps = jump * rng.standard_normal(processes)
    sizes = []
    for size in SIZES:
        count = processes if size in replicated else 1
        truth = math.log1p(effect) + (math.log1p(dip) if size in dips else 0.0)
        noise = truth + jumps[:count] + 0.001 * rng.standard_normal(count)
        sizes.append(SizeRatios(size, dict(enumerate(noise.tolist())), 1e-6))
    return {"bandwidth": sizes}


def decide_one(*pairs: Regimes, deviations: bool = False) -> GroupDecisions:
    (found,) = decide_groups([PairGroup(pairs, "a family", deviations)])
    return found


@pytest.mark.parametrize("processes", [2, 4, 8])
@pytest.mark.parametrize("jump", [0.005, 0.05])
def test_equal_pairs_are_hardly_ever_different(processes: int, jump: float) -> None:
    """Also if all sizes of a process move together by far more than the threshold."""
    share = Share()
    for seed in range(150):
        rng = np.random.default_rng((seed, processes))
        found = decide_one(*(pair(rng, processes, jump) for _ in range(4)))
        decisions = [found.mean["bandwidth"], *(each["bandwidth"] for each in found.pairs)]
        share.add(any(d.decision.outcome == "different" for d in decisions))
    assert share.chance_of_so_many(2.5 * REJECTED) >= 0.01


def test_five_percent_of_one_pair_and_of_all_are_found() -> None:
    rng = np.random.default_rng(1)
    one = decide_one(pair(rng, 4, effect=0.05), *(pair(rng, 4) for _ in range(3)))
    verdicts = [each["bandwidth"].decision.outcome for each in one.pairs]
    assert verdicts == ["different", "equivalent", "equivalent", "equivalent"]
    every = decide_one(*(pair(rng, 4, effect=0.05) for _ in range(3)))
    decision = every.mean["bandwidth"].decision
    assert (decision.outcome, decision.slower) == ("different", True)
    assert decision.ratio == pytest.approx(1 / 1.05, abs=0.01)


def test_a_drop_at_two_sizes_is_found_although_the_regime_is_equal() -> None:
    """Bandwidth falls to a fifth at 32 and 64 MiB, where sizes but one are measured in one
    process."""
    rng = np.random.default_rng(2)
    low = (2**25, 2**26)
    pairs = [pair(rng, 4, dips=low, dip=4.0, replicated=(2**28,))]
    pairs += [pair(rng, 4, replicated=(2**28,)) for _ in range(3)]
    found = decide_one(*pairs, deviations=True)
    own = found.pairs[0]["bandwidth"]
    assert own.decision.outcome == "equivalent"
    assert [n for n, each in own.sizes.items() if each.outcome == "different"] == list(low)
    others = [each for pair in found.pairs[1:] for each in pair["bandwidth"].sizes.values()]
    assert not any(each.outcome == "different" for each in others)


def test_single_processes_take_their_noise_from_equivalent_paths() -> None:
    rng = np.random.default_rng(3)
    pairs = [pair(rng, 1, effect=0.08), *(pair(rng, 1) for _ in range(7))]
    found = [each["bandwidth"].decision for each in decide_one(*pairs, deviations=True).pairs]
    assert found[0].outcome == "different"
    assert not any(each.outcome == "different" for each in found[1:])
    alone = decide_one(pair(rng, 1, effect=0.2)).pairs[0]["bandwidth"].decision
    assert (alone.outcome, alone.interval, alone.detectable) == ("no change found", None, None)
    assert alone.suspected


def test_a_group_that_falls_apart_does_not_hide_it_from_its_family() -> None:
    rng = np.random.default_rng(4)
    apart = [pair(rng, 1, effect=effect) for effect in (0.15, 0.15, -0.15, -0.15)]
    even = [PairGroup([pair(rng, 1) for _ in range(4)], "family", True) for _ in range(2)]
    alone = decide_one(*apart, deviations=True)
    assert not any(each["bandwidth"].decision.outcome == "different" for each in alone.pairs)
    found = decide_groups([PairGroup(apart, "family", True), *even])[0]
    assert all(each["bandwidth"].decision.outcome == "different" for each in found.pairs)


def test_a_regime_without_replicates_borrows_the_noise_of_its_group() -> None:
    rng = np.random.default_rng(5)
    pairs = [
        {**pair(rng, 4), "medium": [SizeRatios(n, {0: 0.001}, 1e-6) for n in MEDIUM]}
        for _ in range(2)
    ]
    found = decide_one(*pairs).pairs[0]
    assert found["medium"].decision.freedom > 3
    assert found["medium"].decision.deviation > found["bandwidth"].decision.deviation


def test_the_noise_of_the_other_pairs_is_not_lent_to_one_that_jumps() -> None:
    rng = np.random.default_rng(6)
    share = Share()
    for _ in range(150):
        found = decide_one(pair(rng, 6, jump=0.05), *(pair(rng, 6, jump=0.001) for _ in range(3)))
        share.add(found.pairs[0]["bandwidth"].decision.outcome == "different")
    assert share.chance_of_so_many(2.5 * REJECTED) >= 0.01


@few
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5), st.floats(-0.2, 0.2))
def test_the_sides_exchanged_give_the_inverse(
    seed: int, processes: int, pairs: int, effect: float
) -> None:
    rng = np.random.default_rng(seed)
    there = [pair(rng, processes, effect=effect) for _ in range(pairs)]
    back = [
        {"bandwidth": [s._replace(ratios={k: -v for k, v in s.ratios.items()})
                       for s in each["bandwidth"]]}
        for each in there
    ]  # fmt: skip
    one, other = decide_one(*there), decide_one(*back)
    for a, b in zip([one.mean, *one.pairs], [other.mean, *other.pairs], strict=True):
        first, second = a["bandwidth"].decision, b["bandwidth"].decision
        assert first.outcome == second.outcome
        assert first.ratio == pytest.approx(1 / second.ratio)
        assert first.p == pytest.approx(second.p)


@few
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_a_common_difference_is_none_of_one_path_from_the_others(seed: int, members: int) -> None:
    """Decisions about deviations do not change with what a process does to all paths."""
    rng = np.random.default_rng(seed)
    paths = [pair(rng, 3) for _ in range(members)]
    found = decide_one(*paths, deviations=True)
    assert found.mean == {}
    assert len(found.pairs) == members
    decisions = [each["bandwidth"].decision for each in found.pairs]
    between_surveys = ASSUMED_PATHS + members - 1
    assert all(each.freedom <= 2 * members + between_surveys for each in decisions)


@few
@given(st.integers(0, 10**6), st.randoms())
def test_the_order_of_groups_and_pairs_does_not_matter(seed: int, order: object) -> None:
    rng = np.random.default_rng(seed)
    groups = [PairGroup([pair(rng, n) for _ in range(3)], "family") for n in (1, 3, 4)]
    turned = [group._replace(pairs=list(reversed(group.pairs))) for group in reversed(groups)]
    one, other = decide_groups(groups), list(reversed(decide_groups(turned)))
    for a, b in zip(one, other, strict=True):
        assert [each["bandwidth"].decision.outcome for each in a.pairs] == [
            each["bandwidth"].decision.outcome for each in reversed(b.pairs)
        ]
        assert a.mean["bandwidth"].decision.ratio == pytest.approx(
            b.mean["bandwidth"].decision.ratio
        )


@few
@given(st.floats(0.05, 0.3), st.floats(0.05, 0.15), st.integers(2, 4), st.integers(0, 3))
def test_a_path_that_varies_hides_no_loss_that_every_process_shows(
    loss: float, change: float, processes: int, varies: int
) -> None:
    """One process shows the loss; in another one an equal path is slower too."""
    rng = np.random.default_rng(7)
    noise = 0.0005 * rng.standard_normal((5, processes))
    noise[4] += loss
    noise[varies, -1] += change

    def decided(count: int) -> str:
        pairs: list[Regimes] = []
        for n in range(5):
            others = [at for at in range(5) if at != n]
            ratios = {k: float(noise[n, k] - np.median(noise[others, k])) for k in range(count)}
            pairs.append({"bandwidth": [SizeRatios(SIZES[-1], ratios, 1e-8)]})
        return decide_one(*pairs, deviations=True).pairs[4]["bandwidth"].decision.outcome

    assert [decided(count) for count in (1, processes)] == ["different", "different"]


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_equal_paths_are_hardly_ever_different_from_the_others(processes: int) -> None:
    share = Share()
    for seed in range(150):
        rng = np.random.default_rng((seed, processes))
        found = decide_one(*(pair(rng, processes, 0.05) for _ in range(4)), deviations=True)
        share.add(any(e["bandwidth"].decision.outcome == "different" for e in found.pairs))
    assert share.chance_of_so_many(2.5 * REJECTED) >= 0.01


def with_latency(rng: np.random.Generator, effect: float, processes: int) -> Regimes:
    """One process at all sizes, but at the smallest one of another regime."""
    found = dict(pair(rng, 1, effect=effect))
    values = math.log1p(effect) + 0.005 * rng.standard_normal(processes)
    found["latency"] = [
        SizeRatios(2**10, dict(enumerate(values.tolist())), 1e-6),
        SizeRatios(2**12, {0: math.log1p(effect) + 0.005 * rng.standard_normal()}, 1e-6),
    ]
    return found


@pytest.mark.parametrize("deviations", [False, True])
@pytest.mark.parametrize("pairs", [5, 8, 12])
def test_a_second_process_of_some_pairs_at_a_small_size_hides_nothing(
    pairs: int, deviations: bool
) -> None:
    """One path of a group has 24 % less bandwidth, the others are equal within 2 %."""
    for stray in range(pairs + 1):
        rng = np.random.default_rng((pairs, stray))
        found = decide_one(
            *(
                with_latency(rng, 0.3 if n == pairs - 1 else 0.0, 2 if n < stray else 1)
                for n in range(pairs)
            ),
            deviations=deviations,
        )
        few = 2 * stray < pairs
        for regime in ("bandwidth", "latency") if few else ("bandwidth",):
            *others, slow = [each[regime].decision for each in found.pairs]
            assert slow.outcome == "different" and slow.slower
            assert all(each.outcome != "different" for each in others)
            assert slow.detectable is not None and slow.detectable < 0.1


@pytest.mark.parametrize("jump", [0.005, 0.05])
def test_equal_pairs_are_hardly_ever_different_beside_replicated_small_sizes(jump: float) -> None:
    """The small sizes have two processes that agree, the large ones a single one that may not."""
    share = Share()
    for seed in range(150):
        rng = np.random.default_rng((seed, 77))
        pairs = []
        for _ in range(6):
            small = 0.005 * rng.standard_normal(2)
            latency = [SizeRatios(2**10, dict(enumerate(small.tolist())), 1e-6)]
            pairs.append({**pair(rng, 1, jump), "latency": latency})
        found = decide_one(*pairs, deviations=True)
        share.add(any(e["bandwidth"].decision.outcome == "different" for e in found.pairs))
    assert share.chance_of_so_many(2.5 * REJECTED) >= 0.01


@pytest.mark.parametrize("odd", [-0.2, 0.0, 0.2])
def test_a_process_of_one_size_does_not_stand_for_the_others(odd: float) -> None:
    """One size was measured once more than all others, and differs from them."""

    def again(regimes: Regimes) -> Regimes:
        first, *others = regimes["bandwidth"]
        ratios = {process: odd + ratio for process, ratio in first.ratios.items()} | {4: odd}
        return {"bandwidth": [first._replace(ratios=ratios), *others]}

    rng = np.random.default_rng(8)
    made = [pair(rng, 4, effect=0.1), *(pair(rng, 4) for _ in range(4))]
    plain = decide_one(*made, deviations=True)
    found = decide_one(*map(again, made), deviations=True)
    for a, b in zip(plain.pairs, found.pairs, strict=True):
        own, other = a["bandwidth"].decision, b["bandwidth"].decision
        assert (own.outcome, own.slower) == (other.outcome, other.slower)
        assert other.ratio == pytest.approx(own.ratio, abs=0.01)
        assert other.freedom == pytest.approx(own.freedom, abs=0.1)


def test_equal_pairs_stay_equal_beside_a_second_process() -> None:
    rng = np.random.default_rng(5)
    found = decide_one(*(with_latency(rng, 0.0, 2 if n < 2 else 1) for n in range(8)))
    assert {each["bandwidth"].decision.outcome for each in found.pairs} == {"equivalent"}
