"""Synthetic noise is that of recorded profiles, and a model without truths plants nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planted.noise import Donor, Lender, Pool, deviations, recorded
from planted.planted_machine import (
    BLOCKS,
    long_curves,
    model_of,
    planted,
    surveyed,
    workloads,
)
from planted.planted_model import LARGE, Model, Truth, between, down, up, workload
from waywiser.profile.estimate import estimate
from waywiser.words import Workload


@pytest.fixture(scope="module")
def pool() -> Pool:
    return recorded()


def test_there_is_noise_to_borrow_for_every_curve_in_every_block(pool: Pool) -> None:
    assert len(pool.blocks) >= 6
    assert len(pool.surveys) >= 2
    curves: dict[str, list[Workload]] = {}
    for each in workloads(Model(), long_curves(1, Model())):
        curves.setdefault(each.curve, []).append(each)
    for lot in pool.blocks:
        for members in curves.values():
            sizes = tuple(each.transfers[0].bytes for each in members)
            assert len(lot.that_cover(len(members[0].transfers) > 1, sizes)) >= 2
    assert len(pool.calls) >= 20


@pytest.mark.parametrize("size", [2**13, LARGE])
def test_blocks_deviate_as_recorded_ones_do(pool: Pool, size: int) -> None:
    model, what = Model(), workload((up(0),), size)
    truth = model.seconds(what)[0]
    rng = np.random.default_rng(5)
    drawn = [surveyed(model, [what], rng, pool, BLOCKS)[0].visits for _ in range(400)]
    made = np.array([
        math.log(np.median(visit.samples.span) / truth) for visits in drawn for visit in visits
    ])  # fmt: skip
    # each recorded block is lent as often as any other, however many curves it has
    known = np.concatenate([
        np.random.default_rng(6).choice(
            [lender.near(size)[0].between for lender in lot.that_cover(False, (size,))], 2000
        )
        for lot in pool.blocks
    ])  # fmt: skip
    for probability in (0.05, 0.25, 0.75, 0.95):
        near = np.quantile(known, (probability - 0.04, probability + 0.04))
        assert near[0] - 1e-4 <= np.quantile(made, probability) <= near[1] + 1e-4


def test_sizes_of_a_curve_borrow_from_one_recorded_curve(pool: Pool) -> None:
    model = Model()
    curve = [workload((up(0),), size) for size in (2**16, 2**20, 2**24)]
    series = surveyed(model, curve, np.random.default_rng(9), pool, 1)
    made = [
        math.log(np.median(each.visits[0].samples.span) / model.seconds(each.workload)[0])
        for each in series
    ]
    assert any(
        np.allclose([lender.near(each.bytes)[0].between for each in curve], made, atol=1e-9)
        for lot in pool.blocks
        for lender in lot.that_cover(False, (2**16, 2**20, 2**24))
    )


def in_common(rows: list[list[float]]) -> float:
    """The common share of the deviations of sizes in a block: the mean product of
    two of them over the mean square."""
    products = [(sum(row) ** 2 - sum(v * v for v in row)) / (len(row) * (len(row) - 1))
                for row in rows]  # fmt: skip
    return sum(products) / sum(sum(v * v for v in row) / len(row) for row in rows)


def test_sizes_jump_together_in_synthetic_blocks_as_they_do_in_recorded_ones(pool: Pool) -> None:
    sizes = tuple(2**n for n in range(16, 24))
    lent = [
        [lender.near(size)[0].between for size in sizes]
        for lot in pool.blocks
        for lender in lot.that_cover(False, sizes)
    ]
    assert in_common(lent) > 0.4
    model = Model()
    planned = [workload((up(0),), size) for size in sizes]
    made: list[list[float]] = [[] for _ in range(600)]
    for seed in range(100):
        for each in surveyed(model, planned, np.random.default_rng(seed), pool, BLOCKS):
            truth = model.seconds(each.workload)[0]
            for row, visit in zip(made[seed * BLOCKS :], each.visits, strict=False):
                row.append(math.log(np.median(visit.samples.span) / truth))
    assert in_common(made) > 0.4


def test_blocks_are_made_to_jump_at_all_sizes_of_a_curve_at_once(pool: Pool) -> None:
    planned = [workload((up(0),), size) for size in (2**24, LARGE)]
    small, large = surveyed(Model(), planned, np.random.default_rng(4), pool, BLOCKS, jump=0.3)
    levels = np.array([
        [np.log(np.median(visit.samples.span)) for visit in each.visits] for each in (small, large)
    ])  # fmt: skip
    assert np.std(levels[0]) > 0.1
    assert np.corrcoef(levels)[0, 1] > 0.99


def test_samples_keep_the_order_in_which_they_were_taken(pool: Pool) -> None:
    model, what = Model(), workload((up(0),), 2**13)
    visit = surveyed(model, [what], np.random.default_rng(8), pool, 1)[0].visits[0]
    spans = np.array(visit.samples.span)
    made = np.log(spans / np.median(spans))
    donors = [lender.near(2**13)[0] for lot in pool.blocks for lender in lot.lenders]
    assert any(
        len(donor.within) == len(made) and np.allclose(donor.within, made, atol=1e-9)
        for donor in donors
    )


def test_the_variance_that_a_median_of_few_takes_is_given_back() -> None:
    rng = np.random.default_rng(2)
    for count in (2, 3, 6):
        drawn = np.exp(rng.normal(scale=0.01, size=(4000, count)))
        found = [each for row in drawn.tolist() for each in deviations(row)]
        assert np.std(found) == pytest.approx(0.01, rel=0.1)
    assert deviations([3.0]) == [0.0]


def test_a_curve_lends_only_near_the_sizes_that_it_has() -> None:
    donor = Donor(np.zeros(1), 0.0, "converged", (), (), None)
    lender = Lender(False, {2**10: (donor,), 2**20: (donor,)})
    assert lender.covers((2**8, 2**12, 2**22))
    assert not lender.covers((2**10, 2**15))


def test_a_survey_is_the_same_for_the_same_seed_and_another_for_another(pool: Pool) -> None:
    first, same, other = (planted(seed, pool, 1) for seed in (3, 3, 4))
    assert first.series == same.series
    assert first.series[0].visits != other.series[0].visits


def test_a_model_without_truths_has_equal_links() -> None:
    model = model_of(1, healthy=True)
    assert not model.truths
    for size in (8, LARGE):
        for way in (up, down):
            times = {model.seconds(workload((way(g, model.node_of(g)),), size)) for g in range(8)}
            assert len(times) == 1
        peers = {model.seconds(workload((between(a, b),), size))
                 for a in range(8) for b in range(8) if a != b}  # fmt: skip
        assert len(peers) == 1


def test_planted_effects_are_as_large_as_said() -> None:
    effect = 0.05
    healthy = Model(sockets="shown")

    def ratio(truth: Truth, *paths: str, size: int = LARGE) -> float:
        what = workload(paths, size)
        ill = Model(sockets="shown", truths=(truth,))
        return max(ill.seconds(what)) / max(healthy.seconds(what)) - 1

    slow = Truth("slow host link", effect, (2,))
    assert ratio(slow, up(2)) == pytest.approx(effect)
    assert ratio(slow, down(2, 1)) == pytest.approx(effect)
    assert ratio(slow, up(3)) == 0
    assert 0 < ratio(slow, up(2), size=2**16) < effect
    assert ratio(Truth("anisotropic pair", effect, (0, 1)), between(0, 1)) == pytest.approx(effect)
    assert ratio(Truth("anisotropic pair", effect, (0, 1)), between(1, 0)) == 0
    one_way = Truth("anisotropic GPU", effect, (4,), down=True)
    assert ratio(one_way, down(4, 1)) == pytest.approx(effect)
    assert ratio(one_way, up(4, 1)) == 0
    far = Truth("far sockets", effect)
    assert ratio(far, up(0, 1)) == pytest.approx(effect)
    assert ratio(far, up(0, 0)) == 0
    port = Truth("shared port", effect, (6, 7))
    assert ratio(port, up(6, 1), up(7, 1)) == pytest.approx(effect)
    assert ratio(port, up(6, 1)) == ratio(port, up(6, 1), down(7, 1)) == 0
    dip = Truth("dip", effect, curve=up(1), size=2**20)
    assert ratio(dip, up(1), size=2**20) == pytest.approx(effect)
    assert ratio(dip, up(1), size=2**21) == 0


def test_a_survey_of_a_model_shows_its_truth(pool: Pool) -> None:
    """The medians of many surveys lie around it, though single blocks may be off."""
    model, what = Model(), workload((down(1),), LARGE)
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        result = estimate(surveyed(model, [what], rng, pool, BLOCKS)[0])
        assert result is not None
        found.append(result.median / model.seconds(what)[0])
    assert np.median(found) == pytest.approx(1.0, abs=0.002)
