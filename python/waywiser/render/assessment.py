"""The status of a machine, and the findings that change what a person would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from waywiser.curves import CRASHED, UNDECIDED, Answer, Finding, outliers_text
from waywiser.curves.answer import EXPLAINING, LOADED, SHARED
from waywiser.render.entry import Entry
from waywiser.render.parts import Assessment, Remark
from waywiser.render.remarks import of_health, question_anchor, remark
from waywiser.words import SEVERITY_ORDER, Severity, count, with_sizes

MOST_ADVICE = 5
"""Findings at the top of a report."""

MOST_WARNINGS = 3
"""Warnings about the numbers that the status names."""

OF_NUMBERS = "trust"
"""The question whose warnings are about the numbers; all others are about the machine."""

OF_METHODS = "crossovers"
"""The question which of two methods is faster. What it says is so on other machines too, and the
chapter about methods has it."""

OPPOSITE = "anisotropic-path"
"""The finding that a path has less bandwidth than its opposite direction."""

OF_LINKS = "identical"
"""The question whose answer the status repeats."""

NAMED = (LOADED, UNDECIDED, CRASHED)
"""Findings that the status states in full: what they are about may not be used as it is."""

Found = tuple[str, Finding]
"""The anchor of its full text, and what it is."""


def findings(entry: Entry) -> list[Found]:
    """All of them, in the order of the questions."""
    found = [
        (question_anchor(entry, answer), finding)
        for answer in entry.answers
        for finding in answer.findings
    ]
    found += [("headlines", finding) for finding in entry.below_normal]
    health = entry.subject.overview.health
    if health is not None and (finding := of_health(health)) is not None:
        found.append((f"{entry.key}quality", finding))
    return found


def assess(entry: Entry, name: str = "") -> Assessment:
    """The status of the machine: OK, Review or Problem, by the gravest finding that changes what a
    person would do; ``name`` is given if there are several machines, and then it is brief.

    The status is about what was measured. Questions that need more are named beside it.
    """
    if not entry.curves:
        return Assessment("error", "Problem: nothing could be measured here.", name)
    severity, statement = _status(entry)
    brief = bool(name)
    return Assessment(
        severity, statement, name, *_quality(entry, brief), _not_determined(entry.answers, brief),
        *_equivalence(entry),
    )  # fmt: skip


def _status(entry: Entry) -> tuple[Severity, str]:
    severities = Counter(finding.severity for _, finding in advice(entry))
    if errors := severities["error"]:
        was = "was" if errors == 1 else "were"
        return "error", f"Problem: {count(errors, 'problem')} {was} found on this machine."
    if warnings := severities["warning"]:
        for _, finding in advice(entry):
            if finding.id in NAMED:
                need = "needs" if warnings == 2 else "need"
                more = f" {count(warnings - 1, 'other finding')} {need} attention."
                more = more if warnings > 1 else ""
                return "warning", f"Review: {with_sizes(finding.title)}.{more}"
        needs = "needs" if warnings == 1 else "need"
        found = f"Review: {count(warnings, 'finding')} {needs} attention. No problem was found."
        return "warning", found
    if not any(answer.answered for answer in entry.answers):
        return "warning", "Not determined: too little was measured to assess this machine."
    answered = sum(answer.answered for answer in entry.answers)
    if 2 * answered < len(entry.answers):
        of = f"{answered} of {count(len(entry.answers), 'question')}"
        return "info", f"OK: {of} could be answered; no problem was found."
    return "info", "OK: no problem was found on this machine."


def _not_determined(answers: Sequence[Answer], brief: bool) -> str:
    """``Not determined: 2 of 8 questions (NUMA affinity, Link equivalence)``, briefly without their
    names; empty if all are."""
    titles = [answer.title.partition(":")[0] for answer in answers if not answer.answered]
    if not titles:
        return ""
    number = f"Not determined: {len(titles)} of {count(len(answers), 'question')}"
    return number if brief else f"{number} ({', '.join(titles)})"


def _equivalence(entry: Entry) -> tuple[str, str]:
    """``Link equivalence: the links of all 4 GPUs …``, the first sentence of the answer, with its
    anchor; empty if it was not determined."""
    for answer in entry.answers:
        if answer.question == OF_LINKS and answer.answered:
            title = answer.title.partition(":")[0]
            first = answer.summary.partition(". ")[0].removesuffix(".")
            return f"{title}: {first[:1].lower()}{first[1:]}.", question_anchor(entry, answer)
    return "", ""


def _is_of_numbers(entry: Entry, link: str, finding: Finding) -> bool:
    """Whether a finding is about the quality of the numbers, and not about the machine."""
    of_numbers = link == f"{entry.key}question-{OF_NUMBERS}" and finding.id not in NAMED
    return of_numbers and finding.severity != "error"


def _is_choice(entry: Entry, link: str, finding: Finding) -> bool:
    """Whether a finding says which of two methods is faster."""
    return link == f"{entry.key}question-{OF_METHODS}" and finding.severity == "info"


def _quality(entry: Entry, brief: bool) -> tuple[str, str]:
    """The quality of the numbers with its anchor: what the warnings are about, the gravest first,
    and the processes that no figure uses; briefly, how many warnings there are. Empty if nothing is
    known of it, or if numbers are wrong."""
    for answer in entry.answers:
        if answer.question != OF_NUMBERS or worst_of(answer) == "error":
            continue
        warnings = [f.id.replace("-", " ") for f in answer.findings
                    if f.severity == "warning" and f.id not in NAMED]  # fmt: skip
        if not warnings and not answer.answered:
            continue
        what = count(len(warnings), "warning") if warnings else "no warnings"
        more = len(warnings) - MOST_WARNINGS
        rest = [f"and {more} more"] if more > 0 else []
        named = f" ({', '.join([*warnings[:MOST_WARNINGS], *rest])})" if warnings else ""
        if brief:
            return f"Quality of the numbers: {what}", question_anchor(entry, answer)
        outliers = outliers_text(entry.subject.overview.series)
        text = "; ".join(filter(None, (f"{what}{named}", outliers)))
        return f"Quality of the numbers: {text}", question_anchor(entry, answer)
    return "", ""


def advice(entry: Entry) -> list[Found]:
    """Findings that this machine has and others of its class need not have, or that cost its user
    something, and that change what a person would do: problems, and what has a recommendation and
    is not about the quality of the numbers, nor a choice of methods, nor follows from a slow link.
    Those that concern a GPU come before those of the host."""
    known = findings(entry)
    links = [finding for _, finding in known if finding.id in EXPLAINING]
    found = [
        each
        for each in known
        if each[1].severity == "error"
        or each[1].id == SHARED
        or (each[1].remedy and not _is_of_numbers(entry, *each) and not _is_choice(entry, *each))
        if not any(_follows(each[1], link) for link in links)
    ]
    return sorted(
        found, key=lambda each: not any(d.place.startswith("gpu:") for d in each[1].devices)
    )


def _follows(finding: Finding, link: Finding) -> bool:
    """Whether a finding is that a path has less bandwidth than its opposite direction since its
    link is slow: the same path shows both."""
    slow = {exhibit.series for exhibit in link.exhibits}
    return finding.id == OPPOSITE and any(each.series in slow for each in finding.exhibits[:1])


def first_advice(entries: Sequence[Entry]) -> tuple[Remark, ...]:
    """The first `MOST_ADVICE` findings over all machines: problems, then one finding of each
    question before a second of any, the gravest first, of these what explains others, of the
    machine with the fewest so far, then in the order of the questions. Effects of different
    questions are not compared: one is a loss, another a choice."""
    left = [(entry, link, finding) for entry in entries for link, finding in advice(entry)]
    turns = {
        question: n
        for n, question in enumerate(
            dict.fromkeys(_question(e, link) for e in entries for link, _ in findings(e))
        )
    }
    counted: Counter[str] = Counter()
    shown: Counter[str] = Counter()

    def order(each: tuple[Entry, str, Finding]) -> tuple[bool, int, int, bool, int, int]:
        entry, link, finding = each
        question, grave = _question(entry, link), SEVERITY_ORDER.index(finding.severity)
        again, follows = min(counted[question], 1), finding.id not in EXPLAINING
        is_error = finding.severity == "error"
        return not is_error, again, -grave, follows, shown[entry.key], turns[question]

    chosen: list[tuple[Entry, str, Finding]] = []
    while left and len(chosen) < MOST_ADVICE:
        first = left.pop(min(range(len(left)), key=lambda n: order(left[n])))
        chosen.append(first)
        counted[_question(first[0], first[1])] += 1
        shown[first[0].key] += 1
    chosen.sort(key=lambda each: -SEVERITY_ORDER.index(each[2].severity))
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
    return max((f.severity for f in answer.findings), key=SEVERITY_ORDER.index, default="info")


def _question(entry: Entry, link: str) -> str:
    return link.removeprefix(entry.key)
