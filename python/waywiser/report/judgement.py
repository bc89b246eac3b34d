"""Whether a machine is all right, and what to know of it first."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.answer import Answer, Finding, ranked
from waywiser.report.entry import Entry
from waywiser.report.parts import Remark, Verdict
from waywiser.report.remarks import of_health, question_anchor, remark
from waywiser.severity import ORDER, Severity
from waywiser.stats.figures import count

MOST_THINGS = 5
"""That are told first: as many as one remembers."""

Found = tuple[str, Finding]
"""The anchor where it is told at length, and what it is."""


def findings(entry: Entry) -> list[Found]:
    """All of them, in the order of the questions."""
    found = [
        (question_anchor(entry, answer), finding)
        for answer in entry.answers
        for finding in answer.findings
    ]
    health = entry.subject.overview.health
    if health is not None and (finding := of_health(health)) is not None:
        found.append((f"{entry.key}doubts", finding))
    if (incomplete := _failures(entry)) is not None:
        found.append((f"{entry.key}missing", incomplete))
    return found


def judge(entry: Entry) -> Verdict:
    """By the gravest of what was found."""
    found = findings(entry)
    worst: Severity = max(
        (finding.severity for _, finding in found), key=ORDER.index, default="info"
    )
    grave = sum(finding.severity == worst for _, finding in found)
    if not entry.curves:
        return Verdict(entry.name, "error", "Nothing could be measured here.")
    if worst == "info":
        return Verdict(entry.name, worst, "Nothing that was measured speaks against this machine.")
    if worst == "warning":
        wants = "deserves" if grave == 1 else "deserve"
        return Verdict(entry.name, worst, f"It works; {count(grave, 'thing')} {wants} a look.")
    speaks = "speaks" if grave == 1 else "speak"
    return Verdict(entry.name, worst, f"{count(grave, 'thing')} {speaks} against this machine.")


def things(entries: Sequence[Entry]) -> tuple[Remark, ...]:
    """The first to know over all machines: what is broken, then one thing of each question before
    a second of any, the gravest first, then in the order of the questions. Effects of different
    questions are not compared: one is a loss, another a choice."""
    several = len(entries) > 1
    found = [
        (entry, link, finding) for entry in entries for link, finding in _by_rank(findings(entry))
    ]
    turns = {link: n for n, (link, _) in enumerate(f for e in entries for f in findings(e))}
    seen: dict[str, int] = {}
    order: list[tuple[bool, int, int, int, int]] = []
    for n, (entry, link, finding) in enumerate(found):
        question = link.removeprefix(entry.key)
        before = seen.get(question, 0)
        seen[question] = before + 1
        grave = ORDER.index(finding.severity)
        order.append((finding.severity != "error", min(before, 1), -grave, turns[link], n))
    chosen = [found[n] for *_, n in sorted(order)[:MOST_THINGS]]
    return tuple(
        remark(entry, finding, link, entry.name if several else "")
        for entry, link, finding in chosen
    )


def worst_of(answer: Answer) -> Severity:
    return max((f.severity for f in answer.findings), key=ORDER.index, default="info")


def _by_rank(found: Sequence[Found]) -> list[Found]:
    """The gravest first, what concerns a GPU before what is the host's alone, the larger effects
    before the smaller."""
    links = {id(finding): link for link, finding in found}
    in_rank = ranked([finding for _, finding in found])
    by_gravity = sorted(
        in_rank, key=lambda each: (-ORDER.index(each.severity), not _concerns_gpu(each))
    )
    return [(links[id(finding)], finding) for finding in by_gravity]


def _concerns_gpu(finding: Finding) -> bool:
    return any(device.place.startswith("gpu:") for device in finding.devices)


def _failures(entry: Entry) -> Finding | None:
    """Series that failed were planned and supported: their absence is no matter of course."""
    failed = entry.subject.overview.failures
    if not failed:
        return None
    many = sum(len(group.members) for group in failed)
    return Finding(
        id="failed",
        severity="warning",
        statement=f"{count(many, 'visit')} failed: {failed[0].reason}"
        + (f", and {count(len(failed) - 1, 'other reason')}" if len(failed) > 1 else ""),
        remedy="the reasons are listed; survey them again alone with --only",
    )
