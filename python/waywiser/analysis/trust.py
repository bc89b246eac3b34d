"""How far the profile is to be trusted: what its numbers are uncertain by, why, and what to do.

A number is as uncertain as half its interval or half of what its blocks differ by, whichever is
more. Doubts (`waywiser.series.doubts`) are counted by kind over all series, and the few that matter
most are told: those that make numbers wrong before those that make them vague, then by how many
series they concern and by how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from waywiser.analysis.answer import Answer, Exhibit, Finding, ranked
from waywiser.analysis.conditions import conditions
from waywiser.analysis.doubted import KINDS, Doubted, by_kind
from waywiser.analysis.fitted import estimate_of
from waywiser.analysis.subject import Point, Subject
from waywiser.analysis.trust_tables import of_doubts, of_families
from waywiser.analysis.uncertainty import STEPS, amount, uncertainty
from waywiser.plan.name import label_of
from waywiser.words import Place
from waywiser.words.number_format import count

QUESTION = "trust"
MOST_FINDINGS = 5
MANY = 0.10
"""Of the series: a doubt that concerns more is a warning, for the profile as a whole."""


def answer(subject: Subject) -> Answer:
    points = [point for curve in subject.curves for point in curve.points]
    doubts = by_kind(points)
    told = [_finding(subject, each, len(points)) for each in doubts]
    told.sort(key=lambda finding: finding.severity == "info")  # otherwise as weighty as they were
    grave = [*conditions(subject), *_failures(subject)]
    return Answer(
        question=QUESTION,
        title="How far can these numbers be trusted?",
        summary=_summary(subject, points),
        findings=ranked([*grave, *told[:MOST_FINDINGS]]),
        tables=tuple(filter(None, (of_families(points), of_doubts(doubts, len(points))))),
        unanswered=tuple(_unanswered(subject, points)),
        judged=any(uncertainty(point) is not None for point in points),
    )


def _finding(subject: Subject, found: Doubted, of: int) -> Finding:
    kind, share = KINDS[found.kind], len(found.points) / of
    text = f"{_some(len(found.points), of)} {kind.says}"
    if len(found.points) > found.most_often:
        text += f", {found.most_often} of them {found.family}"
    worst = label_of(found.worst.workload)
    if found.typical is not None and found.most is not None:
        text += (
            f"; {kind.measure} typically {_share(found.typical)} of the value, at most "
            f"{_share(found.most)} ({worst})"
        )
    else:
        text += f", for example {worst}"
    return Finding(
        id=found.kind.replace(" ", "-"),
        severity="warning" if kind.wrong or (kind.weighs and share > MANY) else "info",
        statement=text,
        effect=found.typical,
        devices=tuple(subject.device(place) for place in _gpus(found)),
        exhibits=_exhibit(found.worst),
        remedy=found.remedy,
    )


def _some(number: int, of: int) -> str:
    """``213 of 2121 series (10%)``, ``all 5080 series``."""
    if number == of:
        return f"all {count(of, 'series')}"
    part = number / of
    return f"{number} of {count(of, 'series')} ({'<1%' if part < 0.01 else f'{part:.0%}'})"


def _share(value: float) -> str:
    """With a decimal where it is less than a few percent."""
    return amount(value, 1 if value < 0.0995 else 0)


def _gpus(found: Doubted) -> list[Place]:
    """GPUs that a doubt is about, where it is about a device."""
    if not KINDS[found.kind].of_devices:
        return []
    places = (
        place
        for point in found.points
        for transfer in point.workload.transfers
        for place in transfer.path.places
    )
    return sorted({place for place in places if place.kind == "gpu"}, key=lambda place: place.index)


def _exhibit(point: Point) -> tuple[Exhibit, ...]:
    found = estimate_of(point)
    if found.rate is None:
        return (Exhibit(point.line.workload, "time", found.median, "s", found.interval),)
    return (Exhibit(point.line.workload, "rate", found.rate.value, "B/s", found.rate.interval),)


def _failures(subject: Subject) -> Iterator[Finding]:
    """What was planned and has no number: wrong bytes first, since they are nobody's noise."""
    groups = subject.overview.failures
    wrong = [group for group in groups if group.reason.startswith("wrong-bytes")]
    for group in wrong:
        yield Finding(
            id="wrong-bytes",
            severity="error",
            statement=f"{count(len(group.members), 'visit')} moved wrong bytes, for example "
            f"{group.members[0]}: {group.reason.removeprefix('wrong-bytes: ')}",
            remedy="do not use this path; look at the health of the GPUs, and report it",
        )
    others = [group for group in groups if group not in wrong]
    if others:
        visits = sum(len(group.members) for group in others)
        first = others[0]
        yield Finding(
            id="failed",
            severity="warning",
            statement=f"{count(visits, 'visit')} failed, for {count(len(others), 'reason')}; most "
            f"often: {first.reason} ({first.members[0]})",
            remedy="each is listed by waywiser show; --resume measures interrupted ones again",
        )
    planned, visits = subject.overview.planned_visits, subject.overview.visits
    if planned is not None and visits < planned:
        yield Finding(
            id="unfinished",
            severity="warning",
            statement=f"the survey is not finished: {visits} of {planned} visits were made",
            effect=1 - visits / planned,
            remedy="waywiser survey --resume goes on where it stopped",
        )


def _summary(subject: Subject, points: Sequence[Point]) -> str:
    if not points:
        return "Nothing was measured."
    known = sorted(value for point in points if (value := uncertainty(point)) is not None)
    if not known:
        return f"None of {count(len(points), 'series')} has an interval."
    first, *others = (
        (f"{sum(value <= step for value in known) / len(points):.0%}", f"to within {step:.0%}")
        for step in STEPS
    )
    shares = ", ".join(" ".join(each) for each in others)
    blocks = subject.overview.summary.blocks
    kind = "between processes" if blocks >= 6 else "within processes"
    return (
        f"{first[0]} of {count(len(points), 'series')} are known {first[1]}, {shares}, judged by "
        f"intervals {kind}"
        + (f" and by how far their {blocks:g} blocks differ." if blocks > 1 else ".")
    )


def _unanswered(subject: Subject, points: Sequence[Point]) -> Iterator[str]:
    if subject.overview.summary.blocks < 2:
        yield "how numbers change from process to process: there is one block"
    elif subject.overview.summary.blocks < 6:
        yield (
            "what a further process would find: fewer than six blocks give no interval between "
            "processes (--preset full makes six)"
        )
    without = sum(uncertainty(point) is None for point in points)
    if without:
        yield f"how certain {count(without, 'series')} are: they have no interval"
    health = subject.overview.health
    if health is None:
        yield "whether errors were counted meanwhile: no counters were read"
    else:
        yield from (f"health: {text}" for text in chain(health.unread, health.unavailable))
