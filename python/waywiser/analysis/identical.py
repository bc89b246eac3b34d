"""Do paths that ought to be equal perform equally?

The classes are those of `waywiser.plan.classes`: what the machine's symmetry maps onto one another,
as far as the topology shows it. Twins are compared where sizes tell of a rate
(`waywiser.analysis.twins`) within a margin, and to be equal is tested for and not assumed. Twins
that differ are told by link, with every kind of transfer that says so: one slow slot is one
finding.

The question and the form of the table are those of the thesis chapter on explicit transfers
(C. Pearson, M.S. thesis, 2018, "Differences between Identical Transfers").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.analysis import lacking, links
from waywiser.analysis.answer import Answer, Cell, Table, ranked
from waywiser.analysis.grouped import UNCLEAR, percent
from waywiser.analysis.kinds import usual
from waywiser.analysis.related import RATE_BYTES
from waywiser.analysis.subject import Subject
from waywiser.analysis.twins import UNEVEN, Twin, classes_of, judge
from waywiser.plan.classes import Classes
from waywiser.stats.equivalence import MARGIN, How
from waywiser.words import format_bytes

LARGEST = 2**62


def answer(subject: Subject) -> Answer:
    """Per class of equal paths, whether they are, and which break it."""
    classes = twins_of(subject)
    whole = [twins for twins in classes if not is_uneven(twins)]
    findings = [
        *lacking.findings(subject),
        *links.findings(subject, [twin for twins in whole for twin in twins]),
        *links.uneven(subject, [twins for twins in classes if is_uneven(twins)]),
    ]
    return Answer(
        question="identical",
        title="Do paths that ought to be equal perform equally?",
        summary=_summary(classes),
        findings=ranked(findings),
        tables=(_table(classes),) if classes else (),
        unanswered=tuple(_unanswered(classes)),
        judged=bool(classes),
    )


def twins_of(subject: Subject) -> list[list[Twin]]:
    """The classes of two and more usual curves, judged at sizes that tell of a rate."""
    keys = Classes(subject.machine)
    curves = [
        (curve, kind, keys.key(curve.workload))
        for curve, kind in usual(subject)
        if kind.group != "file"
    ]
    return judge(classes_of(curves, RATE_BYTES, LARGEST), subject.overview.nearness, MARGIN)


def is_uneven(twins: Sequence[Twin]) -> bool:
    """Whether a class falls apart, so that nobody can say which of it is right; not where one GPU
    is behind all of those that differ."""
    slow = [twin for twin in twins if twin.verdict == "more"]
    if len(slow) <= UNEVEN * len(twins) or len(twins) == 2:
        return False
    return not links.common_gpu(slow)


def _summary(classes: Sequence[Sequence[Twin]]) -> str:
    if not classes:
        return (
            "There is nothing to compare: no two paths ought to be equal, or none of them was "
            f"measured from {format_bytes(RATE_BYTES)} on."
        )
    twins = [twin for each in classes for twin in each]
    equal = sum(twin.verdict == "equal" for twin in twins)
    slow = sum(twin.verdict == "more" for twin in twins)
    fast = sum(twin.verdict == "less" for twin in twins)
    told = f"Of {len(twins)} paths in {len(classes)} classes, {equal} equal their twins within "
    told += f"{MARGIN:.1%}"
    if slow or fast:
        told += f"; slower: {slow or 'none'}, faster: {fast or 'none'}"
    rest = len(twins) - equal - slow - fast
    return f"{told}; not to be told: {rest}." if rest else f"{told}."


def _unanswered(classes: Iterable[Sequence[Twin]]) -> Iterator[str]:
    reasons: dict[How, list[str]] = {}
    for twins in classes:
        unclear = sum(twin.verdict == "unclear" for twin in twins)
        if unclear:
            how: How = "within blocks" if twins[0].interval is None else "pooled blocks"
            reasons.setdefault(how, []).append(f"{twins[0].kind}, {unclear} of {len(twins)} paths")
    for how, kinds in reasons.items():
        yield f"{UNCLEAR[how]}: {'; '.join(kinds)}"


def _table(classes: Sequence[Sequence[Twin]]) -> Table:
    return Table(
        title="Equal paths",
        columns=("transfer", "differ", "paths", "slowest", "fastest"),
        rows=tuple(_row(twins) for twins in classes),
        caption=f"✓ some differ by more than {MARGIN:.1%}, × all equal within it, ? not to be "
        f"told; time against that of the twins, at {format_bytes(RATE_BYTES)} and more.",
    )


def _row(twins: Sequence[Twin]) -> tuple[Cell, ...]:
    slowest = max(twins, key=lambda twin: twin.effect)
    fastest = min(twins, key=lambda twin: twin.effect)
    differ = [twin for twin in twins if twin.verdict in ("more", "less")]
    if differ:
        verdict = Cell(str(len(differ)), "yes", differ[0].curve)
    elif all(twin.verdict == "equal" for twin in twins):
        verdict = Cell("", "no", twins[0].curve)
    else:
        verdict = Cell("", "unclear", slowest.curve)
    return (
        Cell(str(twins[0].kind)),
        verdict,
        Cell(str(len(twins))),
        _extreme(slowest),
        _extreme(fastest),
    )


def _extreme(twin: Twin) -> Cell:
    sign = "+" if twin.effect >= 0 else "−"
    return Cell(f"{links.ends(twin)} {sign}{percent(twin.effect)}", "", twin.curve)
