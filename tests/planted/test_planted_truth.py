"""Analyses find what was planted in synthetic machines, and hardly ever anything else.

The promise and the rule by which it counts as broken are in `planted.score`. Seeds are fixed, so
that a verdict is the same each time; docs/results/planted-truth.md has more machines.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from planted import checks
from planted.noise import Pool, recorded
from planted.planted_machine import Planted, planted
from planted.score import FOUND, REJECTED, Hypothesis, Score, Share, scored, together
from planted.trial import hypotheses, hypotheses_on
from waywiser.analysis.questions import identical
from waywiser.analysis.questions.peer_groups import peer_groups

MACHINES = range(20_000, 20_024)
FEW_BLOCKS = range(20_200, 20_212)
JUMPING = range(20_220, 20_230)

QUESTIONS = ("anisotropy", "identical", "affinity", "contention", "irregularities",
             "hidden sockets")  # fmt: skip


@pytest.fixture(scope="module")
def pool() -> Pool:
    return recorded()


@pytest.fixture(scope="module")
def machines(pool: Pool) -> tuple[list[Hypothesis], Share]:
    """(hypotheses, findings of slow links that name nothing but GPUs that have one)"""
    found, named = [], Share()
    for seed in MACHINES:
        machine = planted(seed, pool)
        subject = machine.subject
        groups = peer_groups(subject)
        with pytest.MonkeyPatch.context() as once:
            for module in (checks, identical):
                once.setattr(module, "peer_groups", lambda _, found=groups: found)
            found += hypotheses_on(machine, subject)
            findings = identical.answer(subject).findings
        for finding in findings:
            if finding.id == "slow-link":
                gpus = {int(device.place.split(":")[1]) for device in finding.devices}
                named.add(bool(gpus) and gpus <= ill_gpus(machine))
    return found, named


@pytest.fixture(scope="module")
def every(machines: tuple[list[Hypothesis], Share]) -> list[Hypothesis]:
    return machines[0]


def ill_gpus(machine: Planted) -> set[int]:
    kinds = ("slow host link", "anisotropic GPU", "slow peer link", "anisotropic pair")
    return {gpu for truth in machine.model.truths if truth.kind in kinds for gpu in truth.gpus}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_was_planted_is_found_and_what_is_null_is_kept(
    question: str, every: list[Hypothesis]
) -> None:
    score = scored(every)[question]
    assert score.found.of >= 5 and score.rejected.of >= 9
    assert not score.broken


def test_so_it_is_over_all_questions(every: list[Hypothesis]) -> None:
    scores = scored(every)
    assert set(scores) == set(QUESTIONS)
    total = together(scores.values())
    assert not total.broken
    assert total.found.value >= FOUND
    assert total.rejected.value <= REJECTED


def test_two_blocks_reject_no_more_of_what_is_null(pool: Pool) -> None:
    """They may well find less."""
    total = together(scored(hypotheses(FEW_BLOCKS, pool, blocks=2)).values())
    assert total.rejected.chance_of_so_many(REJECTED) >= 0.01


@pytest.mark.parametrize("blocks", [2, 6])
def test_nor_do_blocks_that_jump_far_more_than_recorded_ones(pool: Pool, blocks: int) -> None:
    """All sizes of a curve at once, by a normal deviation of 5 %, in machines without a truth."""
    every = [each for seed in JUMPING for each in jumping(seed, pool, blocks)]
    scores = scored(every)
    assert {"anisotropy", "identical", "affinity", "contention"} <= set(scores)
    assert together(scores.values()).found.of == 0
    assert not any(score.broken for score in scores.values())


def jumping(seed: int, pool: Pool, blocks: int) -> Iterator[Hypothesis]:
    machine = planted(seed, pool, blocks, jump=0.05)
    return hypotheses_on(machine, machine.subject)


def test_slow_links_are_reported_of_the_gpus_that_have_them_and_of_no_others(
    machines: tuple[list[Hypothesis], Share],
) -> None:
    named = machines[1]
    assert named.of >= len(MACHINES)
    assert named.value >= 0.99


def test_a_question_that_finds_little_or_rejects_much_breaks_the_promise() -> None:
    assert not Score(Share(94, 100), Share(2, 100)).broken
    assert "only 85 of 100" in Score(Share(85, 100), Share()).broken
    assert "30 of 1000 nulls" in Score(Share(), Share(30, 1000)).broken


def test_the_interval_of_a_share_is_exact() -> None:
    low, high = Share(95, 100).interval()
    assert (low, high) == pytest.approx((0.8872, 0.9836), abs=1e-4)
    assert Share(0, 10).interval()[0] == 0.0
    assert Share(10, 10).interval()[1] == 1.0
