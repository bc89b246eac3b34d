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
    """The verdict by the gravest finding; ``name`` is given if there are several machines."""
    found = findings(entry)
    worst: Severity = max(
        (finding.severity for _, finding in found), key=ORDER.index, default="info"
    )
    if not entry.curves:
        return Verdict("error", "Nothing could be measured here.", name)
    if worst == "error":
        grave = sum(finding.severity == "error" for _, finding in found)
        was = "was" if grave == 1 else "were"
        return Verdict(worst, f"{count(grave, 'problem')} {was} found on this machine.", name)
    if worst == "warning":
        return Verdict(worst, _of_warnings(entry, found), name)
    answered = sum(answer.answered for answer in entry.answers)
    if 2 * answered < len(entry.answers):
        few = f"{answered} of {count(len(entry.answers), 'question')} could be answered"
        return Verdict("warning", f"Too little was measured to assess this machine: {few}.", name)
    return Verdict(worst, "No problem was found on this machine.", name)


def _of_warnings(entry: Entry, found: Sequence[Found]) -> str:
    """A machine with numbers to be careful with is not one that has something wrong."""
    numbers = f"{entry.key}question-{OF_NUMBERS}"
    links = [link for link, finding in found if finding.severity == "warning"]
    flags = links.count(numbers)
    looks = len(links) - flags
    deserve = f"{count(looks, 'thing')} deserve{'s' if looks == 1 else ''} a look"
    flagged = f"{count(flags, 'thing')} make{'s' if flags == 1 else ''} its numbers less certain"
    if not looks:
        return f"No problem was found on this machine, but {flagged}."
    return f"It works; {deserve}{f', and {flagged}' if flags else ''}."


def things(entries: Sequence[Entry]) -> tuple[Remark, ...]:
    """The first to know over all machines: what is broken, then one thing of each question before
    a second of any, the gravest first, of the machine with the fewest so far, then in the order of
    the questions. Of those chosen the gravest come first. Effects of different questions are not
    compared: one is a loss, another a choice."""
    left = [(entry, link, finding) for entry in entries for link, finding in _by_rank(entry)]
    turns = {
        question: n
        for n, question in enumerate(
            dict.fromkeys(_question(e, link) for e in entries for link, _ in findings(e))
        )
    }
    asked: Counter[str] = Counter()
    shown: Counter[str] = Counter()

    def order(each: tuple[Entry, str, Finding]) -> tuple[bool, int, int, int, int]:
        entry, link, finding = each
        question, grave = _question(entry, link), ORDER.index(finding.severity)
        again = min(asked[question], 1)
        return finding.severity != "error", again, -grave, shown[entry.key], turns[question]

    chosen: list[tuple[Entry, str, Finding]] = []
    while left and len(chosen) < MOST_THINGS:
        first = left.pop(min(range(len(left)), key=lambda n: order(left[n])))
        chosen.append(first)
        asked[_question(first[0], first[1])] += 1
        shown[first[0].key] += 1
    chosen.sort(key=lambda each: -ORDER.index(each[2].severity))
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
