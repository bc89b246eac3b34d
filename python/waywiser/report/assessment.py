"""Whether a machine is all right, and what to know of it first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from waywiser.analysis.answer import Answer, Finding
from waywiser.report.entry import Entry
from waywiser.report.parts import Remark, Verdict
from waywiser.report.remarks import of_health, question_anchor, remark
from waywiser.severity import ORDER, Severity
from waywiser.words.number_format import count

MOST_THINGS = 5
"""Findings that are shown first: as many as one remembers."""

OF_NUMBERS = "trust"
"""The question whose warnings are about the numbers; all others are about the machine."""

Found = tuple[str, Finding]
"""The anchor of its full text, and what it is."""


def findings(entry: Entry) -> list[Found]:
    """All of them, in the order of the questions."""
    found = [
        (question_anchor(entry, answer), finding)
        for answer in entry.answers
        for finding in answer.findings
    ]
    health = entry.subject.overview.health
    if health is not None and (finding := of_health(health)) is not None:
        found.append((f"{entry.key}quality", finding))
    return found


def assess(entry: Entry, name: str = "") -> Verdict:
    """The status of the machine: OK, Review or Problem, by the gravest finding that is not about
    the quality of the numbers; ``name`` is given if there are several machines."""
    if not entry.curves:
        return Verdict("error", "Problem: nothing could be measured here.", name)
    found = findings(entry)
    quality = _quality(entry)
    about_machine = [f for link, f in found if not _is_of_numbers(entry, link, f)]
    severities = Counter(finding.severity for finding in about_machine)
    if errors := severities["error"]:
        was = "was" if errors == 1 else "were"
        statement = f"Problem: {count(errors, 'problem')} {was} found on this machine."
        return Verdict("error", statement, name, quality)
    if warnings := severities["warning"]:
        needs = "needs" if warnings == 1 else "need"
        statement = f"Review: {count(warnings, 'finding')} {needs} attention. No problem was found."
        return Verdict("warning", statement, name, quality)
    answered = sum(answer.answered for answer in entry.answers)
    if 2 * answered < len(entry.answers):
        few = f"{answered} of {count(len(entry.answers), 'question')} could be answered"
        statement = f"Not determined: too little was measured to assess this machine: {few}."
        return Verdict("warning", statement, name, quality)
    return Verdict("info", "OK: no problem was found on this machine.", name, quality)


def _is_of_numbers(entry: Entry, link: str, finding: Finding) -> bool:
    """Whether a finding is about the quality of the numbers, and not about the machine."""
    return link == f"{entry.key}question-{OF_NUMBERS}" and finding.severity != "error"


def _quality(entry: Entry) -> str:
    """What is to be known of the quality of the numbers; empty if there are no warnings."""
    for answer in entry.answers:
        warnings = sum(finding.severity == "warning" for finding in answer.findings)
        if answer.question == OF_NUMBERS and warnings:
            return f"Quality of the numbers: {count(warnings, 'warning')}. See: {answer.title}"
    return ""


def things(entries: Sequence[Entry]) -> tuple[Remark, ...]:
    """The first to know over all machines: what is broken, then one thing of each question before
    a second of any, the gravest first, of the machine with the fewest so far, then in the order of
    the questions. Of those chosen the gravest come first, and what is about the quality of the
    numbers last. Effects of different questions are not compared: one is a loss, another a
    choice."""
    left = [(entry, link, finding) for entry in entries for link, finding in _by_rank(entry)]
    turns = {
        question: n
        for n, question in enumerate(
            dict.fromkeys(_question(e, link) for e in entries for link, _ in findings(e))
        )
    }
    asked: Counter[str] = Counter()
    shown: Counter[str] = Counter()

    def order(each: tuple[Entry, str, Finding]) -> tuple[bool, int, bool, int, int, int]:
        entry, link, finding = each
        question, grave = _question(entry, link), ORDER.index(finding.severity)
        again = min(asked[question], 1)
        of_numbers = _is_of_numbers(entry, link, finding)
        broken = finding.severity == "error"
        return not broken, again, of_numbers, -grave, shown[entry.key], turns[question]

    chosen: list[tuple[Entry, str, Finding]] = []
    while left and len(chosen) < MOST_THINGS:
        first = left.pop(min(range(len(left)), key=lambda n: order(left[n])))
        chosen.append(first)
        asked[_question(first[0], first[1])] += 1
        shown[first[0].key] += 1
    chosen.sort(key=lambda each: (_is_of_numbers(*each), -ORDER.index(each[2].severity)))
    # each question's last remark shows how much more there is to look at
    more = Counter(link for _, link, finding in left if finding.severity != "info")
    last = {link: finding for _, link, finding in chosen}
    return tuple(
        remark(
            entry, finding, link,
            entry.name if len(entries) > 1 else "",
            more[link] if last[link] is finding else 0,
        )
        for entry, link, finding in chosen
    )  # fmt: skip


def worst_of(answer: Answer) -> Severity:
    return max((f.severity for f in answer.findings), key=ORDER.index, default="info")


def _question(entry: Entry, link: str) -> str:
    return link.removeprefix(entry.key)


def _by_rank(entry: Entry) -> list[Found]:
    """The gravest first, what concerns a GPU before what is the host's alone, else as each question
    has them."""
    return sorted(
        findings(entry),
        key=lambda each: (-ORDER.index(each[1].severity), not _concerns_gpu(each[1])),
    )


def _concerns_gpu(finding: Finding) -> bool:
    return any(device.place.startswith("gpu:") for device in finding.devices)
