"""Members of sets with a collective: slowed or not, as a table, a finding, costs and advice."""

from __future__ import annotations

import pytest
from tests.analysis.questions.subjects import curve, postal, subject
from tests.analysis.questions.sustained_sets import (
    ALLREDUCE,
    PAGEABLE,
    PINNED,
    PRODUCT,
    STAGED,
    sustained,
)

from waywiser.analysis.policy.advice import Advice, CopyRequest, advise
from waywiser.analysis.policy.build import build_policy
from waywiser.analysis.policy.errors import NotMeasured
from waywiser.analysis.questions.contention import answer
from waywiser.analysis.questions.sustained import found_sustained, sized
from waywiser.words import Transfer, Workload, grouped
from waywiser.words.records import Series

HEADLINE = 2**30


def alone(text: str, rate: float) -> list[Series]:
    return curve(text.removesuffix(" of 1GiB"), postal(1e-5, rate), (2**26, HEADLINE))


SETS = (
    *alone(PINNED, 55e9),
    *alone(PAGEABLE, 5e9),
    *alone(STAGED, 40e9),
    *sustained((ALLREDUCE, PINNED), (1.01, 1.02)),
    *sustained((ALLREDUCE, PAGEABLE), (12.0, 1.1)),
    *sustained((ALLREDUCE, STAGED), (1.2, 1.5)),
    *sustained((ALLREDUCE, PINNED, PRODUCT), (1.3, 1.0, 2.0)),
)
SUBJECT = subject(SETS)


def test_each_member_has_its_slowdown_with_an_interval() -> None:
    found = grouped((each.point.text, each) for each in found_sustained(SUBJECT.curves))
    assert len(found) == 4
    (three,) = [members for members in found.values() if len(members) == 3]
    assert [each.slowdown.median for each in three] == pytest.approx([1.3, 1.0, 2.0], rel=1e-6)
    assert [each.is_slowed for each in three] == [True, False, True]
    assert [each.is_unslowed for each in three] == [False, True, False]
    for each in three:
        span = each.slowdown.interval
        assert span is not None and span.low <= each.slowdown.median <= span.high


def test_the_contention_answer_has_them_in_a_table_and_names_the_worst() -> None:
    found = answer(SUBJECT)
    (table,) = [each for each in found.tables if each.title.startswith("Beside")]
    assert len(table.rows) == 9
    assert "default priority" in table.caption
    rows = {
        (row.cells[0].text, row.cells[5].text): (row.cells[1].mark, row.cells[2].text)
        for row in table.rows
    }
    allreduce = "allreduce gpu:0-1 of 256 MiB"
    pageable = "device@gpu:0 -> pageable@numa:0 by copy-engine of 1 GiB"
    assert rows[allreduce, pageable] == ("yes", "×12")
    assert rows[allreduce, pageable.replace("pageable", "pinned")] == ("no", "×1.01")
    assert "of 9 members of sets with a collective" in found.summary
    (slowed,) = [each for each in found.findings if each.id == "slowed-collective"]
    assert slowed.statement.startswith("allreduce of 256 MiB takes ×12 the time")
    assert slowed.effect == pytest.approx(11.0, rel=0.01)
    assert "--beside allreduce" in slowed.remedy
    others = [each for each in found.findings if each.id == "slowed-beside-collective"]
    assert [each.statement.partition(" the time")[0] for each in others] == [
        "matrix-product gpu:0 of 64 MiB takes ×2.00",
        "device@gpu:0 -> pageable@numa:0 by staged of 1 GiB takes ×1.50",
        "device@gpu:0 -> pageable@numa:0 by copy-engine of 1 GiB takes ×1.10",
    ]
    assert all(each.remedy for each in others)


def test_a_collective_alone_answers_nothing() -> None:
    assert not answer(subject(curve(ALLREDUCE.removesuffix(" of 256MiB"), postal(1e-5, 3e11),
                                    (2**28,)))).answered  # fmt: skip


def test_what_is_taken_from_collectives_is_a_cost() -> None:
    policy = build_policy([SUBJECT])
    costs = {
        (each.destination, row.executor): row.costs.collectives
        for each, row in policy
        if each.source == "device"
    }
    assert costs["pinned", "copy-engine"] == {"allreduce": pytest.approx(1.01, rel=1e-3)}
    assert costs["pageable", "staged"] == {"allreduce": pytest.approx(1.2, rel=1e-3)}
    assert b'"collectives":{"allreduce":1.2}' in policy.to_json()
    without = build_policy([subject([*alone(PINNED, 55e9)])])
    assert b"collectives" not in without.to_json()


