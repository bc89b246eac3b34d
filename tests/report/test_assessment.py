"""The status of a machine, and the findings that change what a person would do."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

import profiles
from analysis.questions.subjects import subject
from report import machines
from waywiser.curves.answer import CRASHED, SHARED, UNDECIDED, Answer, Finding
from waywiser.profile import RunHealth
from waywiser.profile.health import health_report
from waywiser.render.assessment import MOST_ADVICE, assess, first_advice
from waywiser.render.chapters.status import findings, status
from waywiser.render.entry import Entry, entry
from waywiser.render.markdown import markdown
from waywiser.render.parts import Assessment, Document, Section, Words
from waywiser.words.records import Failure, GpuHealth, Health, Series
from waywiser.words.status import Severity


def finding(name: str, severity: Severity, remedy: str = "change it") -> Finding:
    return Finding(name, severity, f"{name} is so.", 0.1, remedy=remedy)


def answer(question: str, *findings: Finding) -> Answer:
    return Answer(question, f"Is it {question}?", "It is.", findings)


def result(*answers: Answer, hostname: str = "node7", key: str = "") -> Entry:
    return msgspec.structs.replace(measured(hostname, key), answers=answers)


@cache
def measured(hostname: str, key: str) -> Entry:
    machine = msgspec.structs.replace(profiles.machine(), hostname=hostname)
    return entry(machines.subject(machine, blocks=1, count=6), key=key)


def statements(*entries: Entry) -> list[str]:
    return [each.statement.removesuffix(" is so.") for each in first_advice(entries)]


def test_one_of_each_question_comes_before_a_second_of_any() -> None:
    loud = answer("loud", *(finding(name, "warning") for name in "abcfgh"))
    calm = answer("calm", finding("d", "info"), finding("e", "info"))
    assert statements(result(loud, calm)) == ["A", "B", "C", "F", "D"]


def test_what_every_machine_of_a_class_does_is_no_finding() -> None:
    """Which of two methods is faster has a chapter of its own; what is slow has a remedy."""
    methods = answer("crossovers", finding("faster", "info"), finding("crossover", "info"))
    usual = answer("efficiency", finding("best-method", "info", remedy=""))
    entry = result(methods, usual)
    assert statements(entry) == []
    (words,) = findings([entry]).blocks
    assert words == Words("No finding asks for a change.")
    assert statements(result(answer("crossovers", finding("slow", "warning")))) == ["Slow"]


def test_what_costs_bandwidth_is_a_finding_without_anything_to_do() -> None:
    entry = result(answer("contention", finding(SHARED, "info", remedy="")))
    assert statements(entry) == ["shared-bottleneck"]


def test_what_is_broken_comes_before_all() -> None:
    first = answer("first", finding("a", "warning"))
    links = answer("links", finding("b", "warning"), finding("c", "error"))
    assert statements(result(first, links)) == ["C", "A", "B"]


def test_few_things_are_reported_of_many_machines() -> None:
    many = [
        result(answer(f"q{n}", finding(f"f{n}", "info")), hostname=f"n{n}", key=f"{n}-")
        for n in range(MOST_ADVICE + 3)
    ]
    found = first_advice(many)
    assert len(found) == MOST_ADVICE
    assert all(each.machine for each in found)


def test_a_verdict_is_by_the_gravest() -> None:
    info, warning = finding("a", "info"), finding("b", "warning")
    assert assess(result(answer("q", info))).severity == "info"
    verdict = assess(result(answer("q", info, warning)))
    assert (verdict.severity, verdict.statement) == (
        "warning",
        "Review: 1 finding needs attention. No problem was found.",
    )
    assert assess(result(answer("q", warning, finding("c", "error")))).severity == "error"


def test_error_counters_that_rose_count_against_a_machine() -> None:
    def read(count: int, xids: tuple[int, ...] = ()) -> Health:
        return Health("2026-11-20T12:00:00", (GpuHealth(0, "GPU-0", {"ECC": count}, {}, xids),))

    entries = []
    for end in (read(1), read(1, (79,))):
        made = result(answer("q"))
        overview = made.subject.overview
        health = health_report([RunHealth(1, read(0), end)])
        overview = msgspec.structs.replace(overview, health=health)
        subject = msgspec.structs.replace(made.subject, seen=overview)
        entries.append(msgspec.structs.replace(made, subject=subject))
    assert [assess(each).severity for each in entries] == ["warning", "error"]
    assert "gpu:0 ECC +1" in first_advice(entries[:1])[0].statement


def test_nothing_measured_is_no_good_machine() -> None:
    empty = msgspec.structs.replace(result(), curves=())
    assert assess(empty).severity == "error"


def test_a_profile_with_failures_alone_says_that_nothing_was_measured() -> None:
    machine = msgspec.structs.replace(profiles.machine(), gpus=())
    failed = profiles.visit(
        profiles.workload(profiles.HOST, 2**20), failure=Failure("timeout", "x")
    )
    found = entry(subject([Series(failed.workload, (failed,))], machine=machine))
    assert [type(block) for block in status([found]).blocks] == [Assessment]
    (words,) = findings([found]).blocks
    assert words == Words("No question could be answered: too little was measured.")


def test_a_machine_without_findings_says_so() -> None:
    (words,) = findings([result(answer("q"))]).blocks
    assert words == Words("No finding asks for a change.")
    host = msgspec.structs.replace(profiles.machine(), gpus=())
    made = entry(machines.subject(host, blocks=1, count=6))
    assert isinstance(status([made]).blocks[1], Words)


def test_what_more_there_is_to_look_at_is_reported_where_a_thing_leads() -> None:
    many = answer("loud", *(finding(name, "warning") for name in "abcdefg"), finding("h", "info"))
    found = first_advice([result(many)])
    assert [each.more for each in found] == [0, 0, 0, 0, 2]


def test_quality_flags_of_numbers_are_not_held_against_a_machine() -> None:
    flag = answer("trust", finding("a", "warning"), finding("few-samples", "warning"))
    alone = assess(result(flag))
    assert (alone.severity, alone.statement, alone.quality, alone.link) == (
        "info",
        "OK: no problem was found on this machine.",
        "Quality of the numbers: 2 warnings (a, few samples)",
        "question-trust",
    )
    assert statements(result(flag)) == []
    both = assess(result(answer("links", finding("c", "warning")), flag))
    assert both.statement == "Review: 1 finding needs attention. No problem was found."
    assert both.quality == alone.quality
    many = answer("trust", *(finding(each, "warning") for each in "abcde"))
    assert assess(result(many)).quality == (
        "Quality of the numbers: 5 warnings (a, b, c, and 2 more)"
    )
    assert assess(result(answer("trust"))).quality == "Quality of the numbers: no warnings"
    wrong = assess(result(answer("trust", finding("a", "error"))))
    assert (wrong.statement, wrong.quality) == (
        "Problem: 1 problem was found on this machine.",
        "",
    )


@pytest.mark.parametrize("severity", ["info", "warning"])
def test_a_finding_without_a_recommendation_asks_for_nothing(severity: Severity) -> None:
    plain = answer("q", finding("a", severity, remedy=""))
    assert assess(result(plain)).statement == "OK: no problem was found on this machine."
    assert statements(result(plain)) == []
    assert statements(result(plain, answer("r", finding("b", "info")))) == ["B"]
    assert statements(result(answer("q", finding("a", "error", remedy="")))) == ["A"]


def test_what_was_not_measured_is_named_beside_the_status() -> None:
    few = [msgspec.structs.replace(answer(f"q{n}"), answered=False) for n in range(3)]
    verdict = assess(result(answer("q", finding("a", "info")), *few))
    assert verdict.statement == ("OK: 1 of 4 questions could be answered; no problem was found.")
    assert verdict.unknown == "Not determined: 3 of 4 questions (Is it q0?, Is it q1?, Is it q2?)"
    document = Document("node7", (), (Section("status", "Status", (verdict,)),), "")
    text = markdown(document)
    assert text.index("OK: 1 of 4 questions") < text.index("Not determined: 3 of 4")
    assert assess(result(answer("q"))).unknown == ""
    grave = assess(result(answer("q", finding("a", "warning")), *few))
    assert (grave.severity, grave.unknown) == ("warning", verdict.unknown)


@pytest.mark.parametrize(("question", "name"), [("identical", UNDECIDED), ("trust", CRASHED)])
def test_what_crashed_or_may_be_slow_is_stated_first(question: str, name: str) -> None:
    found = answer(question, Finding(name, "warning", "it is so", remedy="change it"))
    alone = assess(result(found))
    assert (alone.severity, alone.statement) == ("warning", "Review: it is so.")
    both = assess(result(answer("q", finding("a", "warning")), found))
    assert both.statement == "Review: it is so. 1 other finding needs attention."


def test_equivalence_that_is_not_decided_is_ok_with_a_note() -> None:
    low = Finding(UNDECIDED, "info", "gpu:1 is 4% below the median", remedy="survey again")
    links = msgspec.structs.replace(answer("identical", low), summary="One link may be slow.")
    verdict = assess(result(links))
    assert (verdict.severity, verdict.statement) == (
        "info",
        "OK: no problem was found on this machine.",
    )
    assert verdict.equivalence == "Is it identical?: one link may be slow."


def test_a_machine_of_which_no_question_is_answered_is_not_called_well() -> None:
    few = [msgspec.structs.replace(answer(f"q{n}"), answered=False) for n in range(3)]
    verdict = assess(result(*few))
    assert verdict.severity == "warning"
    assert verdict.statement.startswith("Not determined")
