"""How far the profile is to be trusted: what its numbers are uncertain by, why, and what to do.

A number is as uncertain as half its interval or half of what its blocks differ by, whichever is
more. Quality flags (`waywiser.profile.quality_flags`) are counted by kind over all series, and the
few that matter most are reported: those that make numbers wrong before those that make them vague,
then by how many series they concern and by how much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from waywiser.analysis.questions.crashed import crashed_paths
from waywiser.curves import (
    FAMILIES,
    Answer,
    Curve,
    Finding,
    Point,
    Sheet,
    SheetCell,
    Subject,
    amount,
    label_of,
    ranked,
    table,
)
from waywiser.curves.answer import LOADED
from waywiser.fitness.diagnosis import OTHER_WORK, disturbances, seen
from waywiser.fitness.situation import Situation
from waywiser.profile import Origin, remedy_of
from waywiser.stats import INTERVAL_SAMPLES, median
from waywiser.words import Place, Value, count, grouped

STEPS = (0.02, 0.05, 0.10)
"""The target of a survey, what suffices to choose between methods, and what is rough."""

MOST_FLAGS = 5
"""Findings of quality flags; all of them are in the table."""

MANY = 0.10
"""A share of the series: a quality flag that concerns more is a warning for the whole profile."""

UNMEASURED = 0.05
"""The size that a quality flag without one is taken to have."""


def answer(subject: Subject) -> Answer:
    points = [point for curve in subject.curves for point in curve.measured]
    flags = flagged(points)
    found = [_finding(subject, each, len(points)) for each in flags]
    found.sort(key=lambda finding: finding.severity == "info")  # otherwise as weighty as they were
    grave = [*_conditions(subject), *_failures(subject)]
    return Answer(
        question="trust",
        title="Quality: how certain are these numbers?",
        summary=_summary(subject, points),
        findings=ranked([*grave, *found[:MOST_FLAGS]]),
        tables=(*_of_families(points), *_of_flags(flags, len(points), subject.origin)),
        unanswered=tuple(_unanswered(subject, points)),
        answered=any(uncertainty(point) is not None for point in points),
    )


def uncertainty(point: Point) -> float | None:
    """Half the interval, or half of what blocks differ by if that is more; None without any."""
    relative = point.measured.relative
    return None if relative is None else max(relative, blocks_differ_by(point) / 2)


def _finding(subject: Subject, found: Flagged, of: int) -> Finding:
    share, number = len(found.points) / of, len(found.points)
    series = count(of, "series")
    part = "<1%" if share < 0.01 else f"{share:.0%}"
    text = f"all {series}" if number == of else f"{number} of {series} ({part})"
    text += f" {found.kind.says}"
    if number > found.most_often:
        text += f", {found.most_often} of them {found.family}"
    worst = label_of(found.worst.workload)
    if found.typical is not None and found.most is not None:
        text += (
            f"; {found.kind.measure} typically {_share(found.typical)} of the value, at most "
            f"{_share(found.most)} ({worst})"
        )
    else:
        text += f", for example {worst}"
    places = (place for point in found.points for place in point.workload.places)
    return Finding(
        id=found.name.replace(" ", "-"),
        severity="warning" if found.kind.wrong or (found.kind.weighs and share > MANY) else "info",
        statement=text,
        effect=found.typical,
        devices=subject.gpus(places) if found.kind.of_devices else (),
        exhibits=(found.worst.exhibit(),),
        remedy=remedy_of(found.name, subject.origin),
    )


def _share(value: float) -> str:
    """A share with a decimal if it is less than a tenth."""
    return amount(value, 1 if value < 0.0995 else 0)


def _failures(subject: Subject) -> Iterator[Finding]:
    """What was planned and has no number: wrong bytes first, since they are never noise."""
    groups = subject.overview.failures
    wrong = [group for group in groups if group.kind == "wrong-bytes"]
    for group in wrong:
        yield Finding(
            id="wrong-bytes",
            severity="error",
            statement=f"{count(len(group.members), 'visit')} moved wrong bytes, for example "
            f"{group.members[0]}: {group.reason}",
            remedy="do not use this path; check the health of the GPUs, and report it",
        )
    yield from crashed_paths(subject)
    others = [group for group in groups if group not in wrong]
    if others:
        visits = sum(len(group.members) for group in others)
        first = others[0]
        yield Finding(
            id="failed",
            severity="warning",
            statement=f"{count(visits, 'visit')} failed, for {count(len(others), 'reason')}; most "
            f"often: {first} ({first.members[0]})",
            remedy="each is listed by waywiser show"
            + subject.surveyed("; --resume measures interrupted ones again"),
        )
    planned, visits = subject.overview.planned_visits, subject.overview.visits
    if planned is not None and visits < planned:
        yield Finding(
            id="unfinished",
            severity="warning",
            statement=f"the survey is not finished: {visits} of {planned} visits were made",
            effect=1 - visits / planned,
            remedy="waywiser survey --resume continues it",
        )


def _conditions(subject: Subject) -> Iterator[Finding]:
    """What `waywiser.fitness` says of the recorded machine."""
    yield from _health(subject)
    situation = Situation(
        subject.machine, stored=subject.environment, gpu_states=subject.gpu_states
    )
    found = disturbances(situation)
    loads = [each for each in found if each.id in OTHER_WORK]
    if loads:
        evidence = "; ".join(seen(each) for each in loads)
        yield Finding(
            id=LOADED,
            severity="warning",
            statement=f"the machine was not idle: {evidence}",
            remedy="survey again when waywiser doctor says OK, or on an exclusive node",
        )
    if settings := [each.text for each in found if each not in loads]:
        yield Finding(
            id="unfit-machine",
            severity="warning",
            statement=f"settings of the machine disturbed the measurement: {'; '.join(settings)}",
            remedy="ask waywiser doctor, which names a remedy for each, and survey again",
        )


def _health(subject: Subject) -> Iterator[Finding]:
    health = subject.overview.health
    if health is None or not health.is_problem:
        return
    errors = [*map(str, health.rises), *health.xids, *health.standing]
    gpus = (
        Place("gpu", gpu.index)
        for gpu in subject.machine.gpus
        if any(f"gpu:{gpu.index} " in f"{text} " for text in errors)
    )
    corrected = all(" corrected" in text or "replays" in text for text in errors)
    yield Finding(
        id="health",
        severity="warning" if corrected else "error",
        statement=f"error counters of the GPUs rose: {', '.join(errors)}",
        devices=subject.gpus(gpus),
        remedy="check nvidia-smi -q and the kernel log; replace a device whose counters rise again",
    )


def _summary(subject: Subject, points: Sequence[Point]) -> str:
    if not points:
        return "Not determined: no series has a result."
    known = [value for point in points if (value := uncertainty(point)) is not None]
    if not known:
        return f"None of {count(len(points), 'series')} has an interval."
    first, *others = (
        (f"{sum(value <= step for value in known) / len(points):.0%}", f"to within {step:.0%}")
        for step in STEPS
    )
    shares = ", ".join(map(" ".join, others))
    blocks = subject.overview.summary.blocks
    kind = "between processes" if blocks >= INTERVAL_SAMPLES else "within processes"
    return (
        f"{first[0]} of {count(len(points), 'series')} are known {first[1]}, {shares}, measured by "
        f"intervals {kind}"
        + (f" and by how far their {blocks:g} blocks differ." if blocks > 1 else ".")
    )


def _unanswered(subject: Subject, points: Sequence[Point]) -> Iterator[str]:
    if subject.overview.summary.blocks < 2:
        yield "variance between processes: there is one block"
    elif subject.overview.summary.blocks < INTERVAL_SAMPLES:
        yield (
            "the interval between processes: fewer than six blocks give no interval between "
            "processes (--preset full makes six)"
        )
    without = sum(uncertainty(point) is None for point in points)
    if without:
        yield f"the uncertainty of {count(without, 'series')}: they have no interval"
    health = subject.overview.health
    if health is None:
        yield "whether error counters rose: none were read"
    else:
        yield from (f"health: {text}" for text in chain(health.unread, health.unavailable))


def _of_families(points: Sequence[Point]) -> tuple[Sheet, ...]:
    """How uncertain the numbers of each family of paths are."""
    families = grouped((family_of(point), point) for point in points)
    return table(
        "Uncertainty by kind of transfer",
        (
            "paths", "series", "converged", *(f"within {step:.0%}" for step in STEPS),
            "typically", "blocks differ by", "worst",
        ),
        (_row_of_family(family, families[family]) for family in FAMILIES if family in families),
        "The uncertainty is half of the interval, or half of the difference between blocks if that "
        "is larger, relative to the value. Typically: the median over the series.",
    )  # fmt: skip


def _row_of_family(family: str, points: Sequence[Point]) -> tuple[SheetCell, ...]:
    known = [(value, point) for point in points if (value := uncertainty(point)) is not None]
    values = [value for value, _ in known]
    differences = [blocks_differ_by(point) for point in points if len(point.measured.blocks) > 1]
    worst, at = max(known, key=lambda each: each[0], default=(None, points[0]))
    converged = sum(point.measured.converged for point in points)
    return (
        SheetCell(family),
        SheetCell(str(len(points))),
        SheetCell(f"{converged / len(points):.0%}"),
        *(SheetCell(f"{sum(v <= step for v in values) / len(points):.0%}") for step in STEPS),
        SheetCell(f"{median(values):.1%}" if values else "—"),
        SheetCell(f"{median(differences):.1%}" if differences else "—"),
        SheetCell(amount(worst) if worst is not None else "—", series=at.text),
    )


def _of_flags(flags: Sequence[Flagged], of: int, origin: Origin) -> tuple[Sheet, ...]:
    """Each kind of quality flag with its counts and its remedy."""
    return table(
        "Quality flags",
        ("kind", "series", "share", "typically", "at most", "remedy"),
        (
            (
                SheetCell(each.name, mark="no" if each.kind.wrong else ""),
                SheetCell(str(len(each.points))),
                SheetCell(f"{len(each.points) / of:.0%}"),
                SheetCell(amount(each.typical, 1) if each.typical is not None else "—"),
                SheetCell(
                    amount(each.most, 1) if each.most is not None else "—",
                    series=each.worst.text,
                ),
                SheetCell(remedy_of(each.name, origin)),
            )
            for each in flags
        ),
        "Sorted by weight: first wrong numbers, then the number of series times the size.",
    )


# Quality flags by kind: how many, how large, and which is worst.


class FlagKind(Value, frozen=True):
    """What a kind of quality flag says of a profile."""

    says: str
    """Text after the number of series."""
    measure: str = ""
    """What is measured of it, up to "typically"."""
    size: Callable[[Point], float | None] = lambda _: None
    """How large it is, of one series, relative."""
    wrong: bool = False
    """The numbers are of something else than they say, however narrow their intervals."""
    weighs: bool = True
    """It makes numbers vague; else it only explains them."""
    of_devices: bool = False


def blocks_differ_by(point: Point) -> float:
    """The slowest block over the fastest, minus 1, outliers left out; 0 of one block."""
    medians = [block.median for block in point.measured.used]
    return max(medians) / min(medians) - 1 if min(medians) > 0 else 0.0


def _above_bound(point: Point) -> float | None:
    share = point.of_bound
    return share - 1 if share is not None else None


def _most_of_blocks(name: str) -> Callable[[Point], float]:
    return lambda point: max(abs(getattr(block, name)) for block in point.measured.used)


def _of_outliers(point: Point) -> float | None:
    found, middle = point.measured, point.measured.median
    apart = [abs(b.median / middle - 1) for b in found.blocks if b.block in found.outliers]
    return max(apart, default=None)


KINDS: dict[str, FlagKind] = {
    "failed block": FlagKind("have a block that failed, and so fewer than planned"),
    "summary only": FlagKind("are another tool's mean or median, without samples", weighs=False),
    "few samples": FlagKind("have too few samples for an interval"),
    "not converged": FlagKind(
        "did not converge", "half the interval is", lambda point: point.measured.relative
    ),
    "blocks disagree": FlagKind(
        "differ from block to block by more than their intervals", "the difference is",
        blocks_differ_by,
    ),
    "drift": FlagKind("drifted while they were sampled", "the drift is", _most_of_blocks("drift")),
    "spread": FlagKind(
        "scatter widely", "the middle half of their samples spans", _most_of_blocks("spread")
    ),
    "outliers": FlagKind(
        "have outliers",
        "the largest deviation is",
        _most_of_blocks("largest_deviation"),
        weighs=False,
    ),
    "throttled": FlagKind("were measured on a GPU that was throttled", wrong=True, of_devices=True),
    "slow link": FlagKind(
        "were measured over a link that ran below its best", wrong=True, of_devices=True
    ),
    "above bound": FlagKind(
        "are faster than the bound", "the excess is", _above_bound, weighs=False
    ),
    "below resolution": FlagKind("are partly below the timer's resolution", weighs=False),
    "misplaced": FlagKind("had memory elsewhere than they say", wrong=True),
    "unverified": FlagKind("had memory whose place the system does not show", weighs=False),
    "void": FlagKind("lost samples to the watchdog"),
    "outlier process": FlagKind(
        "have a process that is an outlier, which no figure uses",
        "its time differs by",
        _of_outliers,
        weighs=False,
    ),
    "crowded": FlagKind("are of ranks that share CPUs: they show how these take turns"),
}  # fmt: skip
"""Kinds by their name in `waywiser.profile.quality_flags.REMEDIES`."""


class Flagged(Value, frozen=True):
    """All series with one kind of quality flag."""

    name: str
    points: tuple[Point, ...]
    typical: float | None
    """Median of its sizes, relative; None if it has none."""
    most: float | None
    worst: Point
    family: str
    """The family of paths that has most of the series."""
    most_often: int
    """How many of the series are of that family."""

    @property
    def kind(self) -> FlagKind:
        return KINDS[self.name]

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """What makes numbers wrong or vague, by series times size; then what only explains them,
        by series."""
        size = UNMEASURED if self.typical is None else self.typical
        weight = size if self.kind.weighs else 1.0
        return not self.kind.wrong, not self.kind.weighs, -len(self.points) * weight


def flagged(points: Sequence[Point]) -> list[Flagged]:
    """The weightiest first."""
    found = grouped((flag.kind, point) for point in points for flag in point.measured.quality_flags)
    return sorted((_flagged(*each) for each in found.items()), key=lambda each: each.rank)


def _flagged(name: str, members: Sequence[Point]) -> Flagged:
    sized = [(size, point) for point in members if (size := KINDS[name].size(point)) is not None]
    most, worst = max(sized, key=lambda each: each[0], default=(None, members[0]))
    typical = median([size for size, _ in sized]) if sized else None
    ((family, times),) = Counter(map(family_of, members)).most_common(1)
    return Flagged(name, tuple(members), typical, most, worst, family, times)


def family_of(point: Point) -> str:
    """The family of the paths that its curve belongs to."""
    return Curve((point,)).family