def advised(beside: str, **more: bool) -> Advice:
    request = CopyRequest.of(
        "device@gpu:0", "pageable@numa:0", HEADLINE, beside=beside, polite=more.get("polite", False)
    )
    return advise([SUBJECT], request)


def test_the_method_that_slows_a_collective_least_is_advised() -> None:
    found = advised("allreduce")
    assert str(found.best.method) == "staged"
    assert found.why == "allreduce takes 1.2 × the time beside it, less than beside all others"
    (other,) = found.alternatives
    assert other.excluded == "allreduce takes 12 × the time"
    assert str(advised("allreduce", polite=True).best.method) == "staged"


def test_of_methods_that_slow_it_as_much_the_fastest_is_advised() -> None:
    sets = (
        *alone(PAGEABLE, 5e9),
        *alone(STAGED, 40e9),
        *sustained((ALLREDUCE, PAGEABLE), (1.20, 1.1)),
        *sustained((ALLREDUCE, STAGED), (1.22, 1.5)),
    )
    request = ("device@gpu:0", "pageable@numa:0", HEADLINE)
    found = advise([subject(sets)], CopyRequest.of(*request, beside="allreduce"))
    assert str(found.best.method) == "staged" and "fastest of those" in found.why
    least = advise([subject(sets)], CopyRequest.of(*request, beside="allreduce", polite=True))
    assert str(least.best.method) == "copy-engine"


def test_a_collective_that_was_not_measured_is_named() -> None:
    with pytest.raises(NotMeasured) as raised:
        advised("allgather")
    assert "no method was measured beside allgather; measured were: allreduce" in str(raised.value)
    assert "by nccl[collective=allgather] of 256MiB; device@gpu:0 -> pageable@numa:0 by " in str(
        raised.value
    )


def test_members_are_named_in_few_words() -> None:
    named = {ALLREDUCE: "allreduce gpu:0-1 of 256 MiB", PRODUCT: "matrix-product gpu:0 of 64 MiB",
             STAGED: "device@gpu:0 -> pageable@numa:0 by staged of 1 GiB"}  # fmt: skip
    assert {text: sized(Transfer.parse(text)) for text in named} == named


def test_the_remedy_measures_the_copy_and_the_collective_together() -> None:
    for found in (subject([*alone(STAGED, 40e9)]), subject([*alone(PINNED, 55e9)])):
        request = CopyRequest.of("device@gpu:0", "pageable@numa:0", HEADLINE, beside="allreduce")
        with pytest.raises(NotMeasured) as error:
            advise([found], request)
        text = error.value.remedy.partition("--workload '")[2].removesuffix("'")
        both = Workload.parse(text)
        assert [each.collective for each in both.transfers if each.path.is_among_several] == [
            "allreduce"
        ]
        assert both.transfers[1].bytes == HEADLINE and both.is_sustained


def test_times_alone_in_sets_are_those_of_copies_that_no_curve_has() -> None:
    sets = (
        *sustained((ALLREDUCE, PAGEABLE), (12.0, 1.1), alone=(1e-3, 0.2)),
        *sustained((ALLREDUCE, STAGED), (1.2, 1.5), alone=(1e-3, 0.1)),
        *sustained((PRODUCT, ALLREDUCE), (1.2, 1.5)),
    )
    found = subject(sets)
    assert {curve.text for curve in found.alone} >= {
        text.removesuffix(" of 1GiB") for text in (PAGEABLE, STAGED)
    }
    request = "device@gpu:0", "pageable@numa:0", HEADLINE
    for beside in ("", "allreduce"):
        advice = advise([found], CopyRequest.of(*request, beside=beside))
        assert str(advice.best.method) == "staged"
        assert advice.best.bytes_per_second == pytest.approx(HEADLINE / 0.1, rel=0.35)
    assert {row.executor for _, row in build_policy([found])} == {"staged"}
    assert subject(SETS).curve(PINNED.removesuffix(" of 1GiB")) is not None
    assert all("pinned" not in curve.text for curve in subject(SETS).alone)
