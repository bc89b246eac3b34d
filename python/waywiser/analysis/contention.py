"""What do transfers that run together cost one another, and what is it that they share?

Aggregates are all bytes over the time from the common start to the last finish, never sums of
rates. Both ways of one path are answered as its duplex; sets of more, by what is slowed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.analysis import bottlenecks, duplex
from waywiser.analysis.answer import Answer, Cell, Table, ranked
from waywiser.analysis.subject import Subject
from waywiser.analysis.texts import hidden_loss, named
from waywiser.analysis.together import Together, found_together
from waywiser.stats.decision import THRESHOLD
from waywiser.words.number_format import format_rate


def answer(subject: Subject) -> Answer:
    """What each workload of several transfers reaches of what they reach alone."""
    together, unknown = found_together(subject)
    both_ways = [each for each in together if is_duplex(each)]
    sets = [each for each in together if not is_duplex(each)]
    findings = [*bottlenecks.findings(subject, sets), *duplex.findings(subject, both_ways)]
    tables = [
        _table("Together against alone", sets),
        _table("Both ways against each way alone", both_ways),
    ]
    return Answer(
        question="contention",
        title="What do transfers cost one another?",
        summary=_summary(sets, both_ways),
        findings=ranked(findings),
        tables=tuple(table for table in tables if table.rows),
        unanswered=tuple(_unanswered(together, [curve.name for curve in unknown])),
        judged=bool(sets or both_ways),
    )


def _unanswered(together: Sequence[Together], unknown: Sequence[str]) -> Iterator[str]:
    if unknown:
        yield f"their transfers were not all measured alone: {named(unknown)}"
    unclear = [each for each in together if each.decision.verdict == "no change found"]
    alone = [each.curve.name for each in unclear if each.decision.detectable is None]
    if alone:
        yield f"measured in one process: {named(alone)}"
    noisy = [
        f"{each.curve.name} {hidden_loss(each.decision)}"
        for each in unclear
        if each.decision.detectable is not None
    ]
    if noisy:
        yield f"a loss of this size could have been missed: {named(noisy)}"


def is_duplex(each: Together) -> bool:
    """Whether it is one path both ways."""
    first, *rest = each.transfers
    return len(rest) == 1 and rest[0].path == first.path.opposite


def _summary(sets: Sequence[Together], both_ways: Sequence[Together]) -> str:
    if not sets and not both_ways:
        return "Nothing was measured together with something else."
    told = []
    for found, what in ((sets, "sets of transfers"), (both_ways, "paths both ways")):
        if found:
            slowed = sum(each.is_slowed for each in found)
            told.append(f"{slowed} of {len(found)} {what}")
    return f"Slower together than alone: {', '.join(told)}."


def _table(title: str, found: Sequence[Together]) -> Table:
    return Table(
        title=title,
        columns=("together", "slowed", "GB/s", "of the sum alone", "slowest transfer", "fastest"),
        rows=tuple(_row(each) for each in found),
        caption="✓ takes longer than its slowest transfer alone by more than "
        f"{THRESHOLD:.0%}, × as long, ? not determined; GB/s of all bytes until the last is done; "
        "how many times as long as alone the transfers take. Where some wait for others, as copies "
        "out of one GPU on one engine, the slowest is counted from the common start to the end of "
        "all, and the fastest from where it began itself.",
    )


def _row(each: Together) -> tuple[Cell, ...]:
    rate = each.point.estimate.rate
    half = rate.interval.width / 2 / rate.value if rate and rate.interval else None
    return (
        Cell(each.curve.name),
        Cell(
            "not replicated" if each.decision.detectable is None else "",
            "no"
            if each.is_unslowed
            else "yes"
            if each.decision.verdict == "different"
            else "unclear",
            each.curve.text,
        ),
        Cell(format_rate(each.rate, half), "", each.point.line.workload),
        Cell(f"{each.share:.0%}"),
        Cell(f"×{each.slowest:.2f}" + (f", {each.waiting}" if each.waiting else "")),
        Cell(f"×{min(each.slowdowns):.2f}"),
    )
